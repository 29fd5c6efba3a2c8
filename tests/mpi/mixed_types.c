/* Messages whose ends have different types of one signature: a bcast of doubles that odd ranks take three at a time, and
 * an alltoall that transposes each block by its types. Prints "ok" when every result is right.
 *
 * usage: mixed_types ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIPLES = 20000, EDGE = 128, BLOCK = EDGE * EDGE };

static int rank, n_ranks, right = 1;

static void broadcast(int round, MPI_Datatype triple) {
    static double values[3 * TRIPLES];
    for (int i = 0; i < 3 * TRIPLES; i++) values[i] = rank == 0 ? round + i : -1;
    int code = rank % 2 ? MPI_Bcast(values, TRIPLES, triple, 0, MPI_COMM_WORLD)
                        : MPI_Bcast(values, 3 * TRIPLES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) right = 0;
    for (int i = 0; i < 3 * TRIPLES; i++)
        if (values[i] != round + i) right = 0;
}

static void transpose(int round, MPI_Datatype columns, MPI_Datatype block, double *from, double *to) {
    for (int i = 0; i < n_ranks * BLOCK; i++) from[i] = round + 1000.0 * rank + i, to[i] = -1;
    if (MPI_Alltoall(from, 1, columns, to, 1, block, MPI_COMM_WORLD) != MPI_SUCCESS) right = 0;
    for (int r = 0; r < n_ranks; r++)
        for (int i = 0; i < EDGE; i++)
            for (int j = 0; j < EDGE; j++)
                if (to[r * BLOCK + i * EDGE + j] != round + 1000.0 * r + rank * BLOCK + j * EDGE + i) right = 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Datatype triple, column, wide, columns, block;
    MPI_Type_contiguous(3, MPI_DOUBLE, &triple);
    MPI_Type_vector(EDGE, 1, EDGE, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &wide);
    MPI_Type_contiguous(EDGE, wide, &column);
    MPI_Type_create_resized(column, 0, BLOCK * sizeof(double), &columns);
    MPI_Type_contiguous(BLOCK, MPI_DOUBLE, &block);
    MPI_Type_commit(&triple);
    MPI_Type_commit(&columns);
    MPI_Type_commit(&block);
    double *from = malloc(sizeof(double) * (size_t)(n_ranks * BLOCK)), *to = malloc(sizeof(double) * (size_t)(n_ranks * BLOCK));
    for (int round = 0; round < (argc > 1 ? atoi(argv[1]) : 1); round++) {
        broadcast(round, triple);
        transpose(round, columns, block, from, to);
    }
    int all = 0;
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", all ? "ok" : "WRONG");
    MPI_Finalize();
    return 0;
}
