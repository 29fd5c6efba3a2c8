/* A tool with which the launcher has no name service. */
#include <mpi.h>

int PMPI_Publish_name(const char *service, MPI_Info info, const char *port) {
    (void)service, (void)info, (void)port;
    return MPI_ERR_SERVICE;
}

int PMPI_Lookup_name(const char *service, MPI_Info info, char *port) {
    (void)service, (void)info, (void)port;
    return MPI_ERR_NAME;
}
