/* Calls for which variants are left out, each for one cause.
 *
 * usage: left_out CALLS [world|multiple|between|short|alone]
 * CALLS sums of a number: on all ranks, where threads may call at once, between the first rank and the others, on each
 * of four duplicates, or by each rank alone. Prints "ok" when every sum is right. */
#include "step.h"

static int sums(MPI_Comm comm, int calls, double expected) {
    int right = 1;
    for (int k = 0; k < calls; k++) {
        double one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        right &= sum == expected;
    }
    return right;
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[2] : "world";
    int calls = atoi(argv[1]), multiple = !strcmp(how, "multiple"), provided, rank, size, right = 1;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(how, "between")) {
        MPI_Comm group, between;
        MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &group);
        MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 7, &between);
        right = sums(between, calls, rank > 0 ? 1 : size - 1);
        MPI_Comm_free(&between);
        MPI_Comm_free(&group);
    } else if (!strcmp(how, "short")) {
        for (int c = 0; c < 4; c++) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            right &= sums(comm, calls, size);
            if (c % 2) MPI_Comm_free(&comm);
        }
    } else if (!strcmp(how, "alone")) {
        right = sums(MPI_COMM_SELF, calls, 1);
    } else {
        right = sums(MPI_COMM_WORLD, calls, size);
    }
    return conclude(right);
}
