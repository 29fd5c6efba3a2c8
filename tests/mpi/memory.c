/* What a job takes of the memory.
 *
 * usage: memory peak MIB      an alltoall whose message has so many MiB, twice, and the most that each rank ever had
 *        memory held N KIB    N communicators alive at once, each with alltoalls of KIB KiB; then all are freed, and
 *                             one more is used. By how much each rank has grown, without what is shared with others
 *                             counted twice, while all are alive and once they are freed
 *        memory roots CALLS   so many broadcasts and reduces of 256 to 511 numbers, from and to each of 8 ranks in turn
 *        memory root CALLS    the same with rank 0 alone as root
 *        memory resident KIB  allreduces, bcasts, allgathers and alltoalls of up to KIB KiB. What the system says that each
 *                             rank has (pages that it shares counted in every rank), behind MPI_Init and in the end
 * Prints "ok" when every result is right, and on stderr "peak", or "alive" and "freed", or "begins" and "ends", with a
 * number of KiB. */
#include "step.h"
#include <unistd.h>

static long kib_of(const char *path, const char *name) {
    char line[256];
    long kib = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) kib = atol(line + strlen(name));
    if (file) fclose(file);
    return kib;
}

/* What the rank has of memory without files, and its part of what is shared. Pages of the libraries' files count for more in
 * it when other jobs on the machine end. */
static long kib_alive(void) {
    return kib_of("/proc/self/smaps_rollup", "Pss_Anon:") + kib_of("/proc/self/smaps_rollup", "Pss_Shmem:");
}

static int alltoall(MPI_Comm comm, unsigned *send, unsigned *recv, long each, unsigned turn) {
    int rank, size, right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (long i = 0; i < each * size; i++) send[i] = (unsigned)(rank * 7919 + i) + turn;
    MPI_Alltoall(send, (int)each, MPI_UNSIGNED, recv, (int)each, MPI_UNSIGNED, comm);
    for (int r = 0; r < size; r++)
        for (long i = 0; i < each; i++)
            right &= recv[r * each + i] == (unsigned)(r * 7919 + rank * each + i) + turn;
    return right;
}

static int resident(long most, unsigned *send, unsigned *recv) {
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    fprintf(stderr, "begins %ld\n", kib_of("/proc/self/smaps_rollup", "Rss:"));
    for (unsigned turn = 0; turn < 3; turn++)
        for (int n = 2; n <= most; n *= 8) {
            for (int i = 0; i < n; i++) send[i] = (unsigned)(rank + i) + turn;
            MPI_Allreduce(send, recv, n, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
            for (int i = 0; i < n; i++) right &= recv[i] == (unsigned)(size * (size - 1) / 2) + (unsigned)size * (turn + (unsigned)i);
            MPI_Bcast(recv, n, MPI_UNSIGNED, (int)turn % size, MPI_COMM_WORLD);
            int each = n / size;
            MPI_Allgather(send, each, MPI_UNSIGNED, recv, each, MPI_UNSIGNED, MPI_COMM_WORLD);
            for (int r = 0; r < size; r++)
                for (int i = 0; i < each; i++) right &= recv[r * each + i] == (unsigned)(r + i) + turn;
            right &= alltoall(MPI_COMM_WORLD, send, recv, each, turn);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(stderr, "ends %ld\n", kib_of("/proc/self/smaps_rollup", "Rss:"));
    MPI_Barrier(MPI_COMM_WORLD);
    return conclude(right);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size, right = 1, held = argc > 3 && !strcmp(argv[1], "held"), n = held ? atoi(argv[2]) : 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long bytes = held ? atol(argv[3]) << 10 : (argc > 2 ? atol(argv[2]) : 1) << 20;
    long each = bytes / size / (long)sizeof(unsigned);
    unsigned *send = calloc((size_t)(each * size), sizeof(unsigned)), *recv = calloc((size_t)(each * size), sizeof(unsigned));
    if (argc > 2 && !strncmp(argv[1], "root", 4)) {
        int apart = strcmp(argv[1], "roots") ? 8 : 1;
        for (int k = 0; k < atoi(argv[2]); k++) {
            right &= step(MPI_COMM_WORLD, 1, 256 + apart * k % 256);
            right &= step(MPI_COMM_WORLD, 4, 256 + apart * k % 256);
        }
        return conclude(right);
    }
    if (argc > 2 && !strcmp(argv[1], "resident")) {
        each = atol(argv[2]) << 10;
        return resident(each / 4, calloc((size_t)each, 1), calloc((size_t)each, 1));
    }
    if (!held) {
        for (unsigned turn = 0; turn < 2; turn++) right &= alltoall(MPI_COMM_WORLD, send, recv, each, turn);
        fprintf(stderr, "peak %ld\n", kib_of("/proc/self/status", "VmHWM:"));
        return conclude(right);
    }
    MPI_Comm *comms = malloc(sizeof(MPI_Comm) * (size_t)(n + 1));
    right &= alltoall(MPI_COMM_WORLD, send, recv, each, 0);
    for (int c = 0; c < n; c++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = kib_alive();
    for (int c = 0; c < n; c++)
        for (unsigned turn = 0; turn < 3; turn++) right &= alltoall(comms[c], send, recv, each, turn);
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(stderr, "alive %ld\n", kib_alive() - before);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int c = 0; c < n; c++) MPI_Comm_free(&comms[c]);
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(stderr, "freed %ld\n", kib_alive() - before);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
    for (unsigned turn = 0; turn < 3; turn++) right &= alltoall(comms[n], send, recv, each, turn);
    MPI_Comm_free(&comms[n]);
    return conclude(right);
}
