/* Reductions whose results depend on the order of operations, held to the bit against the order that `reproducible =
 * "fixed"` promises, which this program computes by itself from everybody's operands.
 *
 * usage: fixed_order ROUNDS [COUNT ...]
 * Prints "ok" where all results are right, else one line of rank 0 with how many of each reduction are not. */
#include "step.h"
#include <complex.h>
#include <stddef.h>

enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, REDUCTIONS };
enum { DOUBLES, FLOATS, PRODUCTS, COMPLEX, LONGS, CLAIMED, PADDED, KINDS };
enum { COUNT_MOST = 40000, BYTES_MOST = 48, RANKS_MOST = 64 };

static const char *const names[REDUCTIONS] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"};

/* Neither associative nor commutative, whatever the library is told of it. */
struct padded {
    double value;
    char gap[8];
    double other;
};

__attribute__((noinline)) static void skew(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    double *lower = in, *higher = inout;
    for (int i = 0; i < *count; i++) higher[i] = 0.5 * lower[i] + 1.25 * higher[i];
}

__attribute__((noinline)) static void skew_padded(void *in, void *inout, int *count, MPI_Datatype *type) {
    MPI_Aint first = 0, extent = 0;
    if (type) MPI_Type_get_extent(*type, &first, &extent);
    for (int i = 0; i < *count; i++) {
        struct padded *lower = (void *)((char *)in + i * extent), *higher = (void *)((char *)inout + i * extent);
        higher->value = 0.5 * lower->value + 1.25 * higher->value;
        higher->other = lower->other - higher->other;
    }
}

static MPI_Datatype types[KINDS];
static MPI_Op ops[KINDS];
static size_t sizes[KINDS] = {sizeof(double), sizeof(float), sizeof(double), sizeof(double complex), sizeof(long double),
                              sizeof(double), sizeof(struct padded)};
static int rank, size, is_fixed;

static double number(uint64_t seed) {
    uint64_t bits = next_random(&seed);
    double fraction = 1 + (double)(bits & 0xfffff) / 0x100000;
    return (bits >> 63 ? -1 : 1) * fraction * (double)(1ull << (bits >> 32) % 30);
}

/* Element `i` of what rank `from` of a communicator contributes to a call. */
static void operand(int kind, uint64_t call, int from, long i, void *into) {
    uint64_t seed = (call * RANKS_MOST + (uint64_t)from) * COUNT_MOST * RANKS_MOST + (uint64_t)i;
    double a = number(seed), b = number(~seed);
    switch (kind) {
    case FLOATS: *(float *)into = (float)a; break;
    case PRODUCTS: *(double *)into = 1 + a / (1ull << 31); break;
    case COMPLEX: *(double complex *)into = a + b * I; break;
    case LONGS: *(long double *)into = (long double)a + (long double)b / (1ull << 40); break;
    case PADDED: ((struct padded *)into)->value = a, ((struct padded *)into)->other = b; break;
    default: *(double *)into = a;
    }
}

/* into := lower op into */
static void combine(int kind, void *lower, void *into) {
    int one = 1;
    switch (kind) {
    case DOUBLES: *(double *)into = *(double *)lower + *(double *)into; break;
    case FLOATS: *(float *)into = *(float *)lower + *(float *)into; break;
    case PRODUCTS: *(double *)into = *(double *)lower * *(double *)into; break;
    case COMPLEX: *(double complex *)into = *(double complex *)lower + *(double complex *)into; break;
    case LONGS: *(long double *)into = *(long double *)lower + *(long double *)into; break;
    case CLAIMED: skew(lower, into, &one, NULL); break;
    case PADDED: skew_padded(lower, into, &one, NULL); break;
    }
}

/* The tree over `cores` ranges of ranks, of which the first `longer` have two and the others one. */
static void tree(int kind, uint64_t call, long i, int longer, int core, int cores, void *into) {
    _Alignas(16) char lower[BYTES_MOST];
    if (cores > 1) {
        tree(kind, call, i, longer, core + cores / 2, cores / 2, into);
        tree(kind, call, i, longer, core, cores / 2, lower);
        combine(kind, lower, into);
    } else if (core < longer) {
        operand(kind, call, 2 * core + 1, i, into);
        operand(kind, call, 2 * core, i, lower);
        combine(kind, lower, into);
    } else
        operand(kind, call, core + longer, i, into);
}

static void of_all(int kind, uint64_t call, long i, int n, void *into) {
    int cores = 1;
    while (2 * cores <= n) cores *= 2;
    tree(kind, call, i, n - cores, 0, cores, into);
}

static void of_first(int kind, uint64_t call, long i, int n, void *into) {
    _Alignas(16) char next[BYTES_MOST], sum[BYTES_MOST];
    operand(kind, call, 0, i, sum);
    for (int from = 1; from < n; from++) {
        operand(kind, call, from, i, next);
        combine(kind, sum, next);
        memcpy(sum, next, sizes[kind]);
    }
    memcpy(into, sum, sizes[kind]);
}

static int same(int kind, const void *a, const void *b) {
    const struct padded *left = a, *right = b;
    if (kind == LONGS) return *(const long double *)a == *(const long double *)b;
    return kind == PADDED ? left->value == right->value && left->other == right->other : !memcmp(a, b, sizes[kind]);
}

/* One call; how many of its elements are wrong on this rank. */
static long call_one(MPI_Comm comm, int which, int kind, long count, uint64_t call) {
    static _Alignas(16) char sent[COUNT_MOST * BYTES_MOST], got[COUNT_MOST * BYTES_MOST];
    MPI_Datatype type = types[kind];
    MPI_Op op = ops[kind];
    size_t bytes = sizes[kind];
    int me, n, root, cut[RANKS_MOST];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    root = (int)(call % (uint64_t)n);
    long all = which == REDUCE_SCATTER_BLOCK ? count / n * n : count, first = 0, mine = all, wrong = 0;
    for (int r = 0; r < n; r++) cut[r] = (int)(count / n + (r < count % n) - (r == 1 && count / n > 1));
    cut[n - 1] += count / n > 1;
    if (which == REDUCE_SCATTER_BLOCK) first = me * (all / n), mine = all / n;
    if (which == REDUCE_SCATTER) {
        for (int r = 0; r < me; r++) first += cut[r];
        mine = cut[me];
    }
    /* MPICH's own reduce in place does not survive a communicator with the ranks the other way round (4.0.2). */
    int in_place = (int)(call / 3 % 2) && (which != REDUCE || is_fixed);
    char *own = in_place && (which != REDUCE || me == root) ? got : sent;
    void *from = own == got ? MPI_IN_PLACE : sent;
    for (long i = 0; i < all; i++) operand(kind, call, me, i, own + i * bytes);
    switch (which) {
    case ALLREDUCE:
#if MPI_VERSION >= 4
        if (call % 7 == 0) MPI_Allreduce_c(from, got, all, type, op, comm);
        else
#endif
        MPI_Allreduce(from, got, (int)all, type, op, comm);
        break;
    case REDUCE: MPI_Reduce(from, got, (int)all, type, op, root, comm); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(from, got, cut, type, op, comm); break;
    case REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(from, got, (int)mine, type, op, comm); break;
    case SCAN: MPI_Scan(from, got, (int)all, type, op, comm); break;
    case EXSCAN: MPI_Exscan(from, got, (int)all, type, op, comm); break;
    }
    if ((which == REDUCE && me != root) || (which == EXSCAN && me == 0)) return 0;
    /* All of a short message, some of a long one. */
    for (long i = 0; i < mine; i += mine > 64 ? 1 + i % 37 : 1) {
        _Alignas(16) char wanted[BYTES_MOST];
        if (which == SCAN || which == EXSCAN)
            of_first(kind, call, i, me + (which == SCAN), wanted);
        else
            of_all(kind, call, first + i, n, wanted);
        wrong += !same(kind, wanted, got + i * bytes);
    }
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Datatype lean;
    const char *order = getenv("COLLTUNE_REPRODUCIBLE"), *mode = getenv("COLLTUNE_MODE");
    is_fixed = order && !strcmp(order, "fixed") && !(mode && !strcmp(mode, "off"));
    sizes[PADDED] += is_fixed ? rank % 2 * 16 : 0;
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {offsetof(struct padded, value), offsetof(struct padded, other)};
    MPI_Datatype both[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, both, &lean);
    /* The standard asks for one signature, not for one extent: to every second rank the gap behind an element is its own. */
    MPI_Type_create_resized(lean, 0, (MPI_Aint)sizes[PADDED], &types[PADDED]);
    MPI_Type_commit(&types[PADDED]);
    types[DOUBLES] = types[PRODUCTS] = types[CLAIMED] = MPI_DOUBLE;
    types[FLOATS] = MPI_FLOAT;
    types[LONGS] = MPI_LONG_DOUBLE;
    types[COMPLEX] = MPI_C_DOUBLE_COMPLEX;
    ops[DOUBLES] = ops[FLOATS] = ops[COMPLEX] = ops[LONGS] = MPI_SUM;
    ops[PRODUCTS] = MPI_PROD;
    MPI_Op_create(skew, 1, &ops[CLAIMED]);
    MPI_Op_create(skew_padded, 0, &ops[PADDED]);
    /* The ranks the other way round, without the last. */
    MPI_Comm turned, comms[2] = {MPI_COMM_WORLD, MPI_COMM_WORLD};
    int is_out = size > 2 && rank == size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, is_out ? MPI_UNDEFINED : 0, -rank, &turned);
    if (!is_out) comms[1] = turned;
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    long wrong[REDUCTIONS] = {0}, all_wrong[REDUCTIONS], sum = 0;
    uint64_t call = 0;
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < REDUCTIONS; which++)
            for (int kind = 0; kind < KINDS; kind++)
                for (int i = 2; i < argc; i++, call++) {
                    long count = atol(argv[i]);
                    int on_turned = call % 5 == 4;
                    if (on_turned && is_out) continue;
                    wrong[which] += call_one(comms[on_turned], which, kind, count, call);
                }
    if (argc == 2) {
        /* What no order is promised for. */
        double one = 1, all;
        MPI_Request request;
        MPI_Iallreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(wrong, all_wrong, REDUCTIONS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int which = 0; which < REDUCTIONS; which++) sum += all_wrong[which];
    for (int which = 0; rank == 0 && sum && which < REDUCTIONS; which++) printf("%s: %ld\n", names[which], all_wrong[which]);
    if (rank == 0 && !sum) printf("ok\n");
    MPI_Op_free(&ops[CLAIMED]);
    MPI_Op_free(&ops[PADDED]);
    MPI_Type_free(&types[PADDED]);
    MPI_Type_free(&lean);
    if (!is_out) MPI_Comm_free(&turned);
    MPI_Finalize();
    return 0;
}
