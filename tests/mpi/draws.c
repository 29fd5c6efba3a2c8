/* Many communicators with a few calls of one size each, so that draws can be counted.
 *
 * usage: draws COMMUNICATORS CALLS LONGS [ready]
 * With "ready" each communicator has had a call, of another size, before the first one is counted: none knows when it
 * is set up what was slow on another.
 * Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 10, calls = argc > 2 ? atoi(argv[2]) : 10, count = argc > 3 ? atoi(argv[3]) : 100;
    int right = 1, ready = argc > 4;
    MPI_Comm *comms = malloc((size_t)n * sizeof *comms);
    for (int c = 0; ready && c < n; c++) {
        int one = 1, sum = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[c]);
        right &= sum > 0;
    }
    for (int c = 0; c < n; c++) {
        if (!ready) MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
        MPI_Comm comm = comms[c];
        for (int k = 0; k < calls; k++)
            for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
        MPI_Comm_free(&comms[c]);
    }
    free(comms);
    return conclude(right);
}
