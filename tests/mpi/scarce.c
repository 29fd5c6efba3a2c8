/* Every collective on the world and on a copy of it, where the address space that this process may have is all but used up.
 *
 * usage: scarce KIB ROUNDS; KIB more than is mapped behind MPI_Init may be. Prints "ok" if every result is right. */
#include <sys/resource.h>

#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    int rank, wrong = 0, all = 0;
    MPI_Comm copy;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!file || fscanf(file, "%lu", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 3);
    fclose(file);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * 4096 + strtoul(argv[1], NULL, 10) * 1024;
    if (setrlimit(RLIMIT_AS, &limit)) MPI_Abort(MPI_COMM_WORLD, 4);
    for (int round = 0; round < atoi(argv[2]); round++) {
        for (int which = 0; which < STEPS; which++) {
            wrong |= !step(MPI_COMM_WORLD, which, 1 + round % 7);
            wrong |= !step(copy, which, 1 + round % 7);
        }
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0 && !all) printf("ok\n");
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return all;
}
