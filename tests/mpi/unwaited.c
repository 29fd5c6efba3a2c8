/* A message that needs its sender's help goes on although the sender calls nothing but collectives and
 * comes last to each of them, so that it need not wait in any. And what was completed before a barrier
 * is seen behind it at the first look.
 *
 * usage: unwaited COLLECTIVE,... LONGS ...
 * A collective is given by its place in the list of step.h.
 * Prints "ok" when every message came and every result is right. */
#include <unistd.h>

#include "step.h"

enum { BIG = 1 << 15, CALLS = 400, EPOCHS = 200 };

/* Whether the message of rank 0 comes while it calls this collective. */
static int comes(int rank, int which, int count) {
    static long out[BIG], in[BIG];
    int right = 1, come = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Isend(out, BIG, MPI_LONG, 1, 5, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Irecv(in, BIG, MPI_LONG, 0, 5, MPI_COMM_WORLD, &request);
    for (int call = 0; call < CALLS; call++) {
        if (rank == 0) usleep(20);
        right &= step(MPI_COMM_WORLD, which, count);
        if (rank == 1) MPI_Test(&request, &come, MPI_STATUS_IGNORE);
    }
    if (!come) fprintf(stderr, "no message during %d calls of collective %d, %d elements\n", CALLS, which, count);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return right & come;
}

/* Whether rank 1 sees at its first look behind a barrier that rank 0 completed its accesses before. */
static int is_seen(int rank, int which) {
    int seen = 1;
    MPI_Win window;
    MPI_Group world, other;
    MPI_Win_create(MPI_BOTTOM, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){1 - rank}, &other);
    for (int epoch = 0; epoch < EPOCHS && rank < 2; epoch++) {
        if (rank == 1) MPI_Win_post(other, 0, window);
        if (rank == 0) MPI_Win_start(other, 0, window), MPI_Win_complete(window);
        step(MPI_COMM_WORLD, which, 0);
        int flag = 1;
        if (rank == 1) MPI_Win_test(window, &flag);
        if (rank == 1 && !flag) seen = 0, MPI_Win_wait(window);
    }
    if (!seen) fprintf(stderr, "an epoch completed before a barrier was not seen behind it\n");
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Win_free(&window);
    return seen;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
        int which = atoi(name);
        for (int i = 2; i < argc; i++) right &= comes(rank, which, atoi(argv[i]));
        if (which == STEPS - 1) right &= is_seen(rank, which);
    }
    return conclude(right);
}
