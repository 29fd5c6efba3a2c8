/* A tool with which the launcher does not say how many of the ranks are on this node. */
#include <stdlib.h>

__attribute__((constructor)) static void forget(void) {
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("MPI_LOCALNRANKS");
    unsetenv("PMI_LOCAL_SIZE");
    unsetenv("SLURM_GTIDS");
}
