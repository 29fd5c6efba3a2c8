/* Behind the shim: the library calls itself a major version that did not exist when the shim was written. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int PMPI_Get_library_version(char *text, int *length) {
#ifdef OPEN_MPI
    strcpy(text, "Open MPI v6.0.0a1, package: Open MPI, ident: 6.0.0a1, repo rev: v6.0.0a1");
#else
    strcpy(text, "MPICH Version:      6.0.0\nMPICH Release date: unreleased\n");
#endif
    *length = (int)strlen(text);
    return MPI_SUCCESS;
}
