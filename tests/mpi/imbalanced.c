/* A strongly scaled solver: compute of uneven length, a halo exchange round the ring, two short allreduces.
 *
 * usage: imbalanced COMPUTE_US balanced|one_late|random ITERATIONS
 * In every iteration each rank computes for COMPUTE_US in the mean; with `one_late` the last rank four times as long
 * as the others, with `random` each for up to twice that. Prints "whole S s, halo H us, allreduce A us": the time
 * between two barriers, and means over ranks and iterations of the halo exchange and of both allreduces. */
#include "step.h"

static double now(void) { return MPI_Wtime(); }

static void compute(double us) {
    for (double end = now() + us * 1e-6; now() < end;) {}
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double mean_us = argc > 1 ? atof(argv[1]) : 20;
    const char *pattern = argc > 2 ? argv[2] : "random";
    int iterations = argc > 3 ? atoi(argv[3]) : 1000;
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, next = (rank + 1) % size;
    uint64_t random = 7 + (uint64_t)rank;
    static char halo[4][1024];
    double halo_s = 0, sum_s = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int k = 0; k < iterations; k++) {
        double us = mean_us;
        if (!strcmp(pattern, "one_late")) us *= size / (size + 3.0) * (rank == size - 1 ? 4 : 1);
        if (!strcmp(pattern, "random")) us *= 2 * (double)(next_random(&random) >> 11) / (double)(1ULL << 53);
        compute(us);
        double before = now();
        MPI_Request requests[4];
        MPI_Irecv(halo[0], sizeof halo[0], MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(halo[1], sizeof halo[1], MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(halo[2], sizeof halo[2], MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(halo[3], sizeof halo[3], MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Status statuses[4];
        MPI_Waitall(4, requests, statuses);
        double between = now();
        halo_s += between - before;
        for (int dot = 0; dot < 2; dot++) {
            double one = rank + k, sum = 0;
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            right &= sum == size * (size - 1) / 2.0 + (double)k * size;
        }
        sum_s += now() - between;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double whole = now() - begun, mine[2] = {halo_s, sum_s}, all[2];
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!right) fprintf(stderr, "rank %d: wrong sum\n", rank);
    double calls = 1e-6 * size * iterations;
    if (rank == 0) printf("whole %.4f s, halo %.1f us, allreduce %.1f us\n", whole, all[0] / calls, all[1] / calls / 2);
    MPI_Finalize();
    return !right;
}
