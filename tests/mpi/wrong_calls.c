/* Wrong calls of every tuned collective: prints for each the class of the error and how often the
 * program's error handler was called, on rank 0.
 *
 * Every rank makes the same mistake, so that nobody waits. Behind each mistake a right call shows that
 * the communicator still works.
 *
 * usage: wrong_calls [FIRST [LAST]], numbers of mistakes */
#include "step.h"

static int rank, n_ranks, handled, handled_class, number, first, last = 1000;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    MPI_Error_class(*code, &handled_class);
}

static void tell(const char *collective, const char *mistake, int code) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (rank == 0) printf("%d %s %s: class %d, handler %d times with class %d\n", number, collective, mistake, class, handled, handled_class);
    handled = 0;
    handled_class = 0;
}

/* Mistakes have numbers, since some kill a library by themselves. */
#define TRY(collective, mistake, call) \
    if (++number >= first && number <= last) tell(collective, mistake, call);

/* The same for the other collectives. */
static void further_mistakes(MPI_Comm comm, MPI_Comm freed) {
    static double a[8192], b[8192];
    int n = 64, root = 0, counts[64], wrong[64], at[64], bytes_at[64];
    MPI_Datatype type = MPI_DOUBLE, no_type = MPI_DATATYPE_NULL, types[64], no_types[64];
    MPI_Op op = MPI_SUM;
    for (int r = 0; r < n_ranks; r++) {
        counts[r] = n, wrong[r] = -1, at[r] = r * n, bytes_at[r] = 8 * r * n;
        types[r] = type, no_types[r] = no_type;
    }
#define MOVES(mistake, N, C, T, TT, ROOT, COMM) \
    TRY("gather", mistake, MPI_Gather(a, N, T, b, N, T, ROOT, COMM)) \
    TRY("scatter", mistake, MPI_Scatter(a, N, T, b, N, T, ROOT, COMM)) \
    TRY("gatherv", mistake, MPI_Gatherv(a, N, T, b, C, at, T, ROOT, COMM)) \
    TRY("scatterv", mistake, MPI_Scatterv(a, C, at, T, b, N, T, ROOT, COMM)) \
    TRY("allgatherv", mistake, MPI_Allgatherv(a, N, T, b, C, at, T, COMM)) \
    TRY("alltoallv", mistake, MPI_Alltoallv(a, C, at, T, b, C, at, T, COMM)) \
    TRY("alltoallw", mistake, MPI_Alltoallw(a, C, bytes_at, TT, b, C, bytes_at, TT, COMM))
#define SUMS(mistake, N, C, T, O, COMM) \
    TRY("scan", mistake, MPI_Scan(a, b, N, T, O, COMM)) \
    TRY("exscan", mistake, MPI_Exscan(a, b, N, T, O, COMM)) \
    TRY("reduce_scatter_block", mistake, MPI_Reduce_scatter_block(a, b, N, T, O, COMM)) \
    TRY("reduce_scatter", mistake, MPI_Reduce_scatter(a, b, C, T, O, COMM))
    MOVES("without a type", n, counts, no_type, no_types, root, comm)
    MOVES("without a communicator", n, counts, type, types, root, MPI_COMM_NULL)
    MOVES("with a negative count", -1, wrong, type, types, root, comm)
    TRY("gather", "to a root beyond", MPI_Gather(a, n, type, b, n, type, n_ranks, comm))
    TRY("scatter", "from a root beyond", MPI_Scatter(a, n, type, b, n, type, n_ranks, comm))
    TRY("gatherv", "to a root beyond", MPI_Gatherv(a, n, type, b, counts, at, type, n_ranks, comm))
    TRY("scatterv", "from a root beyond", MPI_Scatterv(a, counts, at, type, b, n, type, n_ranks, comm))
    TRY("gather", "to a negative root", MPI_Gather(a, n, type, b, n, type, -7, comm))
    TRY("scatter", "from a negative root", MPI_Scatter(a, n, type, b, n, type, -7, comm))
    SUMS("without a type", n, counts, no_type, op, comm)
    SUMS("without a communicator", n, counts, type, op, MPI_COMM_NULL)
    SUMS("without an operation", n, counts, type, MPI_OP_NULL, comm)
    SUMS("of bits of doubles", n, counts, type, MPI_BXOR, comm)
    TRY("barrier", "without a communicator", MPI_Barrier(MPI_COMM_NULL))
    TRY("allgatherv", "in place twice", MPI_Allgatherv(MPI_IN_PLACE, n, type, MPI_IN_PLACE, counts, at, type, comm))
    TRY("scan", "in place twice", MPI_Scan(MPI_IN_PLACE, MPI_IN_PLACE, n, type, op, comm))
    SUMS("with a negative count", -1, wrong, type, op, comm)
    TRY("gather", "on a freed communicator", MPI_Gather(a, n, type, b, n, type, root, freed))
    TRY("barrier", "on a freed communicator", MPI_Barrier(freed))
}

static void mistakes(MPI_Comm comm, MPI_Comm freed) {
    static double a[4096], b[4096];
    int n = 64;
    MPI_Datatype type = MPI_DOUBLE, no_type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_SUM;
#define ALL(mistake, A, B, N, T, O, ROOT, C) \
    TRY("allreduce", mistake, MPI_Allreduce(A, B, N, T, O, C)) \
    TRY("reduce", mistake, MPI_Reduce(A, B, N, T, O, ROOT, C)) \
    TRY("bcast", mistake, MPI_Bcast(A, N, T, ROOT, C)) \
    TRY("allgather", mistake, MPI_Allgather(A, N, T, B, N, T, C)) \
    TRY("alltoall", mistake, MPI_Alltoall(A, N, T, B, N, T, C))
    /* So that the shim, if there, has set the communicator up. */
    for (int i = 0; i < 4; i++) {
        MPI_Allreduce(a, b, n, type, op, comm);
        MPI_Reduce(a, b, n, type, op, 0, comm);
        MPI_Bcast(a, n, type, 0, comm);
        MPI_Allgather(a, n, type, b, n, type, comm);
        MPI_Alltoall(a, n, type, b, n, type, comm);
        MPI_Barrier(comm);
    }
    ALL("with a negative count", a, b, -1, type, op, 0, comm)
    ALL("without a type", a, b, n, no_type, op, 0, comm)
    ALL("without a communicator", a, b, n, type, op, 0, MPI_COMM_NULL)
    ALL("on a freed communicator", a, b, n, type, op, 0, freed)
    TRY("allreduce", "without an operation", MPI_Allreduce(a, b, n, type, MPI_OP_NULL, comm))
    TRY("reduce", "without an operation", MPI_Reduce(a, b, n, type, MPI_OP_NULL, 0, comm))
    TRY("allreduce", "of bits of doubles", MPI_Allreduce(a, b, n, type, MPI_BXOR, comm))
    TRY("reduce", "of places of doubles", MPI_Reduce(a, b, n, type, MPI_MINLOC, 0, comm))
    TRY("bcast", "from a root beyond", MPI_Bcast(a, n, type, n_ranks, comm))
    TRY("bcast", "from a negative root", MPI_Bcast(a, n, type, -7, comm))
    TRY("reduce", "to a root beyond", MPI_Reduce(a, b, n, type, op, n_ranks, comm))
    TRY("reduce", "to a negative root", MPI_Reduce(a, b, n, type, op, -7, comm))
    TRY("allreduce", "in place twice", MPI_Allreduce(MPI_IN_PLACE, MPI_IN_PLACE, n, type, op, comm))
    TRY("allreduce", "into its own buffer", MPI_Allreduce(a, a, n, type, op, comm))
    TRY("allreduce", "from nowhere", MPI_Allreduce(NULL, b, n, type, op, comm))
    TRY("allreduce", "to nowhere", MPI_Allreduce(a, NULL, n, type, op, comm))
    TRY("bcast", "from nowhere", MPI_Bcast(NULL, n, type, 0, comm))
    TRY("allgather", "to nowhere", MPI_Allgather(a, n, type, NULL, n, type, comm))
    MPI_Datatype raw;
    MPI_Type_contiguous(3, MPI_INT, &raw);
    TRY("bcast", "of a type that is not committed", MPI_Bcast(a, n, raw, 0, comm))
    MPI_Type_free(&raw);
    further_mistakes(comm, freed);
    for (int i = 0; i < n; i++) a[i] = rank;
    int right = MPI_Allreduce(a, b, n, type, op, comm) == MPI_SUCCESS && b[n - 1] == n_ranks * (n_ranks - 1) / 2;
    tell("allreduce", right ? "that is right" : "THAT SHOULD BE RIGHT", MPI_SUCCESS);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    MPI_Comm comm, freed, kept;
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);
    /* Errors without a communicator go to one of these two. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    MPI_Comm_set_errhandler(comm, own);
    if (argc > 1) first = atoi(argv[1]);
    if (argc > 2) last = atoi(argv[2]);
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, freed);
    kept = freed;
    MPI_Comm_free(&freed);
    mistakes(comm, kept);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&own);
    MPI_Finalize();
    return 0;
}
