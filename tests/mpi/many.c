/* Very many communicators.
 *
 * usage: many alive N CALLS   N duplicates, alive at once, each with CALLS collectives, twice
 *        many loop N CALLS    N times: duplicate, CALLS collectives, free
 * Prints how many could be made, and "ok" when every result is right. After a loop every rank
 * prints on stderr by how many KiB it grew in the last four fifths. */
#include "step.h"
#include <unistd.h>

static long resident_kib(void) {
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
        fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 2 ? atoi(argv[2]) : 10, calls = argc > 3 ? atoi(argv[3]) : 10, right = 1, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && !strcmp(argv[1], "alive")) {
        MPI_Comm *comms = malloc(sizeof(MPI_Comm) * (size_t)n);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int made = 0;
        while (made < n && MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]) == MPI_SUCCESS) {
            for (int k = 0; k < calls; k++) right &= step(comms[made], k, 5);
            made++;
        }
        for (int c = 0; c < made; c++)
            for (int k = 0; k < calls; k++) right &= step(comms[c], k, 300);
        if (rank == 0) printf("%d alive\n", made);
        for (int c = 0; c < made; c++) MPI_Comm_free(&comms[c]);
        free(comms);
        return conclude(right);
    }
    long before = 0;
    for (int c = 0; c < n; c++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int k = 0; k < calls; k++) right &= step(comm, k, 5);
        MPI_Comm_free(&comm);
        if (c == n / 5) before = resident_kib();
    }
    fprintf(stderr, "grew %ld\n", resident_kib() - before);
    return conclude(right);
}
