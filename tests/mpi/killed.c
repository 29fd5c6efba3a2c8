/* Reduces until the last rank is killed, by itself; then until an error comes. Each of the others says so and ends
 * without MPI_Finalize, which would wait. */
#include "step.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, code = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long sent[100] = { 0 }, got[100];
    for (int call = 0; code == MPI_SUCCESS; call++) {
        if (call == 30 && rank == size - 1) raise(SIGKILL);
        code = MPI_Allreduce(sent, got, 100, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d was told\n", rank);
    fflush(stdout);
    _exit(0);
}
