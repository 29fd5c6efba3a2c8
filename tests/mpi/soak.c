/* Collectives by the million on a changing population of communicators: memory and file descriptors
 * stay where they were after the first fifth.
 *
 * usage: soak CALLS
 * Prints "ok" when every result is right and nothing grew. Ids of communicators are shown to come
 * back by the number that is made: libraries have some thousands. */
#include <dirent.h>
#include <unistd.h>

#include "step.h"

enum { POOL = 8, USES = 25, GROWTH_KIB = 4096 };

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = -1;
    if (file) fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_files(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) n++;
    if (folder) closedir(folder);
    return n;
}

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 10000, done = 0, made = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm pool[POOL];
    int right = 1, rank, measured = 0, files = 0;
    long kib = 0;
    uint64_t state = 11;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < POOL; i++) MPI_Comm_dup(MPI_COMM_WORLD, &pool[i]);
    while (done < calls) {
        int at = (int)(next_random(&state) % POOL), how = (int)(next_random(&state) % 2);
        MPI_Comm_free(&pool[at]);
        if (how) MPI_Comm_dup(MPI_COMM_WORLD, &pool[at]);
        else MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &pool[at]);
        made++;
        for (int i = 0; i < USES; i++, done++) {
            int which = (int)(next_random(&state) % 5), count = 1 << (next_random(&state) % 10);
            right &= step(pool[next_random(&state) % POOL], which, count);
        }
        if (!measured && done >= calls / 5) measured = 1, kib = resident_kib(), files = open_files();
    }
    long grown = resident_kib() - kib;
    if (grown > GROWTH_KIB || open_files() != files) {
        right = 0;
        fprintf(stderr, "rank %d: %ld KiB and %d files more after %ld calls on %ld communicators\n", rank, grown,
                open_files() - files, done, made);
    }
    for (int i = 0; i < POOL; i++) MPI_Comm_free(&pool[i]);
    return conclude(right);
}
