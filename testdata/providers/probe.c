// Asks libfabric's providers what they do where they differ: a line for each
// question, with the answer of this machine's library. docs/PROVIDERS.md says
// how weft deals with the answers.
//
//	scripts/probe                        every question to sockets, tcp, shm, udp
//	scripts/probe PROVIDER               every question to one
//	scripts/probe PROVIDER QUESTION...
//
// Each question is asked in a process of its own, which may crash or hang.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

const char *provider;
struct shared *shared;

static const struct question *const groups[] = {
	attribute_questions, waiting_questions, process_questions, address_questions,
	misuse_questions, message_questions, end_questions,
};

// Removes the shared memory of those that did not close what they opened.
static void clear(void)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *e;
	int i;

	while (dir && (e = readdir(dir))) {
		char path[300];

		for (i = 0; i < shared->count; i++) {
			char *end;
			long pid = strtol(e->d_name, &end, 10);

			if ((pid == shared->pids[i] && *end == ':') ||
			    !strncmp(e->d_name, PROBE_NODE, strlen(PROBE_NODE)) ||
			    !strncmp(e->d_name, FOREIGN_NODE ":", strlen(FOREIGN_NODE ":"))) {
				snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
				unlink(path);
				break;
			}
		}
	}
	if (dir)
		closedir(dir);
}

static void ask(const char *of, const struct question *q)
{
	int status = 0;
	pid_t pid;

	provider = of;
	memset(shared, 0, sizeof *shared);
	pid = fork();
	if (pid == 0) {
		// Its children and what they leave running end with it.
		setpgid(0, 0);
		alarm(12);
		q->ask();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(1);
	kill(-pid, SIGKILL);
	printf("%-8s %-22s %s", of, q->name, shared->answer);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf(" NEVER RETURNS");
	else if (WIFSIGNALED(status))
		printf(" DIES OF %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		printf(" exit %d", WEXITSTATUS(status));
	printf("\n");
	fflush(stdout);
	clear();
}

// Asks the questions of a name, or all of them where there is none. Returns how
// many there were.
static int ask_named(const char *of, const char *name)
{
	const struct question *q;
	size_t g;
	int n = 0;

	for (g = 0; g < sizeof groups / sizeof *groups; g++)
		for (q = groups[g]; q->name; q++)
			if (!name || !strcmp(q->name, name)) {
				ask(of, q);
				n++;
			}
	return n;
}

int main(int argc, char **argv)
{
	static const char *all[] = {"sockets", "tcp", "shm", "udp"};
	uint32_t v = fi_version();
	int i;

	// A dependency of Debian's library catches SIGSEGV when it is loaded.
	if (!getenv("IPATH_NO_BACKTRACE")) {
		setenv("IPATH_NO_BACKTRACE", "1", 1);
		execv("/proc/self/exe", argv);
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	printf("libfabric %u.%u, headers %u.%u\n", FI_MAJOR(v), FI_MINOR(v), FI_MAJOR_VERSION, FI_MINOR_VERSION);
	fflush(stdout);
	for (i = 0; argc < 2 && i < 4; i++)
		ask_named(all[i], NULL);
	if (argc == 2)
		ask_named(argv[1], NULL);
	for (i = 2; i < argc; i++)
		if (!ask_named(argv[1], argv[i])) {
			fprintf(stderr, "probe: no question %s\n", argv[i]);
			return 2;
		}
	return 0;
}
