/* A tool whose PMPI_Comm_create_keyval fails on rank 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *forget, int *key,
                            void *state) {
    int (*real)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *), rank;
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Comm_create_keyval");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1 ? MPI_ERR_OTHER : real(copy, forget, key, state);
}
