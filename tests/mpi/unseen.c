/* Nonblocking collectives whose completion goes past the MPI_ functions, and then other requests, which
 * get the same handles.
 *
 * usage: unseen ROUNDS program|tool
 * With `program` it calls PMPI_Wait itself; with `tool` MPI_Wait, which a tool in front forwards to
 * PMPI_Wait. Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1, itself = !strcmp(argv[2], "program");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < atoi(argv[1]); round++) {
        long one = 1, sums[2] = {0, 0}, from = -1;
        MPI_Request request, both[2];
        MPI_Status statuses[2];
        MPI_Iallreduce(&one, &sums[0], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        if (itself) PMPI_Wait(&request, MPI_STATUS_IGNORE);
        else MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iallreduce(&one, &sums[1], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Waitall(1, &request, statuses);
        MPI_Irecv(&from, 1, MPI_LONG, (rank + 1) % size, 7, MPI_COMM_WORLD, &both[0]);
        long to = rank;
        MPI_Isend(&to, 1, MPI_LONG, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, statuses);
        right &= sums[0] == size && sums[1] == size && from == (rank + 1) % size;
    }
    return conclude(right);
}
