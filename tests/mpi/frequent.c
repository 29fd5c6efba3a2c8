/* A frequent call and a rare one.
 *
 * usage: frequent FREQUENT RARE
 * So many 8-byte allreduces, and broadcasts of 80,000 bytes spread over them. Prints "ok". */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int frequent = argc > 1 ? atoi(argv[1]) : 1000, rare = argc > 2 ? atoi(argv[2]) : 10, right = 1;
    for (int r = 0; r < rare; r++) {
        for (int k = 0; k < frequent / rare; k++) right &= step(MPI_COMM_WORLD, 0, 1);
        right &= step(MPI_COMM_WORLD, 1, 10000);
    }
    return conclude(right);
}
