/* A tool whose PMPI_Comm_create fails on rank 1, after the library's own has made the communicator. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made) {
    int (*real)(MPI_Comm, MPI_Group, MPI_Comm *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Comm_create");
    int code = real(comm, group, made), rank;
    MPI_Comm_rank(comm, &rank);
    if (code == MPI_SUCCESS && rank == 1) {
        if (*made != MPI_COMM_NULL) MPI_Comm_free(made);
        return MPI_ERR_OTHER;
    }
    return code;
}
