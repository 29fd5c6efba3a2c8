/* One collective with a checked result, and random numbers that every rank draws alike. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAX 20000 /* longs in a message, at most */
#define STEPS 17       /* collectives, in the order of colltune_core::collective */
#define STEP_RANKS 64

static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Runs collective `which` of `count` longs, the message or a block as the collective counts its size;
 * returns 0 and complains when a result is wrong. */
static inline int step(MPI_Comm comm, int which, int count) {
    static long a[16 * STEP_MAX], b[16 * STEP_MAX];
    int rank, size, right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long sum = (long)size * (size - 1) / 2;
    int root = count % size;
    which %= STEPS;
    if (which >= 2) count %= 16 * STEP_MAX / size;
    for (int i = 0; i < count; i++) a[i] = rank + i;
    int counts[STEP_RANKS], at[STEP_RANKS], bytes_at[STEP_RANKS], cut[STEP_RANKS], before = 0;
    MPI_Datatype types[STEP_RANKS];
    for (int r = 0; r < size; r++) {
        counts[r] = count;
        at[r] = r * count;
        bytes_at[r] = at[r] * (int)sizeof(long);
        types[r] = MPI_LONG;
        cut[r] = count / size + (r < count % size);
        if (r < rank) before += cut[r];
    }
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
    case 4:
        MPI_Reduce(a, b, count, MPI_LONG, MPI_SUM, root, comm);
        if (rank == root)
            for (int i = 0; i < count; i++) right &= b[i] == sum + (long)size * i;
        break;
    case 5:
        MPI_Allgatherv(a, count, MPI_LONG, b, counts, at, MPI_LONG, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) right &= b[(long)r * count + i] == r + i;
        break;
    case 6: case 7:
        if (which == 6) MPI_Gather(a, count, MPI_LONG, b, count, MPI_LONG, root, comm);
        else MPI_Gatherv(a, count, MPI_LONG, b, counts, at, MPI_LONG, root, comm);
        for (int r = 0; rank == root && r < size; r++)
            for (int i = 0; i < count; i++) right &= b[(long)r * count + i] == r + i;
        break;
    case 8: case 9:
        for (int i = 0; rank == root && i < count * size; i++) a[i] = i;
        if (which == 8) MPI_Scatter(a, count, MPI_LONG, b, count, MPI_LONG, root, comm);
        else MPI_Scatterv(a, counts, at, MPI_LONG, b, count, MPI_LONG, root, comm);
        for (int i = 0; i < count; i++) right &= b[i] == (long)rank * count + i;
        break;
    case 10: case 11:
        for (int i = 0; i < count * size; i++) a[i] = rank * 1000000L + i;
        if (which == 10) MPI_Alltoallv(a, counts, at, MPI_LONG, b, counts, at, MPI_LONG, comm);
        else MPI_Alltoallw(a, counts, bytes_at, types, b, counts, bytes_at, types, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) right &= b[(long)r * count + i] == r * 1000000L + (long)rank * count + i;
        break;
    case 12:
        MPI_Reduce_scatter(a, b, cut, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < cut[rank]; i++) right &= b[i] == sum + (long)size * (before + i);
        break;
    case 13:
        MPI_Reduce_scatter_block(a, b, count / size, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < count / size; i++) right &= b[i] == sum + (long)size * (rank * (count / size) + i);
        break;
    case 14:
        MPI_Scan(a, b, count, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < count; i++) right &= b[i] == (long)rank * (rank + 1) / 2 + (rank + 1L) * i;
        break;
    case 15:
        MPI_Exscan(a, b, count, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; rank > 0 && i < count; i++) right &= b[i] == (long)rank * (rank - 1) / 2 + (long)rank * i;
        break;
    default: MPI_Barrier(comm);
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
