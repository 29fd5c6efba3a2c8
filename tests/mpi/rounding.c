/* Fingerprints of reductions: the bits of floating-point sums depend on the order of additions.
 *
 * usage: rounding ROUNDS COUNT...
 * Rank 0 prints a line for every call: collective, number of floats, hash of the result's bits. */
#include "step.h"
#include <math.h>

static uint64_t hash(const float *values, int count) {
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    return hash;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; round++)
        for (int arg = 2; arg < argc; arg++) {
            int count = atoi(argv[arg]);
            float *a = malloc(sizeof(float) * (size_t)count), *b = calloc((size_t)count, sizeof(float));
            uint64_t state = 77u + (uint64_t)rank;
            for (int i = 0; i < count; i++)
                a[i] = ldexpf((float)(next_random(&state) % 4000001) - 2000000.f, (int)(next_random(&state) % 24) - 12);
            MPI_Allreduce(a, b, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (rank == 0) printf("allreduce %d %016lx\n", count, (unsigned long)hash(b, count));
            MPI_Reduce(a, b, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
            if (rank == 0) printf("reduce %d %016lx\n", count, (unsigned long)hash(b, count));
            free(a);
            free(b);
        }
    MPI_Finalize();
    return 0;
}
