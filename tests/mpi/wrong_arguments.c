/* Collectives with wrong arguments, the same on all ranks: prints the class of each error. */
#include <mpi.h>
#include <stdio.h>

static int rank;

static void tell(const char *what, int code) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (rank == 0) printf("%s %d\n", what, class);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    int size;
    MPI_Comm_size(comm, &size);
    double a[64] = {0}, b[64] = {0};
    for (int round = 0; round < 2; round++) {
        tell("root of bcast", MPI_Bcast(a, 4, MPI_DOUBLE, size, comm));
        tell("root of reduce", MPI_Reduce(a, b, 4, MPI_DOUBLE, MPI_SUM, -5, comm));
#ifdef OPEN_MPI /* MPICH 4.0.2 itself crashes on it. */
        tell("count", MPI_Allreduce(a, b, -1, MPI_DOUBLE, MPI_SUM, comm));
#endif
        tell("type", MPI_Bcast(a, 4, MPI_DATATYPE_NULL, 0, comm));
        tell("operation", MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_OP_NULL, comm));
        tell("bits of a double", MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_BAND, comm));
        tell("place of a double", MPI_Reduce(a, b, 4, MPI_DOUBLE, MPI_MINLOC, 0, comm));
        MPI_Datatype raw;
        MPI_Type_contiguous(2, MPI_DOUBLE, &raw);
        tell("type that is not committed", MPI_Bcast(a, 4, raw, 0, comm));
        tell("gathered type that is not committed", MPI_Allgather(a, 2, MPI_DOUBLE, b, 1, raw, comm));
        MPI_Type_free(&raw);
        tell("right", MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, comm));
        tell("right", MPI_Bcast(a, 4, MPI_DOUBLE, size - 1, comm));
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
