/* A number goes around all ranks; each adds its own.
 *
 * kubectl mpi run -n 4 --image mpiop.invalid/mpi-devel:openmpi --upload examples/c -- ./run.sh
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0)
        MPI_Recv(&sum, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank;
    if (rank < size - 1)
        MPI_Send(&sum, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    else
        printf("the ranks 0 to %d add up to %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
