/* Calls on the world and on halves of it.
 *
 * usage: halves N
 * So many 8-byte allreduces on the world, and as many on the half of it that a rank belongs to. Prints "ok". */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 1000, right = 1, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    for (int k = 0; k < n; k++) {
        right &= step(MPI_COMM_WORLD, 0, 1);
        right &= step(half, 0, 1);
    }
    MPI_Comm_free(&half);
    return conclude(right);
}
