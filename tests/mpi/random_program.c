/* Random MPI programs: communicators made and freed, and any collective on them.
 *
 * usage: random_program FIRST_SEED PROGRAMS
 * A program is a sequence of events that every rank draws alike from its seed; each rank takes part
 * in those whose communicator it belongs to. Rank 0 prints "SEED HASH" for each program: the hash of
 * every byte that the standard defines, on all ranks, except for floating-point sums. Those are
 * compared with the exact sum instead: n terms added in any order differ from it by less than
 * (n - 1) u / (1 - (n - 1) u) times the sum of their magnitudes, u = 2^-53. */
#include <math.h>

#include "step.h"

enum { COMMS = 12, EVENTS = 30, PENDING = 6, BYTES = 1 << 21, RANKS = 16, GUARD = 64 };

typedef struct {
    MPI_Comm comm;
    int size;           /* 0: a free place */
    int world[RANKS];   /* world ranks of the members, in order; known alike on all ranks */
    int mine;           /* this process's rank in it, -1 for none */
} Communicator;

typedef struct {
    MPI_Request request;
    char *send, *recv;
    int counts[RANKS], places[RANKS];
    size_t check_bytes; /* of recv, to be hashed when the request is complete */
} Pending;

static Communicator comms[COMMS];
static Pending pending[PENDING];
static uint64_t state, hash;
static int me, n_ranks, float_right = 1, is_mpich, is_intel;

static unsigned below(unsigned n) { return (unsigned)(next_random(&state) % n); }

static void hash_bytes(const void *data, size_t n) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
}

/* ---- Types. Each has an extent of `extent` bytes, of which data takes a part. ---- */

enum { BYTE, INT, LONG, DOUBLE, VECTOR, NEGATIVE, EMPTY, PAIR, MATRIX, HOLED_MATRIX, TYPES };
static MPI_Datatype types[TYPES];
static int extents[TYPES];

/* 2x2 matrices of 32-bit numbers: their product is associative, exact and not commutative. */
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *n; i++) {
        uint32_t *a = (uint32_t *)((char *)in + i * extent), *b = (uint32_t *)((char *)inout + i * extent), c[4];
        for (int k = 0; k < 4; k++) c[k] = a[k / 2 * 2] * b[k % 2] + a[k / 2 * 2 + 1] * b[2 + k % 2];
        memcpy(b, c, sizeof c);
    }
}

static void add_matrices(void *in, void *inout, int *n, MPI_Datatype *type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *n; i++)
        for (int k = 0; k < 4; k++)
            ((uint32_t *)((char *)inout + i * extent))[k] += ((uint32_t *)((char *)in + i * extent))[k];
}

static MPI_Op product, sum_of_matrices;

static void resized(MPI_Datatype inner, int lower, int extent, int which) {
    MPI_Type_create_resized(inner, lower, extent, &types[which]);
    MPI_Type_commit(&types[which]);
    MPI_Type_free(&inner);
    extents[which] = extent;
}

static void make_types(void) {
    MPI_Datatype simple[] = {MPI_BYTE, MPI_INT, MPI_LONG, MPI_DOUBLE}, inner;
    int sizes[] = {1, 4, 8, 8};
    for (int i = BYTE; i <= DOUBLE; i++) types[i] = simple[i], extents[i] = sizes[i];
    types[PAIR] = MPI_2INT, extents[PAIR] = 8;
    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    resized(inner, 0, 20, VECTOR);
    /* Its data begins 8 bytes before the address that is passed. */
    MPI_Aint at[] = {-8, 4};
    int lengths[] = {2, 1};
    MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &inner);
    resized(inner, -8, 24, NEGATIVE);
    MPI_Type_contiguous(0, MPI_INT, &inner);
    resized(inner, 0, 4, EMPTY);
    MPI_Type_contiguous(4, MPI_UINT32_T, &inner);
    resized(inner, 0, 16, MATRIX);
    MPI_Type_contiguous(4, MPI_UINT32_T, &inner);
    resized(inner, 0, 28, HOLED_MATRIX);
    MPI_Op_create(multiply, 0, &product);
    MPI_Op_create(add_matrices, 1, &sum_of_matrices);
}

static void free_types(void) {
    int made[] = {VECTOR, NEGATIVE, EMPTY, MATRIX, HOLED_MATRIX};
    for (int i = 0; i < 5; i++) MPI_Type_free(&types[made[i]]);
    MPI_Op_free(&product);
    MPI_Op_free(&sum_of_matrices);
}

/* ---- Buffers ---- */

static char *fresh(size_t bytes, uint64_t salt) {
    char *data = malloc(bytes + 2 * GUARD);
    uint64_t seed = salt * 0x2545f4914f6cdd1du + 1;
    for (size_t i = 0; i + 8 <= bytes + 2 * GUARD; i += 8) {
        uint64_t word = next_random(&seed);
        memcpy(data + i, &word, 8);
    }
    for (size_t i = (bytes + 2 * GUARD) / 8 * 8; i < bytes + 2 * GUARD; i++) data[i] = 7;
    return data;
}

/* Doubles of different magnitudes; rank `rank` contributes term(event, rank, i). */
static double term(uint64_t event, int rank, int i) {
    uint64_t seed = event * 1000003u + (uint64_t)rank * 7919u + (uint64_t)i;
    uint64_t word = next_random(&seed);
    return ldexp((double)(int64_t)word, -63 - (int)(word % 12));
}

/* ---- Communicators ---- */

static void make(void) {
    int at = 1 + (int)below(COMMS - 1), parent = (int)below(COMMS), how = (int)below(4), reversed = (int)below(2);
    unsigned salt = below(1u << 30);
    if (comms[at].size || !comms[parent].size) return;
    Communicator *from = &comms[parent], *to = &comms[at];
    /* MPICH 4.0.2 itself crashes in MPI_Comm_create_group on other parents than the world. */
    if (how == 3 && parent != 0) how = 2;
    int chosen[RANKS], n = 0;
    for (int i = 0; i < from->size; i++)
        if (how == 0 || (salt >> i & 3) != 0) chosen[n++] = from->world[how == 1 && reversed ? from->size - 1 - i : i];
    if (how == 1 && reversed) {
        n = 0;
        for (int i = from->size - 1; i >= 0; i--)
            if ((salt >> i & 3) != 0) chosen[n++] = from->world[i];
    }
    if (n == 0) return;
    int in = -1;
    for (int i = 0; i < n; i++)
        if (chosen[i] == me) in = i;
    if (from->mine >= 0) {
        MPI_Group world, group;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, n, chosen, &group);
        to->comm = MPI_COMM_NULL;
        if (how == 0) MPI_Comm_dup(from->comm, &to->comm);
        else if (how == 1) MPI_Comm_split(from->comm, in >= 0 ? 5 : MPI_UNDEFINED, in, &to->comm);
        else if (how == 2) MPI_Comm_create(from->comm, group, &to->comm);
        else if (in >= 0) MPI_Comm_create_group(from->comm, group, at, &to->comm);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
    }
    memcpy(to->world, chosen, sizeof chosen);
    to->size = n;
    to->mine = in;
}

/* In one of three ways. */
static void wait_for(Pending *p) {
    int done = 0, at;
    switch (p->check_bytes / 8 % 3) {
    case 0: MPI_Wait(&p->request, MPI_STATUS_IGNORE); break;
    case 1: while (!done) MPI_Test(&p->request, &done, MPI_STATUS_IGNORE); break;
    default: MPI_Waitany(1, &p->request, &at, MPI_STATUS_IGNORE);
    }
}

static void complete(int which) {
    Pending *p = &pending[which];
    if (!p->send) return;
    wait_for(p);
    hash_bytes(p->recv + GUARD, p->check_bytes);
    free(p->send);
    free(p->recv);
    p->send = NULL;
}

static void complete_all(void) {
    for (int i = 0; i < PENDING; i++) complete(i);
}

static void drop(int at) {
    if (at == 0 || !comms[at].size) return;
    complete_all();
    if (comms[at].mine >= 0) MPI_Comm_free(&comms[at].comm);
    comms[at].size = 0;
}

/* ---- Calls ---- */

static int some_count(int n_blocks, int extent) {
    static const int most[] = {0, 1, 2, 7, 64, 300, 1025, 5000, 40000};
    int count = most[below(9)];
    count += count > 1 ? (int)below(3) : 0;
    int room = BYTES / (extent * n_blocks);
    return count < room ? count : room;
}

/* Movements of equal blocks. */
static void move_blocks(Communicator *c, uint64_t event) {
    int which = (int)below(6), type = (int)below(TYPES), root = (int)below(c->size), in_place = below(4) == 0;
    int count = some_count(c->size, extents[type]), n = c->size, rank = c->mine;
    if (rank < 0) return;
    size_t block = (size_t)count * extents[type];
    char *send = fresh(block * n, event * 64 + me), *recv = fresh(block * n, event * 64 + 32 + me);
    char *s = send + GUARD, *r = recv + GUARD;
    MPI_Datatype t = types[type];
    switch (which) {
    case 0: /* bcast; small ones with another description of the same bytes on odd ranks */
        if (type == MATRIX && block <= 512 && rank % 2) MPI_Bcast(r, 4 * count, MPI_UINT32_T, root, c->comm);
        else MPI_Bcast(r, count, t, root, c->comm);
        break;
    case 1:
        if (in_place) MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, count, t, c->comm);
        else MPI_Allgather(s, count, t, r, count, t, c->comm);
        break;
    case 2:
        if (in_place) MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, count, t, c->comm);
        else MPI_Alltoall(s, count, t, r, count, t, c->comm);
        break;
    case 3:
        if (in_place && rank == root) MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, count, t, root, c->comm);
        else MPI_Gather(s, count, t, rank == root ? r : NULL, count, t, root, c->comm);
        break;
    case 4:
        if (in_place && rank == root) MPI_Scatter(s, count, t, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c->comm);
        else MPI_Scatter(rank == root ? s : NULL, count, t, r, count, t, root, c->comm);
        break;
    default: MPI_Barrier(c->comm);
    }
    hash_bytes(recv, block * n + 2 * GUARD);
    hash_bytes(send, block * n + 2 * GUARD);
    free(send);
    free(recv);
}

/* Movements of blocks of different sizes: from i to j go (counts[i] + counts[j]) / 2 elements at most. */
static void move_uneven(Communicator *c, uint64_t event) {
    int which = (int)below(5), type = (int)below(TYPES), root = (int)below(c->size);
    int n = c->size, rank = c->mine, total = 0, counts[RANKS], at[RANKS], send_counts[RANKS], recv_counts[RANKS];
    int bytes_at[RANKS];
    MPI_Datatype each[RANKS];
    int most = some_count(n, extents[type]);
    for (int i = 0; i < n; i++) {
        counts[i] = most ? (int)below(most + 1) : 0;
        at[i] = total;
        total += most;
    }
    if (rank < 0) return;
    size_t bytes = (size_t)total * extents[type];
    char *send = fresh(bytes, event * 64 + me), *recv = fresh(bytes, event * 64 + 32 + me);
    char *s = send + GUARD, *r = recv + GUARD;
    MPI_Datatype t = types[type];
    for (int i = 0; i < n; i++) {
        send_counts[i] = recv_counts[i] = counts[i] < counts[rank] ? counts[i] : counts[rank];
        bytes_at[i] = at[i] * extents[type];
        each[i] = t;
    }
    switch (which) {
    case 0: MPI_Allgatherv(s, counts[rank], t, r, counts, at, t, c->comm); break;
    case 1: MPI_Gatherv(s, counts[rank], t, r, counts, at, t, root, c->comm); break;
    case 2: MPI_Scatterv(s, counts, at, t, r, counts[rank], t, root, c->comm); break;
    case 3: MPI_Alltoallv(s, send_counts, at, t, r, recv_counts, at, t, c->comm); break;
    default: MPI_Alltoallw(s, send_counts, bytes_at, each, r, recv_counts, bytes_at, each, c->comm);
    }
    hash_bytes(recv, bytes + 2 * GUARD);
    free(send);
    free(recv);
}

typedef struct {
    int type;
    MPI_Op op;
} Combination;

static Combination some_combination(void) {
    MPI_Op on_integers[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    unsigned kind = below(10), op = below(10), wide = below(3);
    if (kind < 4) return (Combination){wide == 0 ? INT : LONG, on_integers[op]};
    if (kind < 5) return (Combination){BYTE, on_integers[4 + op % 3]};
    if (kind < 6) return (Combination){PAIR, op % 2 ? MPI_MINLOC : MPI_MAXLOC};
    if (kind < 7) return (Combination){DOUBLE, op % 2 ? MPI_MIN : MPI_MAX};
    return (Combination){op % 2 ? MATRIX : HOLED_MATRIX, wide ? product : sum_of_matrices};
}

/* Hashes the data of `count` elements; holes are not defined behind a reduction. */
static void hash_elements(const char *data, int count, int type) {
    int used = type == HOLED_MATRIX ? 16 : extents[type];
    for (int i = 0; i < count; i++) hash_bytes(data + (size_t)i * extents[type], used);
}

/* No NaN, and no signed overflow: sums and products wrap in the libraries, but need not. */
static void tame(char *data, size_t bytes, int type) {
    if (type == DOUBLE)
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            uint64_t word;
            memcpy(&word, data + i, 8);
            double value = (double)(word % 100000);
            memcpy(data + i, &value, 8);
        }
    if (type == INT || type == PAIR)
        for (size_t i = 0; i + 4 <= bytes; i += 4) data[i + 1] = data[i + 2] = data[i + 3] = 0;
    if (type == LONG)
        for (size_t i = 0; i + 8 <= bytes; i += 8) memset(data + i + 1, 0, 7);
}

static void reduce(Communicator *c, uint64_t event) {
    int which = (int)below(6), root = (int)below(c->size), in_place = below(3) == 0;
    Combination with = some_combination();
    /* MPICH 4.0.2 itself writes behind its own buffers where a type has holes and the operation does not
     * commute: its reduce_scatter makes room for the data without the holes. */
    if (is_mpich && (which == 3 || which == 4) && with.type == HOLED_MATRIX && with.op == product) with.type = MATRIX;
    /* Intel MPI 2021.19 itself sums some lengths wrongly in MPI_Reduce where a type has holes. */
    if (is_intel && which == 1 && with.type == HOLED_MATRIX && with.op == sum_of_matrices) with.type = MATRIX;
    /* MPICH 4.0.2 itself aborts where in place a rank's block overlaps with where it belongs. */
    if (is_mpich && which == 4) in_place = 0;
    int n = c->size, rank = c->mine, type = with.type, count = some_count(n, extents[type]), counts[RANKS], total = 0;
    for (int i = 0; i < n; i++) total += counts[i] = count ? (int)below(count + 1) : 0;
    if (rank < 0) return;
    int elements = which == 3 ? count * n : which == 4 ? total : count;
    size_t bytes = (size_t)elements * extents[type];
    char *send = fresh(bytes, event * 64 + me), *recv = fresh(bytes, event * 64 + 32 + me);
    char *s = send + GUARD, *r = recv + GUARD;
    tame(s, bytes, type);
    tame(r, bytes, type);
    /* MPICH 4.0.2 itself crashes in larger MPI_Reduce in place at other roots than 0. */
    int root_in_place = in_place && rank == root && !(is_mpich && root != 0 && bytes > 2048);
    MPI_Datatype t = types[type];
    int defined = elements;
    switch (which) {
    case 0: MPI_Allreduce(in_place ? MPI_IN_PLACE : s, r, count, t, with.op, c->comm); break;
    case 1:
        MPI_Reduce(root_in_place ? MPI_IN_PLACE : s, rank == root ? r : NULL, count, t, with.op, root, c->comm);
        if (rank != root) defined = 0;
        break;
    case 2: MPI_Scan(in_place ? MPI_IN_PLACE : s, r, count, t, with.op, c->comm); break;
    case 3:
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : s, r, count, t, with.op, c->comm);
        defined = count;
        break;
    case 4:
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : s, r, counts, t, with.op, c->comm);
        defined = counts[rank];
        break;
    default:
        MPI_Exscan(in_place ? MPI_IN_PLACE : s, r, count, t, with.op, c->comm);
        if (rank == 0) defined = 0;
    }
    hash_elements(r, defined, type);
    hash_bytes(recv, GUARD);
    hash_bytes(recv + GUARD + bytes, GUARD);
    free(send);
    free(recv);
}

static void add_doubles(Communicator *c, uint64_t event) {
    int which = (int)below(2), root = (int)below(c->size), count = some_count(c->size, 8), n = c->size;
    if (c->mine < 0) return;
    double *s = malloc(8 * (size_t)count + 8), *r = malloc(8 * (size_t)count + 8);
    for (int i = 0; i < count; i++) s[i] = term(event, c->mine, i);
    if (which) MPI_Allreduce(s, r, count, MPI_DOUBLE, MPI_SUM, c->comm);
    else MPI_Reduce(s, r, count, MPI_DOUBLE, MPI_SUM, root, c->comm);
    for (int i = 0; i < count && (which || c->mine == root); i++) {
        long double exact = 0, magnitude = 0, u = ldexpl(1, -53);
        for (int k = 0; k < n; k++) exact += term(event, k, i), magnitude += fabsl(term(event, k, i));
        /* The sum of at most 16 terms in 64 bits of mantissa is itself off by 2^-60 of the magnitude at most. */
        long double bound = ((n - 1) * u / (1 - (n - 1) * u) + ldexpl(1, -60)) * magnitude;
        if (!(fabsl(r[i] - exact) <= bound)) float_right = 0;
    }
    free(s);
    free(r);
}

/* Starts a nonblocking collective, or completes one. */
static void start_or_complete(Communicator *c, uint64_t event) {
    int at = (int)below(PENDING), which = (int)below(12), root = (int)below(c->size), n = c->size, rank = c->mine;
    int count = some_count(c->size, 8), *counts = pending[at].counts, *places = pending[at].places;
    complete(at);
    if (rank < 0) return;
    Pending *p = &pending[at];
    size_t block = 8 * (size_t)count, bytes = block * n;
    p->send = fresh(bytes, event * 64 + me);
    p->recv = fresh(bytes, event * 64 + 32 + me);
    tame(p->send + GUARD, bytes, LONG);
    char *s = p->send + GUARD, *r = p->recv + GUARD;
    for (int i = 0; i < n; i++) counts[i] = count, places[i] = (n - 1 - i) * count;
    p->check_bytes = block;
    switch (which) {
    case 0: MPI_Iallreduce(s, r, count, MPI_LONG, MPI_SUM, c->comm, &p->request); break;
    case 1:
        MPI_Iallgather(s, count, MPI_LONG, r, count, MPI_LONG, c->comm, &p->request);
        p->check_bytes = bytes;
        break;
    case 2: MPI_Ibcast(r, count, MPI_LONG, root, c->comm, &p->request); break;
    case 3:
        MPI_Ialltoall(s, count, MPI_LONG, r, count, MPI_LONG, c->comm, &p->request);
        p->check_bytes = bytes;
        break;
    case 4:
        MPI_Ireduce(s, r, count, MPI_LONG, MPI_SUM, root, c->comm, &p->request);
        if (rank != root) p->check_bytes = 0;
        break;
    case 5:
        MPI_Igather(s, count, MPI_LONG, r, count, MPI_LONG, root, c->comm, &p->request);
        p->check_bytes = rank == root ? bytes : 0;
        break;
    case 6: MPI_Iscatter(s, count, MPI_LONG, r, count, MPI_LONG, root, c->comm, &p->request); break;
    case 7:
        MPI_Iallgatherv(s, count, MPI_LONG, r, counts, places, MPI_LONG, c->comm, &p->request);
        p->check_bytes = bytes;
        break;
    case 8:
        MPI_Ialltoallv(s, counts, places, MPI_LONG, r, counts, places, MPI_LONG, c->comm, &p->request);
        p->check_bytes = bytes;
        break;
    case 9: MPI_Iscan(s, r, count, MPI_LONG, MPI_SUM, c->comm, &p->request); break;
    case 10: MPI_Ireduce_scatter_block(s, r, count, MPI_LONG, MPI_SUM, c->comm, &p->request); break;
    default:
        MPI_Ibarrier(c->comm, &p->request);
        p->check_bytes = 0;
    }
}

static void run(uint64_t seed) {
    /* Mixed, or the streams of neighbouring seeds would be one, shifted by a number. */
    state = seed;
    state = next_random(&state);
    hash = 0xcbf29ce484222325u;
    make_types();
    for (int event = 0; event < EVENTS; event++) {
        int at = (int)below(COMMS), what = (int)below(20);
        while (!comms[at].size) at = (at + 1) % COMMS;
        uint64_t number = seed * 1000 + (uint64_t)event;
        if (what < 4) make();
        else if (what < 5) drop(at);
        else if (what < 9) move_blocks(&comms[at], number);
        else if (what < 11) move_uneven(&comms[at], number);
        else if (what < 16) reduce(&comms[at], number);
        else if (what < 18) add_doubles(&comms[at], number);
        else start_or_complete(&comms[at], number);
    }
    complete_all();
    for (int i = 1; i < COMMS; i++) drop(i);
    free_types();
}

int main(int argc, char **argv) {
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int programs = argc > 2 ? atoi(argv[2]) : 1, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    MPI_Get_library_version(version, &length);
    is_mpich = strstr(version, "MPICH") != NULL;
    is_intel = strstr(version, "Intel") != NULL;
    comms[0].comm = MPI_COMM_WORLD;
    comms[0].size = n_ranks;
    comms[0].mine = me;
    for (int i = 0; i < n_ranks; i++) comms[0].world[i] = i;
    for (int i = 0; i < programs; i++) {
        run(first + (uint64_t)i);
        /* Point to point, so that what is tested does not carry its own verdict. */
        uint64_t own[2] = {hash, (uint64_t)float_right}, other[2];
        if (me != 0) MPI_Send(own, 2, MPI_UINT64_T, 0, 1, MPI_COMM_WORLD);
        for (int rank = 1; me == 0 && rank < n_ranks; rank++) {
            MPI_Recv(other, 2, MPI_UINT64_T, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            own[0] = own[0] * 0x100000001b3u ^ other[0];
            own[1] &= other[1];
        }
        if (me == 0) printf("%llu %016llx%s\n", (unsigned long long)(first + (uint64_t)i), (unsigned long long)own[0],
                            own[1] ? "" : " a sum is off");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
