/* An allreduce, a nonblocking barrier, 40 ms of computing, two allreduces; then rank 1 computes for 40 ms, and all meet in
 * a barrier on another communicator.
 *
 * usage: shifts single|multiple
 * The level of threads that is asked for. Prints "ok". */
#include "step.h"

int main(int argc, char **argv) {
    int is_multiple = argc > 1 && !strcmp(argv[1], "multiple"), provided, right = 1, rank;
    MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    right &= step(MPI_COMM_WORLD, 0, 1);
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (double end = MPI_Wtime() + 0.04; MPI_Wtime() < end;) {}
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right &= step(MPI_COMM_WORLD, 0, 1);
    right &= step(MPI_COMM_WORLD, 0, 1);
    for (double end = MPI_Wtime() + 0.04 * (rank == 1); MPI_Wtime() < end;) {}
    MPI_Barrier(other);
    right &= step(MPI_COMM_WORLD, 0, 1);
    MPI_Comm_free(&other);
    return conclude(right);
}
