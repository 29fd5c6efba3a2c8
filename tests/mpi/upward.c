/* A tool that ends a rank whose PMPI_Allreduce is called under another rounding than upwards while UPWARD is set, by which
 * the program says that it has set that: while ranks wait there the library may combine numbers of the program's. Once
 * it says that it was there, in the words that UPWARD holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int PMPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Allreduce");
    static int said;
    const char *words = getenv("UPWARD");
    if (words && fegetround() != FE_UPWARD) abort();
    if (words && !said++) fprintf(stderr, "%s\n", words);
    return real(send, recv, count, datatype, op, comm);
}
