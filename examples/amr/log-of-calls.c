/* A profiling tool for calls-of-miniamr: each rank writes its collective calls to $CALLS_LOG.RANK, one
 * line each: kind, bytes of an element, elements, operation, ranks of the communicator. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *log_of_calls;

static const char *name(MPI_Op op) {
    return op == MPI_SUM ? "sum" : op == MPI_MIN ? "min" : op == MPI_MAX ? "max" : "other";
}

static void note(const char *kind, MPI_Datatype type, int n, const char *op, MPI_Comm comm) {
    int size = 0, n_ranks;
    if (!log_of_calls) {
        char path[4096];
        int rank;
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(path, sizeof path, "%s.%d", getenv("CALLS_LOG"), rank);
        if (!(log_of_calls = fopen(path, "w"))) PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
    PMPI_Comm_size(comm, &n_ranks);
    fprintf(log_of_calls, "%s %d x %d %s of %d\n", kind, size, n, op, n_ranks);
}

int MPI_Allreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
    note("allreduce", t, n, name(op), c);
    return PMPI_Allreduce(s, r, n, t, op, c);
}

int MPI_Reduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c) {
    note("reduce", t, n, name(op), c);
    return PMPI_Reduce(s, r, n, t, op, root, c);
}

int MPI_Scan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
    note("scan", t, n, name(op), c);
    return PMPI_Scan(s, r, n, t, op, c);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c) {
    note("bcast", t, n, "-", c);
    return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Alltoall(const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c) {
    note("alltoall", t, n, "-", c);
    return PMPI_Alltoall(s, n, t, r, m, u, c);
}

int MPI_Allgather(const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c) {
    note("allgather", t, n, "-", c);
    return PMPI_Allgather(s, n, t, r, m, u, c);
}

int MPI_Barrier(MPI_Comm c) {
    note("barrier", MPI_DATATYPE_NULL, 0, "-", c);
    return PMPI_Barrier(c);
}

int MPI_Comm_split(MPI_Comm c, int colour, int key, MPI_Comm *made) {
    note("split", MPI_DATATYPE_NULL, 0, "-", c);
    return PMPI_Comm_split(c, colour, key, made);
}

int MPI_Finalize(void) {
    if (log_of_calls && fclose(log_of_calls)) PMPI_Abort(MPI_COMM_WORLD, 1);
    return PMPI_Finalize();
}
