/* Behind the shim: nobody has the ranks of a wide communicator translated, which takes Open MPI a time that grows with
 * the square of their number. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int PMPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to, int result[]) {
    int (*next)(MPI_Group, int, const int[], MPI_Group, int[]) = dlsym(RTLD_NEXT, "PMPI_Group_translate_ranks");
    if (n > 32) {
        fprintf(stderr, "%d ranks were to be translated\n", n);
        abort();
    }
    return next(from, n, ranks, to, result);
}
