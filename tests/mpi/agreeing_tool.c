/* A tool that plays a library with MPIX_Comm_iagree, from C and from Fortran: a nonblocking allreduce of bits. */
#include <mpi.h>

static int iagree(MPI_Comm comm, int *flag, MPI_Request *request) {
    return PMPI_Iallreduce(MPI_IN_PLACE, flag, 1, MPI_INT, MPI_BAND, comm, request);
}

int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request) { return iagree(comm, flag, request); }

void mpix_comm_iagree_(MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *request, MPI_Fint *code) {
    MPI_Request begun;
    int found = iagree(PMPI_Comm_f2c(*comm), flag, &begun);
    *request = PMPI_Request_c2f(begun);
    if (code) *code = found;
}

void mpix_comm_iagree_f08_(MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *request, MPI_Fint *code) {
    mpix_comm_iagree_(comm, flag, request, code);
}
