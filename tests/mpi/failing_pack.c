/* A tool on whose rank 1 no element can be packed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

typedef int pack(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);

int PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int size, int *position, MPI_Comm comm) {
    int rank;
    pack *next = (pack *)dlsym(RTLD_NEXT, "PMPI_Pack");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return (rank == 1 && count > 0) || !next ? MPI_ERR_NO_MEM : next(in, count, type, out, size, position, comm);
}
