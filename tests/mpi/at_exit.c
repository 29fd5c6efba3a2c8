/* Broadcasts of a derived type from main, and from a handler of atexit, when main's thread-locals are gone. */
#include "step.h"

static MPI_Datatype type;
static int right = 1;

static void broadcast(void) {
    int rank;
    long data[200];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 200; i++) data[i] = rank == 0 ? i : -1;
    MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 200; i += 2) right &= data[i] == i;
    MPI_Datatype row, out[2] = { MPI_DATATYPE_NULL, MPI_LONG };
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long sent[STEP_RANKS * 2], got[STEP_RANKS * 2];
    for (int i = 0; i < 2 * size; i++) sent[i] = rank * 100 + i;
    MPI_Type_contiguous(2, MPI_LONG, &row);
    MPI_Type_commit(&row);
    out[0] = row;
    MPI_Alltoall(sent, 1, out[0], got, 2, out[1], MPI_COMM_WORLD);
    for (int i = 0; i < 2 * size; i++) right &= got[i] == i / 2 * 100 + rank * 2 + i % 2;
    MPI_Type_free(&row);
}

static void at_exit(void) {
    broadcast();
    conclude(right);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Type_vector(100, 1, 2, MPI_LONG, &type);
    MPI_Type_commit(&type);
    broadcast();
    atexit(at_exit);
    return 0;
}
