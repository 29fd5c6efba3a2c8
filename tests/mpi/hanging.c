/* A job of which one rank leaves out a collective: the others wait for it until the job is ended.
 *
 * usage: hanging [own | first]
 * Rank 2 leaves out the 21st allreduce; with `first` rank 0 leaves out the first broadcast. Once the others are about to make it, they get SIGUSR2 time and again for
 * two seconds, so that they are in the call at the last. With `own` the program has a handler of its own for the
 * signal, and ends well: it was called on every rank. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 20, RANKS = 64 };
static volatile sig_atomic_t called;

static void handler(int number) { called = number; }

int main(int argc, char **argv) {
    int rank, size, mine = (int)getpid(), processes[RANKS], own = argc > 1 && !strcmp(argv[1], "own");
    int first = argc > 1 && !strcmp(argv[1], "first"), absent = first ? 0 : 2;
    if (own) signal(SIGUSR2, handler);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allgather(&mine, 1, MPI_INT, processes, 1, MPI_INT, MPI_COMM_WORLD);
    double one = 1, all;
    for (int i = 0; i < CALLS; i++) MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (own) {
        raise(SIGUSR2);
        int right = called == SIGUSR2;
        MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
        if (rank == 0) printf(right ? "ok\n" : "wrong\n");
        MPI_Finalize();
        return 0;
    }
    if (rank != absent) {
        MPI_Send(&mine, 1, MPI_INT, absent, 0, MPI_COMM_WORLD);
        if (first) MPI_Bcast(&mine, 1, MPI_INT, absent, MPI_COMM_WORLD);
        else MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        printf("rank %d came back\n", rank);
    } else {
        for (int i = 1; i < size; i++)
            MPI_Recv(&mine, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < size; i++) kill(processes[i], SIGUSR2);
            usleep(50000);
        }
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return 0;
}
