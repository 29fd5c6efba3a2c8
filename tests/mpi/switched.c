/* A job that somebody switches off while it runs.
 *
 * usage: switched BEFORE SECONDS create|remove PATH
 * 8-byte allreduces on the world, on the half of it that a rank belongs to, and on a communicator that comes late, a
 * millisecond apart. After so many rank 0 creates PATH, or renames it to PATH.gone, and all go on for so many seconds.
 * Prints "ok". */
#include "step.h"
#include <fcntl.h>
#include <unistd.h>

static int act(const char *what, const char *path) {
    char gone[4096];
    if (strcmp(what, "create") == 0) {
        int file = open(path, O_WRONLY | O_CREAT, 0644);
        if (file < 0 || write(file, "it hangs\n", 9) != 9) return 0;
        return close(file) == 0;
    }
    snprintf(gone, sizeof gone, "%s.gone", path);
    return rename(path, gone) == 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) return 2;
    int before = atoi(argv[1]), right = 1, rank, size;
    double seconds = atof(argv[2]), began = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, late = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    for (int k = 0, over = 0; !over; k++) {
        right &= step(MPI_COMM_WORLD, 0, 1);
        right &= step(half, 0, 1);
        if (late != MPI_COMM_NULL) right &= step(late, 0, 1);
        if (k == before) {
            if (rank == 0) right &= act(argv[3], argv[4]);
            began = MPI_Wtime();
        }
        /* No tuned call: what ends the loop is no business of the tuner's. */
        if (rank == 0) over = k > before && MPI_Wtime() - began > seconds;
        for (int other = 1; rank == 0 && other < size; other++)
            MPI_Send(&over, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        if (rank != 0) MPI_Recv(&over, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int comes = k > before && late == MPI_COMM_NULL && MPI_Wtime() - began > seconds / 2;
        if (rank == 0)
            for (int other = 1; other < size; other++) MPI_Send(&comes, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(&comes, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (comes) MPI_Comm_dup(MPI_COMM_WORLD, &late);
        usleep(1000);
    }
    if (late != MPI_COMM_NULL) MPI_Comm_free(&late);
    MPI_Comm_free(&half);
    return conclude(right);
}
