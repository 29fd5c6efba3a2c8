/* Ranks 0 and 1 come late to an allreduce in turn, by so many seconds: late SECONDS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, n, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int call = 0; call < 40; call++) {
        if (call >= 20 && call < 22 && rank == call - 20)
            sleep((unsigned)atoi(argv[1]));
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        right = right && sum == n;
    }
    if (right)
        printf("rank %d is right\n", rank);
    MPI_Finalize();
    return 0;
}
