/* Runs every blocking collective over many sizes, types and communicators and checks every result.
 *
 * usage: collectives [ROUNDS]
 * Exit code 0 and "ok" from rank 0 when every result is right; otherwise 1 with the first wrong one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(int right, const char *what, int size, int count) {
    if (!right && failures++ == 0)
        fprintf(stderr, "wrong: %s on %d ranks, %d elements\n", what, size, count);
}

static void run(MPI_Comm comm, int count) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long *a = malloc(sizeof(long) * (size_t)count * (size_t)size + 8);
    long *b = malloc(sizeof(long) * (size_t)count * (size_t)size + 8);
    int ok = 1;

    for (int i = 0; i < count; i++) a[i] = rank + i;
    MPI_Allreduce(a, b, count, MPI_LONG, MPI_SUM, comm);
    long ranks = (long)size * (size - 1) / 2;
    for (int i = 0; i < count; i++) ok &= b[i] == ranks + (long)size * i;
    check(ok, "allreduce", size, count);
    MPI_Allreduce(MPI_IN_PLACE, a, count, MPI_LONG, MPI_MAX, comm);
    for (int i = 0; i < count; i++) ok &= a[i] == size - 1 + i;
    check(ok, "allreduce in place", size, count);

    int root = count % size;
    for (int i = 0; i < count; i++) a[i] = rank == root ? 7L * i : -1;
    MPI_Bcast(a, count, MPI_LONG, root, comm);
    for (int i = 0; i < count; i++) ok &= a[i] == 7L * i;
    check(ok, "bcast", size, count);
    /* The same signature by other counts and types on each rank. */
    MPI_Datatype block;
    MPI_Type_contiguous(count > 0 ? count : 1, MPI_LONG, &block);
    MPI_Type_commit(&block);
    for (int i = 0; i < count; i++) a[i] = rank == root ? 9L * i : -1;
    if (rank % 2) MPI_Bcast(a, count > 0, block, root, comm);
    else MPI_Bcast(a, count, MPI_LONG, root, comm);
    for (int i = 0; i < count; i++) ok &= a[i] == 9L * i;
    check(ok, "bcast of mixed types", size, count);
    MPI_Type_free(&block);

    for (int i = 0; i < count; i++) a[i] = rank * 1000L + i;
    MPI_Allgather(a, count, MPI_LONG, b, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= b[(size_t)r * count + i] == r * 1000L + i;
    check(ok, "allgather", size, count);
    for (int i = 0; i < count; i++) b[(size_t)rank * count + i] = rank * 2000L + i;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= b[(size_t)r * count + i] == r * 2000L + i;
    check(ok, "allgather in place", size, count);

    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) a[(size_t)r * count + i] = rank * 100L + r + i;
    MPI_Alltoall(a, count, MPI_LONG, b, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= b[(size_t)r * count + i] == r * 100L + rank + i;
    check(ok, "alltoall", size, count);

    for (int i = 0; i < count; i++) a[i] = rank + i;
    MPI_Reduce(a, b, count, MPI_LONG, MPI_SUM, root, comm);
    if (rank == root)
        for (int i = 0; i < count; i++) ok &= b[i] == ranks + (long)size * i;
    check(ok, "reduce", size, count);

    int counts[64], at[64], bytes_at[64], before = 0;
    MPI_Datatype types[64];
    for (int r = 0; r < size; r++) {
        counts[r] = count;
        at[r] = (size - 1 - r) * count;
        bytes_at[r] = at[r] * (int)sizeof(long);
        types[r] = MPI_LONG;
    }
    for (int i = 0; i < count; i++) a[i] = rank * 1000L + i;
    memset(b, 0, sizeof(long) * (size_t)count * (size_t)size);
    MPI_Allgatherv(a, count, MPI_LONG, b, counts, at, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= b[(size_t)at[r] + i] == r * 1000L + i;
    check(ok, "allgatherv", size, count);
    for (int form = 0; form < 2; form++) {
        for (int i = 0; i < count; i++) b[(form ? (size_t)at[rank] : (size_t)rank * count) + i] = a[i];
        void *send = rank == root ? MPI_IN_PLACE : (void *)a;
        if (form) MPI_Gatherv(send, count, MPI_LONG, b, counts, at, MPI_LONG, root, comm);
        else MPI_Gather(send, count, MPI_LONG, rank == root ? b : NULL, count, MPI_LONG, root, comm);
        for (int r = 0; rank == root && r < size; r++)
            for (int i = 0; i < count; i++) ok &= b[(form ? (size_t)at[r] : (size_t)r * count) + i] == r * 1000L + i;
        check(ok, form ? "gatherv" : "gather", size, count);
    }
    for (int form = 0; form < 2; form++) {
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) a[(form ? (size_t)at[r] : (size_t)r * count) + i] = rank == root ? r * 70L + i : -1;
        if (form) MPI_Scatterv(a, counts, at, MPI_LONG, b, count, MPI_LONG, root, comm);
        else MPI_Scatter(a, count, MPI_LONG, b, count, MPI_LONG, root, comm);
        for (int i = 0; i < count; i++) ok &= b[i] == rank * 70L + i;
        check(ok, form ? "scatterv" : "scatter", size, count);
    }
    for (int form = 0; form < 2; form++) {
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) a[(size_t)at[r] + i] = rank * 100L + r + i;
        if (form) MPI_Alltoallw(a, counts, bytes_at, types, b, counts, bytes_at, types, comm);
        else MPI_Alltoallv(a, counts, at, MPI_LONG, b, counts, at, MPI_LONG, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) ok &= b[(size_t)at[r] + i] == r * 100L + rank + i;
        check(ok, form ? "alltoallw" : "alltoallv", size, count);
    }

    for (int i = 0; i < count; i++) a[i] = rank + i;
    MPI_Scan(a, b, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) ok &= b[i] == (long)rank * (rank + 1) / 2 + (rank + 1L) * i;
    check(ok, "scan", size, count);
    MPI_Exscan(a, b, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; rank > 0 && i < count; i++) ok &= b[i] == (long)rank * (rank - 1) / 2 + (long)rank * i;
    check(ok, "exscan", size, count);
    /* Uneven parts: rank r takes every element with r (r + 1) / 2 of them before it, the last one the rest. */
    for (int r = 0; r < size; r++) {
        int left = count - (r == 0 ? 0 : at[r - 1] + counts[r - 1]);
        at[r] = count - left;
        counts[r] = r == size - 1 ? left : left < r + 1 ? left : r + 1;
    }
    before = at[rank];
    MPI_Reduce_scatter(a, b, counts, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++) ok &= b[i] == ranks + (long)size * (before + i);
    check(ok, "reduce_scatter", size, count);
    for (int r = 0; r < size; r++) counts[r] = count;
    for (int i = 0; i < count * size; i++) a[i] = rank + i;
    MPI_Reduce_scatter(a, b, counts, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) ok &= b[i] == ranks + (long)size * (rank * count + i);
    check(ok, "reduce_scatter of equal parts", size, count);
    MPI_Reduce_scatter_block(a, b, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) ok &= b[i] == ranks + (long)size * (rank * count + i);
    check(ok, "reduce_scatter_block", size, count);
    MPI_Barrier(comm);
    free(a);
    free(b);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 3, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static const int counts[] = {0, 1, 2, 3, 7, 8, 64, 511, 513, 4096, 32768};
    MPI_Comm half, dup, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    for (int round = 0; round < rounds; round++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            run(MPI_COMM_WORLD, counts[c]);
            run(half, counts[c]);
            run(dup, counts[c]);
            run(reversed, counts[c]);
            run(MPI_COMM_SELF, counts[c]);
        }
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&reversed);
    int all;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) printf("ok\n");
    MPI_Finalize();
    return all != 0;
}
