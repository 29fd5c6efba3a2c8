/* Counts the program's attribute callbacks and error handler calls, which nobody else may cause.
 * Rank 0 prints the counts. */
#include "step.h"

static int copies, deletes, handled;

static int on_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    handled++;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int key, rank, right = 1, size, same = 1;
    MPI_Errhandler handler, found;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_keyval(on_copy, on_delete, &key, NULL);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &copies);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &copies);
    for (int c = 0; c < 10; c++) {
        MPI_Comm comm, twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, handler);
        for (int k = 0; k < 40; k++) {
            right &= step(comm, k, 50 * c);
            right &= step(MPI_COMM_WORLD, k, 50 * c);
        }
        MPI_Comm_get_errhandler(comm, &found);
        same &= found == handler;
        MPI_Errhandler_free(&found);
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
        same &= found == MPI_ERRORS_ARE_FATAL;
        MPI_Errhandler_free(&found);
        /* The library reports the error, to this communicator's handler, on every rank. */
        int value = 0;
        MPI_Bcast(&value, 1, MPI_INT, size + 5, comm);
        MPI_Allreduce(&value, &value, -1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_dup(comm, &twin);
        MPI_Comm_free(&twin);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Errhandler_free(&handler);
    if (rank == 0) printf("%d copies, %d deletes, %d handled, handlers %s\n", copies, deletes, handled, same ? "same" : "changed");
    fflush(stdout);
    return conclude(right);
}
