/* A host whose clock is two hours ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(id, time);
    if (!code && id == CLOCK_REALTIME) time->tv_sec += 2 * 3600;
    return code;
}
