/* Reduces over a communicator of which the library gives wrong ranks; see lying_rank.c. */
#include <mpi.h>

int lying;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long sent[64] = { 0 }, got[64];
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Barrier(MPI_COMM_WORLD);
    lying = 1;
    for (int i = 0; i < 10; i++) MPI_Allreduce(sent, got, 64, MPI_LONG, MPI_SUM, copy);
    MPI_Finalize();
    return 0;
}
