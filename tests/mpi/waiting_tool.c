/* A profiling tool that waits by itself: MPI_Wait goes to the library's PMPI_Wait, as in most tools. */
#include <mpi.h>

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    return PMPI_Wait(request, status);
}
