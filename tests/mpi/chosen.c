/* Nonblocking, persistent and neighbourhood collectives with the algorithms that the environment names.
 *
 * usage: chosen OPERATION [NAME]...
 * Prints NAME=VALUE for each control variable of the library, as rank 0 finds it. Then each result of the operation is compared with that
 * of the blocking call: sums, an operation that does not commute, types that differ between ranks, in place, several
 * roots and sizes, on the world, on its ranks in another order and on a part of it. Neighbourhoods: see passing.c.
 * Prints "ok" when every result is right. */
#include "control.h"
#include "step.h"
#include "persistent.h"

enum { MOST = 20000, RANKS_MOST = 16 };
static long s[MOST * RANKS_MOST], r[MOST * RANKS_MOST], wanted[MOST * RANKS_MOST], sums[2 * MOST];
static int counts[RANKS_MOST], at[RANKS_MOST], bytes_at[RANKS_MOST];
static MPI_Datatype types[RANKS_MOST];
static const char *const names[STEPS] = {
    "allreduce", "bcast", "allgather", "alltoall", "reduce", "allgatherv", "gather", "gatherv", "scatter",
    "scatterv", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "barrier"};

/* Pairs (a, b) are maps x -> a x + b, which do not commute. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
    uint64_t *x = in, *y = inout;
    (void)type;
    for (int i = 0; i < *n; i++) y[2 * i + 1] += y[2 * i] * x[2 * i + 1], y[2 * i] *= x[2 * i];
}

/* One call of collective `which`; f makes the function of its names, MORE are the last arguments. */
#define CALL(which, f, b, MORE)                                                                                    \
    switch (which) {                                                                                               \
    case 0: f(allreduce, Allreduce)(from, b, n, type, op, MORE); break;                                            \
    case 1: f(bcast, Bcast)(b, mine_n, mine, root, MORE); break;                                                   \
    case 2: f(allgather, Allgather)(from, mine_n, mine, b, n, type, MORE); break;                                  \
    case 3: f(alltoall, Alltoall)(from, mine_n, mine, b, n, type, MORE); break;                                    \
    case 4: f(reduce, Reduce)(rank == root || from != MPI_IN_PLACE ? from : s, b, n, type, op, root, MORE); break; \
    case 5: f(allgatherv, Allgatherv)(from, mine_n, mine, b, counts, at, type, MORE); break;                       \
    case 6: f(gather, Gather)(from, mine_n, mine, b, n, type, root, MORE); break;                                  \
    case 7: f(gatherv, Gatherv)(from, mine_n, mine, b, counts, at, type, root, MORE); break;                       \
    case 8: f(scatter, Scatter)(s, n, type, b, mine_n, mine, root, MORE); break;                                   \
    case 9: f(scatterv, Scatterv)(s, counts, at, type, b, mine_n, mine, root, MORE); break;                        \
    case 10: f(alltoallv, Alltoallv)(from, counts, at, type, b, counts, at, type, MORE); break;                    \
    case 11: f(alltoallw, Alltoallw)(from, counts, bytes_at, types, b, counts, bytes_at, types, MORE); break;      \
    case 12: f(reduce_scatter, Reduce_scatter)(from, b, counts, type, op, MORE); break;                            \
    case 13: f(reduce_scatter_block, Reduce_scatter_block)(from, b, n, type, op, MORE); break;                     \
    case 14: f(scan, Scan)(from, b, n, type, op, MORE); break;                                                     \
    case 15: f(exscan, Exscan)(from, b, n, type, op, MORE); break;                                                 \
    case 16: f(barrier, Barrier)(MORE); break;                                                                     \
    }
/* The same longs by other types. Blocking calls of Open MPI do not stand that. */
#define UNEVEN                                                    \
    if (uneven && rank % 2) mine = MPI_LONG, mine_n = 2 * n;      \
    if (uneven && rank % 3 == 2) mine = pairs, mine_n = 1;
#define BLOCKING(small, large) MPI_##large
/* MPICH 4.0's blocking reduction in place fails where the root is not 0. */
#define CALL_BLOCKING                                                                                         \
    if (which == 4) {                                                                                         \
        memcpy(sums, rank == root && in_place ? wanted : s, sizeof(long) * 2 * n);                            \
        MPI_Allreduce(MPI_IN_PLACE, sums, n, type, op, comm);                                                 \
        if (rank == root) memcpy(wanted, sums, sizeof(long) * n * (type == pair ? 2 : 1));                    \
    } else                                                                                                    \
        CALL(which, BLOCKING, wanted, comm)
#define STARTED(small, large) MPI_I##small
#define PREPARED(small, large) INIT(large)
#define REQUESTED comm, &request
#define INFORMED comm, MPI_INFO_NULL, &request

static void fill(int rank, int turn, int size, int n) {
    for (long i = 0; i < 2L * n * size; i++) {
        s[i] = rank * 1000003L + turn * 7 + i;
        r[i] = wanted[i] = rank * 999L + i + 5;
    }
}

/* Longs that are nobody's result are as they were, or were never asked for. */
static int is_right(int which, int longs, MPI_Comm comm, const char *how) {
    int rank, size, right = memcmp(r, wanted, sizeof(long) * longs) == 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (!right) fprintf(stderr, "rank %d of %d: %s %s of %d longs is wrong\n", rank, size, how, names[which], longs);
    return right;
}

static int check(MPI_Comm comm, const char *operation) {
    int rank, size, right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Datatype pair, pairs;
    MPI_Op composed;
    MPI_Type_contiguous(2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &composed);
    static const int sizes[] = {0, 1, 24, 3000};
    for (int which = 0; which < STEPS; which++)
        for (int k = 0; k < 4 && strcmp(names[which], operation) == 0; k++)
            for (int form = 0; form < 6; form++) {
                /* 0 and 1 sum, 2 does not commute, 3 has types that differ between ranks; 1 and 5 are in place. */
                int is_reduction = which == 0 || which == 4 || (which >= 12 && which <= 15), n = sizes[k];
                int in_place = (form == 1 || form == 5) && which != 1 && which != 8 && which != 9 && which != 16;
                int uneven = form >= 3 && !is_reduction && n > 0, root = form % 3 ? size - 1 : form % size;
                if (form == 4) root = size / 2;
                if (in_place && (which == 6 || which == 7)) in_place = rank == root;
                MPI_Op op = form >= 2 ? composed : MPI_SUM;
                MPI_Datatype type = is_reduction && form < 2 ? MPI_LONG : pair, mine = type;
                int mine_n = n;
                MPI_Request request;
                MPI_Type_contiguous(2 * n, MPI_LONG, &pairs);
                MPI_Type_commit(&pairs);
                for (int i = 0; i < size; i++) {
                    counts[i] = n, at[i] = i * n, types[i] = type;
                    bytes_at[i] = i * n * (int)(type == pair ? 16 : 8);
                }
                void *from = in_place ? MPI_IN_PLACE : s;
                int longs = which == 12 || which == 13 ? n * (type == pair ? 2 : 1) : 2 * n * size;
                if (which == 15 && rank == 0) longs = 0;
                fill(rank, 0, size, n);
                CALL_BLOCKING
                UNEVEN
                CALL(which, STARTED, r, REQUESTED)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                right &= is_right(which, longs, comm, "nonblocking");
                fill(rank, 0, size, n);
                CALL(which, PREPARED, r, INFORMED)
                /* MPICH 4.0 copies a rank's own block once, when the request is made. */
                for (int turn = 0; turn < (IS_MPICH ? 1 : 2); turn++) {
                    if (!IS_MPICH) fill(rank, turn, size, n);
                    mine = type, mine_n = n;
                    CALL_BLOCKING
                    MPI_Start(&request);
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                    right &= is_right(which, longs, comm, "persistent");
                }
                MPI_Request_free(&request);
                MPI_Type_free(&pairs);
            }
    MPI_Op_free(&composed);
    MPI_Type_free(&pair);
    return right;
}

int main(int argc, char **argv) {
    int rank, size, provided, right = 1;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) return 2;
    char value[256];
    for (int i = 2; i < argc; i++)
        if (control(argv[i], value) && rank == 0) printf("%s=%s\n", argv[i], value);
    MPI_Comm turned, part;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
    right &= check(MPI_COMM_WORLD, argv[1]);
    right &= check(turned, argv[1]);
    right &= check(part, argv[1]);
    MPI_Comm_free(&turned);
    MPI_Comm_free(&part);
    return conclude(right);
}
