/* A nonblocking barrier that one rank begins by its PMPI_ name, as some tools and libraries do, and the others do not:
 * from there on the ranks have begun numbers of such calls that differ for good.
 *
 * usage: unpaired CALLS    so many checked broadcasts behind it
 * Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, calls = argc > 1 ? atoi(argv[1]) : 1, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Request request;
    if (rank == 0) PMPI_Ibarrier(comm, &request);
    else MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < calls; k++) right &= step(comm, 1, 5 + k % 3);
    MPI_Comm_free(&comm);
    return conclude(right);
}
