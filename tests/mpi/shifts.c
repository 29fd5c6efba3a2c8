/* An allreduce, a nonblocking barrier, 40 ms of computing, an allreduce.
 *
 * usage: shifts single|multiple
 * The level of threads that is asked for. Prints "ok". */
#include "step.h"

int main(int argc, char **argv) {
    int is_multiple = argc > 1 && !strcmp(argv[1], "multiple"), provided, right = 1;
    MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    right &= step(MPI_COMM_WORLD, 0, 1);
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (double end = MPI_Wtime() + 0.04; MPI_Wtime() < end;) {}
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right &= step(MPI_COMM_WORLD, 0, 1);
    right &= step(MPI_COMM_WORLD, 0, 1);
    return conclude(right);
}
