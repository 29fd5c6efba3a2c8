/* A tool that calls a collective inside its wrapper of another. */
#include <mpi.h>

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int code = MPI_Barrier(comm);
    return code == MPI_SUCCESS ? PMPI_Allreduce(in, out, n, type, op, comm) : code;
}
