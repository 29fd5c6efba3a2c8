// paused MILLISECONDS LOG [FAILS]: rank 0 adds MILLISECONDS to LOG, and all ranks sleep for so long between two barriers; it fails
// with exit code 7 where FAILS is the same word.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3) return 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *log = fopen(argv[2], "a");
        if (!log || fprintf(log, "%s\n", argv[1]) < 0 || fclose(log)) return 2;
    }
    usleep(1000 * atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return argc > 3 && !strcmp(argv[3], argv[1]) ? 7 : 0;
}
