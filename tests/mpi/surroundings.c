/* What programs do around their collectives: other ways to start and end, threads, children, tools.
 *
 * usage: surroundings spawn|session|beside|threads|meanwhile|numbers|elsewhere
 *        surroundings WAY...   of disconnect, children, directly, errors, freed, copied, barriers, crossed, between
 * Rank 0 prints what the library says, and of several ways the name of each before it begins; it ends with "ok" when
 * every result is right. */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step.h"

static char *before_main;

/* Runs before main, when libraries may not be ready for much. */
__attribute__((constructor)) static void early(void) {
    setenv("SURROUNDINGS", "set", 1);
    before_main = getenv("SURROUNDINGS");
}

static int steps(MPI_Comm comm, int rounds) {
    int right = 1;
    for (int i = 0; i < rounds * STEPS; i++) right &= step(comm, i, 1 + i % 50);
    return right;
}

/* Collectives with the other group of an intercommunicator. */
static int across(MPI_Comm inter, int is_parent) {
    int rank, theirs, right = 1;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &theirs);
    for (int i = 0; i < 12; i++) {
        int mine = is_parent ? 1 : 100, sum = 0, word = i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
        right &= sum == theirs * (is_parent ? 100 : 1);
        if (!is_parent) word = -1;
        MPI_Bcast(&word, 1, MPI_INT, is_parent ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter);
        right &= word == i;
        MPI_Barrier(inter);
    }
    return right;
}

static int disconnect(void) {
    int right = 1;
    for (int i = 0; i < 5; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        right &= steps(comm, 1);
        MPI_Comm_disconnect(&comm);
        right &= comm == MPI_COMM_NULL;
    }
    return right;
}

static int spawn(const char *program) {
    MPI_Comm inter, merged;
    char *arguments[] = {"spawned", NULL};
    int right = steps(MPI_COMM_WORLD, 1) & disconnect(), all;
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    right &= across(inter, 1);
    MPI_Intercomm_merge(inter, 0, &merged);
    right &= steps(merged, 2);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    return all & steps(MPI_COMM_WORLD, 1);
}

static int spawned(void) {
    MPI_Comm inter, merged;
    MPI_Comm_get_parent(&inter);
    int right = steps(MPI_COMM_WORLD, 1) & across(inter, 0), all;
    MPI_Intercomm_merge(inter, 1, &merged);
    right &= steps(merged, 2);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    return right;
}

static void *works(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument;
    int rank, size;
    long right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 200; i++) {
        long one[40], sums[40], word = rank == i % size ? i : -1, all[STEP_RANKS];
        for (int k = 0; k < 40; k++) one[k] = rank + k;
        MPI_Allreduce(one, sums, 1 + i % 40, MPI_LONG, MPI_SUM, comm);
        right &= sums[i % 40] == (long)size * (size - 1) / 2 + (long)size * (i % 40);
        MPI_Bcast(&word, 1, MPI_LONG, i % size, comm);
        right &= word == i;
        MPI_Allgather(&one[1], 1, MPI_LONG, all, 1, MPI_LONG, comm);
        right &= all[size - 1] == size;
        MPI_Barrier(comm);
    }
    return (void *)right;
}

static int threads(void) {
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    MPI_Comm comms[THREADS];
    int right = 1;
    for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, works, &comms[t]);
    for (int t = 0; t < THREADS; t++) {
        void *result;
        pthread_join(thread[t], &result);
        right &= result != NULL;
        MPI_Comm_free(&comms[t]);
    }
    return right;
}

/* Children of a rank inherit its environment, and have no MPI. */
static int children(void) {
    int right = 1;
    for (int i = 0; i < 3; i++) {
        right &= steps(MPI_COMM_WORLD, 1);
        pid_t child = fork();
        if (child == 0) {
            execlp("sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        right &= WIFEXITED(status) && WEXITSTATUS(status) == 7;
        right &= system("true") == 0;
    }
    return right & steps(MPI_COMM_WORLD, 1);
}

/* The library's own names among those that tools catch. */
static int directly(void) {
    int rank, size, right = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 40; i++) {
        int mine = rank + i, sums[2];
        PMPI_Allreduce(&mine, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        right &= sums[0] == sums[1] && sums[0] == size * i + size * (size - 1) / 2;
        PMPI_Bcast(&mine, 1, MPI_INT, i % size, MPI_COMM_WORLD);
        MPI_Bcast(&sums[0], 1, MPI_INT, i % size, MPI_COMM_WORLD);
        right &= mine == i % size + i;
    }
    return right;
}

/* What the tools' interface says of the library: how many variables, and the values of those of collectives. */
static int numbers(int rank) {
    int n = 0, n_performance = 0;
    MPI_T_cvar_get_num(&n);
    MPI_T_pvar_get_num(&n_performance);
    if (rank == 0) printf("%d control variables, %d performance variables\n", n, n_performance);
    for (int i = 0; i < n; i++) {
        char name[256];
        int name_length = sizeof name, verbosity, bind, scope, count = 0, value[64] = {0};
        MPI_Datatype type;
        if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, NULL, NULL, NULL, &bind, &scope)) continue;
        if (type != MPI_INT || (!strstr(name, "coll") && !strstr(name, "ALGORITHM"))) continue;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_handle_alloc(i, NULL, &handle, &count)) continue;
        if (count == 1 && !MPI_T_cvar_read(handle, value) && rank == 0) printf("%s %d\n", name, value[0]);
        MPI_T_cvar_handle_free(&handle);
    }
    return steps(MPI_COMM_WORLD, 1);
}

static int errors(int rank) {
    int length, class, code, right = steps(MPI_COMM_WORLD, 1);
    char text[MPI_MAX_ERROR_STRING];
    for (int c = 0; c < 20; c++) {
        MPI_Error_string(c, text, &length);
        if (rank == 0) printf("%d %s\n", c, text);
    }
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "a code of this program's");
    MPI_Error_string(code, text, &length);
    int *last, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    if (rank == 0) printf("class %d, code %d, last used %d: %s\n", class, code, *last, text);
    return right;
}

/* A callback that runs while its communicator is freed, and calls collectives on it. */
static int all_are_there = 1;
static int on_delete(MPI_Comm comm, int key, void *value, void *state) {
    (void)key, (void)value, (void)state;
    int one = 1, sum = 0, size;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 3; i++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        all_are_there &= sum == size;
        MPI_Barrier(comm);
    }
    return MPI_SUCCESS;
}

/* One communicator is freed by a callback of another's, which is used by a callback of the first. */
struct nested {
    MPI_Comm outer, inner;
};

static int on_delete_of_outer(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)state;
    return MPI_Comm_free(&((struct nested *)value)->inner);
}

static int on_delete_of_inner(MPI_Comm comm, int key, void *value, void *state) {
    return on_delete(((struct nested *)value)->outer, key, NULL, state) | on_delete(comm, key, NULL, state);
}

/* Ranks set the attribute at different times, so that callbacks of others come before it or behind it. */
static int freed(void) {
    int key, outer, inner, rank, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete_of_outer, &outer, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete_of_inner, &inner, NULL);
    for (int i = 0; i < 40; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        struct nested nested = {comm, MPI_COMM_NULL};
        if (i % 4 == 1) {
            MPI_Comm_dup(comm, &nested.inner);
            MPI_Comm_set_attr(nested.inner, inner, &nested);
            MPI_Comm_set_attr(comm, outer, &nested);
        }
        int is_late = i % 4 == 3 ? rank % 2 : i % 2;
        if (!is_late) MPI_Comm_set_attr(comm, key, NULL);
        right &= i % 3 ? steps(comm, 1) : 1;
        if (is_late) MPI_Comm_set_attr(comm, key, NULL);
        if (i % 5) MPI_Comm_free(&comm);
        else MPI_Comm_disconnect(&comm);
    }
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&outer);
    MPI_Comm_free_keyval(&inner);
    return right & all_are_there & steps(MPI_COMM_WORLD, 1);
}

/* Collectives on a communicator that is being copied meanwhile. */
static int copied(void) {
    int size, right = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 30; i++) {
        MPI_Comm first, second;
        MPI_Request request;
        MPI_Comm_idup(MPI_COMM_WORLD, &first, &request);
        right &= i % 2 ? steps(MPI_COMM_WORLD, 1) : 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_idup(first, &second, &request);
        right &= steps(first, 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right &= steps(second, 1);
        MPI_Comm_free(&first);
        MPI_Comm_free(&second);
    }
    return right;
}

/* Barriers around the beginning of a copy and while it goes on, and nonblocking ones on the communicator's sibling. */
static int barriers(void) {
    int right = 1;
    MPI_Comm sibling;
    MPI_Comm_dup(MPI_COMM_WORLD, &sibling);
    for (int i = 0; i < 32; i++) {
        MPI_Comm comm, copy;
        MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (i & 1) MPI_Ibarrier(sibling, &requests[0]);
        for (int k = 0; k < i % 3; k++) MPI_Barrier(comm);
        MPI_Comm_idup(comm, &copy, &requests[1]);
        for (int k = 0; k < 1 + i % 4; k++) MPI_Barrier(comm);
        if (i & 2) MPI_Ibarrier(sibling, &requests[2]);
        if (i & 4) MPI_Barrier(comm);
        if (i & 8) right &= step(comm, i, 1 + i);
        if (i & 16) {
            MPI_Status statuses[3];
            MPI_Waitall(3, requests, statuses);
        } else {
            for (int k = 0; k < 3; k++) MPI_Wait(&requests[(i + k) % 3], MPI_STATUS_IGNORE);
        }
        MPI_Barrier(copy);
        right &= steps(copy, 1) & steps(comm, 1);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&copy);
    }
    right &= steps(sibling, 1);
    MPI_Comm_free(&sibling);
    return right;
}

/* A copy that one rank begins before a barrier on another communicator, and the others behind it. Whatever has to be made
 * for that barrier is made while the copy cannot end. */
static int crossed(void) {
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 12; i++) {
        MPI_Comm comms[2], copy;
        MPI_Request request;
        for (int k = 0; k < 2; k++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
        int is_first = rank == i % size, copied = i / size % 2;
        if (is_first) MPI_Comm_idup(comms[copied], &copy, &request);
        MPI_Barrier(comms[!copied]);
        right &= step(comms[!copied], i, 1 + i);
        if (!is_first) MPI_Comm_idup(comms[copied], &copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right &= steps(copy, 1) & steps(comms[0], 1) & steps(comms[1], 1);
        MPI_Comm_free(&copy);
        for (int k = 0; k < 2; k++) MPI_Comm_free(&comms[k]);
    }
    return right;
}

struct copying {
    MPI_Comm from, copy;
    volatile int begun;
};

static void *copies(void *argument) {
    struct copying *copying = argument;
    copying->begun = 1;
    MPI_Comm_dup(copying->from, &copying->copy);
    return NULL;
}

/* A copy in which one rank's other thread waits while its first one calls a collective of another communicator, which
 * the others call before they come to the copy. */
static int meanwhile(void) {
    int rank, size, right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 6; i++) {
        MPI_Comm comms[2];
        pthread_t thread = 0;
        for (int k = 0; k < 2; k++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
        struct copying copying = {comms[0], MPI_COMM_NULL, 0};
        int is_first = rank == i % size;
        if (is_first) {
            pthread_create(&thread, NULL, copies, &copying);
            while (!copying.begun) sched_yield();
            for (int k = 0; k < 1000; k++) sched_yield();
        }
        right &= step(comms[1], 0, 1 + i);
        if (is_first) pthread_join(thread, NULL);
        else copies(&copying);
        right &= step(copying.copy, 0, 1 + i);
        MPI_Comm_free(&copying.copy);
        for (int k = 0; k < 2; k++) MPI_Comm_free(&comms[k]);
    }
    return right;
}

/* So many numbers, behind which there is no memory. */
static int *edge(int n) {
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE)) exit(1);
    return (int *)(pages + page) - n;
}

/* The last rank and the others: lists of counts are as long as the other group. */
static int between(void) {
    int rank, size, right = 1, got[STEP_RANKS];
    MPI_Comm half, inter;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int is_last = rank == size - 1, theirs = is_last ? size - 1 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, is_last, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_last ? 0 : size - 1, 7, &inter);
    int *counts = edge(theirs), *places = edge(theirs);
    for (int r = 0; r < theirs; r++) counts[r] = 1, places[r] = r;
    for (int i = 0; i < 20; i++) {
        int mine = rank + i;
        MPI_Allgatherv(&mine, 1, MPI_INT, got, counts, places, MPI_INT, inter);
        for (int r = 0; r < theirs; r++) right &= got[r] == (is_last ? r : size - 1) + i;
        MPI_Barrier(inter);
    }
    right &= steps(half, 1) & steps(MPI_COMM_WORLD, 1);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return right;
}

/* The folder that the program was started in is not the one that it ends in. */
static int elsewhere(void) {
    int right = steps(MPI_COMM_WORLD, 2);
    return right & (chdir("/") == 0) & steps(MPI_COMM_WORLD, 2);
}

#if MPI_VERSION >= 4
static int session(int *rank) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 0;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "surroundings", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, rank);
    int right = steps(comm, 3), all;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, comm);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return all;
}

/* A session beside the world, which ends first: the session's communicators, tuned by then, are used on. */
static int beside(int *rank) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comms[3];
    int right = 1, all;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 0;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "before", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[0]);
    right &= steps(comms[0], 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_create_from_group(group, "during", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[1]);
    right &= steps(MPI_COMM_WORLD, 1) & steps(comms[0], 1) & steps(comms[1], 2);
    MPI_Finalize();
    right &= steps(comms[1], 1) & steps(comms[0], 1);
    MPI_Comm_dup(comms[1], &comms[2]);
    right &= steps(comms[2], 1);
    MPI_Comm_rank(comms[2], rank);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, comms[2]);
    for (int i = 0; i < 3; i++) MPI_Comm_free(&comms[i]);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return all;
}
#endif

static int goes_right(const char *way, const char *program, int rank) {
    if (!strcmp(way, "spawn")) return spawn(program);
    if (!strcmp(way, "disconnect")) return disconnect();
    if (!strcmp(way, "threads")) return threads();
    if (!strcmp(way, "children")) return children();
    if (!strcmp(way, "directly")) return directly();
    if (!strcmp(way, "numbers")) return numbers(rank);
    if (!strcmp(way, "errors")) return errors(rank);
    if (!strcmp(way, "freed")) return freed();
    if (!strcmp(way, "copied")) return copied();
    if (!strcmp(way, "barriers")) return barriers();
    if (!strcmp(way, "crossed")) return crossed();
    if (!strcmp(way, "meanwhile")) return meanwhile();
    if (!strcmp(way, "between")) return between();
    if (!strcmp(way, "elsewhere")) return elsewhere();
    return 0;
}

int main(int argc, char **argv) {
    const char *way = argv[1];
    int provided, rank = 0, right = 1;
    if (!before_main || strcmp(before_main, "set") || argc < 2) return 1;
#if MPI_VERSION >= 4
    if (!strcmp(way, "session") || !strcmp(way, "beside")) {
        right = *way == 's' ? session(&rank) : beside(&rank);
        if (rank == 0 && right) printf("ok\n");
        return !right;
    }
#endif
    int is_number = !strcmp(way, "numbers");
    if (is_number) MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    int has_threads = !strcmp(way, "threads") || !strcmp(way, "meanwhile");
    MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (has_threads && provided < MPI_THREAD_MULTIPLE) return conclude(0);
    if (!strcmp(way, "spawned")) {
        right = spawned();
        MPI_Finalize();
        return !right;
    }
    for (int at = 1; at < argc; at++) {
        if (rank == 0 && argc > 2) printf("%s\n", argv[at]);
        fflush(stdout);
        right &= goes_right(argv[at], argv[0], rank);
    }
    if (is_number) MPI_T_finalize();
    return conclude(right);
}
