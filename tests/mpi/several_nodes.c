/* A tool by which one machine looks like several: rank r of the world says that it runs on the node
 * that letter r of TESTED_NODES names, as in ABAAB. Segments and messages are real all the same. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Get_processor_name(char *name, int *length) {
    const char *nodes = getenv("TESTED_NODES");
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char node = nodes && strlen(nodes) > (size_t)rank ? nodes[rank] : 'A';
    *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node-%c", node);
    return MPI_SUCCESS;
}
