/* A clock that goes thirty times as fast for the shim, and for nobody else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#define FASTER 30

int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*next)(clockid_t, struct timespec *);
    static long long begun;
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(id, time);
    Dl_info caller;
    if (code || id != CLOCK_MONOTONIC) return code;
    if (!dladdr(__builtin_return_address(0), &caller) || !strstr(caller.dli_fname, "libcolltune")) return code;
    long long now = time->tv_sec * 1000000000ll + time->tv_nsec;
    if (!begun) begun = now;
    now = begun + FASTER * (now - begun);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}
