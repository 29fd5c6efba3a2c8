/* Errors in the middle of a collective, on one rank or on some.
 *
 * usage: faults return|handler CASE
 * CASE: truncated LONGS   the root of a broadcast sends more than the others have room for
 *       packed COUNT      every rank gathers vectors from all; the tool failing_pack lets rank 1 fail
 *       memory LONGS      rank 1 may not have more memory when broadcasts of vectors become longer
 *
 * Each rank tells what came of it: "rank R: first C1 second C2 handled H", with the classes of the errors
 * of the call in question and of one more like it, and how often the handler was called. */
#include "step.h"
#include <sys/resource.h>
#include <unistd.h>

static int handled;

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)code;
    handled += *comm == MPI_COMM_WORLD;
}

static const char *class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    switch (class) {
    case MPI_SUCCESS: return "success";
    case MPI_ERR_NO_MEM: return "no_mem";
    case MPI_ERR_TRUNCATE: return "truncate";
    case MPI_ERR_OTHER: return "other";
    default: return "unknown";
    }
}

/* The process may have `room` bytes more than it has now. */
static void limit_memory(size_t room) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1) abort();
    fclose(file);
    struct rlimit limit = { pages * sysconf(_SC_PAGESIZE) + room, RLIM_INFINITY };
    if (setrlimit(RLIMIT_AS, &limit)) abort();
}

static MPI_Datatype every_other(int longs) {
    MPI_Datatype type;
    MPI_Type_vector(longs, 1, 2, MPI_LONG, &type);
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int rank, size, longs = atoi(argv[3]), codes[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    if (!strcmp(argv[1], "handler")) MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    long *a = calloc(2 * (size_t)longs * size, sizeof *a), *b = calloc(2 * (size_t)longs * size, sizeof *b);
    int right = 1;
    for (int call = 0; call < 2; call++) {
        if (!strcmp(argv[2], "truncated")) {
            int count = rank == 0 ? longs : longs - longs / 8;
            codes[call] = MPI_Bcast(a, count, MPI_LONG, 0, MPI_COMM_WORLD);
        } else if (!strcmp(argv[2], "packed")) {
            MPI_Datatype type = every_other(longs);
            codes[call] = MPI_Allgather(a, 1, type, b, longs, MPI_LONG, MPI_COMM_WORLD);
            MPI_Type_free(&type);
        } else {
            MPI_Datatype type = every_other(longs);
            /* A short one first, so that nothing but the room is missing. */
            if (call == 0) MPI_Bcast(a, 1, MPI_LONG, 0, MPI_COMM_WORLD);
            if (call == 0 && rank == 1) limit_memory(100 << 20);
            for (int i = 0; i < 2 * longs; i++) a[i] = rank == 0 ? i : -1;
            codes[call] = MPI_Bcast(a, 1, type, 0, MPI_COMM_WORLD);
            for (int i = 0; i < longs; i++) right &= a[2 * i] == 2 * i;
            MPI_Type_free(&type);
        }
    }
    for (int r = 0; r < size; r++) {
        if (r == rank)
            printf("rank %d: first %s second %s handled %d%s\n", rank, class_of(codes[0]), class_of(codes[1]), handled,
                   right ? "" : ", wrong");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
