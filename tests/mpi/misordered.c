/* Each rank in turn begins a nonblocking allreduce before a barrier, and the others theirs behind it: wrong, but the
 * libraries do not notice, and so do mpi4py's tests where the library has no MPI_Comm_iagree.
 *
 * usage: misordered [C|mpif.h|mpi_f08]
 * With an argument it is an agreement instead, MPIX_Comm_iagree as programs call it that are written so; the library, or
 * a tool, has to have it.
 * Ends with a barrier and a checked sum in the right order. Prints "ok" when every result is right. */
#include "step.h"

extern int MPIX_Comm_iagree(MPI_Comm, int *, MPI_Request *) __attribute__((weak));
extern void mpix_comm_iagree_(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) __attribute__((weak));
extern void mpix_comm_iagree_f08_(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *) __attribute__((weak));

/* Begins to combine `own` into `both`. */
static void begin(const char *by, int *own, int *both, MPI_Comm comm, MPI_Request *request) {
    MPI_Fint place = MPI_Comm_c2f(comm), begun = 0;
    *both = *own;
    if (!by) MPI_Iallreduce(own, both, 1, MPI_INT, MPI_BAND, comm, request);
    else if (!strcmp(by, "C")) MPIX_Comm_iagree(comm, both, request);
    else if (!strcmp(by, "mpif.h")) mpix_comm_iagree_(&place, both, &begun, &(MPI_Fint){0});
    else mpix_comm_iagree_f08_(&place, both, &begun, NULL);
    if (by && *by == 'm') *request = MPI_Request_f2c(begun);
}

int main(int argc, char **argv) {
    const char *by = argc > 1 ? argv[1] : NULL;
    MPI_Init(&argc, &argv);
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int first = 0; first < size; first++) {
        int own = rank == first ? 11 : 13, both = 0;
        MPI_Request request;
        if (rank == first) begin(by, &own, &both, comm, &request);
        MPI_Barrier(comm);
        if (rank != first) begin(by, &own, &both, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right &= both == 9;
    }
    MPI_Barrier(comm);
    right &= step(comm, 0, 100);
    MPI_Comm_free(&comm);
    return conclude(right);
}
