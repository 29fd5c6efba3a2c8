/* A profiling tool: counts the calls that it sees and writes them to $TOOL_LOG.RANK in MPI_Finalize.
 *
 * It calls the next definition in the chain of tools; with TOOL_PLAIN set it goes straight to the
 * library's PMPI_ function, as most tools do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INIT, FINALIZE, ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV,
    ALLTOALLV, ALLTOALLW, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, BARRIER, SPLIT, DUP, KINDS
};
static const char *names[KINDS] = {
    "init", "finalize", "allreduce", "bcast", "allgather", "alltoall", "reduce", "allgatherv", "gather", "gatherv",
    "scatter", "scatterv", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
    "barrier", "split", "dup"
};
static long seen[KINDS];

static void *find(const char *name) {
    void *next = getenv("TOOL_PLAIN") ? NULL : dlsym(RTLD_NEXT, name + 1);
    return next ? next : dlsym(RTLD_NEXT, name);
}

#define FORWARD(kind, name, types, values)                      \
    int MPI_##name types {                                      \
        static int(*next) types;                                \
        if (!next) *(void **)&next = find("PMPI_" #name);       \
        seen[kind]++;                                           \
        return next values;                                     \
    }

FORWARD(INIT, Init, (int *argc, char ***argv), (argc, argv))
FORWARD(INIT, Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))
FORWARD(ALLREDUCE, Allreduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
FORWARD(BCAST, Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
FORWARD(ALLGATHER, Allgather, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c),
        (s, n, t, r, m, u, c))
FORWARD(ALLTOALL, Alltoall, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c),
        (s, n, t, r, m, u, c))
FORWARD(REDUCE, Reduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),
        (s, r, n, t, o, root, c))
FORWARD(ALLGATHERV, Allgatherv,
        (const void *s, int n, MPI_Datatype t, void *r, const int *m, const int *at, MPI_Datatype u, MPI_Comm c),
        (s, n, t, r, m, at, u, c))
FORWARD(GATHER, Gather, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c),
        (s, n, t, r, m, u, root, c))
FORWARD(GATHERV, Gatherv,
        (const void *s, int n, MPI_Datatype t, void *r, const int *m, const int *at, MPI_Datatype u, int root, MPI_Comm c),
        (s, n, t, r, m, at, u, root, c))
FORWARD(SCATTER, Scatter, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c),
        (s, n, t, r, m, u, root, c))
FORWARD(SCATTERV, Scatterv,
        (const void *s, const int *n, const int *at, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c),
        (s, n, at, t, r, m, u, root, c))
FORWARD(ALLTOALLV, Alltoallv,
        (const void *s, const int *n, const int *from, MPI_Datatype t, void *r, const int *m, const int *to, MPI_Datatype u,
         MPI_Comm c),
        (s, n, from, t, r, m, to, u, c))
FORWARD(ALLTOALLW, Alltoallw,
        (const void *s, const int *n, const int *from, const MPI_Datatype *t, void *r, const int *m, const int *to,
         const MPI_Datatype *u, MPI_Comm c),
        (s, n, from, t, r, m, to, u, c))
FORWARD(REDUCE_SCATTER, Reduce_scatter, (const void *s, void *r, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
        (s, r, n, t, o, c))
FORWARD(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
        (s, r, n, t, o, c))
FORWARD(SCAN, Scan, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
FORWARD(EXSCAN, Exscan, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
FORWARD(BARRIER, Barrier, (MPI_Comm c), (c))
FORWARD(SPLIT, Comm_split, (MPI_Comm c, int color, int rank, MPI_Comm *made), (c, color, rank, made))
FORWARD(DUP, Comm_dup, (MPI_Comm c, MPI_Comm *made), (c, made))

int MPI_Finalize(void) {
    static int (*next)(void);
    if (!next) *(void **)&next = find("PMPI_Finalize");
    seen[FINALIZE]++;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", getenv("TOOL_LOG") ? getenv("TOOL_LOG") : "/dev/null", rank);
    FILE *file = fopen(path, "w");
    if (file) {
        for (int k = 0; k < KINDS; k++) fprintf(file, "%s %ld\n", names[k], seen[k]);
        fclose(file);
    }
    return next();
}
