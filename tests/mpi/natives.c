/* Every collective with the corners of types, operations, counts and roots, in guarded memory.
 *
 * usage: natives short|long [COLLECTIVE...]
 * What is right is computed here. Each kind of fault is named once on stderr, "wrong: CASE: FAULT"; prints "ok" when
 * there is none. */
#include "guarded.h"

#include <mpi.h>
#include <stdio.h>

enum { RANKS = 16, ROOM = 96 << 20, BESIDE = 4096, BACKGROUND = 0xc7 };
static int rank, size, right = 1, is_long, turn;
static MPI_Comm comm;
static const char *collective;

/* ---- Types: each is so many 32-bit units, in the order of its map ---- */

enum { PLAIN, DOUBLES, LOCATED, DUPLICATE, NEGATIVE, BELOW, ABOVE, BEHIND, HOLES, BACKWARDS, REVERSED, APART, COLUMN, WIDE, TWICE, EMPTY, LARGE, KINDS };
static const char *const KIND_NAMES[] = {"plain", "doubles", "located", "duplicate", "negative", "below", "above", "behind",
                                         "holes", "backwards", "reversed", "apart", "column", "wide", "twice", "empty", "large"};
enum { LARGE_PAIRS = 600 };

typedef struct {
    MPI_Datatype handle;
    int kind, units;
    MPI_Aint *at; /* where the units are, in bytes from the element's address */
    MPI_Aint extent;
} Type;

static void mapped(Type *type, int units, const MPI_Aint *at) {
    MPI_Aint copy[16];
    memcpy(copy, at, sizeof *at * (size_t)units);
    type->units = units;
    type->at = malloc(sizeof *at * (size_t)(units + 1));
    memcpy(type->at, at, sizeof *at * (size_t)units);
    MPI_Type_create_hindexed_block(units, 1, copy, MPI_UINT32_T, &type->handle);
}
static void resize(Type *type, MPI_Aint lower, MPI_Aint extent) {
    MPI_Datatype inner = type->handle;
    MPI_Type_create_resized(inner, lower, extent, &type->handle);
    MPI_Type_free(&inner);
}
#define MAPPED(...) mapped(&type, (int)(sizeof((MPI_Aint[]){__VA_ARGS__}) / sizeof(MPI_Aint)), (MPI_Aint[]){__VA_ARGS__})

/* The type for a buffer of so many elements. */
static Type make(int kind, int elements) {
    Type type = {.kind = kind};
    MPI_Aint lower, column = 4 * (MPI_Aint)(elements + 3);
    switch (kind) {
    case PLAIN: MAPPED(0); break;
    case DOUBLES: MAPPED(0, 4); break;
    case LOCATED: MAPPED(0, 4, 8); break;
    case DUPLICATE: MAPPED(0); break;
    case NEGATIVE: MAPPED(-24, -20, 4, 8); break;
    case BELOW: MAPPED(-16, -8); resize(&type, 0, 16); break;
    case ABOVE: MAPPED(12, 20); break;
    case BEHIND: MAPPED(12, 16); resize(&type, 0, 20); break;
    case HOLES: MAPPED(0, 12); break;
    case BACKWARDS: MAPPED(8, 0); break;
    case REVERSED: MAPPED(0); resize(&type, 0, -4); break;
    case APART: MAPPED(0, 4); resize(&type, 0, -12); break;
    case COLUMN: MAPPED(0, column); resize(&type, 0, 4); break;
    case WIDE: MAPPED(0, 4); resize(&type, 0, 40); break;
    case TWICE: {
        MPI_Datatype inner;
        MPI_Type_vector(2, 1, 3, MPI_UINT32_T, &inner);
        MAPPED(0, 12, 16, 28);
        MPI_Type_free(&type.handle);
        MPI_Type_contiguous(2, inner, &type.handle);
        MPI_Type_free(&inner);
        break;
    }
    case EMPTY:
        type.at = malloc(1);
        MPI_Type_contiguous(0, MPI_UINT32_T, &type.handle);
        resize(&type, 0, 8);
        break;
    default:
        type.units = 2 * LARGE_PAIRS;
        type.at = malloc(sizeof(MPI_Aint) * 2 * LARGE_PAIRS);
        for (int i = 0; i < 2 * LARGE_PAIRS; i++) type.at[i] = i / 2 * 12 + i % 2 * 4;
        MPI_Type_vector(LARGE_PAIRS, 2, 3, MPI_UINT32_T, &type.handle);
    }
    static MPI_Datatype predefined[DUPLICATE];
    predefined[PLAIN] = MPI_UINT32_T, predefined[DOUBLES] = MPI_DOUBLE, predefined[LOCATED] = MPI_DOUBLE_INT;
    if (kind <= DUPLICATE) {
        MPI_Type_free(&type.handle);
        if (kind == DUPLICATE) MPI_Type_dup(MPI_UINT32_T, &type.handle);
        else type.handle = predefined[kind];
    }
    if (kind >= DUPLICATE) MPI_Type_commit(&type.handle);
    MPI_Type_get_extent(type.handle, &lower, &type.extent);
    return type;
}
static void drop(Type *type) {
    if (type->kind >= DUPLICATE) MPI_Type_free(&type->handle);
    free(type->at);
}

/* ---- Buffers ---- */

typedef struct {
    Place *place;
    Type type;
    int elements;
    char *start;         /* what MPI gets */
    char *first, *last;  /* its memory */
    char *want, *any;    /* what has to be there in the end, from BESIDE bytes before `first` on, and where anything may */
    size_t compared;
} Buffer;

static Place *places_of[2];
static char *wants[2], *anys[2];

/* A buffer of so many elements that ends, or begins, where nobody may touch. */
static Buffer buffer(int which, Type type, int elements) {
    Buffer b = {.place = places_of[which], .type = type, .elements = elements, .want = wants[which], .any = anys[which]};
    MPI_Aint low = 0, high = 0;
    for (int u = 0; u < b.type.units && elements > 0; u++) {
        MPI_Aint first = b.type.at[u], last = first + (elements - 1) * b.type.extent;
        MPI_Aint at = first < last ? first : last, behind = (first < last ? last : first) + 4;
        if (u == 0 || at < low) low = at;
        if (u == 0 || behind > high) high = behind;
    }
    if (type.kind == LOCATED) high = elements * b.type.extent;
    char *body = b.place->front + PAGES_BYTES;
    size_t bytes = (size_t)(high - low);
    if (bytes + 2 * BESIDE > b.place->bytes) fprintf(stderr, "wrong: %s: no room\n", doing), exit(1);
    b.first = turn % 2 ? body + b.place->bytes - bytes : body;
    b.last = b.first + bytes;
    b.start = b.first - low;
    char *from = turn % 2 ? b.first - BESIDE : b.first;
    b.compared = bytes + BESIDE;
    memset(from, BACKGROUND, b.compared);
    memset(b.want, BACKGROUND, b.compared);
    memset(b.any, 0, b.compared);
    return b;
}
static char *compared_from(const Buffer *b) { return turn % 2 ? b->first - BESIDE : b->first; }

static char *unit(const Buffer *b, int element, int u) { return b->start + element * b->type.extent + b->type.at[u]; }
static void put(Buffer *b, int element, int u, uint32_t value) { memcpy(unit(b, element, u), &value, 4); }
static void want(Buffer *b, int element, int u, uint32_t value) { memcpy(b->want + (unit(b, element, u) - compared_from(b)), &value, 4); }
static void want_any(Buffer *b, int element, int u) { memset(b->any + (unit(b, element, u) - compared_from(b)), 1, 4); }
static void want_as_is(Buffer *b) { memcpy(b->want, compared_from(b), b->compared); }

static void fault(const char *what) {
    right = 0;
    fprintf(stderr, "wrong: %s: %s\n", doing, what);
}

static void check(Buffer *b, const char *side) {
    char *from = compared_from(b), what[64];
    if (memcmp(from, b->want, b->compared) == 0) goto done;
    int data = 0, hole = 0, outside = 0;
    char *marks = calloc(1, b->compared);
    for (int e = 0; e < b->elements; e++)
        for (int u = 0; u < b->type.units; u++) memset(marks + (unit(b, e, u) - from), 1, 4);
    for (size_t i = 0; i < b->compared; i++) {
        if (from[i] == b->want[i] || b->any[i]) continue;
        if (marks[i]) data = 1;
        else if (from + i >= b->first && from + i < b->last) hole = 1;
        else outside = 1;
    }
    free(marks);
    snprintf(what, sizeof what, "%s%s%s%s", side, data ? " data" : "", hole ? " hole" : "", outside ? " outside" : "");
    if (data || hole || outside) fault(what);
done:
    drop(&b->type);
}

/* ---- Values and operations ---- */

static uint32_t number(int of, int element, int u) {
    uint32_t x = (uint32_t)of * 0x9e3779b9u + (uint32_t)element * 0x85ebca6bu + (uint32_t)u * 0xc2b2ae35u + 12345;
    x ^= x >> 15, x *= 0x2c1b3c6du, x ^= x >> 12;
    /* Positive: as a signed number it is the same. */
    return x >> 1;
}
/* What a rank contributes: an element of a type's kind. */
static void element_of(int kind, int of, int element, int units, uint32_t *value) {
    for (int u = 0; u < units; u++) value[u] = number(of, element, u);
    double small = number(of, element, 0) % 3;
    if (kind == DOUBLES || kind == LOCATED) memcpy(value, &small, 8);
    if (kind == LOCATED) value[2] = (uint32_t)of;
}

enum { SUM, MAX, MINLOC, ADD, AFFINE, OPS };
static const char *const OP_NAMES[] = {"sum", "max", "minloc", "add", "affine"};
static MPI_Op ops[OPS];

/* Maps x -> a x + b of 16-bit numbers: to do one after the other is associative and does not commute. */
static uint32_t affine(uint32_t l, uint32_t r) {
    uint32_t a = l >> 16, b = l & 0xffff, c = r >> 16, d = r & 0xffff;
    return (a * c) << 16 | ((a * d + b) & 0xffff);
}
static const Type *reduced;
static void own(int op, char *in, char *inout, int n) {
    for (int e = 0; e < n; e++)
        for (int u = 0; u < reduced->units; u++) {
            uint32_t l, r;
            MPI_Aint at = e * reduced->extent + reduced->at[u];
            memcpy(&l, in + at, 4), memcpy(&r, inout + at, 4);
            r = op == ADD ? l + r : affine(l, r);
            memcpy(inout + at, &r, 4);
        }
}
static void own_add(void *in, void *inout, int *n, MPI_Datatype *type) { (void)type, own(ADD, in, inout, *n); }
static void own_affine(void *in, void *inout, int *n, MPI_Datatype *type) { (void)type, own(AFFINE, in, inout, *n); }

static void combine(int op, int kind, int units, uint32_t *l, const uint32_t *r) {
    double x = 0, y = 0;
    if (op <= MINLOC && kind != PLAIN) memcpy(&x, l, 8), memcpy(&y, r, 8);
    if (op == MINLOC) {
        if (y < x || (y == x && r[2] < l[2])) memcpy(l, r, 12);
    } else if (op <= MAX && kind == DOUBLES) {
        x = op == SUM ? x + y : x > y ? x : y;
        memcpy(l, &x, 8);
    } else
        for (int u = 0; u < units; u++)
            l[u] = op == AFFINE ? affine(l[u], r[u]) : op == MAX ? (l[u] > r[u] ? l[u] : r[u]) : l[u] + r[u];
}
static int takes(int op, int kind) {
    if (op == MINLOC) return kind == LOCATED;
    return op >= ADD || kind == PLAIN || kind == DOUBLES;
}
/* What ranks `from` up to but not `to` give together. */
static void together(int op, int kind, int units, int from, int to, int element, uint32_t *value) {
    static uint32_t next[2 * LARGE_PAIRS];
    element_of(kind, from, element, units, value);
    for (int r = from + 1; r < to; r++) {
        element_of(kind, r, element, units, next);
        combine(op, kind, units, value, next);
    }
}

/* ---- Cases ---- */

static int is_asked(int argc, char **argv, const char *name) {
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return argc <= 2;
}
static void begin(void) {
    alarm(120);
    memset(&noticed, 0, sizeof noticed);
}
static void end(int code) {
    if (code != MPI_SUCCESS) fault("error");
    if (noticed.written_outside) fault("writes into forbidden pages");
    if (noticed.read_outside) fault("reads forbidden pages");
    if (noticed.heap_before) fault("writes before a block of the heap");
    if (noticed.heap_behind) fault("writes behind a block of the heap");
    if (noticed.written_outside || noticed.read_outside)
        for (int i = 0; i < n_places; i++) protect(&places[i]);
}

enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN };
static const char *const REDUCTIONS[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"};

static void fill_own(Buffer *b, int of, uint32_t *value) {
    for (int e = 0; e < b->elements; e++) {
        element_of(b->type.kind, of, e, b->type.units, value);
        for (int u = 0; u < b->type.units; u++) put(b, e, u, value[u]);
    }
    want_as_is(b);
}

static int is_reversed(int kind) { return kind == REVERSED || kind == APART; }

/* What kills the bare library by its own choice. */
static int is_deadly(int which, int kind, int op, int root, size_t bytes, int in_place, int uneven) {
    int is_mpich = 0, is_mpich_4_0 = 0, scattered = which == REDUCE_SCATTER || which == REDUCE_SCATTER_BLOCK;
#ifdef MPICH_NUMVERSION
    is_mpich = 1, is_mpich_4_0 = MPICH_NUMVERSION < 40100000;
#endif
    /* It looks for what it receives where it would be if the extent were not negative. */
    if (is_reversed(kind)) return 1;
    /* It takes elements to be as long as their data are. */
    if (is_mpich && scattered && op == AFFINE && kind > DOUBLES && (size & (size - 1)) == 0) return 1;
    /* It copies a block that is longer than the one before it over itself, and asks whether that may be. */
    if (is_mpich && in_place && uneven && bytes > 512 * 1024) return 1;
    /* It reads from MPI_IN_PLACE. */
    return is_mpich_4_0 && which == REDUCE && in_place && root > 0 && bytes > 2048;
}

static void reduction(int which, int kind, int op, int count, int in_place) {
    static uint32_t value[2 * LARGE_PAIRS];
    int root = turn / 2 % size, counts[RANKS], total = count, mine = count, before = 0, uneven = which == REDUCE_SCATTER && turn % 4 > 1;
    snprintf(doing, sizeof doing, "%s %s %s%s #%d elements, root %d of %d, turn %d, rank %d", collective, KIND_NAMES[kind], OP_NAMES[op],
             in_place ? " in_place" : "", count, root, size, turn, rank);
    if (which == REDUCE_SCATTER || which == REDUCE_SCATTER_BLOCK) {
        total = 0;
        for (int r = 0; r < size; r++) {
            counts[r] = uneven ? count + r % 2 : count;
            if (r < rank) before += counts[r];
            total += counts[r];
        }
        mine = counts[rank];
    }
    Type type_of_one = make(kind, total);
    size_t bytes = 4 * (size_t)type_of_one.units * (size_t)total;
    drop(&type_of_one);
    if (is_deadly(which, kind, op, root, bytes, in_place, uneven)) {
        turn++;
        return;
    }
    int places_itself = in_place && (which != REDUCE || rank == root);
    Buffer send = buffer(0, make(kind, total), total), recv = buffer(1, make(kind, total), places_itself ? total : mine);
    const Type type = send.type;
    reduced = &type;
    fill_own(&send, rank, value);
    if (places_itself) fill_own(&recv, rank, value);
    int from = 0, to = size, defined = 1;
    if (which == SCAN) to = rank + 1;
    if (which == EXSCAN) to = rank, defined = rank > 0;
    if (which == REDUCE) defined = rank == root;
    for (int e = 0; e < recv.elements; e++) {
        if (which == REDUCE && !defined) break;
        if (defined && e < mine) together(op, kind, type.units, from, to, before + e, value);
        for (int u = 0; u < type.units; u++)
            if (defined && e < mine) want(&recv, e, u, value[u]);
            else want_any(&recv, e, u);
    }
    void *s = places_itself ? MPI_IN_PLACE : send.start, *r = recv.start;
    MPI_Datatype t = type.handle;
    MPI_Op o = ops[op];
    begin();
    int code;
    switch (which) {
    case ALLREDUCE: code = MPI_Allreduce(s, r, count, t, o, comm); break;
    case REDUCE: code = MPI_Reduce(s, r, count, t, o, root, comm); break;
    case REDUCE_SCATTER: code = MPI_Reduce_scatter(s, r, counts, t, o, comm); break;
    case REDUCE_SCATTER_BLOCK: code = MPI_Reduce_scatter_block(s, r, count, t, o, comm); break;
    case SCAN: code = MPI_Scan(s, r, count, t, o, comm); break;
    default: code = MPI_Exscan(s, r, count, t, o, comm);
    }
    end(code);
    check(&send, "send buffer");
    check(&recv, "result");
    turn++;
}

static void reductions(int which) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int op = 0; op < OPS; op++) {
            if (!takes(op, kind)) continue;
            Type type = make(kind, 1);
            int bytes = type.units ? 4 * type.units : 4, few = kind != LARGE;
            drop(&type);
            int counts[] = {0, 1, size - 1, size, few ? 3 * size + 2 : 9, few ? 41 * 1024 / bytes : 9, few ? 170 * 1024 / bytes : 40,
                            kind == LARGE || kind == PLAIN ? 650 * 1024 / bytes : 1};
            int n = is_long ? 8 : 6, parts = which == REDUCE_SCATTER || which == REDUCE_SCATTER_BLOCK ? size : 1;
            for (int c = 0; c < n; c++)
                for (int in_place = 0; in_place < 2; in_place++) reduction(which, kind, op, c < 5 ? counts[c] : counts[c] / parts, in_place);
        }
}

/* ---- Movements: rank r has for rank q a block of so many units, which each side describes as it likes ---- */

enum { BCAST, ALLGATHER, ALLTOALL, GATHER, SCATTER, ALLGATHERV, GATHERV, SCATTERV, ALLTOALLV };
static const char *const MOVEMENTS[] = {"bcast", "allgather", "alltoall", "gather", "scatter", "allgatherv", "gatherv", "scatterv", "alltoallv"};
enum { BOTH, SAME, SENT, RECEIVED, MIXED, WAYS };
static const char *const WAY_NAMES[] = {"both", "same", "sent", "received", "mixed"};

/* The `q`-th unit of a block of a buffer that begins at element `at`. */
static void put_unit(Buffer *b, int at, int q, uint32_t value) { put(b, at + q / b->type.units, q % b->type.units, value); }
static void want_unit(Buffer *b, int at, int q, uint32_t value) { want(b, at + q / b->type.units, q % b->type.units, value); }

static void movement(int which, int kind, int way, int count, int in_place) {
    int root = turn / 2 % size, uneven = which >= ALLGATHERV, units;
    snprintf(doing, sizeof doing, "%s %s %s%s #%d elements, root %d of %d, turn %d, rank %d", collective, KIND_NAMES[kind], WAY_NAMES[way],
             in_place ? " in_place" : "", count, root, size, turn, rank);
#ifdef OPEN_MPI
    /* As in reductions, where it runs Bruck's algorithm or a tree. */
    if (is_reversed(kind) && size > 2 && (which == GATHER || (which == ALLGATHER && size & (size - 1)))) {
        turn++;
        return;
    }
#endif
    Type type = make(kind, 1);
    units = type.units;
    drop(&type);
    /* Which sides are of plain units. */
    int plain_sent = way == RECEIVED || (way == MIXED && rank % 2), plain_received = way == SENT || (way == MIXED && rank % 2 == 0);
    if (kind <= DUPLICATE && kind != PLAIN) plain_sent = plain_received = 0;
    if (in_place && which == ALLTOALL) plain_received = way == MIXED && rank % 2;
    int sent_kind = plain_sent ? PLAIN : kind, received_kind = plain_received ? PLAIN : kind;
    int sent_scale = plain_sent ? units : 1, received_scale = plain_received ? units : 1;
    /* Elements, of `kind`, of the block from r to q; of allgathers and rooted ones r or q alone decides. */
    int decides_receiver = which == SCATTERV, lengths[RANKS], in[RANKS], in_at[RANKS], out[RANKS], out_at[RANKS], n_in = 0, n_out = 0;
    for (int r = 0; r < size; r++) lengths[r] = !uneven ? count : r % 3 == 1 ? 0 : count + r % 2;
    for (int k = 0; k < size; k++) {
        int r = uneven && turn % 4 > 1 ? size - 1 - k : k, gap = uneven ? 1 : 0;
        out[r] = (which == ALLTOALLV ? lengths[(rank + r) % size] : decides_receiver ? lengths[r] : lengths[rank]) * sent_scale;
        in[r] = (which == ALLTOALLV ? lengths[(rank + r) % size] : decides_receiver ? lengths[rank] : lengths[r]) * received_scale;
        out_at[r] = n_out, n_out += out[r] + gap;
        in_at[r] = n_in, n_in += in[r] + gap;
    }
    int sends_each = which == ALLTOALL || which == ALLTOALLV || which == SCATTER || which == SCATTERV;
    int gets_each = which != BCAST && which != SCATTER && which != SCATTERV;
    int is_root = rank == root, from_root = which == BCAST || which == SCATTER || which == SCATTERV, to_root = which == GATHER || which == GATHERV;
    if (from_root && !is_root && which != BCAST) n_out = 0;
    if (to_root && !is_root) n_in = 0;
    if (!sends_each) n_out = out[rank];
    if (!gets_each) n_in = in[rank];
    /* Its own block is where it is to be. */
    int places_itself = in_place && which != BCAST && ((!from_root && !to_root) || is_root);
    if (which == BCAST) n_in = 0;
    Buffer send = buffer(0, make(sent_kind, n_out), n_out), recv = buffer(1, make(received_kind, n_in), n_in);
    int u_sent = 1, block;
    if (units) u_sent = send.type.units;
    /* What is sent. */
    if (units)
        for (int q = 0; q < size; q++) {
            if (from_root && !is_root) break;
            if (!sends_each && q != rank) continue;
            block = out[q] * u_sent;
            for (int i = 0; i < block; i++) put_unit(&send, sends_each ? out_at[q] : 0, i, number(rank, sends_each ? q : 0, i));
        }
    want_as_is(&send);
    if (units && which == BCAST && !is_root)
        for (int i = 0; i < out[rank] * u_sent; i++) want_unit(&send, 0, i, number(root, 0, i));
    /* What is received. */
    if (units && which != BCAST)
        for (int r = 0; r < size; r++) {
            if (to_root && !is_root) break;
            if (from_root && r != root) continue;
            int at = gets_each ? in_at[r] : 0, q = sends_each ? rank : 0;
            block = in[gets_each ? r : rank] * recv.type.units;
            /* In place the root of a scatter receives nothing. */
            if (places_itself && from_root) break;
            for (int i = 0; i < block; i++) {
                if (places_itself && !from_root && which == ALLTOALL) put_unit(&recv, at, i, number(rank, r, i));
                if (places_itself && !from_root && which != ALLTOALL && r == rank) put_unit(&recv, at, i, number(rank, 0, i));
                want_unit(&recv, at, i, number(r, q, i));
            }
        }
    void *s = places_itself && !from_root ? MPI_IN_PLACE : send.start, *d = places_itself && from_root ? MPI_IN_PLACE : recv.start;
    MPI_Datatype st = send.type.handle, rt = way == SAME ? st : recv.type.handle;
    int sc = out[rank], rc = in[rank], code;
    begin();
    switch (which) {
    case BCAST: code = MPI_Bcast(s, sc, st, root, comm); break;
    case ALLGATHER: code = MPI_Allgather(s, sc, st, d, rc, rt, comm); break;
    case ALLTOALL: code = MPI_Alltoall(s, sc, st, d, rc, rt, comm); break;
    case GATHER: code = MPI_Gather(s, sc, st, d, rc, rt, root, comm); break;
    case SCATTER: code = MPI_Scatter(s, sc, st, d, rc, rt, root, comm); break;
    case ALLGATHERV: code = MPI_Allgatherv(s, sc, st, d, in, in_at, rt, comm); break;
    case GATHERV: code = MPI_Gatherv(s, sc, st, d, in, in_at, rt, root, comm); break;
    case SCATTERV: code = MPI_Scatterv(s, out, out_at, st, d, rc, rt, root, comm); break;
    default: code = MPI_Alltoallv(s, out, out_at, st, d, in, in_at, rt, comm);
    }
    end(code);
    check(&send, "send buffer");
    check(&recv, "result");
    turn++;
}

static void movements(int which) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = 0; way < WAYS; way++) {
            if (way != BOTH && (kind <= DUPLICATE || kind == EMPTY)) continue;
            /* One handle for both sides; how far apart a column's elements are follows from their number. */
            if (way == SAME && (kind == COLUMN || which == BCAST)) continue;
            /* Where ranks describe their blocks unlike, Open MPI's own choice differs between them, and they hang. */
            if (way == MIXED && which == ALLGATHERV) continue;
            /* Longer messages of such elements may be cut off in MPICH 4.0. */
            int is_whole = kind != LOCATED || which == ALLTOALL;
            Type type = make(kind, 1);
            int bytes = type.units ? 4 * type.units : 4, few = kind != LARGE, parts = which == BCAST ? 1 : size;
            drop(&type);
            int counts[] = {0, 1, 2, few ? 5 : 3, few ? 41 * 1024 / bytes / parts : 9, few ? 170 * 1024 / bytes / parts : 60};
            for (int c = 0; c < (!is_whole ? 4 : is_long ? 6 : 5); c++)
                for (int in_place = 0; in_place < (which == BCAST || which == ALLTOALLV ? 1 : 2); in_place++)
                    movement(which, kind, way, counts[c], in_place);
        }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    watch();
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    is_long = argc > 1 && !strcmp(argv[1], "long");
    for (int i = 0; i < 2; i++) {
        places_of[i] = new_place(ROOM);
        wants[i] = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        anys[i] = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    ops[SUM] = MPI_SUM, ops[MAX] = MPI_MAX, ops[MINLOC] = MPI_MINLOC;
    MPI_Op_create(own_add, 1, &ops[ADD]);
    MPI_Op_create(own_affine, 0, &ops[AFFINE]);
    for (int which = ALLREDUCE; which <= EXSCAN; which++) {
        collective = REDUCTIONS[which];
        turn = 0; /* so that a call has one name, whichever collectives are asked for */
        if (is_asked(argc, argv, collective)) reductions(which);
    }
    for (int which = BCAST; which <= ALLTOALLV; which++) {
        collective = MOVEMENTS[which];
        turn = 0;
        if (is_asked(argc, argv, collective)) movements(which);
    }
    int all = 0;
    alarm(0);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, comm);
    if (rank == 0 && all) printf("ok\n");
    MPI_Op_free(&ops[ADD]), MPI_Op_free(&ops[AFFINE]);
    MPI_Finalize();
    may_end = 1;
    return !all;
}
