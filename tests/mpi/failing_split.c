/* A tool whose PMPI_Comm_split fails on rank 1, after the library's own has made the communicator. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made) {
    int (*real)(MPI_Comm, int, int, MPI_Comm *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Comm_split");
    int code = real(comm, color, key, made), rank;
    MPI_Comm_rank(comm, &rank);
    if (code == MPI_SUCCESS && rank == 1) {
        if (*made != MPI_COMM_NULL) MPI_Comm_free(made);
        return MPI_ERR_OTHER;
    }
    return code;
}
