/* Allreduces of doubles by an operation of the program's that takes its time at each call, whatever the length: algorithms
 * that cut a message into many pieces are many times as slow as others.
 *
 * usage: slow_op COMMUNICATORS CALLS DOUBLES MICROSECONDS; prints "ok" if all results are right. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long nanoseconds;

static void add(void *in, void *into, int *count, MPI_Datatype *type) {
    (void)type;
    struct timespec pause = {0, nanoseconds};
    nanosleep(&pause, NULL);
    for (int i = 0; i < *count; i++) ((double *)into)[i] += ((double *)in)[i];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 2);
    int rank, size, wrong = 0, all = 0, count = atoi(argv[3]);
    nanoseconds = 1000 * atol(argv[4]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *sent = malloc(count * sizeof *sent), *got = malloc(count * sizeof *got);
    for (int i = 0; i < count; i++) sent[i] = rank + i;
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    for (int comm = 0; comm < atoi(argv[1]); comm++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        for (int call = 0; call < atoi(argv[2]); call++) {
            MPI_Allreduce(sent, got, count, MPI_DOUBLE, op, copy);
            for (int i = 0; i < count; i++) wrong |= got[i] != size * (size - 1) / 2.0 + (double)size * i;
        }
        MPI_Comm_free(&copy);
    }
    MPI_Op_free(&op);
    PMPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0 && !all) printf("ok\n");
    free(sent), free(got);
    MPI_Finalize();
    return all;
}
