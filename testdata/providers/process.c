#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static void handlers(void)
{
	struct sigaction before[NSIG], now;
	int s, found = 0;

	for (s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	open_side(&a);
	for (s = 1; s < NSIG; s++) {
		if (sigaction(s, NULL, &now) || now.sa_handler == before[s].sa_handler)
			continue;
		say("%s%s%s", found++ ? ", " : "", strsignal(s),
		    now.sa_flags & SA_ONSTACK ? " with SA_ONSTACK" : " without SA_ONSTACK");
	}
	say(found ? "" : "none");
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

static void threads(void)
{
	int before = entries("/proc/self/task");

	open_side(&a);
	say("%d", entries("/proc/self/task") - before);
}

static void killed(void)
{
	int before = entries("/dev/shm");
	pid_t pid = child_with_side(&a);

	if (pid == 0)
		for (;;)
			pause();
	say("files in /dev/shm: %d while it lives", entries("/dev/shm") - before);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say(", %d after SIGKILL", entries("/dev/shm") - before);
}

const struct question process_questions[] = {
	{"handlers", handlers},
	{"threads", threads},
	{"killed", killed},
	{NULL, NULL},
};
