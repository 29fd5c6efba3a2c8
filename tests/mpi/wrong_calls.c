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

static void mistakes(MPI_Comm comm, MPI_Comm freed) {
    static double a[4096], b[4096];
    int n = 64;
    MPI_Datatype type = MPI_DOUBLE, no_type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_SUM;
/* Mistakes have numbers, since some kill a library by themselves. */
#define TRY(collective, mistake, call) \
    if (++number >= first && number <= last) tell(collective, mistake, call);
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
