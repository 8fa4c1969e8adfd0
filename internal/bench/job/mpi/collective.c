/* Ranks of MPI carry out collectives, as the ranks of case.go do.
 *
 *     collective MICROSECONDS CASE...
 *
 * A case is WORK/ALGORITHM/BYTES/CALLS. The algorithm is Open MPI's own choice, and called
 * default. Without calls, there are as many as fit into the time, which rank 0 finds out.
 * Rank 0 prints a line for each case: the seconds of one call, the mean of all and the median
 * of equal parts, and how many calls there were.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These are as in measure.go. */
enum { MOST_PARTS = 100, LEAST_CALLS = 3, MOST_CALLS = 1 << 20, TRIAL = 10, BARRIERS = 16 };
static const double warm_seconds = 0.1;

static int rank, size;

struct work {
	const char *name;
	/* How many blocks the root and the others have, and get. */
	int root_in, in, root_out, out;
	int rooted, combines;
	void (*call)(float *in, float *out, int n);
};

static void barrier(float *in, float *out, int n)
{
	(void)in, (void)out, (void)n;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(float *in, float *out, int n)
{
	MPI_Bcast(rank == 0 ? in : out, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void reduce(float *in, float *out, int n)
{
	MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(float *in, float *out, int n)
{
	MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(float *in, float *out, int n)
{
	MPI_Gather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void scatter(float *in, float *out, int n)
{
	MPI_Scatter(in, n, MPI_FLOAT, out, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void allgather(float *in, float *out, int n)
{
	MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, MPI_COMM_WORLD);
}

static void reduce_scatter(float *in, float *out, int n)
{
	MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(float *in, float *out, int n)
{
	MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, MPI_COMM_WORLD);
}

enum { EACH = -1 }; /* a block for each rank */

static const struct work works[] = {
	{"barrier", 0, 0, 0, 0, 0, 0, barrier},
	{"bcast", 1, 0, 0, 1, 1, 0, bcast},
	{"reduce", 1, 1, 1, 0, 1, 1, reduce},
	{"allreduce", 1, 1, 1, 1, 0, 1, allreduce},
	{"gather", 1, 1, EACH, 0, 1, 0, gather},
	{"scatter", EACH, 0, 1, 1, 1, 0, scatter},
	{"allgather", 1, 1, EACH, EACH, 0, 0, allgather},
	{"reduce-scatter", EACH, EACH, 1, 1, 0, 1, reduce_scatter},
	{"alltoall", EACH, EACH, EACH, EACH, 0, 0, alltoall},
};

static void give_up(const char *why, const char *what)
{
	fprintf(stderr, "collective: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static long blocks(int root, int other)
{
	int n = rank == 0 ? root : other;

	return n == EACH ? size : n;
}

/* What element i of a rank's output is to be. */
static float expected(const struct work *w, long i, long n)
{
	long mine = rank * n + i % n;

	if (w->call == bcast)
		return (float)(i % 7);
	if (w->call == scatter)
		return (float)(mine % 7);
	if (w->call == gather || w->call == allgather)
		return (float)(i / n + i % n % 7);
	if (w->call == alltoall)
		return (float)(i / n + mine % 7);
	if (w->call == reduce_scatter)
		i = mine;
	return (float)(size * (size - 1) / 2 + size * (i % 7));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The seconds that so many calls take this rank. Where ranks may leave a call before all
 * have begun, they meet in between, which does not count. */
static double take(const struct work *w, float *in, float *out, int n, long calls)
{
	double took = 0, begin = MPI_Wtime();

	for (long i = 0; i < calls; i++) {
		if (!w->rooted) {
			w->call(in, out, n);
			continue;
		}
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		w->call(in, out, n);
		took += MPI_Wtime() - begin;
	}
	return w->rooted ? took : MPI_Wtime() - begin;
}

/* How many calls fit into the time: each trial has twice as many as the one before, until that says something, and then
 * as many once more, since what takes long may be something else. */
static long calibrate(const struct work *w, float *in, float *out, int n, double seconds)
{
	enum { TWICE = 0, AGAIN = -1 };
	double least = 0; /* of the first trial that said something */

	for (long trial = 1;;) {
		long calls = TWICE;
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		take(w, in, out, n, trial);
		double took = MPI_Wtime() - begin;
		if (rank != 0 || (took * TRIAL < seconds && trial < MOST_CALLS)) {
			least = 0;
		} else if (least == 0) {
			calls = AGAIN;
			least = took > 1e-9 ? took : 1e-9;
		} else {
			double fit = (double)trial * seconds / (took > 1e-9 && took < least ? took : least);
			calls = fit > MOST_CALLS ? MOST_CALLS : fit < LEAST_CALLS ? LEAST_CALLS : (long)fit;
		}
		MPI_Bcast(&calls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
		if (calls > 0)
			return calls;
		if (calls == TWICE)
			trial *= 2;
	}
}

static void measure(const struct work *w, const char *text, long bytes, long calls, double seconds)
{
	long n = bytes / (long)sizeof(float);
	long in_length = n * blocks(w->root_in, w->in), out_length = n * blocks(w->root_out, w->out);
	float *in = calloc(in_length + 1, sizeof *in), *out = calloc(out_length + 1, sizeof *out);

	if (!in || !out)
		give_up("no memory", text);
	for (long i = 0; i < in_length; i++)
		in[i] = (float)(rank + i % 7);
	memset(out, 0xff, (out_length + 1) * sizeof *out);
	w->call(in, out, (int)n);
	for (long i = 0; i < out_length; i++)
		if (out[i] != expected(w, i, n))
			give_up("the result is wrong", text);

	if (calls)
		take(w, in, out, (int)n, calls / TRIAL);
	else
		calls = calibrate(w, in, out, (int)n, seconds);
	long parts = calls < MOST_PARTS ? calls : MOST_PARTS, each = calls / parts;
	double took[MOST_PARTS], longest[MOST_PARTS], mean = 0;
	for (long part = 0; part < parts; part++)
		took[part] = take(w, in, out, (int)n, each) / (double)each;
	memcpy(longest, took, sizeof took);
	if (w->rooted)
		MPI_Reduce(took, longest, (int)parts, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		for (long part = 0; part < parts; part++)
			mean += longest[part] / (double)parts;
		qsort(longest, parts, sizeof *longest, compare);
		printf("%.12f %.12f %ld\n", mean, longest[parts / 2], parts * each);
		fflush(stdout);
	}
	free(in);
	free(out);
}

/* The system takes a while to find a core for each rank. */
static void warm_up(void)
{
	double begin = MPI_Wtime();

	for (int more = 1; more;) {
		for (int i = 0; i < BARRIERS; i++)
			MPI_Barrier(MPI_COMM_WORLD);
		more = MPI_Wtime() - begin < warm_seconds;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 3)
		give_up("want MICROSECONDS CASE...", "arguments");
	double seconds = atof(argv[1]) / 1e6;
	warm_up();
	for (int i = 2; i < argc; i++) {
		char name[32], algorithm[32];
		long bytes, calls;
		const struct work *w = NULL;

		if (sscanf(argv[i], "%31[^/]/%31[^/]/%ld/%ld", name, algorithm, &bytes, &calls) != 4 || bytes < 0 || calls < 0)
			give_up("want WORK/ALGORITHM/BYTES/CALLS", argv[i]);
		if (strcmp(algorithm, "default"))
			give_up("the algorithm is Open MPI's choice", argv[i]);
		for (size_t k = 0; k < sizeof works / sizeof *works; k++)
			if (!strcmp(name, works[k].name))
				w = &works[k];
		if (!w)
			give_up("no such collective", argv[i]);
		measure(w, argv[i], bytes, calls, seconds);
	}
	MPI_Finalize();
	return 0;
}
