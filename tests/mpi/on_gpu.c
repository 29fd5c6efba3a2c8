/* Collectives on buffers in the memory of a real device of NVIDIA's, of which this program copies in and out.
 *
 * usage: on_gpu ROUNDS
 * Needs neither headers nor a compiler of CUDA's: the driver is opened where it is. Prints "ok", or "no device: ..." where
 * there is none, or "not aware" where the MPI library does not say that it takes such memory. */
#define _GNU_SOURCE
#include "step.h"
#include <dlfcn.h>
#include <stddef.h>

#define LONGS 65536
enum { ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE, REDUCE_SCATTER_BLOCK, GATHER, SCATTER, SCAN, WAYS };

typedef unsigned long long Address;

static int (*copy_in)(Address, const void *, size_t), (*copy_out)(void *, Address, size_t);

static void *function(void *driver, const char *name) {
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "the driver has no %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return found;
}

static void must(int code, const char *what) {
    if (!code) return;
    fprintf(stderr, "%s: error %d of the driver\n", what, code);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Two buffers on the device; 0 where there is no device. */
static int open_device(Address buffers[2]) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver) return 0;
    int (*init)(unsigned) = (int (*)(unsigned))function(driver, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))function(driver, "cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))function(driver, "cuDevicePrimaryCtxRetain");
    int (*use)(void *) = (int (*)(void *))function(driver, "cuCtxSetCurrent");
    int (*allocate)(Address *, size_t) = (int (*)(Address *, size_t))function(driver, "cuMemAlloc_v2");
    copy_in = (int (*)(Address, const void *, size_t))function(driver, "cuMemcpyHtoD_v2");
    copy_out = (int (*)(void *, Address, size_t))function(driver, "cuMemcpyDtoH_v2");
    int device;
    void *context;
    if (init(0) || get(&device, 0)) return 0;
    must(retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(use(context), "cuCtxSetCurrent");
    for (int i = 0; i < 2; i++) must(allocate(&buffers[i], LONGS * sizeof(long)), "cuMemAlloc");
    return 1;
}

static long a[LONGS], b[LONGS];

/* One collective of `each` longs from one buffer into the other. */
static void call(int which, int each, void *from, void *to) {
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (which) {
    case ALLREDUCE: MPI_Allreduce(from, to, each, MPI_LONG, MPI_SUM, comm); break;
    case BCAST: MPI_Bcast(from, each, MPI_LONG, 1, comm); break;
    case ALLGATHER: MPI_Allgather(from, each, MPI_LONG, to, each, MPI_LONG, comm); break;
    case ALLTOALL: MPI_Alltoall(from, each, MPI_LONG, to, each, MPI_LONG, comm); break;
    case REDUCE: MPI_Reduce(from, to, each, MPI_LONG, MPI_SUM, 1, comm); break;
    case REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(from, to, each, MPI_LONG, MPI_SUM, comm); break;
    case GATHER: MPI_Gather(from, each, MPI_LONG, to, each, MPI_LONG, 1, comm); break;
    case SCATTER: MPI_Scatter(from, each, MPI_LONG, to, each, MPI_LONG, 1, comm); break;
    case SCAN: MPI_Scan(from, to, each, MPI_LONG, MPI_SUM, comm); break;
    }
}

/* Whether what it left is right; element i of rank r was 1000 r + i. */
static int is_right(int which, int each, int rank, int size) {
    long ranks = (long)size * (size - 1) / 2 * 1000, before = (long)rank * (rank + 1) / 2 * 1000;
    int right = 1;
    for (int i = 0; i < each; i++) {
        switch (which) {
        case ALLREDUCE: right &= b[i] == ranks + (long)size * i; break;
        case BCAST: right &= a[i] == 1000 + i; break;
        case REDUCE: right &= rank != 1 || b[i] == ranks + (long)size * i; break;
        case REDUCE_SCATTER_BLOCK: right &= b[i] == ranks + (long)size * (rank * each + i); break;
        case SCATTER: right &= b[i] == 1000 + rank * each + i; break;
        case SCAN: right &= b[i] == before + (long)(rank + 1) * i; break;
        }
        for (int r = 0; r < size; r++) {
            long got = b[r * each + i];
            if (which == ALLGATHER || (which == GATHER && rank == 1)) right &= got == 1000L * r + i;
            if (which == ALLTOALL) right &= got == 1000L * r + rank * each + i;
        }
    }
    if (!right) fprintf(stderr, "rank %d: wrong result of way %d with %d longs\n", rank, which, each);
    return right;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, right = 1, rounds = argc > 1 ? atoi(argv[1]) : 40;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Address buffers[2] = {0, 0};
    const char *lacks = open_device(buffers) ? NULL : "no device: the driver of CUDA finds none";
    int (*aware)(void);
    *(void **)&aware = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    if (!lacks && (!aware || aware() != 1)) lacks = "not aware";
    if (lacks) {
        if (rank == 0) printf("%s\n", lacks);
        MPI_Finalize();
        return 0;
    }
    for (int round = 0; round < rounds; round++) {
        int each = round % 10 == 9 ? LONGS / size : 1 + 7 * (round % 30);
        for (int which = 0; which < WAYS; which++) {
            for (int i = 0; i < each * size; i++) a[i] = rank * 1000 + i, b[i] = -1;
            must(copy_in(buffers[0], a, sizeof a), "cuMemcpyHtoD");
            must(copy_in(buffers[1], b, sizeof b), "cuMemcpyHtoD");
            call(which, each, (void *)buffers[0], (void *)buffers[1]);
            must(copy_out(a, buffers[0], sizeof a), "cuMemcpyDtoH");
            must(copy_out(b, buffers[1], sizeof b), "cuMemcpyDtoH");
            right &= is_right(which, each, rank, size);
        }
    }
    return conclude(right);
}
