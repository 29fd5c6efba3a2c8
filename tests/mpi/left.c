/* One of the two programs of an MPMD job; the other is right.c. They share the world's calls and
 * differ in those on the communicator of their own. Prints "ok" when every result is right. */
#include "step.h"

int main(int argc, char **argv) {
    int provided, right = 1, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm own;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &own);
    for (int k = 0; k < 60; k++) {
        right &= step(own, k, 10 * k);
        right &= step(own, 0, 500);
        right &= step(MPI_COMM_WORLD, k, 7 * k);
    }
    MPI_Comm_free(&own);
    return conclude(right);
}
