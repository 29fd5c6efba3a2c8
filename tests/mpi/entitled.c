/* What the standard lets a program do and hardly any program does.
 *
 * usage: entitled in-place   reduce_scatters, scans and exscans in place on every other rank
 *        entitled farewell   callbacks of MPI_Finalize do what rank 0 waits for before its own MPI_Finalize
 *        entitled handler    an error handler calls what the other ranks call
 *        entitled alone      one rank hands over less than it says, once; wrong, but Open MPI lets it pass
 *        entitled own-types  ranks describe the same data by different types, of which one is a single element
 *        entitled read-only  what is sent, and what a root broadcasts, cannot be written to; behind all buffers is a page that
 *                            cannot be touched; "read-only no-bcast": nothing is broadcast
 *        entitled holes      elements with holes are combined and dealt out
 *        entitled chains     what frees one communicator frees the next one, forty deep
 *        entitled refused    what could not be freed is left by a longjmp, and freed again
 *        entitled data FILE  the file is descriptor 2 of rank 0 from the first calls on
 *        entitled inexact    every trap of the processor is on
 *        entitled rounds     every rank rounds another way
 * Prints "ok" when every result is right. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "step.h"

static int rank, size, right = 1;

/* In place or not is each rank's own affair there. */
static void in_place(int each, int round) {
    int all = each * size, counts[STEP_RANKS], swapped = (rank + round) % 2;
    long *given = calloc((size_t)all, sizeof(long)), *got = malloc((size_t)all * sizeof(long));
    for (int i = 0; i < size; i++) counts[i] = each;
    for (int which = 0; which < 3; which++) {
        int before = which == 0 ? size : rank + (which == 1), first = which == 0 ? rank * each : 0;
        for (int i = 0; i < all; i++) given[i] = rank + i, got[i] = swapped ? given[i] : -7;
        const void *from = swapped ? MPI_IN_PLACE : given;
        if (which == 0) MPI_Reduce_scatter(from, got, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        else if (which == 1) MPI_Scan(from, got, each, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        else MPI_Exscan(from, got, each, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; before > 0 && i < each; i++)
            right &= got[i] == (long)before * (before - 1) / 2 + (long)before * (first + i);
        /* Nobody has to leave the rest alone, but all that the libraries choose by themselves do. */
        for (int i = each; i < all; i++) right &= got[i] == (swapped ? given[i] : -7);
    }
    free(given), free(got);
}

static MPI_Comm other;

/* Rank 0 has not called MPI_Finalize yet. */
static int farewell(MPI_Comm self, int key, void *attribute, void *extra) {
    (void)self, (void)key, (void)attribute, (void)extra;
    int last = rank;
    if (rank > 0) {
        MPI_Send(&last, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        for (int which = 0; which < STEPS; which++) right &= step(MPI_COMM_WORLD, which, 40);
    }
    return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    right &= step(other, 0, 10) & step(other, 1, 10);
}

/* What one rank gets as ints another gets as one element of a type of theirs: the signatures are the same. */
static void own_types(int each) {
    MPI_Datatype whole;
    MPI_Type_contiguous(each, MPI_INT, &whole);
    MPI_Type_commit(&whole);
    int *given = malloc(each * sizeof *given), *got = malloc(each * sizeof *got * size);
    int counts[STEP_RANKS], places[STEP_RANKS];
    for (int p = 0; p < size; p++) counts[p] = rank ? 1 : each, places[p] = p * counts[p];
    for (int i = 0; i < each; i++) given[i] = rank * 1000000 + i;
    for (int call = 0; call < 40; call++) {
        memset(got, 0, each * sizeof *got * size);
        MPI_Allgatherv(given, each, MPI_INT, got, counts, places, rank ? whole : MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < each * size; i++) right &= got[i] == i / each * 1000000 + i % each;
    }
    MPI_Type_free(&whole);
    free(given), free(got);
}

/* Longs that end where a page begins that nobody may touch. */
static long *new_guarded(int count, void **start, size_t *bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = ((size_t)count * sizeof(long) / page + 1) * page;
    char *all = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(all + room, page, PROT_NONE);
    *start = all, *bytes = room;
    return (long *)(all + room - (size_t)count * sizeof(long));
}

static long given_by(int of, int i) { return of * 1000003L + i; }

static void is_given(const long *got, int of, int first, int count) {
    for (int i = 0; i < count; i++) right &= got[i] == given_by(of, first + i);
}

/* What is sent, and what a root broadcasts, lies in memory that nobody may write to. */
static void read_only(int each, int bcast_most) {
    int all = each * size, counts[STEP_RANKS], places[STEP_RANKS];
    size_t given_bytes, got_bytes;
    void *given_start, *got_start;
    long *given = new_guarded(all, &given_start, &given_bytes), *got = new_guarded(all, &got_start, &got_bytes);
    for (int i = 0; i < all; i++) given[i] = given_by(rank, i);
    for (int r = 0; r < size; r++) counts[r] = each, places[r] = r * each;
    mprotect(given_start, given_bytes, PROT_READ);
    /* The last longs of a buffer are its end, whatever its length. */
    long *one = given + all - each, *to_one = got + all - each;
    int first = all - each;
    for (int call = 0; call < 6; call++) {
        int root = call % size, is_root = rank == root;
        long own = 1000003L * size * (size - 1) / 2;
        if (all <= bcast_most) MPI_Bcast(is_root ? given : got, all, MPI_LONG, root, MPI_COMM_WORLD);
        if (all <= bcast_most && !is_root) is_given(got, root, 0, all);
        if (each <= bcast_most) MPI_Bcast(is_root ? one : to_one, each, MPI_LONG, root, MPI_COMM_WORLD);
        if (each <= bcast_most && !is_root) is_given(to_one, root, first, each);
        MPI_Scatter(given, each, MPI_LONG, to_one, each, MPI_LONG, root, MPI_COMM_WORLD);
        is_given(to_one, root, rank * each, each);
        MPI_Scatterv(given, counts, places, MPI_LONG, to_one, each, MPI_LONG, root, MPI_COMM_WORLD);
        is_given(to_one, root, rank * each, each);
        MPI_Gather(one, each, MPI_LONG, got, each, MPI_LONG, root, MPI_COMM_WORLD);
        for (int r = 0; is_root && r < size; r++) is_given(got + r * each, r, first, each);
        MPI_Gatherv(one, each, MPI_LONG, got, counts, places, MPI_LONG, root, MPI_COMM_WORLD);
        for (int r = 0; is_root && r < size; r++) is_given(got + r * each, r, first, each);
        MPI_Allgather(one, each, MPI_LONG, got, each, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) is_given(got + r * each, r, first, each);
        MPI_Allgatherv(one, each, MPI_LONG, got, counts, places, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) is_given(got + r * each, r, first, each);
        MPI_Alltoall(given, each, MPI_LONG, got, each, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) is_given(got + r * each, r, rank * each, each);
        MPI_Alltoallv(given, counts, places, MPI_LONG, got, counts, places, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) is_given(got + r * each, r, rank * each, each);
        MPI_Allreduce(given, got, all, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < all; i++) right &= got[i] == own + (long)size * i;
        MPI_Reduce(given, got, all, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; is_root && i < all; i++) right &= got[i] == own + (long)size * i;
        MPI_Reduce_scatter(given, to_one, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < each; i++) right &= to_one[i] == own + (long)size * (rank * each + i);
        MPI_Reduce_scatter_block(given, to_one, each, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < each; i++) right &= to_one[i] == own + (long)size * (rank * each + i);
        MPI_Scan(given, got, all, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < all; i++) right &= got[i] == 1000003L * rank * (rank + 1) / 2 + (rank + 1L) * i;
        MPI_Exscan(given, got, all, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; rank > 0 && i < all; i++) right &= got[i] == 1000003L * rank * (rank - 1) / 2 + (long)rank * i;
    }
    munmap(given_start, given_bytes), munmap(got_start, got_bytes);
}

enum { CHAIN = 40 };
static MPI_Comm chain[CHAIN];

static void reduce(MPI_Comm comm) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    right &= sum == size;
}

/* What frees one communicator frees the next one; each calls a collective on its own, and the last of them on the first. */
static int free_next(MPI_Comm freed, int key, void *attribute, void *extra) {
    (void)key, (void)extra;
    long next = (long)attribute + 1;
    if (next == CHAIN) reduce(chain[0]);
    else MPI_Comm_free(&chain[next]);
    reduce(freed);
    return MPI_SUCCESS;
}

static void free_in_chains(int key) {
    for (long i = 0; i < CHAIN; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &chain[i]);
        /* Attributes that are older than a tuner's go before it, or behind it. */
        if (rank % 2) MPI_Comm_set_attr(chain[i], key, (void *)i);
        for (int call = 0; call < 9; call++) reduce(chain[i]);
        if (rank % 2 == 0) MPI_Comm_set_attr(chain[i], key, (void *)i);
    }
    MPI_Comm first = chain[0];
    MPI_Comm_free(&first);
    reduce(MPI_COMM_WORLD);
}

static jmp_buf refused;

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(refused, 1);
}

/* Once. */
static int refuse(MPI_Comm freed, int key, void *attribute, void *extra) {
    (void)freed, (void)key, (void)extra;
    int *left = attribute;
    return (*left)-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* A communicator that could not be freed is used and freed, and so are others after it that may have its handle, on one
 * rank and not on the other. */
static void free_twice(void) {
    int key, left = 1;
    volatile int jumped = 0;
    MPI_Errhandler leaves;
    MPI_Comm comm, own = MPI_COMM_NULL;
    MPI_Comm_create_errhandler(leave, &leaves);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &left);
    MPI_Comm_set_errhandler(comm, leaves), MPI_Comm_set_errhandler(MPI_COMM_WORLD, leaves);
    for (int call = 0; call < 9; call++) reduce(comm);
    if (setjmp(refused) == 0) MPI_Comm_free(&comm);
    else jumped = 1;
    right &= jumped;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL), MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (int call = 0; call < 9; call++) reduce(comm);
    MPI_Comm_free(&comm);
    for (int round = 0; round < 20; round++) {
        if (rank % 2) MPI_Comm_dup(MPI_COMM_SELF, &own);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 9; call++) reduce(comm), right &= step(comm, call, 40);
        MPI_Comm_free(&comm);
        if (rank % 2) MPI_Comm_free(&own);
    }
    MPI_Comm_free_keyval(&key);
    MPI_Errhandler_free(&leaves);
}

struct holed { double weight; char gap[8]; unsigned number; char end[12]; };

static void add_holed(void *from, void *to, int *count, MPI_Datatype *type) {
    struct holed *given = from, *sum = to;
    (void)type;
    for (int i = 0; i < *count; i++) sum[i].weight += given[i].weight, sum[i].number += given[i].number;
}

/* Elements of which less than half is data, combined by an operation of the program's. */
static void holes(int each) {
    int lengths[] = {1, 1}, all = each * size;
    MPI_Aint places[] = {offsetof(struct holed, weight), offsetof(struct holed, number)};
    MPI_Datatype parts[] = {MPI_DOUBLE, MPI_UNSIGNED}, tight, type;
    MPI_Op add;
    MPI_Type_create_struct(2, lengths, places, parts, &tight);
    MPI_Type_create_resized(tight, 0, sizeof(struct holed), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_holed, 1, &add);
    struct holed *given = calloc((size_t)all, sizeof *given), *got = calloc((size_t)each, sizeof *got);
    for (int i = 0; i < all; i++) given[i].weight = i, given[i].number = (unsigned)(i + rank);
    for (int call = 0; call < 3; call++) {
        MPI_Reduce_scatter_block(given, got, each, type, add, MPI_COMM_WORLD);
        for (int i = 0; i < each; i++) {
            int whole = size * (rank * each + i);
            right &= got[i].weight == whole && got[i].number == (unsigned)(whole + size * (size - 1) / 2);
        }
    }
    free(given), free(got);
    MPI_Op_free(&add), MPI_Type_free(&type), MPI_Type_free(&tight);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *given_file = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (!strcmp(what, "in-place"))
        for (int round = 0; round < 12; round++)
            for (int each = 1; each < 4000; each *= 9) in_place(each, round);
    if (!strcmp(what, "farewell")) {
        int key, from = 0;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, farewell, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
        for (int k = 0; k < 60; k++) right &= step(MPI_COMM_WORLD, k, 20);
        if (rank == 0) {
            usleep(100000);
            for (int sender = 1; sender < size; sender++)
                MPI_Recv(&from, 1, MPI_INT, sender, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), right &= from == sender;
            for (int which = 0; which < STEPS; which++) right &= step(MPI_COMM_WORLD, which, 40);
            if (right) printf("ok\n"), fflush(stdout);
        }
        MPI_Finalize();
        return !right;
    }
    if (!strcmp(what, "handler")) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(on_error, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        for (int round = 0; round < 60; round++) {
            int value = round;
            if (rank == round % size) MPI_Bcast(&value, 1, MPI_INT, size + 3, MPI_COMM_WORLD);
            else on_error(NULL, NULL);
            for (int which = 0; which < 2; which++) right &= step(MPI_COMM_WORLD, which, 10);
        }
        MPI_Errhandler_free(&handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    if (!strcmp(what, "alone")) {
        long given[4] = {1, 2, 3, 4}, got[4 * STEP_RANKS];
        int counts[STEP_RANKS], places[STEP_RANKS];
        for (int i = 0; i < size; i++) counts[i] = 4, places[i] = 4 * i;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int round = 0; round < 20; round++)
            MPI_Allgatherv(given, round == 19 && rank == 1 ? 3 : 4, MPI_LONG, got, counts, places, MPI_LONG,
                           MPI_COMM_WORLD);
    }
    if (!strcmp(what, "own-types"))
        for (int each = 20; each < 200000; each *= 1000) own_types(each);
    if (!strcmp(what, "read-only"))
        for (int each = 1; each < 3000; each *= 50) read_only(each, argc > 2 && !strcmp(argv[2], "no-bcast") ? 0 : 1000000);
    if (!strcmp(what, "holes")) holes(3000);
    if (!strcmp(what, "data")) {
        for (int k = 0; k < 30; k++) right &= step(MPI_COMM_WORLD, k, 20);
        if (rank == 0) {
            close(STDERR_FILENO);
            int file = open(given_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            right &= file == STDERR_FILENO && write(file, "data\n", 5) == 5;
        }
        for (int k = 0; k < 60; k++) right &= step(MPI_COMM_WORLD, k, 20);
    }
    if (!strcmp(what, "chains")) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_next, &key, NULL);
        for (int round = 0; round < 5; round++) free_in_chains(key);
        MPI_Comm_free_keyval(&key);
    }
    if (!strcmp(what, "refused")) free_twice();
    if (!strcmp(what, "inexact")) {
        feenableexcept(FE_INEXACT);
        for (int call = 0; call < 200; call++) reduce(MPI_COMM_WORLD);
        fedisableexcept(FE_ALL_EXCEPT);
    }
    if (!strcmp(what, "rounds")) {
        int ways[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
        fesetround(ways[rank % 4]);
        for (int k = 0; k < 400; k++) right &= step(MPI_COMM_WORLD, k, 1 << k % 11);
        right &= fegetround() == ways[rank % 4];
    }
    MPI_Comm_free(&other);
    return conclude(right);
}
