/* The last rank kills itself among reductions; the others revoke the communicator, shrink it and go on (ULFM). Rank 0 says
 * how many are left and how often they reduced right. The functions are looked up: not all libraries have them. They end
 * without MPI_Finalize, in which Open MPI 5.0.11 itself sometimes waits for the dead rank. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BEFORE = 30, BEHIND = 200 };

typedef int Revoke(MPI_Comm);
typedef int Shrink(MPI_Comm, MPI_Comm *);

static void *function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        fprintf(stderr, "the library has no %s\n", name);
        exit(2);
    }
    return found;
}

int main(int argc, char **argv) {
    Revoke *revoke = (Revoke *)function("MPIX_Comm_revoke");
    Shrink *shrink = (Shrink *)function("MPIX_Comm_shrink");
    MPI_Init(&argc, &argv);
    int rank, size, code = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long sent[100] = {0}, got[100];
    for (int call = 0; code == MPI_SUCCESS; call++) {
        if (call == BEFORE && rank == size - 1) raise(SIGKILL);
        code = MPI_Allreduce(sent, got, 100, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    revoke(MPI_COMM_WORLD);
    MPI_Comm left = MPI_COMM_NULL;
    if (shrink(MPI_COMM_WORLD, &left) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    int n_left, right = 0;
    MPI_Comm_rank(left, &rank);
    MPI_Comm_size(left, &n_left);
    for (int call = 0; call < BEHIND; call++) {
        for (int i = 0; i < 100; i++) sent[i] = rank + i + call;
        code = MPI_Allreduce(sent, got, 100, MPI_LONG, MPI_SUM, left);
        long of_ranks = n_left * (n_left - 1L) / 2;
        int good = code == MPI_SUCCESS;
        for (int i = 0; i < 100; i++) good &= got[i] == of_ranks + n_left * (long)(i + call);
        right += good;
    }
    if (rank == 0) printf("%d are left, right %d times\n", n_left, right);
    fflush(stdout);
    MPI_Barrier(left);
    _exit(0);
}
