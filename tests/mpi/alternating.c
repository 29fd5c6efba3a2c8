/* An allreduce and a broadcast in turns.
 *
 * usage: alternating ROUNDS
 * Prints "ok". */
#include "step.h"

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, right = 1;
    MPI_Init(&argc, &argv);
    for (int round = 0; round < rounds; round++) {
        right &= step(MPI_COMM_WORLD, 0, 2);
        right &= step(MPI_COMM_WORLD, 1, 2);
    }
    return conclude(right);
}
