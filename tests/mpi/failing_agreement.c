/* A tool whose PMPI_Allreduce fails in place on communicators of two, after the library's own has done its work: every one
 * from the FAILING_FROMth on. The communicator's error handler is called, as the library would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

int PMPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    static int n_agreements;
    int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm), size;
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    int code = real(send, recv, count, type, op, comm);
    MPI_Comm_size(comm, &size);
    if (send != MPI_IN_PLACE || size != 2 || ++n_agreements < atoi(getenv("FAILING_FROM"))) return code;
    MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}
