/* A tool by which signals interrupt a rank's first two reservations of memory for a segment: it says so each time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/types.h>

int posix_fallocate(int file, off_t offset, off_t bytes) {
    static int calls;
    int (*real)(int, off_t, off_t), started;
    *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
    if (MPI_Initialized(&started) == MPI_SUCCESS && started && calls++ < 2) {
        fputs("interrupted\n", stderr);
        return EINTR;
    }
    return real(file, offset, bytes);
}
