/* A host that is linked with no MPI library and loads the one that it is given for itself alone.
 *
 * usage: apart_host LIBRARY */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

/* Tools stand before the library, as they do for a program that was linked with it. */
static void *function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "there is no %s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

#define CALL(name, ...) ((__typeof__(&name))function(#name))(__VA_ARGS__)

int main(int argc, char **argv) {
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "failed to load the library: %s\n", argc > 1 ? dlerror() : "none named");
        return 2;
    }
    int rank, n, right = 1;
    CALL(MPI_Init, &argc, &argv);
    CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size, MPI_COMM_WORLD, &n);
    for (int call = 0; call < 40; call++) {
        int sum = rank + call;
        CALL(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        right &= sum == n * (n - 1) / 2 + n * call;
    }
    CALL(MPI_Finalize);
    if (!right) return 1;
    if (rank == 0) puts("ok");
    return 0;
}
