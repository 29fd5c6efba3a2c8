/* A tool behind which one way to an allreduce is slow: SLOW=default, the library's own choice, which goes through the
 * tool; SLOW=reduce, what begins with a reduce of the library's. Slow is forty barriers, so that it is seen where
 * ranks wait for processors, too. SLOW=asleep, the library's own choice again, which sleeps for a millisecond first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_slow(const char *where) {
    const char *slow = getenv("SLOW");
    return slow && !strcmp(slow, where);
}

static void be_slow(const char *where, MPI_Comm comm) {
    if (!is_slow(where)) return;
    for (int k = 0; k < 40; k++) PMPI_Barrier(comm);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    be_slow("default", comm);
    if (is_slow("asleep")) usleep(1000);
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int PMPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Reduce");
    be_slow("reduce", comm);
    return real(send, receive, count, type, op, root, comm);
}
