/* Ranks of MPI add up so many bytes of floats, all of them.
 *
 *     allreduce WARMUP COUNT SIZE
 *
 * Rank 0 prints the seconds of one call: the mean of all, and the median of equal parts,
 * as the other jobs of these benchmarks do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	if (argc != 4) {
		fprintf(stderr, "allreduce WARMUP COUNT SIZE\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	long warmup = atol(argv[1]), count = atol(argv[2]), size = atol(argv[3]);
	long parts = count < 100 ? count : 100, each = count / parts;
	int rank, n = (int)(size / sizeof(float));
	double *took = calloc(parts, sizeof *took), mean = 0;
	float *in = calloc(n + 1, sizeof *in), *out = calloc(n + 1, sizeof *out);

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!took || !in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < n; i++)
		in[i] = (float)(rank + i % 7);
	for (long i = 0; i < warmup; i++)
		MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	for (long part = 0; part < parts; part++) {
		double begin = MPI_Wtime();
		for (long i = 0; i < each; i++)
			MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		took[part] = (MPI_Wtime() - begin) / (double)each;
		mean += took[part] / (double)parts;
	}
	if (rank == 0) {
		qsort(took, parts, sizeof *took, compare);
		printf("%.12f %.12f\n", mean, took[parts / 2]);
	}
	free(took);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
