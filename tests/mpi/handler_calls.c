/* An error handler that calls a collective on the communicator of which it hears.
 *
 * usage: handler_calls single|multiple
 * Ranks 0 and 1 of three sum up on a communicator of their own. Rank 0 prints "ok" if the handler was called and all sums
 * were right. */
#include "step.h"

static int heard, n_right;

static void add(MPI_Comm comm) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    n_right += sum == 2;
}

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)code;
    heard++;
    add(*comm);
}

int main(int argc, char **argv) {
    int rank, provided, has_threads = argc > 1 && !strcmp(argv[1], "multiple");
    MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    if (rank < 2) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(on_error, &handler);
        MPI_Comm_set_errhandler(pair, handler);
        for (int call = 0; call < 300; call++) add(pair);
        MPI_Errhandler_free(&handler);
        MPI_Comm_free(&pair);
    }
    if (rank == 0 && heard > 0 && n_right - heard == 300) printf("ok\n");
    MPI_Finalize();
    return 0;
}
