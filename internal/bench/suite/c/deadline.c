#include "twin.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t expired;

// The first signal asks the loops to end, which closes nothing but lets them
// say where they were; the second is for a call that does not return.
static void on_alarm(int signal)
{
	(void)signal;
	if (expired)
		_exit(3);
	expired = 1;
}

void set_deadline(unsigned seconds)
{
	struct sigaction action;
	struct itimerval timer;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_alarm; // no SA_RESTART: blocking reads return
	if (sigaction(SIGALRM, &action, NULL))
		die("sigaction", 0);
	memset(&timer, 0, sizeof timer);
	timer.it_value.tv_sec = seconds;
	timer.it_interval.tv_sec = 2;
	if (setitimer(ITIMER_REAL, &timer, NULL))
		die("setitimer", 0);
}

void check_deadline(void)
{
	if (expired)
		die("the deadline has passed", 0);
}

// What shm leaves behind in /dev/shm, the runner removes.
void die(const char *what, int code)
{
	if (code)
		fprintf(stderr, "twin: %s: %d: %s\n", what, code,
			fi_strerror(code < 0 ? -code : code));
	else
		fprintf(stderr, "twin: %s\n", what);
	exit(1);
}
