/* Legal calls at the corners of the standard: what a program may do and few programs do.
 *
 * usage: corners ROUNDS [CASE]
 * Every case checks its own results; a wrong one is named on stderr. Prints "ok" when all are right. */
#define _GNU_SOURCE
#include <complex.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "step.h"

enum { MOST = 20000, RANKS = 64 };
static int rank, size, right = 1;
static MPI_Comm comm;
static const char *now;

static void check(int so, int count) {
    if (!so && right) fprintf(stderr, "wrong: %s, %d elements, rank %d of %d\n", now, count, rank, size);
    right &= so;
}

static int value(int of, int i) { return of * 1000003 + i * 7; }
static int filled(int *at, int of, int count) {
    for (int i = 0; i < count; i++) at[i] = value(of, i);
    return count;
}
static int holds(const int *at, int of, int count) {
    for (int i = 0; i < count; i++)
        if (at[i] != value(of, i)) return 0;
    return 1;
}
static int *room(int count) { return calloc((size_t)count + 1, sizeof(int)); }

/* Memory that ends where a page begins that nobody may touch. */
static char *before_nothing(size_t bytes, size_t *mapped, char **start) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page) / page * page;
    char *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + whole, page, PROT_NONE);
    *mapped = whole + page;
    *start = memory;
    return memory + whole - bytes;
}

/* Rank r's block becomes column r of a matrix: what arrives from the ranks lies interleaved. */
static void columns(int count) {
    MPI_Datatype column, narrow;
    MPI_Type_vector(count, 1, size, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    int *mine = room(count), *matrix = room(count * size), *other = room(count * size), root = count % size, ok = 1;
    filled(mine, rank, count);
    MPI_Allgather(mine, count, MPI_INT, matrix, 1, narrow, comm);
    MPI_Gather(mine, count, MPI_INT, other, 1, narrow, root, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) {
            ok &= matrix[i * size + r] == value(r, i);
            ok &= rank != root || other[i * size + r] == value(r, i);
        }
    check(ok, count);
    MPI_Scatter(matrix, 1, narrow, mine, count, MPI_INT, root, comm);
    check(holds(mine, rank, count), count);
    memset(other, 0, sizeof(int) * (size_t)(count * size));
    MPI_Alltoall(matrix, 1, narrow, other, 1, narrow, comm);
    for (int r = 0; r < size && ok; r++)
        for (int i = 0; i < count; i++) ok &= other[i * size + r] == value(rank, i);
    check(ok, count);
    free(mine), free(matrix), free(other);
    MPI_Type_free(&narrow), MPI_Type_free(&column);
}

/* Columns go out and come in as rows: a transposition without a copy. */
static void transposed(int count) {
    MPI_Datatype column, narrow;
    MPI_Type_vector(count, 1, size, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    int *a = room(count * size), *b = room(count * size), ok = 1;
    filled(a, rank, count * size);
    MPI_Alltoall(a, 1, narrow, b, count, MPI_INT, comm);
    for (int i = 0; i < count * size; i++) ok &= b[i] == value(i / count, i % count * size + rank);
    MPI_Alltoall(b, count, MPI_INT, a, 1, narrow, comm);
    check(ok && holds(a, rank, count * size), count);
    free(a), free(b);
    MPI_Type_free(&narrow), MPI_Type_free(&column);
}

/* What is sent overlaps itself: each element is one integer three times, one integer behind the last. */
static void repeated(int count) {
    MPI_Datatype same;
    MPI_Type_create_hvector(3, 1, 0, MPI_INT, &same);
    MPI_Type_commit(&same);
    int *few = room(count * size), *all = room(3 * count * size), ok = 1;
    filled(few, rank, count * size);
    MPI_Allgather(few, count, same, all, 3 * count, MPI_INT, comm);
    for (int i = 0; i < 3 * count * size; i++) ok &= all[i] == value(i / (3 * count), i / 3 % count);
    memset(all, 0, sizeof(int) * (size_t)(3 * count * size));
    MPI_Alltoall(few, count, same, all, 3 * count, MPI_INT, comm);
    for (int i = 0; i < 3 * count * size; i++) ok &= all[i] == value(i / (3 * count), rank * count + i / 3 % count);
    memset(all, 0, sizeof(int) * (size_t)(3 * count * size));
    MPI_Gather(few, count, same, all, 3 * count, MPI_INT, 0, comm);
    for (int i = 0; rank == 0 && i < 3 * count * size; i++) ok &= all[i] == value(i / (3 * count), i / 3 % count);
    MPI_Scatter(few, count, same, all, 3 * count, MPI_INT, size - 1, comm);
    for (int i = 0; i < 3 * count; i++) ok &= all[i] == value(size - 1, rank * count + i / 3);
    check(ok, count);
    free(few), free(all);
    MPI_Type_free(&same);
}

/* Every rank describes the same integers with a count and a type of its own. */
static void signatures(int count) {
    MPI_Datatype whole, pairs, spread;
    MPI_Type_contiguous(2 * count, MPI_INT, &whole);
    MPI_Type_contiguous(2, MPI_INT, &pairs);
    MPI_Type_vector(2 * count, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&whole), MPI_Type_commit(&pairs), MPI_Type_commit(&spread);
    MPI_Datatype types[] = {MPI_INT, whole, pairs, spread};
    int counts[] = {2 * count, 1, count, 1}, n = 2 * count, which = rank % 4, root = count % size;
    int *a = room(2 * n * size), *b = room(2 * n * size), ok = 1;
    for (int i = 0; rank == root && i < n; i++) a[which == 3 ? 2 * i : i] = value(root, i);
    MPI_Bcast(a, counts[which], types[which], root, comm);
    for (int i = 0; i < n; i++) ok &= a[which == 3 ? 2 * i : i] == value(root, i);
    for (int i = 0; i < n; i++) a[which == 3 ? 2 * i : i] = value(rank, i);
    int other = (rank + 1) % 3;
    MPI_Allgather(a, counts[which], types[which], b, counts[other], types[other], comm);
    for (int r = 0; r < size; r++) ok &= holds(b + r * n, r, n);
    MPI_Gather(a, counts[which], types[which], b, counts[other], types[other], root, comm);
    MPI_Scatter(b, counts[other], types[other], a, counts[which], types[which], root, comm);
    for (int i = 0; i < n; i++) ok &= a[which == 3 ? 2 * i : i] == value(rank, i);
    check(ok, count);
    free(a), free(b);
    MPI_Type_free(&whole), MPI_Type_free(&pairs), MPI_Type_free(&spread);
}

/* Arguments that mean something at the root alone are anything elsewhere. */
static void insignificant(int count) {
    int root = count % size, *a = room(count * size), *b = room(count * size), counts[RANKS], at[RANKS];
    void *nowhere = (void *)16;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    filled(a, rank, count);
    for (int r = 0; r < size; r++) counts[r] = count, at[r] = (size - 1 - r) * count;
    MPI_Reduce(a, rank == root ? b : nowhere, count, MPI_INT, MPI_MAX, root, comm);
    check(rank != root || holds(b, size - 1, count), count);
    if (rank == root) MPI_Gather(a, count, MPI_INT, b, count, MPI_INT, root, comm);
    else MPI_Gather(a, count, MPI_INT, nowhere, -3, none, root, comm);
    for (int r = 0; rank == root && r < size; r++) check(holds(b + r * count, r, count), count);
    if (rank == root) MPI_Gatherv(a, count, MPI_INT, b, counts, at, MPI_INT, root, comm);
    else MPI_Gatherv(a, count, MPI_INT, nowhere, NULL, NULL, none, root, comm);
    for (int r = 0; rank == root && r < size; r++) check(holds(b + at[r], r, count), count);
    if (rank == root) MPI_Scatterv(b, counts, at, MPI_INT, a, count, MPI_INT, root, comm);
    else MPI_Scatterv(nowhere, NULL, NULL, none, a, count, MPI_INT, root, comm);
    check(holds(a, rank, count), count);
    for (int r = 0; rank == root && r < size; r++) filled(b + r * count, r + 5, count);
    if (rank == root) MPI_Scatter(b, count, MPI_INT, MPI_IN_PLACE, -9, none, root, comm);
    else MPI_Scatter(nowhere, -3, none, a, count, MPI_INT, root, comm);
    check(rank == root || holds(a, rank + 5, count), count);
    free(a), free(b);
}

static void packed(int count) {
    int bytes = 0, position = 0, *a = room(count), root = count % size;
    MPI_Pack_size(count, MPI_INT, comm, &bytes);
    char *message = malloc((size_t)bytes + 1);
    filled(a, rank, count);
    MPI_Pack(a, count, MPI_INT, message, bytes, &position, comm);
    MPI_Bcast(message, position, MPI_PACKED, root, comm);
    int at = 0;
    MPI_Unpack(message, position, &at, a, count, MPI_INT, comm);
    check(holds(a, root, count), count);
    free(a), free(message);
}

/* An operation is told the very type that the program passed. */
static MPI_Datatype expected_type;
static int saw_another_type;
static void add(void *in, void *inout, int *n, MPI_Datatype *type) {
    saw_another_type |= *type != expected_type;
    for (int i = 0; i < 2 * *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}
/* The left operand: associative, and does not commute. */
static void left(void *in, void *inout, int *n, MPI_Datatype *type) {
    saw_another_type |= *type != expected_type;
    memcpy(inout, in, 8 * (size_t)*n);
}

/* Handles of operations and types come back with another meaning. */
static void handles(int count) {
    int *a = room(6 * count), *b = room(6 * count);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Op op;
        MPI_Datatype inner, type;
        MPI_Type_contiguous(2, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, turn % 2 ? 8 : 24, &type);
        MPI_Type_commit(&type);
        expected_type = inner;
        MPI_Type_commit(&inner);
        MPI_Op_create(turn % 2 ? left : add, !(turn % 2), &op);
        filled(a, rank, 2 * count);
        MPI_Allreduce(a, b, count, inner, op, comm);
        int ok = 1;
        for (int i = 0; i < 2 * count; i++)
            ok &= b[i] == (turn % 2 ? value(0, i) : size * (size - 1) / 2 * 1000003 + size * i * 7);
        MPI_Scan(a, b, count, inner, op, comm);
        for (int i = 0; i < 2 * count; i++)
            ok &= b[i] == (turn % 2 ? value(0, i) : rank * (rank + 1) / 2 * 1000003 + (rank + 1) * i * 7);
        memset(b, 0, 24 * (size_t)count);
        for (int i = 0; rank == 0 && i < count; i++) b[(turn % 2 ? 2 : 6) * i] = i + 1;
        MPI_Bcast(b, count, type, 0, comm);
        for (int i = 0; i < count; i++) ok &= b[(turn % 2 ? 2 : 6) * i] == i + 1;
        check(ok && !saw_another_type, count);
        MPI_Op_free(&op);
        MPI_Type_free(&type), MPI_Type_free(&inner);
    }
    free(a), free(b);
}

#define PLACES(TYPE, HANDLE) do { \
    struct { TYPE value; int at; } *a = calloc((size_t)count + 1, sizeof *a), *b = calloc((size_t)count + 1, sizeof *b); \
    for (int i = 0; i < count; i++) a[i].value = (TYPE)((rank * 5 + i) % 3), a[i].at = 100 - rank; \
    MPI_Allreduce(a, b, count, HANDLE, MPI_MAXLOC, comm); \
    int ok = 1; \
    for (int i = 0; i < count; i++) { \
        TYPE most = -1; int at = 0; \
        for (int r = 0; r < size; r++) if ((TYPE)((r * 5 + i) % 3) >= most) most = (TYPE)((r * 5 + i) % 3), at = 100 - r; \
        ok &= b[i].value == most && b[i].at == at; \
    } \
    check(ok, count); \
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : (void *)a, a, count, HANDLE, MPI_MAXLOC, 0, comm); \
    for (int i = 0; rank == 0 && i < count; i++) ok &= a[i].value == b[i].value && a[i].at == b[i].at; \
    check(ok, count); \
    free(a), free(b); \
} while (0)

static void places(int count) {
    PLACES(double, MPI_DOUBLE_INT);
    PLACES(float, MPI_FLOAT_INT);
    PLACES(long, MPI_LONG_INT);
    PLACES(short, MPI_SHORT_INT);
    PLACES(long double, MPI_LONG_DOUBLE_INT);
}

static void kinds(int count) {
    bool *truth = calloc((size_t)count + 1, 1), *all = calloc((size_t)count + 1, 1);
    double complex *z = calloc((size_t)count + 1, sizeof *z), *w = calloc((size_t)count + 1, sizeof *w);
    long double *l = calloc((size_t)count + 1, sizeof *l), *m = calloc((size_t)count + 1, sizeof *m);
    MPI_Aint *p = calloc((size_t)count + 1, sizeof *p), *q = calloc((size_t)count + 1, sizeof *q);
    int ok = 1;
    for (int i = 0; i < count; i++) truth[i] = (i + rank) % 2, z[i] = rank + i * I, l[i] = rank + i, p[i] = rank + i;
    MPI_Allreduce(truth, all, count, MPI_C_BOOL, MPI_LOR, comm);
    for (int i = 0; i < count; i++) ok &= all[i] == (size > 1 || i % 2);
    MPI_Allreduce(z, w, count, MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm);
    for (int i = 0; i < count; i++) ok &= w[i] == size * (size - 1) / 2 + size * i * I;
    MPI_Allreduce(l, m, count, MPI_LONG_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; i++) ok &= m[i] == size * (size - 1) / 2 + size * i;
    MPI_Exscan(p, q, count, MPI_AINT, MPI_SUM, comm);
    for (int i = 0; rank && i < count; i++) ok &= q[i] == rank * (rank - 1) / 2 + rank * i;
    check(ok, count);
    free(truth), free(all), free(z), free(w), free(l), free(m), free(p), free(q);
}

/* Nothing from nowhere to nowhere; elements without bytes. */
static void nothing(int count) {
    MPI_Datatype empty;
    int zeros[RANKS] = {0}, byte = 77;
    MPI_Datatype types[RANKS];
    for (int r = 0; r < size; r++) types[r] = MPI_INT;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Bcast(NULL, 0, MPI_INT, 0, comm);
    MPI_Bcast(&byte, count, empty, size - 1, comm);
    MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
    MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_DOUBLE, comm);
    MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, comm);
    MPI_Scatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, comm);
    MPI_Gatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, 0, comm);
    MPI_Scatterv(NULL, zeros, zeros, MPI_INT, NULL, 0, MPI_INT, 0, comm);
    MPI_Allgatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, comm);
    /* MPICH takes two null pointers for one buffer here. */
    MPI_Alltoallv(NULL, zeros, zeros, MPI_INT, &byte, zeros, zeros, MPI_INT, comm);
    MPI_Alltoallw(NULL, zeros, zeros, types, &byte, zeros, zeros, types, comm);
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, comm);
    MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter(NULL, NULL, zeros, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    check(byte == 77, count);
    MPI_Type_free(&empty);
}

/* Blocks of very different lengths in reverse order, before the address that is passed, with gaps. */
static void uneven(int count) {
    int counts[RANKS], at[RANKS], total = 0, ok = 1;
    for (int r = size - 1; r >= 0; r--) {
        counts[r] = r == 1 % size ? count : r % 2 ? 0 : 1;
        at[r] = total;
        total += counts[r] + 2;
    }
    for (int r = 0; r < size; r++) at[r] -= total;
    int *mine = room(count), *all = room(total), root = count % size;
    filled(mine, rank, counts[rank]);
    memset(all, 0xee, sizeof(int) * (size_t)total);
    MPI_Allgatherv(mine, counts[rank], MPI_INT, all + total, counts, at, MPI_INT, comm);
    for (int r = 0; r < size; r++) {
        int *block = all + total + at[r];
        ok &= holds(block, r, counts[r]) && block[counts[r]] == (int)0xeeeeeeee && block[counts[r] + 1] == (int)0xeeeeeeee;
    }
    check(ok, count);
    MPI_Scatterv(all + total, counts, at, MPI_INT, mine, counts[rank], MPI_INT, root, comm);
    check(holds(mine, rank, counts[rank]), count);
    memset(all, 0xee, sizeof(int) * (size_t)total);
    MPI_Gatherv(mine, counts[rank], MPI_INT, all + total, counts, at, MPI_INT, root, comm);
    for (int r = 0; rank == root && r < size; r++) ok &= holds(all + total + at[r], r, counts[r]);
    check(ok, count);
    free(mine), free(all);
}

/* Absolute addresses on some ranks, an address and a plain type on the others. */
static void bottom(int count) {
    int *a = room(count), *b = room(count * size), root = count % size;
    MPI_Datatype there, result;
    MPI_Aint address;
    MPI_Get_address(a, &address);
    MPI_Type_create_hindexed_block(1, count, &address, MPI_INT, &there);
    MPI_Get_address(b, &address);
    MPI_Type_create_hindexed_block(1, count * size, &address, MPI_INT, &result);
    MPI_Type_commit(&there), MPI_Type_commit(&result);
    filled(a, rank, count);
    if (rank % 2) MPI_Bcast(a, count, MPI_INT, root, comm);
    else MPI_Bcast(MPI_BOTTOM, 1, there, root, comm);
    check(holds(a, root, count), count);
    filled(a, rank, count);
    if (rank % 2) MPI_Allgather(a, count, MPI_INT, b, count, MPI_INT, comm);
    else MPI_Allgather(MPI_BOTTOM, 1, there, b, count, MPI_INT, comm);
    for (int r = 0; r < size; r++) check(holds(b + r * count, r, count), count);
    if (rank == root) MPI_Scatter(b, count, MPI_INT, MPI_BOTTOM, 1, there, root, comm);
    else MPI_Scatter(NULL, 0, MPI_INT, MPI_BOTTOM, 1, there, root, comm);
    check(holds(a, rank, count), count);
    MPI_Type_free(&there), MPI_Type_free(&result);
    free(a), free(b);
}

/* Receives from anybody stay open over collectives, and probes find nothing. */
static void open_receives(int count) {
    int *a = room(count), got[2] = {-1, -1}, seen = 0, any = 0, next = (rank + 1) % size;
    MPI_Request request[2];
    MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[1]);
    for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
    for (int i = 0; i < 20; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &seen, MPI_STATUS_IGNORE);
        any |= seen;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
        any |= seen;
    }
    MPI_Testany(2, request, &seen, &any, MPI_STATUS_IGNORE);
    check(!any && got[0] == -1 && got[1] == -1, count);
    MPI_Barrier(comm);
    int text = 1000 + count;
    MPI_Send(&text, 1, MPI_INT, next, 5, comm);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    int world_rank, world_size;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Send(&text, 1, MPI_INT, (world_rank + 1) % world_size, 6, MPI_COMM_WORLD);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
    check(got[0] == text && got[1] == text, count);
    free(a);
}

/* What is sent may not be written; memory ends with the last byte of data, holes behind it included. */
static void edges(int count) {
    MPI_Datatype inner, holed;
    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 20, &holed);
    MPI_Type_commit(&holed);
    size_t bytes = 20 * (size_t)count * size - 4, mine = 20 * (size_t)count - 4, mapped[3];
    char *maps[3], *a = before_nothing(mine, &mapped[0], &maps[0]), *b = before_nothing(bytes, &mapped[1], &maps[1]);
    char *c = before_nothing(bytes, &mapped[2], &maps[2]);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            int it = value(rank, 2 * i + k);
            memcpy(a + 20 * i + 12 * k, &it, 4);
        }
    mprotect(maps[0], mapped[0] - (size_t)sysconf(_SC_PAGESIZE), PROT_READ);
    int ok = 1, root = count % size;
    for (int turn = 0; turn < 3; turn++) {
        memset(b, 0x55, bytes);
        if (turn == 0) MPI_Allgather(a, count, holed, b, count, holed, comm);
        if (turn == 1) MPI_Gather(a, count, holed, b, count, holed, root, comm);
        if (turn == 2) {
            MPI_Allgather(a, count, holed, c, count, holed, comm);
            MPI_Alltoall(c, count, holed, b, count, holed, comm);
        }
        for (int i = 0; i < count * size && (turn != 1 || rank == root); i++)
            for (int k = 0; k < 2; k++) {
                int got, from = turn == 2 ? rank : i / count;
                memcpy(&got, b + 20 * i + 12 * k, 4);
                ok &= got == value(from, 2 * (i % count) + k);
                if (k == 0) ok &= b[20 * i + 4] == 0x55 && b[20 * i + 11] == 0x55;
            }
    }
    check(ok, count);
    MPI_Scatter(b, count, holed, c, count, holed, root, comm);
    MPI_Bcast(c, count, holed, root, comm);
    /* Unaligned bytes, read-only where they are sent. */
    MPI_Allreduce(a + 1, c, (int)mine - 1, MPI_BYTE, MPI_BOR, comm);
    MPI_Scan(a + 3, c, (int)mine - 3, MPI_BYTE, MPI_BAND, comm);
    MPI_Reduce(a + 3, c, (int)mine - 3, MPI_BYTE, MPI_BXOR, root, comm);
    for (int i = 0; i < 3; i++) munmap(maps[i], mapped[i]);
    MPI_Type_free(&holed), MPI_Type_free(&inner);
}

static volatile int ticks;
static void tick(int signal) { (void)signal, ticks++; }

/* A profiler's timer interrupts whatever waits. */
static void interrupted(int count) {
    struct sigaction action = {.sa_handler = tick};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
    setitimer(ITIMER_REAL, &never, NULL);
    /* The handler stays: one may be on its way still, which would end the program. */
}

/* As under gfortran -ffpe-trap: a division by zero anywhere kills the program; and sums are rounded
 * as the program says. */
static void trapped(int count) {
    feclearexcept(FE_ALL_EXCEPT);
    int before = feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    for (int k = 0; k < 5; k++)
        for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
    fedisableexcept(FE_ALL_EXCEPT);
    feenableexcept(before);
    double tiny = ldexp(1.0, -80), one = rank == 0 ? 1.0 : tiny, sum = 0;
    fesetround(FE_UPWARD);
    /* A checker that plays the processor may not. */
    volatile double first = 1.0, second = tiny;
    int rounds = first + second > 1.0;
    setenv("UPWARD", "rounded upwards", 1);
    for (int k = 0; k < 20; k++) {
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        check(fegetround() == FE_UPWARD && (size == 1 || !rounds || sum > 1.0), 1);
    }
    unsetenv("UPWARD");
    fesetround(FE_TONEAREST);
}

static void *in_thread(void *count) {
    for (int which = 0; which < STEPS; which++) right &= step(comm, which, *(int *)count);
    return NULL;
}

/* Calls from threads that come and go, one at a time, with little stack. */
static void threads(int count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (int k = 0; k < 3; k++) {
        pthread_t thread;
        check(pthread_create(&thread, &attributes, in_thread, &count) == 0, count);
        pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&attributes);
}

/* The name is the program's, and so are errors: none has been reported. */
static int reported;
static void report(MPI_Comm *where, int *code, ...) { (void)where, (void)code, reported++; }
static void owned(int count) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, flag = 1;
    MPI_Errhandler handler, got;
    MPI_Comm_create_errhandler(report, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    for (int which = 0; which < STEPS; which++) right &= step(comm, which, count);
    MPI_Comm_get_errhandler(comm, &got);
    MPI_Comm_get_name(comm, name, &length);
    MPI_Comm_test_inter(comm, &flag);
    check(!reported && got == handler && strcmp(name, "mine") == 0 && !flag, count);
    MPI_Errhandler_free(&got), MPI_Errhandler_free(&handler);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

/* In place only a rank's own block is written, where the library writes no more. */
static void behind(int count) {
    int all = count * size, *mine = room(all), *library = room(all);
    filled(mine, rank, all), filled(library, rank, all);
    PMPI_Reduce_scatter_block(MPI_IN_PLACE, library, count, MPI_BYTE, MPI_BXOR, comm);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, mine, count, MPI_BYTE, MPI_BXOR, comm);
    check(memcmp(mine, library, (size_t)all) == 0, count);
    free(mine), free(library);
}

static const struct { const char *name; void (*run)(int); } cases[] = {
    {"columns", columns}, {"transposed", transposed}, {"repeated", repeated}, {"signatures", signatures}, {"insignificant", insignificant},
    {"packed", packed}, {"handles", handles}, {"places", places}, {"kinds", kinds}, {"nothing", nothing},
    {"uneven", uneven}, {"bottom", bottom}, {"open_receives", open_receives}, {"edges", edges},
    {"interrupted", interrupted}, {"trapped", trapped}, {"threads", threads}, {"owned", owned},
    {"behind", behind},
};

/* A program's last word: MPI_Finalize deletes the attributes of MPI_COMM_SELF while MPI still works. */
static int at_the_end(MPI_Comm self, int key, void *attribute, void *extra) {
    (void)self, (void)key, (void)attribute, (void)extra;
    int all = 0, world;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    for (int which = 0; which < STEPS; which++) right &= step(MPI_COMM_WORLD, which, 50);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (world == 0 && all) printf("ok\n");
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, provided, key;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    static const int counts[] = {1, 3, 40, 1000, MOST};
    for (int round = 0; round < rounds; round++) {
        int world;
        MPI_Comm_rank(MPI_COMM_WORLD, &world);
        if (round % 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -world, &comm);
        else MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "mine");
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int k = 0; k < 5; k++) {
                now = cases[i].name;
                if (argc > 2 && strcmp(argv[2], now)) continue;
                cases[i].run(counts[k]);
            }
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return !right;
}
