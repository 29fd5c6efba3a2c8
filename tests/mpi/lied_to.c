/* Reduces with a library that gives wrong ranks from the second call on; see lying_rank.c. */
#include <mpi.h>

int lying;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long sent[64] = { 0 }, got[64];
    MPI_Barrier(MPI_COMM_WORLD);
    lying = 1;
    for (int i = 0; i < 10; i++) MPI_Allreduce(sent, got, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
