/* A program in C that loads a library of Fortran code for itself alone, as Python and other hosts do with their
 * extensions: what the library needs is in no other object's sight. See fortran_library.F90.
 *
 * usage: fortran_host LIBRARY */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*solve)(int *) = NULL;
    if (library) *(void **)&solve = dlsym(library, "solve");
    if (!solve) {
        fprintf(stderr, "failed to load solve: %s\n", dlerror());
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    int rank, right = 0, all = 0;
    solve(&right);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", all ? "ok" : "WRONG");
    MPI_Finalize();
    return 0;
}
