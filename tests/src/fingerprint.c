/* Shows which algorithm runs a collective, from outside: messages and bytes that this rank sends to
 * each other one, and the rounding of a sum, whose order the algorithm decides.
 *
 *     fingerprint COLLECTIVE BYTES [BYTES ...]      (message_bytes as colltune means it)
 *
 * Rank 0 prints one line for each size: the size, the sum's bits, then messages:bytes from each rank
 * to each other one. Messages are counted in Open MPI's table of point-to-point functions, in
 * MPICH by the preloaded fingerprint_ucx.c; started without it the program ends with an error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#ifdef OPEN_MPI
/* Open MPI's table of point-to-point functions, as in 4.1 and 5.0: the 11th starts a send, the 12th
 * does a whole one. Collectives send through it, so counting there sees every message of theirs. */
typedef int start_send(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm, void *);
typedef int whole_send(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm);
static start_send *next_start;
static whole_send *next_whole;
static uint64_t sent[2][1024];

static void count(size_t elements, MPI_Datatype type, int to, MPI_Comm comm)
{
    int type_size;
    PMPI_Type_size(type, &type_size);
    if (comm == MPI_COMM_WORLD && to >= 0 && to < 1024) {
        sent[0][to]++;
        sent[1][to] += elements * (size_t) type_size;
    }
}

static int count_start(const void *buffer, size_t n, MPI_Datatype type, int to, int tag, int mode, MPI_Comm comm, void *request)
{
    count(n, type, to, comm);
    return next_start(buffer, n, type, to, tag, mode, comm, request);
}

static int count_whole(const void *buffer, size_t n, MPI_Datatype type, int to, int tag, int mode, MPI_Comm comm)
{
    count(n, type, to, comm);
    return next_whole(buffer, n, type, to, tag, mode, comm);
}

static void open_counters(void)
{
    void **table = dlsym(RTLD_DEFAULT, "mca_pml");
    if (!table)
        MPI_Abort(MPI_COMM_WORLD, 3);
    next_start = (start_send *) table[10];
    next_whole = (whole_send *) table[11];
    table[10] = (void *) count_start;
    table[11] = (void *) count_whole;
}

static void read_counters(uint64_t *messages, uint64_t *bytes)
{
    memcpy(messages, sent[0], size * sizeof *messages);
    memcpy(bytes, sent[1], size * sizeof *bytes);
}
#else
static void (*foreign)(uint64_t *messages, uint64_t *bytes);

static void open_counters(void)
{
    foreign = (void (*)(uint64_t *, uint64_t *)) dlsym(RTLD_DEFAULT, "fingerprint_counters");
    if (!foreign)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The sum over all peers stands in the first place. */
static void read_counters(uint64_t *messages, uint64_t *bytes)
{
    memset(messages, 0, size * sizeof *messages);
    memset(bytes, 0, size * sizeof *bytes);
    foreign(messages, bytes);
}
#endif

static void run(const char *name, size_t bytes, void *send, void *recv)
{
    int n = (int) bytes, doubles = (int) (bytes / sizeof(double));
    if (!strcmp(name, "allreduce"))
        MPI_Allreduce(send, recv, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(send, recv, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    else if (!strcmp(name, "bcast"))
        MPI_Bcast(recv, n, MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(send, n, MPI_BYTE, recv, n, MPI_BYTE, MPI_COMM_WORLD);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(send, n, MPI_BYTE, recv, n, MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    open_counters();
    uint64_t *before = calloc(4 * size, sizeof *before), *after = before + 2 * size;
    uint64_t *all = calloc(2 * size * size, sizeof *all);
    for (int arg = 2; arg < argc; arg++) {
        size_t bytes = strtoull(argv[arg], NULL, 0);
        char *send = calloc(bytes * size + 8, 1), *recv = calloc(bytes * size + 8, 1);
        if (!strcmp(argv[1], "allreduce") || !strcmp(argv[1], "reduce"))
            for (size_t i = 0; i < bytes / sizeof(double); i++) {
                /* Large and small terms of both signs: nearly every order rounds to other bits. */
                uint64_t x = (i * 64 + rank + 1) * UINT64_C(6364136223846793005);
                x ^= x >> 29, x *= UINT64_C(0x9e3779b97f4a7c15), x ^= x >> 32;
                ((double *) send)[i] = ((double) (x % 2000003) - 1000001.0) * ((x >> 40) % 3 ? 1e-3 : 1e9) / 3.0;
            }
        run(argv[1], bytes, send, recv); /* connections and communicators are made at first use */
        MPI_Barrier(MPI_COMM_WORLD);
        read_counters(before, before + size);
        run(argv[1], bytes, send, recv);
        read_counters(after, after + size);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 2 * size; i++)
            before[i] = after[i] - before[i];
        MPI_Gather(before, 2 * size, MPI_UINT64_T, all, 2 * size, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            uint64_t bits = UINT64_C(0xcbf29ce484222325);
            for (size_t i = 0; i < bytes / 8; i++)
                bits = (bits ^ ((uint64_t *) recv)[i]) * UINT64_C(0x100000001b3);
            printf("%zu %016llx", bytes, (unsigned long long) bits);
            for (int from = 0; from < size; from++)
                for (int to = 0; to < size; to++)
                    printf(" %llu:%llu", (unsigned long long) all[from * 2 * size + to],
                           (unsigned long long) all[from * 2 * size + size + to]);
            printf("\n");
        }
        free(send);
        free(recv);
    }
    free(all);
    free(before);
    MPI_Finalize();
    return 0;
}
