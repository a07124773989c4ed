/* Compute pi by integrating 4 / (1 + x^2) over [0, 1] with the midpoint rule, the intervals dealt out to all ranks in turn.
 *
 * Usage: mpirun [-n RANKS] pi [INTERVALS]
 * Rank 0 prints one line for each rank with the host that it ran on, then the sum: what the hosts of an MPIJob did is seen at a glance.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const long long default_intervals = 100 * 1000 * 1000;

/* Return the number in `text`, or -1 if it is not a positive number. */
static long long parse_intervals(const char *text) {
    char *end = NULL;
    errno = 0;
    const long long intervals = strtoll(text, &end, 10);
    return errno != 0 || *text == '\0' || *end != '\0' || intervals < 1 ? -1 : intervals;
}

/* Return this rank's share of the integral: every `ranks`-th interval, from number `rank` on. */
static double integrate(int rank, int ranks, long long intervals) {
    const double width = 1.0 / (double)intervals;
    double sum = 0.0;
    for (long long i = rank; i < intervals; i += ranks) {
        const double x = ((double)i + 0.5) * width;
        sum += 4.0 / (1.0 + x * x);
    }
    return sum * width;
}

/* Print, on rank 0, where each rank runs. */
static void print_hosts(int rank, int ranks) {
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    char *hosts = NULL;
    int length = 0;
    MPI_Get_processor_name(host, &length);
    if (rank == 0) {
        hosts = calloc((size_t)ranks, sizeof host);
        if (hosts == NULL) {
            fprintf(stderr, "pi: no memory for the names of %d hosts\n", ranks);
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        }
    }
    MPI_Gather(host, sizeof host, MPI_CHAR, hosts, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++) {
        printf("rank %d of %d runs on %s\n", i, ranks, hosts + (size_t)i * sizeof host);
    }
    free(hosts);
}

int main(int argc, char **argv) {
    int rank = 0;
    int ranks = 1;
    double pi = 0.0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    const long long intervals = argc > 1 ? parse_intervals(argv[1]) : default_intervals;
    if (intervals < 0) {
        if (rank == 0) {
            fprintf(stderr, "pi: the number of intervals must be a positive number, not \"%s\"\n", argv[1]);
        }
        MPI_Finalize();
        return EXIT_FAILURE;
    }

    print_hosts(rank, ranks);
    const double start = MPI_Wtime();
    const double share = integrate(rank, ranks, intervals);
    MPI_Reduce(&share, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("pi is approximately %.16f, error %.1e, %lld intervals, %.3f s\n", pi, fabs(pi - acos(-1.0)), intervals,
               MPI_Wtime() - start);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
