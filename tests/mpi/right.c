/* The other program of an MPMD job; see left.c. It makes more communicators and fewer calls. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int right = 1;
    MPI_Comm own, twin;
    MPI_Comm_split(MPI_COMM_WORLD, 1, 0, &own);
    MPI_Comm_dup(own, &twin);
    for (int k = 0; k < 60; k++) {
        if (k % 3 == 0) right &= step(twin, 2, k);
        right &= step(own, 4, 2000);
        right &= step(MPI_COMM_WORLD, k, 7 * k);
    }
    MPI_Comm_free(&twin);
    MPI_Comm_free(&own);
    return conclude(right);
}
