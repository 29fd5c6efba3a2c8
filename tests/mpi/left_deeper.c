/* Every rank leaves the same wrong call by a longjmp out of its error handler: a type that is not committed, which only the
 * library's answer tells. What follows the ranks call from where they are and from far below that, in turns, over memory of
 * the stack that nobody has written to since. Built without unwind tables nobody can follow the stack through it.
 *
 * usage: left_deeper ROUNDS; prints "ok" if all results are right. */
#include <alloca.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf back;
static int left;

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(back, 1);
}

static int right_calls(void) {
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 20; i++) {
        int sum = -1;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != size * (size - 1) / 2;
    }
    return wrong;
}

__attribute__((noinline)) static int far_below(int bytes) {
    volatile char *skipped = alloca(bytes);
    skipped[0] = 0;
    return right_calls() + skipped[0];
}

__attribute__((noinline)) static void wrong_call(int bytes, MPI_Datatype type) {
    volatile char *skipped = alloca(bytes);
    skipped[0] = 0;
    int sent = 0, got[64];
    if (setjmp(back)) left++;
    else MPI_Allgather(&sent, 1, type, got, 1, type, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Datatype type;
    MPI_Type_contiguous(1, MPI_INT, &type);
    int wrong = right_calls();
    for (int round = 0; round < rounds; round++) {
        wrong_call(20000, type);
        wrong += (rank + round) % 2 ? far_below(60000) : right_calls();
    }
    int all = 0;
    wrong += left != rounds;
    PMPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) printf("ok\n");
    MPI_Type_free(&type);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return all != 0;
}
