/* Two ranks of MPI send each other messages of so many bytes.
 *
 *     pingpong WARMUP COUNT SIZE
 *
 * Prints the seconds of half a round trip: the mean of all, and the median of equal
 * parts, as the other sides of these benchmarks do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { part = 1000 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	if (argc != 4) {
		fprintf(stderr, "pingpong WARMUP COUNT SIZE\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	long warmup = atol(argv[1]), count = atol(argv[2]), size = atol(argv[3]);
	int rank;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	long parts = count / part > 0 ? count / part : 1, each = count / parts;
	double *took = calloc(parts, sizeof *took);
	char *out = calloc(1, size + 1), *in = calloc(1, size + 1);
	if (!took || !out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	double begin = 0;
	for (long i = -warmup; i < parts * each; i++) {
		if (rank == 0) {
			if (i >= 0 && i % each == 0) {
				double now = MPI_Wtime();
				if (i > 0)
					took[i / each - 1] += now;
				else
					begin = now;
				took[i / each] -= now;
			}
			MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(in, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
	if (rank == 0) {
		double now = MPI_Wtime();
		took[parts - 1] += now;
		qsort(took, parts, sizeof *took, compare);
		printf("%.12f %.12f %ld\n", (now - begin) / (2.0 * parts * each), took[parts / 2] / (2.0 * each), parts * each);
	}
	free(took);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
