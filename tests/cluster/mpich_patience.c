/* Makes Debian's MPICH 4.0 (ch4:ucx) usable with more ranks than cores, and over TCP. `cluster` preloads it in the nodes.
 *
 * 1. MPICH waits by polling UCX and never gives the core away, so on a shared core each message costs a time slice:
 *    4 nodes x 2 ranks on two cores, 8-byte allreduce 36,000 us. Here a poll that finds nothing gives the core away:
 *    72 us under the round-robin scheduler.
 * 2. In MPI_Finalize a rank that is done waits for the others in read() from its process manager, without polling.
 *    A rank that still closes a TCP connection may need its answer and then waits for ever: 9 of 25 jobs hung.
 *    Here such a read polls while it waits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

typedef unsigned progress_function(void *worker);
typedef void destroy_function(void *worker);
typedef ssize_t read_function(int fd, void *buffer, size_t length);

static void *live_worker;

/* Where Python loads MPI, UCX is not among the objects behind this one. */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    void *ucp = found ? NULL : dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    return ucp ? dlsym(ucp, name) : found;
}

unsigned ucp_worker_progress(void *worker)
{
    static progress_function *next; /* a race here stores the same value twice; so below */
    if (!next)
        next = (progress_function *)find("ucp_worker_progress");
    live_worker = worker;
    unsigned events = next(worker);
    if (events == 0)
        sched_yield();
    return events;
}

void ucp_worker_destroy(void *worker)
{
    static destroy_function *next;
    if (!next)
        next = (destroy_function *)find("ucp_worker_destroy");
    live_worker = NULL;
    next(worker);
}

ssize_t read(int fd, void *buffer, size_t length)
{
    static read_function *next;
    if (!next)
        next = (read_function *)dlsym(RTLD_NEXT, "read");
    if (live_worker) {
        const char *manager = getenv("PMI_FD");
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        if (manager && atoi(manager) == fd)
            while (live_worker && poll(&readable, 1, 0) == 0)
                ucp_worker_progress(live_worker);
    }
    return next(fd, buffer, length);
}
