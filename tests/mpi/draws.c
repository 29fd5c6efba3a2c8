/* Many communicators with a few calls of one size each, so that draws can be counted.
 *
 * usage: draws COMMUNICATORS CALLS LONGS
 * Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 10, calls = argc > 2 ? atoi(argv[2]) : 10, count = argc > 3 ? atoi(argv[3]) : 100;
    int right = 1;
    for (int c = 0; c < n; c++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int k = 0; k < calls; k++)
            for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
        MPI_Comm_free(&comm);
    }
    return conclude(right);
}
