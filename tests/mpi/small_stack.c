/* Every collective, on a thread with a stack of KIB KiB.
 *
 * usage: small_stack KIB ROUNDS; prints "ok" if every result is right. */
#include <pthread.h>

#include "step.h"

static int rounds, wrong;

static void *run(void *unused) {
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < STEPS; which++) wrong |= !step(MPI_COMM_WORLD, which, 1 + round % 7);
    return unused;
}

int main(int argc, char **argv) {
    int provided, rank, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    rounds = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, strtoul(argv[1], NULL, 10) * 1024)) MPI_Abort(MPI_COMM_WORLD, 3);
    if (pthread_create(&thread, &attributes, run, NULL)) MPI_Abort(MPI_COMM_WORLD, 4);
    pthread_join(thread, NULL);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0 && !all) printf("ok\n");
    MPI_Finalize();
    return all;
}
