/* Sums of integers, which leave no floating-point flags: whoever looks at these sees what the program itself has done.
 *
 * usage: inexact ROUNDS
 * Prints "ok" where no call of the second half has set the flag of inexact operations. */
#include "step.h"
#include <fenv.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 200, right = 1, size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; round++) {
        long one = 1, sum = 0;
        feclearexcept(FE_ALL_EXCEPT);
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        /* What a library does at its first calls is its own. */
        if (round > rounds / 2 && fetestexcept(FE_INEXACT)) right = 0;
        right &= sum == size;
    }
    return conclude(right);
}
