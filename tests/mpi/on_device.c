/* Collectives on buffers in what device_memory.c serves, of which this program copies in and out.
 *
 * usage: on_device ROUNDS [LATE]: with a path, the runtime is loaded by rank 1 alone before half of the rounds are
 * done, and buffers are the host's. */
#define _GNU_SOURCE
#include "step.h"
#include <dlfcn.h>
#include <sys/mman.h>

#define LONGS 4096
char *device, *device_end;

static void allow(int protection, int late) {
    if (!late) mprotect(device, device_end - device, protection);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1, late = argc > 2, rounds = atoi(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t bytes = 2 * LONGS * sizeof(long);
    char *memory = mmap(NULL, bytes, late ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    if (!late) device = memory, device_end = memory + bytes;
    long *a = (long *)memory, *b = a + LONGS;
    for (int round = 0; round < rounds; round++) {
        int each = 1 + round % 100;
        if (late && rank == 1 && round == rounds / 2 && !dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)) abort();
        for (int which = 0; which < 4; which++) {
            allow(PROT_READ | PROT_WRITE, late);
            for (int i = 0; i < each * size; i++) a[i] = rank * 1000 + i, b[i] = -1;
            allow(PROT_NONE, late);
            if (which == 0) MPI_Allreduce(a, b, each, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            if (which == 1) MPI_Bcast(a, each, MPI_LONG, 1, MPI_COMM_WORLD);
            if (which == 2) MPI_Allgather(a, each, MPI_LONG, b, each, MPI_LONG, MPI_COMM_WORLD);
            if (which == 3) MPI_Alltoall(a, each, MPI_LONG, b, each, MPI_LONG, MPI_COMM_WORLD);
            allow(PROT_READ, late);
            long sum = size * (size - 1) / 2 * 1000;
            for (int i = 0; i < each; i++) {
                if (which == 0) right &= b[i] == sum + size * i;
                if (which == 1) right &= a[i] == 1000 + i;
                for (int r = 0; r < size; r++) {
                    if (which == 2) right &= b[r * each + i] == r * 1000 + i;
                    if (which == 3) right &= b[r * each + i] == r * 1000 + rank * each + i;
                }
            }
        }
    }
    return conclude(right);
}
