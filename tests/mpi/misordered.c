/* Each rank in turn begins a nonblocking allreduce before a barrier, and the others theirs behind it: wrong, but the
 * libraries do not notice, and so do mpi4py's tests where the library has no MPI_Comm_iagree.
 *
 * usage: misordered
 * Ends with a barrier and a checked sum in the right order. Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int first = 0; first < size; first++) {
        int own = rank == first ? 11 : 13, both = 0;
        MPI_Request request;
        if (rank == first) MPI_Iallreduce(&own, &both, 1, MPI_INT, MPI_BAND, comm, &request);
        MPI_Barrier(comm);
        if (rank != first) MPI_Iallreduce(&own, &both, 1, MPI_INT, MPI_BAND, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right &= both == 9;
    }
    MPI_Barrier(comm);
    right &= step(comm, 0, 100);
    MPI_Comm_free(&comm);
    return conclude(right);
}
