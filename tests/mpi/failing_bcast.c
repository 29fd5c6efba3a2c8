/* A tool whose PMPI_Bcast fails on rank 1 of communicators of two, after the library's own has done its work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int (*real)(void *, int, MPI_Datatype, int, MPI_Comm), rank, size;
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Bcast");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int code = real(buffer, count, type, root, comm);
    return size == 2 && rank == 1 ? MPI_ERR_OTHER : code;
}
