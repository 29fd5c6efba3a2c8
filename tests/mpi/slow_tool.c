/* A tool behind which one way to an allreduce is slow: SLOW=default: the library's own choice, which goes through the
 * tool, takes forty barriers more, so that it is seen where ranks wait for processors, too. SLOW=asleep: it sleeps for
 * ten milliseconds first, longer than a rank usually waits for a processor. SLOW=messages: each message of a schedule of
 * ours sleeps for one. */
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

static void be_slow(MPI_Comm comm) {
    for (int k = 0; k < 40; k++) PMPI_Barrier(comm);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (is_slow("default")) be_slow(comm);
    if (is_slow("asleep")) usleep(10000);
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int PMPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    int (*real)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Isend");
    if (is_slow("messages")) usleep(1000);
    return real(data, count, type, to, tag, comm, request);
}
