/* Lists of blocks at absolute addresses: 64-bit displacements reach any address from MPI_BOTTOM, with types that are not
 * derived, too. Even ranks say their blocks so, odd ones from a buffer.
 *
 * usage: absolute ROUNDS
 * Prints "ok" where every result is right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 8

#if MPI_VERSION >= 4
static int rank, size, wrong;

/* A buffer with a block of each rank. */
struct blocks {
    int *held;
    void *start;
    MPI_Count *counts;
    MPI_Aint *places;
};

static struct blocks room(void) {
    struct blocks all = {calloc(COUNT * (size_t)size, sizeof(int)), NULL, malloc(sizeof(MPI_Count) * (size_t)size),
                         malloc(sizeof(MPI_Aint) * (size_t)size)};
    MPI_Aint address;
    MPI_Get_address(all.held, &address);
    for (int r = 0; r < size; r++) {
        all.counts[r] = COUNT;
        all.places[r] = COUNT * (MPI_Aint)r + (rank % 2 ? 0 : address / (MPI_Aint)sizeof(int));
    }
    all.start = rank % 2 ? (void *)all.held : MPI_BOTTOM;
    return all;
}

static void fill(struct blocks all, int from) {
    for (int i = 0; i < COUNT * size; i++) all.held[i] = from < 0 ? -1 : 1000 * from + i / COUNT;
}

static void expect(int holds) { wrong |= !holds; }

static void round_of(struct blocks send, struct blocks recv, int root) {
    fill(send, rank), fill(recv, -1);
    MPI_Alltoallv_c(send.start, send.counts, send.places, MPI_INT, recv.start, recv.counts, recv.places, MPI_INT,
                    MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++) expect(recv.held[i] == 1000 * (i / COUNT) + rank);
    fill(recv, -1);
    MPI_Allgatherv_c(send.held, COUNT, MPI_INT, recv.start, recv.counts, recv.places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++) expect(recv.held[i] == 1000 * (i / COUNT));
    fill(recv, -1);
    MPI_Gatherv_c(send.held, COUNT, MPI_INT, recv.start, recv.counts, recv.places, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < COUNT * size; i++) expect(recv.held[i] == 1000 * (i / COUNT));
    MPI_Scatterv_c(send.start, send.counts, send.places, MPI_INT, recv.held, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) expect(recv.held[i] == 1000 * root + rank);
}
#endif

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
#if MPI_VERSION >= 4
    int any, rounds = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct blocks send = room(), recv = room();
    for (int k = 0; k < rounds; k++) round_of(send, recv, k % size);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) puts("ok");
#else
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) puts("no such functions");
#endif
    MPI_Finalize();
    return 0;
}
