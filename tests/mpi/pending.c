/* A message that needs its sender's help is pending while the sender waits in a collective: the
 * receiver takes it before it joins. A collective that does not drive the library's progress hangs.
 *
 * usage: pending LONGS ...
 * Where COLLTUNE_FORCE names collectives, those alone are run.
 * Prints "ok" when every result is right. */
#include "forced.h"
#include "step.h"

enum { BIG = 1 << 19 };
static long out[BIG], in[BIG];

static const char *const names[STEPS] = {
    "allreduce", "bcast", "allgather", "alltoall", "reduce", "allgatherv", "gather", "gatherv", "scatter",
    "scatterv", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "barrier"};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < (argc - 1) * STEPS; turn++)
        for (int sender = 0; sender < size; sender++) {
            int which = turn % STEPS, count = atoi(argv[1 + turn / STEPS]), receiver = (sender + 1) % size;
            MPI_Request request = MPI_REQUEST_NULL;
            if (!is_forced(names[which])) continue;
            if (rank == sender) {
                for (int i = 0; i < BIG; i++) out[i] = sender + i;
                MPI_Isend(out, BIG, MPI_LONG, receiver, 5, MPI_COMM_WORLD, &request);
            } else if (rank == receiver) {
                MPI_Recv(in, BIG, MPI_LONG, sender, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int i = 0; i < BIG; i++) right &= in[i] == sender + i;
            }
            right &= step(MPI_COMM_WORLD, which, count + sender);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    return conclude(right);
}
