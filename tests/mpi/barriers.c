/* Nobody leaves a barrier before everybody has come: ranks count themselves in memory that they share.
 *
 * usage: barriers ROUNDS
 * Needs all ranks on one machine, whatever they say of it. Prints "ok" when every count is right. */
#include "step.h"
#include <stdatomic.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 100, rank, size, unit, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win window;
    MPI_Aint bytes;
    atomic_long *count;
    MPI_Win_allocate_shared(rank ? 0 : sizeof *count, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &count);
    if (rank == 0) atomic_store(count, 0);
    long one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < rounds; k++) {
        /* Another rank is late each time. */
        for (volatile int wait = rank == k % size ? 20000 : 0; wait > 0; wait--) {}
        atomic_fetch_add(count, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        right &= atomic_load(count) >= (long)size * (k + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        right &= atomic_load(count) <= (long)size * (k + 2);
    }
    MPI_Win_free(&window);
    return conclude(right);
}
