/* MPICH only: runs collectives and, after each, reads the library's control variables.
 *
 * usage: control_variables [set]
 * Rank 0 prints a line for every value that a variable had; one line each unless they change. With `set` the program
 * itself changes two of them on the way. */
#include "step.h"

int main(int argc, char **argv) {
    static const char *collectives[] = {"ALLREDUCE", "BCAST", "ALLGATHER", "ALLTOALL", "REDUCE"};
    int provided, rank, right = 1, last[10];
    MPI_T_cvar_handle handles[10];
    char names[10][80];
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int v = 0; v < 10; v++) {
        int index, count;
        snprintf(names[v], sizeof names[v], "MPIR_CVAR_%s_%s", collectives[v / 2], v % 2 ? "DEVICE_COLLECTIVE" : "INTRA_ALGORITHM");
        if (MPI_T_cvar_get_index(names[v], &index) || MPI_T_cvar_handle_alloc(index, NULL, &handles[v], &count)) return 2;
        last[v] = -1;
    }
    for (int k = 0; k < 200; k++) {
        /* Allreduce's algorithm and that of allgather, each twice. */
        int wanted = 2 - k / 150;
        if (argc > 1 && (k == 70 || k == 150)) MPI_T_cvar_write(handles[0], &wanted), MPI_T_cvar_write(handles[4], &wanted);
        right &= step(MPI_COMM_WORLD, k, 100 * (k % 7));
        for (int v = 0; v < 10; v++) {
            int value;
            MPI_T_cvar_read(handles[v], &value);
            if (value != last[v] && rank == 0) printf("%s = %d\n", names[v], value);
            last[v] = value;
        }
    }
    fflush(stdout);
    return conclude(right);
}
