/* Memory that tells who touches what lies beside it.
 *
 * A place for a buffer has pages in front and behind that nobody may touch. Who does is noted, and goes on. Blocks of
 * malloc, those of the MPI library among them, have marks in front and behind, which are looked at when they are freed. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MARK = 256, PAGES_BYTES = 1 << 20, FILLED_MOST = 16 << 20 };
static const uint64_t BLOCK_WORD = 0x6b636f6c62646e75u;

/* What was noticed since `noticed` was last cleared. */
static struct {
    int read_outside, written_outside, heap_before, heap_behind;
} noticed;

/* ---- malloc ---- */

extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

typedef struct {
    void *base;
    size_t bytes;
    uint64_t word;
} Block;

static Block *block_of(void *memory) { return (Block *)((char *)memory - MARK); }

void *memalign(size_t alignment, size_t bytes) {
    size_t before = alignment > MARK ? alignment : MARK;
    char *base = __libc_memalign(alignment > 16 ? alignment : 16, before + bytes + MARK);
    if (!base) return NULL;
    char *memory = base + before;
    *block_of(memory) = (Block){base, bytes, BLOCK_WORD};
    memset(memory - MARK + sizeof(Block), 0x5a, MARK - sizeof(Block));
    /* What nobody has written is wrong wherever it is used. MPICH asks for gigabytes of which it touches little, for
     * elements that overlap: not all of that is filled, or the ranks of a node run out of memory. */
    memset(memory, 0xa5, bytes < FILLED_MOST ? bytes : FILLED_MOST);
    memset(memory + bytes, 0x5a, MARK);
    return memory;
}
void *malloc(size_t bytes) { return memalign(16, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void *valloc(size_t bytes) { return memalign(4096, bytes); }
int posix_memalign(void **result, size_t alignment, size_t bytes) {
    *result = memalign(alignment, bytes);
    return *result ? 0 : ENOMEM;
}
void free(void *memory) {
    if (!memory) return;
    Block block = *block_of(memory);
    if (block.word != BLOCK_WORD) {
        __libc_free(memory);
        return;
    }
    char *bytes = memory;
    for (size_t i = sizeof(Block); i < MARK; i++) noticed.heap_before |= bytes[(ptrdiff_t)i - MARK] != 0x5a;
    for (size_t i = 0; i < MARK; i++) noticed.heap_behind |= bytes[block.bytes + i] != 0x5a;
    block_of(memory)->word = 0;
    __libc_free(block.base);
}
size_t malloc_usable_size(void *memory) { return memory ? block_of(memory)->bytes : 0; }
void *calloc(size_t n, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) return NULL;
    void *memory = malloc(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}
void *realloc(void *memory, size_t bytes) {
    void *other = malloc(bytes);
    if (!memory || !other) return other;
    size_t had = block_of(memory)->bytes;
    memcpy(other, memory, had < bytes ? had : bytes);
    free(memory);
    return other;
}

/* ---- Places ---- */

typedef struct {
    char *front; /* the forbidden pages in front; the place follows them, then forbidden ones again */
    size_t bytes;
} Place;

enum { PLACES_MOST = 4 };
static Place places[PLACES_MOST];
static int n_places;
static char doing[256]; /* what the program does, for whoever finds it dead */

static void protect(const Place *place) {
    mprotect(place->front, PAGES_BYTES, PROT_NONE);
    mprotect(place->front + PAGES_BYTES + place->bytes, PAGES_BYTES, PROT_NONE);
}

static void say_and_die(const char *why) {
    (void)!write(2, why, strlen(why));
    (void)!write(2, doing, strlen(doing));
    (void)!write(2, "\n", 1);
    _exit(3);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    for (int i = 0; i < n_places; i++) {
        char *at = info->si_addr, *front = places[i].front, *behind = front + PAGES_BYTES + places[i].bytes;
        char *pages = at >= front && at < front + PAGES_BYTES ? front : at >= behind && at < behind + PAGES_BYTES ? behind : NULL;
        if (!pages) continue;
        if (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) noticed.written_outside = 1;
        else noticed.read_outside = 1;
        mprotect(pages, PAGES_BYTES, PROT_READ | PROT_WRITE);
        return;
    }
    say_and_die("died: ");
}
static void on_abort(int signal) {
    (void)signal;
    say_and_die("aborted: ");
}
static void on_alarm(int signal) {
    (void)signal;
    say_and_die("hung: ");
}

/* Set once the program may end; libraries leave by exit() where something of theirs does not hold. */
static int may_end;
static void on_exit_of_library(void) {
    if (!may_end) say_and_die("left: ");
}

static void watch(void) {
    atexit(on_exit_of_library);
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGBUS, &fault, NULL);
    signal(SIGABRT, on_abort);
    signal(SIGFPE, on_abort);
    signal(SIGALRM, on_alarm);
}

static Place *new_place(size_t bytes) {
    Place *place = &places[n_places++];
    place->bytes = bytes;
    place->front = mmap(NULL, bytes + 2 * PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    protect(place);
    return place;
}
