/* A tool by which the library gives ranks but the first wrong numbers: from the start with TOOL_LIES set, else while a
 * variable of the program's, `lying`, is not 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

typedef int comm_rank(MPI_Comm, int *);

int PMPI_Comm_rank(MPI_Comm comm, int *rank) {
    comm_rank *next = (comm_rank *)dlsym(RTLD_NEXT, "PMPI_Comm_rank");
    int *lying = (int *)dlsym(RTLD_DEFAULT, "lying");
    int code = next ? next(comm, rank) : MPI_ERR_OTHER;
    if (*rank > 0 && (getenv("TOOL_LIES") || (lying && *lying))) *rank += 1000;
    return code;
}
