/* The collectives that have algorithms of their own in the shapes that are hard for an algorithm of one's own: derived types with
 * holes, negative lower bounds and other orders in memory, operations of the program's that do not
 * commute, pairs with their places, in place, odd roots, fewer elements than ranks.
 *
 * usage: own_algorithms [COUNT ...]
 * Where COLLTUNE_FORCE names collectives, only their shapes are run.
 * Prints "ok" when every result is right and nothing else was written. */
#include "forced.h"
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failures, rank, size;

static void check(int right, const char *what, int count) {
    if (!right && failures++ == 0)
        fprintf(stderr, "wrong: %s of %d elements on rank %d of %d\n", what, count, rank, size);
}

/* x -> a x + b modulo 2^32: composing such maps is associative and does not commute. */
typedef struct { uint32_t a, b; } Map;
/* The same inside a struct with holes before, between and behind. */
typedef struct { uint8_t before; uint32_t a; uint8_t hole[5]; uint32_t b; uint16_t behind; } Holed;
enum { HOLE = 0xA5 };

static Map map_of(int rank, int i) { return (Map){(uint32_t)(2 * rank + 3 + 4 * i) | 1, (uint32_t)(rank * 7919 + i)}; }
/* First f, then g. */
static Map then(Map f, Map g) { return (Map){f.a * g.a, g.a * f.b + g.b}; }

static Map all_maps(int i) {
    Map result = map_of(0, i);
    for (int r = 1; r < size; r++) result = then(result, map_of(r, i));
    return result;
}

static void compose(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    Map *f = in, *g = inout;
    for (int i = 0; i < *len; i++) g[i] = then(f[i], g[i]);
}

static void compose_holed(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    Holed *f = in, *g = inout;
    for (int i = 0; i < *len; i++) {
        Map both = then((Map){f[i].a, f[i].b}, (Map){g[i].a, g[i].b});
        g[i].a = both.a;
        g[i].b = both.b;
    }
}

/* Elements whose bytes begin 8 before the address that is given. */
static void compose_below(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    Map *f = in, *g = inout;
    for (int i = 0; i < *len; i++) g[i - 1] = then(f[i - 1], g[i - 1]);
}

static void *fresh(size_t bytes) {
    void *memory = malloc(bytes + 1);
    memset(memory, HOLE, bytes + 1);
    return memory;
}

static int holes_are_whole(const Holed *x, int n) {
    Holed untouched;
    memset(&untouched, HOLE, sizeof untouched);
    for (int i = 0; i < n; i++) {
        Holed copy = x[i];
        copy.a = untouched.a;
        copy.b = untouched.b;
        if (memcmp(&copy, &untouched, sizeof copy)) return 0;
    }
    return 1;
}

static MPI_Datatype map_type(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype holed_type(void) {
    MPI_Datatype bare, type;
    int lengths[] = {1, 1};
    MPI_Aint places[] = {offsetof(Holed, a), offsetof(Holed, b)};
    MPI_Datatype types[] = {MPI_UINT32_T, MPI_UINT32_T};
    MPI_Type_create_struct(2, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(Holed), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    return type;
}

static MPI_Datatype below_type(void) {
    MPI_Datatype type;
    MPI_Aint place = -(MPI_Aint)sizeof(Map);
    int two = 2;
    MPI_Datatype bare, number = MPI_UINT32_T;
    MPI_Type_create_struct(1, &two, &place, &number, &bare);
    MPI_Type_create_resized(bare, place, sizeof(Map), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    return type;
}

static void reductions(MPI_Comm comm, int count) {
    MPI_Datatype map = map_type(), holed = holed_type(), below = below_type();
    MPI_Op maps, holeds, belows;
    MPI_Op_create(compose, 0, &maps);
    MPI_Op_create(compose_holed, 0, &holeds);
    MPI_Op_create(compose_below, 0, &belows);
    Map *a = fresh(sizeof(Map) * (size_t)(count + 1)), *b = fresh(sizeof(Map) * (size_t)(count + 1));
    Holed *c = fresh(sizeof(Holed) * (size_t)(count + 1)), *d = fresh(sizeof(Holed) * (size_t)(count + 1));
    for (int root = 0; root < size; root += count > 100000 ? 2 : 1) {
        int ok = 1, kept = 1;
        for (int i = 0; i < count; i++) {
            a[i] = map_of(rank, i);
            c[i].a = a[i].a;
            c[i].b = a[i].b;
        }
        MPI_Allreduce(a, b, count, map, maps, comm);
        for (int i = 0; i < count; i++) ok &= !memcmp(&b[i], &(Map){all_maps(i).a, all_maps(i).b}, sizeof(Map));
        for (int i = 0; i < count; i++) kept &= a[i].b == map_of(rank, i).b;
        check(ok && kept, "allreduce that does not commute", count);
        MPI_Allreduce(c, d, count, holed, holeds, comm);
        for (int i = 0; i < count; i++) ok &= d[i].a == all_maps(i).a && d[i].b == all_maps(i).b;
        check(ok, "allreduce with holes", count);
        check(holes_are_whole(c, count) && holes_are_whole(d, count), "holes of an allreduce", count);
        memcpy(b, a, sizeof(Map) * (size_t)count);
        MPI_Allreduce(MPI_IN_PLACE, b + 1, count, below, belows, comm);
        for (int i = 0; i < count; i++) ok &= b[i].a == all_maps(i).a && b[i].b == all_maps(i).b;
        check(ok, "allreduce below its address, in place", count);
        memset(d, HOLE, sizeof(Holed) * (size_t)count);
        MPI_Reduce(c, d, count, holed, holeds, root, comm);
        if (rank == root) {
            for (int i = 0; i < count; i++) ok &= d[i].a == all_maps(i).a && d[i].b == all_maps(i).b;
            check(ok && holes_are_whole(d, count), "reduce with holes", count);
            for (int i = 0; i < count; i++) d[i].a = c[i].a, d[i].b = c[i].b;
        }
        MPI_Reduce(rank == root ? MPI_IN_PLACE : c, d, count, holed, holeds, root, comm);
        if (rank == root) {
            for (int i = 0; i < count; i++) ok &= d[i].a == all_maps(i).a && d[i].b == all_maps(i).b;
            check(ok && holes_are_whole(d, count), "reduce with holes, in place", count);
        }
        for (int i = 0; i < count; i++) kept &= c[i].a == a[i].a && c[i].b == a[i].b;
        check(kept, "what a reduce was given", count);
    }
    free(a);
    free(b);
    free(c);
    free(d);
    MPI_Op_free(&maps);
    MPI_Op_free(&holeds);
    MPI_Op_free(&belows);
    MPI_Type_free(&map);
    MPI_Type_free(&holed);
    MPI_Type_free(&below);
}

static Map maps_up_to(int last, int i) {
    Map result = map_of(0, i);
    for (int r = 1; r <= last; r++) result = then(result, map_of(r, i));
    return result;
}

static int is_up_to(const Map *x, int last, int count) {
    int ok = 1;
    for (int i = 0; i < count; i++) ok &= x[i].a == maps_up_to(last, i).a && x[i].b == maps_up_to(last, i).b;
    return ok;
}

static void prefixes(MPI_Comm comm, int count) {
    MPI_Datatype map = map_type(), holed = holed_type();
    MPI_Op maps, holeds;
    MPI_Op_create(compose, 0, &maps);
    MPI_Op_create(compose_holed, 0, &holeds);
    Map *a = fresh(sizeof(Map) * (size_t)(count + 1)), *b = fresh(sizeof(Map) * (size_t)(count + 1));
    Holed *c = fresh(sizeof(Holed) * (size_t)(count + 1)), *d = fresh(sizeof(Holed) * (size_t)(count + 1));
    int ok = 1;
    for (int i = 0; i < count; i++) {
        a[i] = map_of(rank, i);
        c[i].a = a[i].a;
        c[i].b = a[i].b;
    }
    MPI_Scan(a, b, count, map, maps, comm);
    check(is_up_to(b, rank, count), "scan that does not commute", count);
    memcpy(b, a, sizeof(Map) * (size_t)count);
    MPI_Scan(MPI_IN_PLACE, b, count, map, maps, comm);
    check(is_up_to(b, rank, count), "scan in place", count);
    MPI_Scan(c, d, count, holed, holeds, comm);
    for (int i = 0; i < count; i++) ok &= d[i].a == maps_up_to(rank, i).a && d[i].b == maps_up_to(rank, i).b;
    check(ok && holes_are_whole(d, count), "scan with holes", count);
    MPI_Exscan(a, b, count, map, maps, comm);
    check(rank == 0 || is_up_to(b, rank - 1, count), "exscan that does not commute", count);
    memcpy(b, a, sizeof(Map) * (size_t)count);
    MPI_Exscan(MPI_IN_PLACE, b, count, map, maps, comm);
    check(rank == 0 || is_up_to(b, rank - 1, count), "exscan in place", count);
    free(a);
    free(b);
    free(c);
    free(d);
    MPI_Op_free(&maps);
    MPI_Op_free(&holeds);
    MPI_Type_free(&map);
    MPI_Type_free(&holed);
}

static long value_of(int from, int to, int i);

static void blocks(MPI_Comm comm, int count) {
    size_t longs = (size_t)count * (size_t)size;
    long *a = fresh(sizeof(long) * (longs + 1)), *b = fresh(sizeof(long) * (longs + 1));
    for (int in_place = 0; in_place < 2; in_place++) {
        int ok = 1;
        long *given = in_place ? b : a;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) given[(size_t)r * (size_t)count + (size_t)i] = value_of(rank, r, i);
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : a, b, count, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < count; i++) {
            long sum = 0;
            for (int r = 0; r < size; r++) sum += value_of(r, rank, i);
            ok &= b[i] == sum;
        }
        check(ok, in_place ? "reduce_scatter_block in place" : "reduce_scatter_block", count);
    }
    free(a);
    free(b);
}

static void located(MPI_Comm comm, int count) {
    struct { double value; int place; } *a = fresh(16 * (size_t)(count + 1)), *b = fresh(16 * (size_t)(count + 1));
    int ok = 1;
    for (int i = 0; i < count; i++) {
        a[i].value = (i + rank) % size;
        a[i].place = rank;
    }
    MPI_Allreduce(a, b, count, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    for (int i = 0; i < count; i++) ok &= b[i].value == 0 && b[i].place == (size - i % size) % size;
    MPI_Reduce(a, b, count, MPI_DOUBLE_INT, MPI_MAXLOC, size - 1, comm);
    if (rank == size - 1)
        for (int i = 0; i < count; i++) ok &= b[i].value == size - 1 && b[i].place == (2 * size - 1 - i % size) % size;
    check(ok, "smallest and largest with their places", count);
    free(a);
    free(b);
}

static long value_of(int from, int to, int i) { return from * 1000003L + to * 101L + i; }

/* Every second long, from the last one down. */
static MPI_Datatype backward_type(int count) {
    MPI_Datatype bare, type;
    MPI_Type_vector(count, 1, -2, MPI_LONG, &bare);
    /* Neighbours do not overlap, though their extents do not tell. */
    MPI_Type_create_resized(bare, 0, (MPI_Aint)sizeof(long) * 2 * count, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    return type;
}

static void movements(MPI_Comm comm, int count) {
    if (count == 0) return;
    size_t longs = (size_t)count * (size_t)size;
    long *plain = fresh(sizeof(long) * longs), *wide = fresh(sizeof(long) * 2 * longs);
    MPI_Datatype backward = backward_type(count);
    /* Element i of block r lies at wide[2 * (r * count + count - 1 - i)], its block begins at the last. */
    long *origin = wide + 2 * (count - 1);
#define WIDE(r, i) wide[2 * ((size_t)(r) * (size_t)count + (size_t)(count - 1 - (i)))]
#define UNTOUCHED(r, i) ((&WIDE(r, i))[1] == untouched)
    long untouched;
    memset(&untouched, HOLE, sizeof untouched);
    for (int root = 0; root < size; root += count > 100000 ? 2 : 1) {
        int ok = 1, whole = 1;
        /* The same signature by another type on every second rank. */
        for (int i = 0; i < count; i++) plain[i] = WIDE(0, i) = rank == root ? value_of(root, 0, i) : -1;
        if (rank % 2) MPI_Bcast(origin, 1, backward, root, comm);
        else MPI_Bcast(plain, count, MPI_LONG, root, comm);
        for (int i = 0; i < count; i++) ok &= (rank % 2 ? WIDE(0, i) : plain[i]) == value_of(root, 0, i);
        for (int i = 0; i < count; i++) whole &= UNTOUCHED(0, i);
        check(ok && whole, "bcast of two types", count);
    }
    int ok = 1, whole = 1;
    for (int i = 0; i < count; i++) plain[i] = value_of(rank, 0, i);
    MPI_Allgather(plain, count, MPI_LONG, origin, 1, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, 0, i), whole &= UNTOUCHED(r, i);
    check(ok && whole, "allgather into a derived type", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) WIDE(r, i) = r == rank ? value_of(r, 1, i) : -1;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, origin, 1, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, 1, i), whole &= UNTOUCHED(r, i);
    check(ok && whole, "allgather into a derived type, in place", count);
    MPI_Allgather(origin + 2L * rank * count, 1, backward, plain, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= plain[(size_t)r * (size_t)count + (size_t)i] == value_of(r, 1, i);
    check(ok, "allgather out of a derived type", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) plain[(size_t)r * (size_t)count + (size_t)i] = value_of(rank, r, i);
    MPI_Alltoall(plain, count, MPI_LONG, origin, 1, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, rank, i), whole &= UNTOUCHED(r, i);
    check(ok && whole, "alltoall into a derived type", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) WIDE(r, i) = value_of(rank, r, i + 1);
    MPI_Alltoall(origin, 1, backward, plain, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            ok &= plain[(size_t)r * (size_t)count + (size_t)i] == value_of(r, rank, i + 1);
    check(ok, "alltoall out of a derived type", count);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, origin, 1, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, rank, i + 1), whole &= UNTOUCHED(r, i);
    check(ok && whole, "alltoall in a derived type, in place", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) plain[(size_t)r * (size_t)count + (size_t)i] = value_of(rank, r, i + 2);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plain, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            ok &= plain[(size_t)r * (size_t)count + (size_t)i] == value_of(r, rank, i + 2);
    check(ok, "alltoall in place", count);
    /* Absolute addresses. */
    MPI_Datatype bare, placed;
    MPI_Aint address;
    MPI_Get_address(origin, &address);
    int one = 1;
    MPI_Type_create_struct(1, &one, &address, &backward, &bare);
    MPI_Type_create_resized(bare, 0, (MPI_Aint)sizeof(long) * 2 * count, &placed);
    MPI_Type_commit(&placed);
    for (int i = 0; i < count; i++) WIDE(0, i) = rank == size - 1 ? value_of(rank, 3, i) : -1;
    MPI_Bcast(MPI_BOTTOM, 1, placed, size - 1, comm);
    for (int i = 0; i < count; i++) ok &= WIDE(0, i) == value_of(size - 1, 3, i), whole &= UNTOUCHED(0, i);
    check(ok && whole, "bcast by absolute addresses", count);
    for (int i = 0; i < count; i++) plain[i] = value_of(rank, 4, i);
    MPI_Allgather(plain, count, MPI_LONG, MPI_BOTTOM, 1, placed, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, 4, i), whole &= UNTOUCHED(r, i);
    check(ok && whole, "allgather to absolute addresses", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) WIDE(r, i) = value_of(rank, r, i + 4);
    MPI_Alltoall(MPI_BOTTOM, 1, placed, plain, count, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            ok &= plain[(size_t)r * (size_t)count + (size_t)i] == value_of(r, rank, i + 4);
    check(ok, "alltoall from absolute addresses", count);
    MPI_Type_free(&bare);
    MPI_Type_free(&placed);
    MPI_Type_free(&backward);
    free(plain);
    free(wide);
}

/* Sending and receiving types over one address that name other bytes, on all ranks or on one alone. */
static void one_address(MPI_Comm comm, int count) {
    if (count == 0) return;
    MPI_Datatype row, field[2];
    MPI_Type_contiguous(count, MPI_LONG, &row);
    for (int which = 0; which < 2; which++) {
        MPI_Datatype bare;
        MPI_Aint at = (MPI_Aint)sizeof(long) * which * count;
        int one = 1;
        MPI_Type_create_struct(1, &one, &at, &row, &bare);
        MPI_Type_create_resized(bare, 0, (MPI_Aint)sizeof(long) * 2 * count, &field[which]);
        MPI_Type_commit(&field[which]);
        MPI_Type_free(&bare);
    }
    size_t longs = (size_t)count * (size_t)size;
    long *base = fresh(sizeof(long) * 2 * longs), *other = fresh(sizeof(long) * 2 * longs);
#define FIELD(array, r, which, i) (array)[((size_t)(r) * 2 + (size_t)(which)) * (size_t)count + (size_t)(i)]
    for (int alone = 0; alone < 2; alone++) {
        int ok = 1;
        long *to = alone && rank > 0 ? other : base;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) FIELD(base, r, 0, i) = value_of(rank, r, i), FIELD(to, r, 1, i) = -1;
        MPI_Alltoall(base, 1, field[0], to, 1, field[1], comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++)
                ok &= FIELD(to, r, 1, i) == value_of(r, rank, i) && FIELD(base, r, 0, i) == value_of(rank, r, i);
        check(ok, alone ? "alltoall at one address on one rank" : "alltoall at one address", count);
        MPI_Allgather(base, 1, field[0], to, 1, field[1], comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) ok &= FIELD(to, r, 1, i) == value_of(r, 0, i);
        check(ok, alone ? "allgather at one address on one rank" : "allgather at one address", count);
    }
#undef FIELD
    MPI_Type_free(&field[0]);
    MPI_Type_free(&field[1]);
    MPI_Type_free(&row);
    free(base);
    free(other);
}

static void rooted(MPI_Comm comm, int count) {
    if (count == 0) return;
    size_t longs = (size_t)count * (size_t)size;
    long *plain = fresh(sizeof(long) * longs), *wide = fresh(sizeof(long) * 2 * longs);
    MPI_Datatype backward = backward_type(count), none = MPI_DATATYPE_NULL;
    long *origin = wide + 2 * (count - 1), untouched;
    memset(&untouched, HOLE, sizeof untouched);
    for (int root = 0; root < size; root += count > 100000 ? 2 : 1) {
        int ok = 1, whole = 1, is_root = rank == root;
        for (int i = 0; i < count; i++) plain[i] = value_of(rank, root, i);
        MPI_Gather(plain, count, MPI_LONG, is_root ? origin : NULL, is_root, is_root ? backward : none, root, comm);
        for (int r = 0; is_root && r < size; r++)
            for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, root, i), whole &= UNTOUCHED(r, i);
        check(ok && whole, "gather into a derived type", count);
        for (int i = 0; i < count; i++) WIDE(rank, i) = value_of(rank, root, i + 1);
        long *own = origin + 2L * rank * count;
        MPI_Gather(is_root ? MPI_IN_PLACE : own, 1, backward, origin, 1, backward, root, comm);
        for (int r = 0; is_root && r < size; r++)
            for (int i = 0; i < count; i++) ok &= WIDE(r, i) == value_of(r, root, i + 1), whole &= UNTOUCHED(r, i);
        check(ok && whole, "gather in a derived type, in place", count);
        for (int r = 0; is_root && r < size; r++)
            for (int i = 0; i < count; i++) WIDE(r, i) = value_of(root, r, i + 2);
        MPI_Scatter(is_root ? origin : NULL, is_root, is_root ? backward : none, plain, count, MPI_LONG, root, comm);
        for (int i = 0; i < count; i++) ok &= plain[i] == value_of(root, rank, i + 2);
        check(ok, "scatter out of a derived type", count);
        for (int r = 0; is_root && r < size; r++)
            for (int i = 0; i < count; i++) plain[(size_t)r * (size_t)count + (size_t)i] = value_of(root, r, i + 3);
        void *place = is_root ? MPI_IN_PLACE : (void *)origin;
        MPI_Scatter(plain, count, MPI_LONG, place, 1, backward, root, comm);
        for (int i = 0; i < count; i++) {
            long found = is_root ? plain[(size_t)rank * (size_t)count + (size_t)i] : WIDE(0, i);
            ok &= found == value_of(root, rank, i + 3);
        }
        check(ok, "scatter into a derived type, in place", count);
    }
    MPI_Type_free(&backward);
    free(plain);
    free(wide);
}

/* Elements of the block from one rank to another; some are empty, and no two ranks share their lists. */
static int uneven_count(int from, int to, int count) { return (from + 2 * to) % 4 ? count * ((from + to) % 3) / 2 : 0; }

/* Pairs have holes, and MPICH 4.0 takes some messages of more than 8 KiB of them for too long. */
static void gathered_pairs(MPI_Comm comm, int count) {
    typedef struct { double value; int place; } pair;
    int counts[64], at[64], n = 0, ok = 1;
    for (int r = 0; r < size; n += counts[r++]) counts[r] = count + r % 2, at[r] = n;
    pair *own = fresh(sizeof(pair) * ((size_t)count + 1)), *all = fresh(sizeof(pair) * (size_t)n);
    for (int i = 0; i < counts[rank]; i++) own[i].value = value_of(rank, 11, i), own[i].place = rank - i;
    MPI_Allgatherv(own, counts[rank], MPI_DOUBLE_INT, all, counts, at, MPI_DOUBLE_INT, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            ok &= all[at[r] + i].value == value_of(r, 11, i) && all[at[r] + i].place == r - i;
    check(ok, "allgatherv of pairs", count);
    free(own);
    free(all);
}

static void gathered_unevenly(MPI_Comm comm, int count) {
    int counts[64], places[64], down[64], all = 0;
    MPI_Datatype backward = backward_type(count), none = MPI_DATATYPE_NULL;
    for (int r = 0; r < size; all += counts[r++]) counts[r] = uneven_count(r, 1, count), places[r] = all;
    /* The same blocks from the last rank's on down, with an element between them. */
    for (int r = size - 1, at = 0; r >= 0; at += counts[r--] + 1) down[r] = at;
    size_t longs = (size_t)(all + size + 1);
    long *own = fresh(sizeof(long) * (longs + (size_t)count)), *b = fresh(sizeof(long) * longs), *wide = fresh(sizeof(long) * 2 * (size_t)count * (size_t)size);
    long *origin = wide + 2 * (count - 1), untouched;
    memset(&untouched, HOLE, sizeof untouched);
    for (int turn = 0; turn < 4; turn++) {
        int *at = turn / 2 ? down : places, ok = 1, in_place = turn % 2;
        memset(b, HOLE, sizeof(long) * longs);
        for (int i = 0; i < counts[rank]; i++) own[i] = value_of(rank, turn, i);
        if (in_place) memcpy(b + at[rank], own, sizeof(long) * (size_t)counts[rank]);
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : own, counts[rank], MPI_LONG, b, counts, at, MPI_LONG, comm);
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < counts[r]; i++) ok &= b[at[r] + i] == value_of(r, turn, i);
            if (turn / 2) ok &= b[at[r] + counts[r]] == untouched;
        }
        check(ok, in_place ? "allgatherv in place" : "allgatherv", count);
        for (int root = 0; root < size; root += count > 100000 ? 2 : 1) {
            int is_root = rank == root;
            memset(b, HOLE, sizeof(long) * longs);
            if (in_place && is_root) memcpy(b + at[rank], own, sizeof(long) * (size_t)counts[rank]);
            MPI_Gatherv(in_place && is_root ? MPI_IN_PLACE : own, counts[rank], MPI_LONG, is_root ? b : NULL,
                        is_root ? counts : NULL, is_root ? at : NULL, is_root ? MPI_LONG : none, root, comm);
            for (int r = 0; is_root && r < size; r++) {
                for (int i = 0; i < counts[r]; i++) ok &= b[at[r] + i] == value_of(r, turn, i);
                if (turn / 2) ok &= b[at[r] + counts[r]] == untouched;
            }
            check(ok, "gatherv", count);
            for (int i = 0; is_root && i < all + size; i++) b[i] = value_of(root, turn, i);
            for (int i = 0; i <= counts[rank]; i++) own[i] = untouched;
            MPI_Scatterv(is_root ? b : NULL, is_root ? counts : NULL, is_root ? at : NULL, is_root ? MPI_LONG : none,
                         in_place && is_root ? MPI_IN_PLACE : own, counts[rank], MPI_LONG, root, comm);
            for (int i = 0; i < counts[rank] && !(in_place && is_root); i++)
                ok &= own[i] == value_of(root, turn, at[rank] + i);
            ok &= own[counts[rank]] == untouched;
            check(ok, "scatterv", count);
            for (int i = 0; i < counts[rank]; i++) own[i] = value_of(rank, turn, i);
        }
    }
    /* Whole blocks of a derived type: every second rank has one, in the order of the places. */
    int ok = 1, whole = 1, ones[64], at[64], n = 0;
    for (int r = 0; r < size; r++) ones[r] = r % 2, at[r] = (size - 1 - r) / 2, n += ones[r];
    for (int i = 0; i < count; i++) own[i] = value_of(rank, 9, i);
    MPI_Allgatherv(own, ones[rank] * count, MPI_LONG, origin, ones, at, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; ones[r] && i < count; i++) ok &= WIDE(at[r], i) == value_of(r, 9, i), whole &= UNTOUCHED(at[r], i);
    check(ok && whole, "allgatherv into a derived type", count);
    for (int i = 0; i < count; i++) WIDE(at[rank], i) = ones[rank] ? value_of(rank, 10, i) : WIDE(at[rank], i);
    MPI_Allgatherv(MPI_IN_PLACE, 0, none, origin, ones, at, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; ones[r] && i < count; i++) ok &= WIDE(at[r], i) == value_of(r, 10, i), whole &= UNTOUCHED(at[r], i);
    check(ok && whole, "allgatherv into a derived type, in place", count);
    MPI_Type_free(&backward);
    gathered_pairs(comm, count);
    free(own);
    free(b);
    free(wide);
}

typedef int Exchange(const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
                     MPI_Comm);

/* Places in bytes, and a type for each rank: another one of nothing. */
static void apart(const int *counts, const int *places, MPI_Datatype type, int *bytes, MPI_Datatype *types) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(type, &lower, &extent);
    for (int r = 0; r < size; r++) {
        bytes[r] = places[r] * (int)extent;
        types[r] = counts[r] ? type : MPI_CHAR;
    }
}

/* An alltoallv as an alltoallw. */
static int by_types(const void *send, const int *sent, const int *from, MPI_Datatype send_type, void *recv, const int *got,
                    const int *to, MPI_Datatype recv_type, MPI_Comm comm) {
    int at[2][64];
    MPI_Datatype types[2][64];
    apart(sent, from, send_type, at[0], types[0]);
    apart(got, to, recv_type, at[1], types[1]);
    return MPI_Alltoallw(send, sent, at[0], types[0], recv, got, at[1], types[1], comm);
}

/* Blocks that grow and shrink from call to call, so that they are longer or shorter than what the ranks last agreed on; of
 * every third pair there is none. */
static void exchanged_changing(MPI_Comm comm, Exchange *exchange) {
    static const int lengths[] = {3, 3, 40, 1, 0, 500, 500, 500, 2, 3000, 7, 7, 7};
    int counts[2][64], places[2][64];
    for (int turn = 0; turn < (int)(sizeof lengths / sizeof *lengths); turn++) {
        int all[2] = {0, 0}, ok = 1;
        for (int r = 0; r < size; r++) {
            int pairs[2][2] = {{rank, r}, {r, rank}};
            for (int side = 0; side < 2; side++) {
                int from = pairs[side][0], to = pairs[side][1];
                counts[side][r] = (from + 2 * to + turn) % 3 ? lengths[turn] * (1 + (3 * from + to) % 5) : 0;
                places[side][r] = all[side] + 1;
                all[side] += counts[side][r] + 2;
            }
        }
        long *a = fresh(sizeof(long) * (size_t)all[0]), *b = fresh(sizeof(long) * (size_t)all[1]), untouched;
        memset(&untouched, HOLE, sizeof untouched);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < counts[0][r]; i++) a[places[0][r] + i] = value_of(rank, r, i + turn);
        exchange(a, counts[0], places[0], MPI_LONG, b, counts[1], places[1], MPI_LONG, comm);
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < counts[1][r]; i++) ok &= b[places[1][r] + i] == value_of(r, rank, i + turn);
            ok &= b[places[1][r] - 1] == untouched && b[places[1][r] + counts[1][r]] == untouched;
        }
        check(ok, "alltoallv or alltoallw of changing blocks", lengths[turn]);
        free(a);
        free(b);
    }
}

static void exchanged_unevenly(MPI_Comm comm, int count, Exchange *exchange) {
    int sent[64], from[64], got[64], to[64], at = 0;
    MPI_Datatype backward = backward_type(count);
    for (int r = size - 1; r >= 0; at += sent[r--] + 1) sent[r] = uneven_count(rank, r, count), from[r] = at;
    size_t longs = (size_t)at;
    at = 0;
    for (int r = 0; r < size; at += got[r++] + 1) got[r] = uneven_count(r, rank, count), to[r] = at;
    long *a = fresh(sizeof(long) * longs), *b = fresh(sizeof(long) * (size_t)at), *wide = fresh(sizeof(long) * 2 * (size_t)count * (size_t)size);
    long *origin = wide + 2 * (count - 1), untouched;
    memset(&untouched, HOLE, sizeof untouched);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < sent[r]; i++) a[from[r] + i] = value_of(rank, r, i);
    exchange(a, sent, from, MPI_LONG, b, got, to, MPI_LONG, comm);
    int ok = 1, whole = 1;
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < got[r]; i++) ok &= b[to[r] + i] == value_of(r, rank, i);
        ok &= b[to[r] + got[r]] == untouched;
    }
    check(ok, "alltoallv or alltoallw", count);
    /* Of two types: whole blocks, but between ranks of which both are odd. */
    long *plain = fresh(sizeof(long) * (size_t)count * (size_t)size);
    for (int r = 0; r < size; r++) {
        sent[r] = rank % 2 && r % 2 ? 0 : 1;
        from[r] = r;
        got[r] = sent[r] * count;
        to[r] = r * count;
        for (int i = 0; i < count; i++) WIDE(r, i) = value_of(rank, r, i + 5);
    }
    exchange(origin, sent, from, backward, plain, got, to, MPI_LONG, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < got[r]; i++) ok &= plain[to[r] + i] == value_of(r, rank, i + 5);
    check(ok, "alltoallv or alltoallw out of a derived type", count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) plain[to[r] + i] = value_of(rank, r, i + 6);
    exchange(plain, got, to, MPI_LONG, origin, sent, from, backward, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < got[r]; i++) ok &= WIDE(r, i) == value_of(r, rank, i + 6), whole &= UNTOUCHED(r, i);
    check(ok && whole, "alltoallv or alltoallw into a derived type", count);
    MPI_Type_free(&backward);
    free(plain);
    free(a);
    free(b);
    free(wide);
}

static void reduced_unevenly(MPI_Comm comm, int count) {
    int counts[64], all = 0, mine = 0;
    /* Turn 2 leaves ranks without elements. */
    for (int turn = 0; turn < 3; turn++) {
#ifdef MPICH /* 4.0.2 itself copies overlapping memory then. */
        if (turn > 0 && count > 1000) continue;
#endif
        all = mine = 0;
        for (int r = 0; r < size; all += counts[r++]) {
            counts[r] = turn < 2 ? count + r : uneven_count(r, 1, count);
            if (r == rank) mine = all;
        }
        long *a = fresh(sizeof(long) * (size_t)all), *b = fresh(sizeof(long) * (size_t)all);
        int ok = 1, in_place = turn == 1 || (turn == 2 && counts[rank] > 0);
        for (int i = 0; i < all; i++) (in_place ? b : a)[i] = value_of(rank, 1, i);
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : a, counts[rank] || in_place ? b : NULL, counts, MPI_LONG, MPI_SUM, comm);
        for (int i = 0; i < counts[rank]; i++) {
            long sum = 0;
            for (int r = 0; r < size; r++) sum += value_of(r, 1, mine + i);
            ok &= b[i] == sum;
        }
        check(ok, in_place ? "reduce_scatter in place" : "reduce_scatter", count);
        free(a);
        free(b);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Nobody leaves before everybody has come. */
static void barriers(MPI_Comm comm) {
    for (int late = 0; late < size; late++) {
        double times[2], last, first;
        volatile int work = rank == late ? 300000 : 0;
        while (work > 0) work--;
        times[0] = now();
        MPI_Barrier(comm);
        times[1] = now();
        MPI_Allreduce(&times[0], &last, 1, MPI_DOUBLE, MPI_MAX, comm);
        MPI_Allreduce(&times[1], &first, 1, MPI_DOUBLE, MPI_MIN, comm);
        check(last <= first, "barrier", late);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    static const int usual[] = {0, 1, 2, 3, 5, 17, 1000, 3001};
    int n = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    MPI_Comm turned;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    for (int k = 0; k < 2; k++) {
        MPI_Comm comm = k ? turned : MPI_COMM_WORLD;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        for (int c = 0; c < n; c++) {
            int count = argc > 1 ? atoi(argv[c + 1]) : usual[c];
            if (k == 0 && count > 100000) continue; /* long ones once */
            int sums = is_forced("allreduce") || is_forced("reduce");
            if (sums) reductions(comm, count);
            if (is_forced("scan") || is_forced("exscan")) prefixes(comm, count);
            if (is_forced("reduce_scatter_block")) blocks(comm, count);
            if (sums) located(comm, count);
            if (is_forced("bcast") || is_forced("allgather") || is_forced("alltoall")) {
                movements(comm, count);
                one_address(comm, count);
            }
            if (is_forced("gather") || is_forced("scatter")) rooted(comm, count);
            if (count > 0) {
                if (is_forced("allgatherv") || is_forced("gatherv") || is_forced("scatterv")) gathered_unevenly(comm, count);
                if (is_forced("alltoallv")) exchanged_unevenly(comm, count, MPI_Alltoallv);
                if (is_forced("alltoallw")) exchanged_unevenly(comm, count, by_types);
                if (is_forced("reduce_scatter")) reduced_unevenly(comm, count);
            }
            if (sums || is_forced("barrier")) barriers(comm);
        }
        if (is_forced("alltoallv")) exchanged_changing(comm, MPI_Alltoallv);
        if (is_forced("alltoallw")) exchanged_changing(comm, by_types);
    }
    MPI_Comm_free(&turned);
    int all;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && all == 0) printf("ok\n");
    MPI_Finalize();
    return all != 0;
}
