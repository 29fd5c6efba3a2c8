/* A sort with few, large messages: random keys go to the rank of their range, in one alltoall a round, and are
 * sorted there.
 *
 * usage: sort KEYS ROUNDS
 * Each rank has KEYS random keys of 8 bytes in each round. Blocks have room for half as many keys again as the mean. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long keys = argc > 1 ? atol(argv[1]) : 1 << 18;
    int rounds = argc > 2 ? atoi(argv[2]) : 10, rank, size, right = 1, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* The first number of a block says how many follow. */
    long block = keys / size * 3 / 2 + 64;
    uint64_t *send = malloc(8 * block * size), *recv = malloc(8 * block * size), *sorted = malloc(8 * block * size);
    uint64_t z = 88172645463325252u + 7919u * (unsigned)rank, range = UINT64_MAX / (unsigned)size + 1;
    for (int round = 0; round < rounds; round++) {
        for (int to = 0; to < size; to++) send[to * block] = 0;
        for (long k = 0; k < keys; k++) {
            z ^= z << 13, z ^= z >> 7, z ^= z << 17;
            uint64_t *at = send + z / range * block;
            if (*at + 1 < (uint64_t)block) at[++*at] = z;
        }
        MPI_Alltoall(send, block, MPI_UINT64_T, recv, block, MPI_UINT64_T, MPI_COMM_WORLD);
        long n = 0;
        for (int from = 0; from < size; from++)
            for (uint64_t k = 1; k <= recv[from * block]; k++) sorted[n++] = recv[from * block + k];
        qsort(sorted, n, 8, compare);
        right &= n == 0 || (sorted[0] / range == (unsigned)rank && sorted[n - 1] / range == (unsigned)rank);
    }
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return rank == 0 && !all;
}
