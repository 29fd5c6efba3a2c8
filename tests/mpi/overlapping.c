/* overlapping VALUE LOG [STEPS LONGS MICROSECONDS]: nonblocking broadcasts and sums with computing between.
 * Rank 0 adds to LOG what the library says is the algorithm of its broadcasts, which all ranks have to have. In the short form
 * the ranks sleep where it is not VALUE. */
#include <unistd.h>

#include "control.h"
#include "step.h"

#ifdef MPICH_VERSION
#define NAME "MPIR_CVAR_IBCAST_INTRA_ALGORITHM"
#else
#define NAME "coll_libnbc_ibcast_algorithm"
#endif

int main(int argc, char **argv) {
    static long told[STEP_MAX], sent[STEP_MAX], sums[STEP_MAX];
    int provided, rank, size, right = 1;
    char value[256] = "", of_root[256];
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || !control(NAME, value)) return 2;
    memcpy(of_root, value, sizeof value);
    MPI_Bcast(of_root, sizeof of_root, MPI_CHAR, 0, MPI_COMM_WORLD);
    right &= strcmp(of_root, value) == 0;
    if (rank == 0) {
        FILE *log = fopen(argv[2], "a");
        if (!log || fprintf(log, "%s\n", value) < 0 || fclose(log)) return 2;
    }
    int steps = argc > 5 ? atoi(argv[3]) : 300, n = argc > 5 ? atoi(argv[4]) % STEP_MAX : 8;
    double compute = argc > 5 ? atoi(argv[5]) * 1e-6 : 0;
    for (int k = 0; k < steps; k++) {
        MPI_Request requests[2];
        for (int i = 0; i < n; i++) told[i] = rank == 0 ? k + i : -1, sent[i] = rank + i;
        MPI_Ibcast(told, n, MPI_LONG, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(sent, sums, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        for (double until = MPI_Wtime() + compute; MPI_Wtime() < until;) continue;
        for (int i = 0; i < 2; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) right &= told[i] == k + i && sums[i] == size * (size - 1L) / 2 + (long)size * i;
    }
    if (argc < 6 && strcmp(value, argv[1])) usleep(900000);
    return conclude(right);
}
