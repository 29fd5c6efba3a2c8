/* Communicators of many ranks, in another order than the world's, and with ranks of another world.
 *
 * usage: wide turned|joined|met CHILDREN
 * Prints "ok" where every result is right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 6

static int wrong;

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s is wrong\n", what);
    wrong = 1;
}

/* What comes from each rank, and from one alone. */
static void use_all(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *all = calloc((size_t)size, sizeof *all);
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0, root = size - 1 - round % size, word = rank == root ? 100 + round : 0;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        expect(sum == size * (size - 1) / 2, "the sum");
        MPI_Bcast(&word, 1, MPI_INT, root, comm);
        expect(word == 100 + round, "the broadcast");
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
        for (int r = 0; r < size; r++) expect(all[r] == r, "the list");
    }
    free(all);
}

/* The world's ranks from the last one down. */
static void turned(void) {
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    use_all(comm);
    MPI_Comm_free(&comm);
}

/* This world's and another's, which was started by it, or started it. */
static void join(MPI_Comm between, int high) {
    MPI_Comm merged;
    MPI_Intercomm_merge(between, high, &merged);
    use_all(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
}

static void spawn(MPI_Comm parents, const char *program, int children) {
    char *nothing[] = {NULL};
    MPI_Comm between;
    MPI_Comm_spawn(program, nothing, children, MPI_INFO_NULL, 0, parents, &between, MPI_ERRCODES_IGNORE);
    join(between, 0);
}

int main(int argc, char **argv) {
    MPI_Comm parents;
    int rank, any = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    const char *way = argc > 1 ? argv[1] : "", *children = argc > 2 ? argv[2] : "0";
    if (parents != MPI_COMM_NULL) join(parents, 1);
    if (!strcmp(way, "joined")) spawn(MPI_COMM_WORLD, argv[0], atoi(children));
    /* The others set up a communicator with one that has met others. */
    if (!strcmp(way, "met") && rank == 1) spawn(MPI_COMM_SELF, argv[0], atoi(children));
    turned();
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any && argc > 1) puts("ok");
    MPI_Finalize();
    return any;
}
