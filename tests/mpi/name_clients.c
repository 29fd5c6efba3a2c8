/* A tool that says once of each rank that looks a name up: "asks". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int PMPI_Lookup_name(const char *service, MPI_Info info, char *port) {
    static int said;
    int (*real)(const char *, MPI_Info, char *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Lookup_name");
    if (!said++) fputs("asks\n", stderr);
    return real(service, info, port);
}
