/* One rank makes a call wrong, hears so, and makes it right; the others make it once.
 *
 * usage: wrong_then_right FIRST LAST OTHERS
 * From call FIRST, ..., LAST of a communicator on, of which each has a few more. The error handler calls a collective
 * on each of OTHERS communicators of its rank alone. Prints "ok" when every result is right. */
#include "step.h"

#define LONG 12000
enum { UNCOMMITTED, NO_TYPE, UNCOMMITTED_RESULT, WRONG_KINDS };

static MPI_Comm *others;
static int n_others, heard;

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    heard++;
    for (int i = 0; i < n_others; i++) {
        int one = 1, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, others[i]);
    }
}

static int given[LONG], got[LONG * STEP_RANKS];

/* The call that is wrong by its kind. */
static void wrong(int kind, int which, int count, int root, MPI_Datatype uncommitted, MPI_Comm comm) {
    MPI_Datatype sent = kind == UNCOMMITTED ? uncommitted : kind == NO_TYPE ? MPI_DATATYPE_NULL : MPI_INT;
    MPI_Datatype received = kind == UNCOMMITTED_RESULT ? uncommitted : MPI_INT;
    int n_sent = kind == UNCOMMITTED ? 1 : count, n_received = kind == UNCOMMITTED_RESULT ? 1 : count;
    if (which == 0) MPI_Bcast(given, n_sent, sent == MPI_INT ? MPI_DATATYPE_NULL : sent, root, comm);
    else if (which == 1) MPI_Alltoall(given, n_sent, sent, got, n_received, received, comm);
#ifdef OPEN_MPI
    /* It takes a result of such a type in the others. */
    else if (kind == UNCOMMITTED_RESULT) MPI_Alltoall(given, count, MPI_INT, got, 1, uncommitted, comm);
#endif
    else if (which == 2) MPI_Allgather(given, n_sent, sent, got, n_received, received, comm);
    else MPI_Gather(given, n_sent, sent, got, n_received, received, root, comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1, errors = 0;
    int first = argc > 1 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : 1;
    n_others = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    others = malloc((size_t)(n_others + 1) * sizeof *others);
    for (int i = 0; i < n_others; i++) MPI_Comm_dup(MPI_COMM_SELF, &others[i]);
    for (int kind = 0; kind < WRONG_KINDS; kind++)
        for (int which = 0; which < 4; which++)
            for (int from = first; from <= last; from++) {
                MPI_Comm comm;
                MPI_Comm_dup(MPI_COMM_WORLD, &comm);
                MPI_Comm_set_errhandler(comm, handler);
                for (int call = 1; call <= from + 3; call++) {
                    int count = call % 3 == 0 ? 3 : call % 3 == 1 ? 600 : which == 1 ? LONG / size : LONG, root = call % size;
                    MPI_Datatype uncommitted;
                    MPI_Type_contiguous(count, MPI_INT, &uncommitted);
                    for (int i = 0; i < LONG; i++) given[i] = rank * 3 + i + call;
                    if (rank == root && call >= from) errors++, wrong(kind, which, count, root, uncommitted, comm);
                    int all = which == 1 ? count / size : count, begin = which == 1 ? rank * all : 0;
                    if (which == 0) MPI_Bcast(given, count, MPI_INT, root, comm);
                    else if (which == 1) MPI_Alltoall(given, all, MPI_INT, got, all, MPI_INT, comm);
                    else if (which == 2) MPI_Allgather(given, count, MPI_INT, got, count, MPI_INT, comm);
                    else MPI_Gather(given, count, MPI_INT, got, count, MPI_INT, root, comm);
                    for (int i = 0; which == 0 && i < count; i++) right &= given[i] == root * 3 + i + call;
                    for (int from_rank = 0; (which == 1 || which == 2 || (which == 3 && rank == root)) && from_rank < size; from_rank++)
                        for (int i = 0; i < all; i++)
                            right &= got[from_rank * all + i] == from_rank * 3 + begin + i + call;
                    MPI_Type_free(&uncommitted);
                }
                MPI_Comm_free(&comm);
            }
    right &= heard == errors;
    for (int i = 0; i < n_others; i++) MPI_Comm_free(&others[i]);
    free(others);
    MPI_Errhandler_free(&handler);
    return conclude(right);
}
