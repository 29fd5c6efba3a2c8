/* A tool on whose rank 1 memory for a segment cannot be reserved. */
#include <errno.h>
#include <mpi.h>
#include <sys/types.h>

int posix_fallocate(int file, off_t offset, off_t bytes) {
    int rank, started;
    (void)file, (void)offset, (void)bytes;
    if (MPI_Initialized(&started) == MPI_SUCCESS && started && MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS
        && rank == 1)
        return ENOSPC;
    return 0;
}
