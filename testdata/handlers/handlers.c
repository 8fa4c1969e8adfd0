// Has several threads open a fabric of a provider that installs a handler of its
// own each time, while the program puts in one of its own. Ends with 1 and a
// line that says what was wrong if the provider's is left in the end, or the
// program's is gone.
//
//	handlers THREADS CALLS
#include "../../cgo/shim.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls;

static void of_the_program(int number)
{
	(void)number;
}

static void of_a_library(int number, siginfo_t *about, void *context)
{
	(void)number;
	(void)about;
	(void)context;
}

static void of_the_provider(int number)
{
	(void)number;
}

static void install(int number, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	sigaction(number, &action, NULL);
}

static void (*installed(int number))(int)
{
	struct sigaction action;

	sigaction(number, NULL, &action);
	return action.sa_handler;
}

// objects.c needs them to link; nothing here opens an endpoint.
struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	(void)info;
	return NULL;
}

void fi_freeinfo(struct fi_info *info)
{
	(void)info;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	install(SIGTERM, of_the_provider);
	install(SIGINT, of_the_provider);
	install(SIGPIPE, of_the_provider);
	install(SIGHUP, of_the_provider);
	install(SIGUSR2, of_the_provider);
	install(SIGUSR1, of_the_program);
	return 0;
}

uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

static void *opens(void *unused)
{
	struct fi_info info;
	struct fid_fabric *fabric;
	int i;

	memset(&info, 0, sizeof info);
	for (i = 0; i < calls; i++)
		weft_fabric(&info, &fabric);
	return unused;
}

static void expect(int number, void (*handler)(int), const char *otherwise)
{
	if (installed(number) == handler)
		return;
	printf("%s\n", otherwise);
	exit(1);
}

// A library's handler comes back with all that it was installed with.
static void install_of_a_library(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = of_a_library;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	sigaddset(&action.sa_mask, SIGALRM);
	sigaction(number, &action, NULL);
}

static void expect_of_a_library(int number)
{
	const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	struct sigaction action;

	sigaction(number, NULL, &action);
	if (action.sa_sigaction == of_a_library && (action.sa_flags & flags) == flags &&
	    sigismember(&action.sa_mask, SIGALRM))
		return;
	printf("the handler of another library is gone, or changed\n");
	exit(1);
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count, i;

	if (argc != 3)
		return 2;
	count = atoi(argv[1]);
	calls = atoi(argv[2]);
	// Go has one handler for all signals, SIGURG always among them.
	install(SIGURG, of_the_program);
	install(SIGTERM, of_the_program);
	// As of nohup, and of a program that ignores SIGPIPE.
	install(SIGINT, SIG_IGN);
	install(SIGPIPE, SIG_IGN);
	install_of_a_library(SIGHUP);
	for (i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, opens, NULL);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	expect(SIGTERM, of_the_program, "the provider's handler was put back for good");
	expect(SIGUSR1, of_the_program, "a handler that the program put in meanwhile is gone");
	expect(SIGUSR2, SIG_DFL, "the provider's handler is left where there was none");
	expect(SIGINT, SIG_IGN, "a signal is not ignored any more");
	expect(SIGPIPE, SIG_IGN, "SIGPIPE is not ignored any more");
	expect_of_a_library(SIGHUP);
	puts("ok");
	return 0;
}
