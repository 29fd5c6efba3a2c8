/* Error handlers and operations that do not return: they throw, or they jump. And handlers that call a collective on the
 * very communicator of the call, or free it.
 *
 * usage: unwinding throw|jump handler|lone|alone|apart|op ROUNDS
 *        unwinding call handler|lone ROUNDS
 *        unwinding free alone ROUNDS
 *   handler  every rank broadcasts from a root that there is not; the handler leaves the call
 *   lone     rank 1 does so, and the others do not notice
 *   alone    rank 1 has less room than the root sends
 *   apart    the same, and what follows is on another communicator
 *   op       an operation of the program's leaves the reduction on every rank
 * Right calls stand between, at other depths of the stack. Each rank prints "rank R: left L, errors E", where
 * errors are codes of right calls; rank 0 prints ok if no result was wrong. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>

static bool throws, calls, frees, leaves;
static jmp_buf back;
static int left, errors, right = 1;
static char sink[64];
static MPI_Comm on;

static int reduce();

static void leave() {
    if (throws) throw 1;
    if (calls) {
        leaves = false;
        left++;
        reduce();
        return;
    }
    if (frees) {
        leaves = false;
        left++;
        MPI_Comm_free(&on);
        return;
    }
    longjmp(back, 1);
}

extern "C" void on_error(MPI_Comm *, int *code, ...) {
    if (leaves) leave();
    errors += *code != MPI_SUCCESS;
}

extern "C" void add(void *in, void *into, int *count, MPI_Datatype *) {
    if (leaves) leave();
    for (int i = 0; i < *count; i++) static_cast<long *>(into)[i] += static_cast<long *>(in)[i];
}

/* Calls at another depth of the stack than the one that was left. */
__attribute__((noinline)) static int deeper(int depth, int (*call)()) {
    char local[512];
    memset(local, depth, sizeof local);
    int code = depth > 0 ? deeper(depth - 1, call) : call();
    memcpy(sink, local, sizeof sink);
    return code;
}

static MPI_Op op;

static int reduce() {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long sent[4] = { rank, 1, 2, rank }, got[4] = { -1, -1, -1, -1 };
    if (MPI_Allreduce(sent, got, 4, MPI_LONG, op, on)) return 1;
    right &= got[0] == (long)size * (size - 1) / 2 && got[1] == size;
    return 0;
}

/* Longs of a right broadcast. Where they are few their number of calls, and not their bytes, has the shim, if there, set
 * the communicator up. */
static long n_sent = 1000;

static int broadcast() {
    int rank;
    static long data[1000];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long i = 0; i < n_sent; i++) data[i] = rank == 0 ? i : -1;
    if (MPI_Bcast(data, (int)n_sent, MPI_LONG, 0, on)) return 1;
    for (long i = 0; i < n_sent; i++) right &= data[i] == i;
    return 0;
}

static int wrong_root() {
    long data = 0;
    return MPI_Bcast(&data, 1, MPI_LONG, 99, on);
}

static int too_long() {
    static long data[1000];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return MPI_Bcast(data, rank == 1 ? 875 : 1000, MPI_LONG, 0, on);
}

/* Of rank 1 alone, in nobody's company. */
static int lone_wrong_root() {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1 ? wrong_root() : 0;
}

static void is_left(int (*call)(), int depth) {
    leaves = true;
    if (calls) {
        deeper(depth, call);
        // Where the call was right, what the other's handler calls is called here.
        if (leaves) reduce();
    } else if (frees) {
        deeper(depth, call);
        // Where the call was right its communicator is still there.
        if (leaves) MPI_Comm_free(&on);
        on = MPI_COMM_WORLD;
    } else if (throws) {
        try {
            deeper(depth, call);
        } catch (int) {
            left++;
        }
    } else if (setjmp(back) == 0) {
        deeper(depth, call);
    } else {
        left++;
    }
    leaves = false;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    throws = !strcmp(argv[1], "throw");
    calls = !strcmp(argv[1], "call");
    frees = !strcmp(argv[1], "free");
    on = MPI_COMM_WORLD;
    int rank, all = 0;
    MPI_Errhandler handler;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    op = MPI_SUM;
    bool apart = !strcmp(argv[2], "apart");
    int (*leaving)() = !strcmp(argv[2], "handler") ? wrong_root
                       : !strcmp(argv[2], "lone")  ? lone_wrong_root
                       : !strcmp(argv[2], "alone") || apart ? too_long
                                                            : reduce;
    if (leaving == lone_wrong_root || leaving == wrong_root) n_sent = 10;
    if (leaving == reduce) MPI_Op_create(add, 1, &op);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int round = 0; round < atoi(argv[3]); round++) {
        if (frees) MPI_Comm_dup(MPI_COMM_WORLD, &on);
        for (int i = 0; i < 2; i++) {
            deeper(2 * i, reduce);
            deeper(7 * i, broadcast);
        }
        for (int i = 0; i < (apart ? 8 : 1); i++) {
            is_left(leaving, round % 4);
            if (apart) MPI_Barrier(other);
        }
        deeper(round % 9, broadcast);
    }
    printf("rank %d: left %d, errors %d\n", rank, left, errors);
    fflush(stdout);
    PMPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0 && all) printf("ok\n");
    MPI_Comm_free(&other);
    MPI_Finalize();
    return !all;
}
