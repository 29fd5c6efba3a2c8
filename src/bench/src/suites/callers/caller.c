/* Blocks of calls on MPI_COMM_SELF, as a C program makes them: allreduces of a double.
   usage: caller BLOCKS CALLS. Prints what a call took in each block but the first, in nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    int blocks = atoi(argv[1]), calls = atoi(argv[2]);
    double send = 1, recv = 0;
    MPI_Init(&argc, &argv);
    for (int block = 0; block <= blocks; block++) {
        double start = now_ns();
        for (int i = 0; i < calls; i++) {
            MPI_Allreduce(&send, &recv, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
        }
        double end = now_ns();
        if (block > 0) {
            printf("%.2f\n", (end - start) / calls);
        }
    }
    MPI_Finalize();
    return 0;
}
