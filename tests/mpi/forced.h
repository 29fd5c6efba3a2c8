/* What programs that a test runs once for each list of forced variants need not run again and again. */
#include <stdlib.h>
#include <string.h>

/* Whether COLLTUNE_FORCE names a collective, or there is none. */
static inline int is_forced(const char *collective) {
    const char *forced = getenv("COLLTUNE_FORCE");
    if (!forced) return 1;
    for (const char *at = forced; (at = strstr(at, collective)); at++)
        if ((at == forced || at[-1] == ';') && at[strlen(collective)] == '=') return 1;
    return 0;
}
