/* Wrong calls of every blocking collective, in both widths of counts: what each rank gets back, and which
 * error handler is called how often with which communicator.
 *
 * Every rank makes the same mistake, so that nobody waits, on a communicator of its own, because some
 * ranks may notice and others send something. The last mistake is none.
 *
 * usage: wrong_calls HANDLER [TRY...]
 *
 * HANDLER is `own`, a handler of this program's, or `return`, MPI_ERRORS_RETURN. A TRY such as
 * `to-nowhere:gather` or `to-nowhere:*` is left out: libraries die of some mistakes by themselves. A
 * program that dies says of which on stderr and exits with 99. */
#include "step.h"
#include <signal.h>
#include <unistd.h>

enum {
    ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV, ALLTOALLV,
    ALLTOALLW, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, BARRIER
};
static const char *names[STEPS] = {"allreduce", "bcast", "allgather", "alltoall", "reduce", "allgatherv", "gather", "gatherv",
                                   "scatter", "scatterv", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block",
                                   "scan", "exscan", "barrier"};
#define BIT(collective) (1u << (collective))
#define SUMS (BIT(ALLREDUCE) | BIT(REDUCE) | BIT(REDUCE_SCATTER) | BIT(REDUCE_SCATTER_BLOCK) | BIT(SCAN) | BIT(EXSCAN))
#define ROOTED (BIT(BCAST) | BIT(REDUCE) | BIT(GATHER) | BIT(GATHERV) | BIT(SCATTER) | BIT(SCATTERV))
#define LISTS (BIT(ALLGATHERV) | BIT(GATHERV) | BIT(SCATTERV) | BIT(ALLTOALLV) | BIT(ALLTOALLW))
#define ALL (BIT(STEPS) - 1)
#define DATA (ALL & ~BIT(BARRIER))
#define TWO_SIDES (DATA & ~BIT(BCAST))
#define TWO_TYPES (TWO_SIDES & ~SUMS)

#ifndef SECONDS
#define SECONDS 20 /* no call takes so long, unless it hangs */
#endif
#define N 48 /* elements of a block; a count that any mistake below makes larger still fits */
#define ROOM (STEP_RANKS * N * 2)

struct arguments {
    void *send, *recv;
    int n_send, n_recv, root;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
    MPI_Comm comm;
    int *send_counts, *recv_counts, *send_places, *recv_places; /* in elements */
};

static int rank, n_ranks;
static double a[ROOM], b[ROOM];
static int counts_a[STEP_RANKS], counts_b[STEP_RANKS], places_a[STEP_RANKS], places_b[STEP_RANKS];
static MPI_Datatype raw, freed_type;
static MPI_Op freed_op;
static MPI_Comm freed;

/* What the handler saw. */
static int handled, handled_class, handled_on;
static MPI_Comm expected;
static char lines[1 << 18], trying[96];
static size_t length;

static void handler(MPI_Comm *comm, int *code, ...) {
    handled++;
    MPI_Error_class(*code, &handled_class);
    handled_on = *comm == expected ? 1 : *comm == MPI_COMM_WORLD ? 2 : *comm == MPI_COMM_SELF ? 3 : 4;
}

static void dies(int signal) {
    char end[128];
    int n = snprintf(end, sizeof end, "%s %s\n", signal == SIGALRM ? "hangs:" : "dies:", trying);
    if (write(2, end, (size_t)n) != n) _exit(98);
    _exit(99);
}

static int finished;

/* MPICH ends the program itself where it finds itself in disorder. */
static void leaves(void) {
    if (!finished) dies(0);
}

/* Makes the call in one width: `number` is the type of counts, `place` that of displacements. */
#define CALL(number, place, LARGE)                                                                                      \
    static int call##LARGE(int which, const struct arguments *is) {                                                     \
        number sent[STEP_RANKS], received[STEP_RANKS], *sc = is->send_counts ? sent : NULL, *rc = is->recv_counts ? received : NULL; \
        place from[STEP_RANKS], to[STEP_RANKS], *sp = is->send_places ? from : NULL, *rp = is->recv_places ? to : NULL; \
        MPI_Datatype st[STEP_RANKS], rt[STEP_RANKS];                                                                    \
        int unit = which == ALLTOALLW ? (int)sizeof(double) : 1;                                                        \
        for (int r = 0; r < n_ranks; r++) {                                                                             \
            if (sc) sc[r] = is->send_counts[r];                                                                         \
            if (rc) rc[r] = is->recv_counts[r];                                                                         \
            if (sp) sp[r] = unit * is->send_places[r];                                                                  \
            if (rp) rp[r] = unit * is->recv_places[r];                                                                  \
            st[r] = is->send_type, rt[r] = is->recv_type;                                                               \
        }                                                                                                               \
        number ns = is->n_send, nr = is->n_recv;                                                                        \
        void *s = is->send, *r = is->recv;                                                                              \
        MPI_Datatype ts = is->send_type, tr = is->recv_type;                                                            \
        MPI_Comm c = is->comm;                                                                                          \
        int root = is->root;                                                                                            \
        switch (which) {                                                                                                \
        case ALLREDUCE: return MPI_Allreduce##LARGE(s, r, ns, ts, is->op, c);                                           \
        case BCAST: return MPI_Bcast##LARGE(s, ns, ts, root, c);                                                        \
        case ALLGATHER: return MPI_Allgather##LARGE(s, ns, ts, r, nr, tr, c);                                           \
        case ALLTOALL: return MPI_Alltoall##LARGE(s, ns, ts, r, nr, tr, c);                                             \
        case REDUCE: return MPI_Reduce##LARGE(s, r, ns, ts, is->op, root, c);                                           \
        case ALLGATHERV: return MPI_Allgatherv##LARGE(s, ns, ts, r, rc, rp, tr, c);                                     \
        case GATHER: return MPI_Gather##LARGE(s, ns, ts, r, nr, tr, root, c);                                           \
        case GATHERV: return MPI_Gatherv##LARGE(s, ns, ts, r, rc, rp, tr, root, c);                                     \
        case SCATTER: return MPI_Scatter##LARGE(s, ns, ts, r, nr, tr, root, c);                                         \
        case SCATTERV: return MPI_Scatterv##LARGE(s, sc, sp, ts, r, nr, tr, root, c);                                   \
        case ALLTOALLV: return MPI_Alltoallv##LARGE(s, sc, sp, ts, r, rc, rp, tr, c);                                   \
        case ALLTOALLW: return MPI_Alltoallw##LARGE(s, sc, sp, st, r, rc, rp, rt, c);                                   \
        case REDUCE_SCATTER: return MPI_Reduce_scatter##LARGE(s, r, rc, ts, is->op, c);                                 \
        case REDUCE_SCATTER_BLOCK: return MPI_Reduce_scatter_block##LARGE(s, r, ns, ts, is->op, c);                     \
        case SCAN: return MPI_Scan##LARGE(s, r, ns, ts, is->op, c);                                                     \
        case EXSCAN: return MPI_Exscan##LARGE(s, r, ns, ts, is->op, c);                                                 \
        default: return MPI_Barrier(c);                                                                                 \
        }                                                                                                               \
    }
CALL(int, int, )
#define WIDTHS 1
#if MPI_VERSION >= 4
CALL(MPI_Count, MPI_Aint, _c)
#undef WIDTHS
#define WIDTHS 2
#else
static int call_c(int which, const struct arguments *is) { return call(which, is); }
#endif

struct mistake {
    const char *name;
    unsigned collectives;
    void (*make)(struct arguments *);
};

static void set(int *list, int number) {
    for (int r = 0; r < n_ranks; r++) list[r] = number;
}

#define MISTAKE(name, ...) static void name(struct arguments *is) { (void)is; __VA_ARGS__; }
MISTAKE(negative_count, is->n_send = is->n_recv = -1; set(counts_a, -1); set(counts_b, -1))
MISTAKE(negative_sent, is->n_send = -1; set(counts_a, -1))
MISTAKE(negative_received, is->n_recv = -1; set(counts_b, -1))
MISTAKE(no_type, is->send_type = is->recv_type = MPI_DATATYPE_NULL)
MISTAKE(no_send_type, is->send_type = MPI_DATATYPE_NULL)
MISTAKE(no_recv_type, is->recv_type = MPI_DATATYPE_NULL)
MISTAKE(raw_type, is->send_type = is->recv_type = raw)
MISTAKE(gone_type, is->send_type = is->recv_type = freed_type)
MISTAKE(no_comm, is->comm = MPI_COMM_NULL)
MISTAKE(gone_comm, is->comm = freed)
MISTAKE(from_nowhere, is->send = NULL)
MISTAKE(to_nowhere, is->recv = NULL)
MISTAKE(nowhere, is->send = is->recv = NULL)
MISTAKE(root_beyond, is->root = n_ranks)
MISTAKE(root_negative, is->root = -7)
MISTAKE(root_null, is->root = MPI_PROC_NULL)
MISTAKE(no_op, is->op = MPI_OP_NULL)
MISTAKE(gone_op, is->op = freed_op)
#ifdef MPICH_VERSION /* where a handle is a number, and Open MPI would follow it */
MISTAKE(no_such_op, is->op = (MPI_Op)123456)
#endif
MISTAKE(bits, is->op = MPI_BXOR)
MISTAKE(places, is->op = MPI_MINLOC)
MISTAKE(replace, is->op = MPI_REPLACE)
MISTAKE(in_place, is->send = MPI_IN_PLACE)
MISTAKE(into_place, is->recv = MPI_IN_PLACE)
MISTAKE(place_twice, is->send = is->recv = MPI_IN_PLACE)
MISTAKE(alias, is->recv = is->send)
MISTAKE(no_counts, is->send_counts = is->recv_counts = NULL)
MISTAKE(no_places, is->send_places = is->recv_places = NULL)
MISTAKE(one_negative, counts_a[n_ranks - 1] = counts_b[n_ranks - 1] = -3)
MISTAKE(no_overlap, set(places_b, 0))
MISTAKE(nothing, )
MISTAKE(too_much, is->n_send = N; is->n_recv = N / 2; set(counts_a, N); set(counts_b, N / 2))
MISTAKE(root_sends_more, if (rank == is->root) is->n_send = N; else is->n_send = N / 2)

static const struct mistake mistakes[] = {
    {"with-a-negative-count", DATA, negative_count},
    {"sends-a-negative-count", TWO_TYPES, negative_sent},
    {"receives-a-negative-count", TWO_TYPES, negative_received},
    {"one-negative-count", LISTS | BIT(REDUCE_SCATTER), one_negative},
    {"without-a-type", DATA, no_type},
    {"without-a-send-type", TWO_TYPES, no_send_type},
    {"without-a-receive-type", TWO_TYPES, no_recv_type},
    {"of-a-type-that-is-not-committed", DATA, raw_type},
    {"of-a-freed-type", DATA, gone_type},
    {"without-a-communicator", ALL, no_comm},
    {"on-a-freed-communicator", ALL, gone_comm},
    {"from-nowhere", DATA, from_nowhere},
    {"to-nowhere", TWO_SIDES, to_nowhere},
    {"from-and-to-nowhere", TWO_SIDES, nowhere},
    {"root-beyond", ROOTED, root_beyond},
    {"root-negative", ROOTED, root_negative},
    {"root-null", ROOTED, root_null},
    {"without-an-operation", SUMS, no_op},
    {"with-a-freed-operation", SUMS, gone_op},
#ifdef MPICH_VERSION
    {"with-no-such-operation", SUMS, no_such_op},
#endif
    {"bits-of-doubles", SUMS, bits},
    {"places-of-doubles", SUMS, places},
    {"replaces", SUMS, replace},
    {"in-place-everywhere", BIT(BCAST) | BIT(REDUCE) | BIT(GATHER) | BIT(GATHERV), in_place},
    {"into-place", TWO_SIDES, into_place},
    {"in-place-twice", TWO_SIDES, place_twice},
    {"into-its-own-buffer", TWO_SIDES, alias},
    {"without-counts", LISTS | BIT(REDUCE_SCATTER), no_counts},
    {"without-displacements", LISTS, no_places},
    {"blocks-overlap", BIT(ALLGATHERV) | BIT(GATHERV) | BIT(ALLTOALLV) | BIT(ALLTOALLW), no_overlap},
    {"too-much", TWO_TYPES, too_much},
    {"root-sends-more", BIT(BCAST), root_sends_more},
    {"nothing", ALL, nothing},
};

static void prepare(struct arguments *is, MPI_Comm comm) {
    for (int i = 0; i < ROOM; i++) a[i] = rank + i, b[i] = -1;
    for (int r = 0; r < n_ranks; r++) counts_a[r] = counts_b[r] = N, places_a[r] = places_b[r] = N * r;
    *is = (struct arguments){a, b, N, N, 0, MPI_DOUBLE, MPI_DOUBLE, MPI_SUM, comm, counts_a, counts_b, places_a, places_b};
}

static int left_out(const char *mistake, int argc, char **argv) {
    char any[96];
    snprintf(any, sizeof any, "%.*s:*", (int)strcspn(mistake, ":"), mistake);
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], mistake) || !strcmp(argv[i], any)) return 1;
    return 0;
}

static void try(const struct mistake *mistake, int which, int large, MPI_Comm comm) {
    static const char *on[] = {"no communicator", "this communicator", "world", "self", "ANOTHER communicator"};
    struct arguments is;
    prepare(&is, comm);
    mistake->make(&is);
    expected = is.comm;
    handled = handled_class = handled_on = 0;
    alarm(SECONDS);
    int code = large ? call_c(which, &is) : call(which, &is), class = MPI_SUCCESS, text = 0;
    alarm(0);
    char message[MPI_MAX_ERROR_STRING] = "";
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        if (MPI_Error_string(class, message, &text)) text = -1;
    }
    double sum = 0;
    for (int i = 0; i < ROOM; i++) sum += b[i] * (i % 7 + 1);
    length += (size_t)snprintf(lines + length, sizeof lines - length, "%s%s rank %d: class %d %s, handler %d times on %s with class %d",
                               trying, large ? "_c" : "", rank, class, message, handled, on[handled_on], handled_class);
    if (code == MPI_SUCCESS && mistake->make == nothing)
        length += (size_t)snprintf(lines + length, sizeof lines - length, ", result %.0f", sum);
    length += (size_t)snprintf(lines + length, sizeof lines - length, "\n");
}

static void try_all(int argc, char **argv, MPI_Errhandler own) {
    for (size_t m = 0; m < sizeof mistakes / sizeof *mistakes; m++)
        for (int which = 0; which < STEPS; which++) {
            snprintf(trying, sizeof trying, "%s:%s", mistakes[m].name, names[which]);
            if (!(mistakes[m].collectives & BIT(which)) || left_out(trying, argc, argv)) continue;
            MPI_Comm comm;
            struct arguments is;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, own);
            /* So that the shim, if there, has set the communicator up. */
            prepare(&is, comm);
            for (int i = 0; i < 3; i++) call(which, &is);
            for (int large = 0; large < (which == BARRIER ? 1 : WIDTHS); large++) try(&mistakes[m], which, large, comm);
            /* It is never freed: what a rank sent that another did not take must not be taken on the next one. */
        }
}

static void tell(void) {
    if (rank == 0) {
        fputs(lines, stdout);
        for (int r = 1; r < n_ranks; r++) {
            MPI_Recv(lines, sizeof lines, MPI_CHAR, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fputs(lines, stdout);
        }
    } else {
        MPI_Send(lines, (int)strlen(lines) + 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static void no_sum(void *in, void *out, int *n, MPI_Datatype *type) { (void)in, (void)out, (void)n, (void)type; }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], dies);
    atexit(leaves);
    MPI_Errhandler own = MPI_ERRORS_RETURN;
    if (argc > 1 && !strcmp(argv[1], "own")) MPI_Comm_create_errhandler(handler, &own);
    /* Errors without a communicator go to one of these two. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    MPI_Comm_set_errhandler(freed, own);
    MPI_Type_contiguous(1, MPI_DOUBLE, &raw);
    MPI_Type_contiguous(1, MPI_DOUBLE, &freed_type);
    MPI_Type_commit(&freed_type);
    MPI_Op_create(no_sum, 1, &freed_op);
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, freed);
    /* A request that is never started keeps the communicator's memory, though it is freed. */
    MPI_Request keeper;
    MPI_Recv_init(&one, 1, MPI_DOUBLE, 0, 9, freed, &keeper);
    MPI_Comm kept = freed;
    MPI_Datatype kept_type = freed_type;
    MPI_Op kept_op = freed_op;
    MPI_Comm_free(&freed);
    MPI_Type_free(&freed_type);
    MPI_Op_free(&freed_op);
    freed = kept, freed_type = kept_type, freed_op = kept_op;
    try_all(argc, argv, own);
    MPI_Request_free(&keeper);
    MPI_Type_free(&raw);
    tell();
    if (own != MPI_ERRORS_RETURN) MPI_Errhandler_free(&own);
    MPI_Finalize();
    finished = 1;
    return 0;
}
