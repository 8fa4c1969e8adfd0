//go:build linux

#include "shim.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

// Providers install signal handlers of their own. Those of shm, for SIGINT,
// SIGTERM, SIGBUS and SIGSEGV, take the process's names out of /dev/shm, even if
// the program then handles the signal and goes on; others, without SA_ONSTACK,
// would run on a goroutine's small stack. So a call that may load or start a
// provider is put between these two, and Go's own handlers come back.
//
// Threads may be in such calls at the same time, which may take as long as to look
// up a name. The first saves for all: one that came later would take what a
// provider has just installed for Go's, and put it back for good.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;
static struct sigaction saved[NSIG];

void weft_save_handlers(void)
{
	pthread_mutex_lock(&lock);
	if (inside++ == 0)
		for (int s = 1; s < NSIG; s++)
			if (sigaction(s, NULL, &saved[s]))
				memset(&saved[s], 0, sizeof saved[s]);
	pthread_mutex_unlock(&lock);
}

void weft_restore_handlers(void)
{
	pthread_mutex_lock(&lock);
	for (int s = 1; s < NSIG; s++) {
		struct sigaction now;

		if (sigaction(s, NULL, &now))
			continue;
		if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
			continue;
		// Go has one handler for all signals, SIGURG always among them: it may
		// have come in since.
		if (now.sa_handler == saved[SIGURG].sa_handler)
			continue;
		if (now.sa_handler != saved[s].sa_handler)
			sigaction(s, &saved[s], NULL);
	}
	inside--;
	pthread_mutex_unlock(&lock);
}
