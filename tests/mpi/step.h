/* One collective with a checked result, and random numbers that every rank draws alike. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAX 20000 /* longs in a message, at most */

static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Runs collective `which` of `count` longs; returns 0 and complains when a result is wrong. */
static inline int step(MPI_Comm comm, int which, int count) {
    static long a[16 * STEP_MAX], b[16 * STEP_MAX];
    int rank, size, right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long sum = (long)size * (size - 1) / 2;
    int root = count % size;
    which %= 5;
    if (which >= 2) count %= 16 * STEP_MAX / size;
    for (int i = 0; i < count; i++) a[i] = rank + i;
    switch (which) {
    case 0:
        MPI_Allreduce(a, b, count, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < count; i++) right &= b[i] == sum + (long)size * i;
        break;
    case 1:
        MPI_Bcast(a, count, MPI_LONG, root, comm);
        for (int i = 0; i < count; i++) right &= a[i] == root + i;
        break;
    case 2:
        MPI_Allgather(a, count, MPI_LONG, b, count, MPI_LONG, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) right &= b[(long)r * count + i] == r + i;
        break;
    case 3:
        for (int i = 0; i < count * size; i++) a[i] = rank * 1000000L + i;
        MPI_Alltoall(a, count, MPI_LONG, b, count, MPI_LONG, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) right &= b[(long)r * count + i] == r * 1000000L + (long)rank * count + i;
        break;
    default:
        MPI_Reduce(a, b, count, MPI_LONG, MPI_SUM, root, comm);
        if (rank == root)
            for (int i = 0; i < count; i++) right &= b[i] == sum + (long)size * i;
    }
    if (!right) fprintf(stderr, "wrong: collective %d, %d elements, rank %d of %d\n", which, count, rank, size);
    return right;
}

/* Ends a program: rank 0 prints ok when everything was right on all ranks. */
static inline int conclude(int right) {
    int rank, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0 && all) printf("ok\n");
    MPI_Finalize();
    return !all;
}
