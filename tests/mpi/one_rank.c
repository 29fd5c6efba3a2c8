/* What is legal, or harmless, and happens on rank 0 alone.
 *
 * usage: one_rank ROUNDS WAY...   of huge_type, one_buffer, refused, aliased, unchecked, nothing, less
 * Names each way before it begins, and says that it is "ok" where every result was right. */
#include "step.h"

#ifdef MPICH_VERSION
#define IS_MPICH 1
#else
#define IS_MPICH 0
#endif

static int rank, n_ranks, wrong;
static const char *now;

static void expect(const char *what, long is, long should) {
    if (is == should) return;
    fprintf(stderr, "%s, rank %d: %s is %ld, not %ld\n", now, rank, what, is, should);
    wrong = 1;
}

static void use_all(MPI_Comm comm) {
    int one = 1, sum = 0, word = rank == 1 ? 77 : 0;
    MPI_Bcast(&word, 1, MPI_INT, 1, comm);
    expect("the broadcast", word, 77);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect("the sum", sum, n_ranks);
}

/* Nothing is sent, of a type of 4 GiB on one rank and of one of 4 bytes on the others. */
static void huge_type(MPI_Comm comm) {
    MPI_Datatype huge;
    int word = 0;
    MPI_Type_contiguous(1 << 30, MPI_INT, &huge);
    MPI_Type_commit(&huge);
    MPI_Bcast(&word, 0, rank == 0 ? huge : MPI_INT, 0, comm);
    MPI_Type_free(&huge);
    use_all(comm);
}

/* Wrong, but Open MPI lets it pass. */
static void one_buffer(MPI_Comm comm) {
    int own = rank + 1, sum = 0, prefix[2] = {1, 2}, result[2] = {0, 0};
    int *in = rank == 0 ? &sum : &own, *list = rank == 0 ? result : prefix;
    *in = rank + 1, list[0] = 1, list[1] = 2;
    MPI_Allreduce(in, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect("the sum", sum, n_ranks * (n_ranks + 1) / 2);
    MPI_Scan(list, result, 2, MPI_INT, MPI_SUM, comm);
    expect("the prefix", result[1], 2 * (rank + 1));
    use_all(comm);
}

/* Rank 0 makes a mistake, which it is told, and then the right call, which the others have made meanwhile. */
static void refused(MPI_Comm comm) {
    int word = rank, all[STEP_RANKS];
    if (rank == 0) {
        int code = MPI_Gather(&word, -1, MPI_INT, all, 1, MPI_INT, 0, comm);
        expect("the refusal", code != MPI_SUCCESS, 1);
        code = MPI_Bcast(&word, 1, MPI_DATATYPE_NULL, 0, comm);
        expect("the refusal", code != MPI_SUCCESS, 1);
    }
    MPI_Gather(&word, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
    for (int r = 0; rank == 0 && r < n_ranks; r++) expect("the block", all[r], r);
    use_all(comm);
}

/* One buffer for both sides, on the root alone; where the library refuses that, the root makes the right call, which
 * the others have made. The same order of calls as in a test of MPICH's (errors/coll/noalias.c). */
static void aliased(MPI_Comm comm) {
    int refuses = IS_MPICH;
    int buffer[STEP_RANKS] = {0}, other[STEP_RANKS], is_root = rank == 0, *both = is_root ? buffer : other;
    for (int r = 0; r < n_ranks; r++) buffer[r] = r;
    MPI_Allreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, comm);
    buffer[0] = rank;
    if (MPI_Reduce(buffer, is_root ? buffer : NULL, 1, MPI_INT, MPI_SUM, 0, comm)) {
        MPI_Reduce(buffer, other, 1, MPI_INT, MPI_SUM, 0, comm);
        if (is_root) expect("the sum behind a mistake", other[0], n_ranks * (n_ranks - 1) / 2);
    }
    buffer[0] = rank;
    MPI_Reduce(is_root ? MPI_IN_PLACE : buffer, buffer, 1, MPI_INT, MPI_SUM, 0, comm);
    if (is_root) expect("the sum in place", buffer[0], n_ranks * (n_ranks - 1) / 2);
    buffer[0] = rank;
    int code = MPI_Gather(buffer, 1, MPI_INT, both, 1, MPI_INT, 0, comm);
    if (is_root) expect("the refusal of a gather", code != MPI_SUCCESS, refuses);
    if (code) {
        MPI_Gather(buffer, 1, MPI_INT, other, 1, MPI_INT, 0, comm);
        for (int r = 0; is_root && r < n_ranks; r++) expect("the block behind a mistake", other[r], r);
    }
    for (int r = 0; r < n_ranks; r++) buffer[r] = r;
    code = MPI_Scatter(buffer, 1, MPI_INT, both, 1, MPI_INT, 0, comm);
    if (is_root) expect("the refusal of a scatter", code != MPI_SUCCESS, refuses);
    if (code) {
        MPI_Scatter(buffer, 1, MPI_INT, other, 1, MPI_INT, 0, comm);
        expect("the part behind a mistake", other[0], rank);
    }
    int counts[STEP_RANKS], at[STEP_RANKS];
    for (int r = 0; r < n_ranks; r++) counts[r] = 1, at[r] = n_ranks - 1 - r, buffer[r] = r;
    both = is_root ? buffer + at[rank] : other;
    code = MPI_Scatterv(buffer, counts, at, MPI_INT, both, 1, MPI_INT, 0, comm);
    if (is_root) expect("the refusal of a scatterv", code != MPI_SUCCESS, refuses);
    if (code) MPI_Scatterv(buffer, counts, at, MPI_INT, other, 1, MPI_INT, 0, comm);
    if (code || !is_root) expect("the part of a scatterv", other[0], n_ranks - 1 - rank);
    code = MPI_Gatherv(is_root ? both : &rank, 1, MPI_INT, buffer, counts, at, MPI_INT, 0, comm);
    if (is_root) expect("the refusal of a gatherv", code != MPI_SUCCESS, refuses);
    if (code) MPI_Gatherv(&rank, 1, MPI_INT, buffer, counts, at, MPI_INT, 0, comm);
    for (int r = 1; is_root && r < n_ranks; r++) expect("the block of a gatherv", buffer[at[r]], r);
    use_all(comm);
}

/* One buffer for both sides, on all ranks and on the root alone. A library that looks at that refuses it, and the right
 * call follows. One that does not may give the root whatever its algorithm makes of it. */
static void unchecked(MPI_Comm comm) {
    int all[2] = {rank, 1}, own[2] = {rank, 1};
    if (MPI_Allreduce(all, all, 2, MPI_INT, MPI_SUM, comm))
        MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, comm);
    expect("the sum of ranks", all[0], n_ranks * (n_ranks - 1) / 2);
    expect("the sum of ones", all[1], n_ranks);
    if (MPI_Reduce(own, rank == 0 ? own : NULL, 2, MPI_INT, MPI_SUM, 0, comm)) {
        MPI_Reduce(MPI_IN_PLACE, own, 2, MPI_INT, MPI_SUM, 0, comm);
        expect("the sum at the root", own[1], n_ranks);
    }
    use_all(comm);
}

/* No result is to lie in place on any rank, which MPICH lets pass: there is nothing to be moved. */
static void nothing(MPI_Comm comm) {
    int word = 0, none[STEP_RANKS] = {0};
    int codes[] = {
        MPI_Allreduce(&word, MPI_IN_PLACE, 0, MPI_INT, MPI_SUM, comm),
        MPI_Scan(&word, MPI_IN_PLACE, 0, MPI_INT, MPI_SUM, comm),
        MPI_Allgather(&word, 0, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, comm),
        MPI_Alltoall(&word, 0, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, comm),
        MPI_Allgatherv(&word, 0, MPI_INT, MPI_IN_PLACE, none, none, MPI_INT, comm),
    };
    for (size_t at = 0; at < sizeof codes / sizeof *codes; at++) expect("the refusal of nothing", codes[at] == 0, IS_MPICH);
    use_all(comm);
}

/* Wrong, but no library notices: the others may wait for what rank 0 does not send. */
static void less(MPI_Comm comm) {
    int word = rank, all[STEP_RANKS];
    MPI_Allgather(&word, rank == 0 ? 0 : 1, MPI_INT, all, 1, MPI_INT, comm);
}

static const struct { const char *name; void (*run)(MPI_Comm); } ways[] = {
    {"huge_type", huge_type}, {"one_buffer", one_buffer}, {"refused", refused},
    {"aliased", aliased}, {"unchecked", unchecked}, {"nothing", nothing}, {"less", less},
};

/* Runs a way on a communicator of its own; whether anything was wrong on any rank. */
static int goes_wrong(size_t way, int rounds) {
    MPI_Comm comm;
    int any = 0;
    now = ways[way].name, wrong = 0;
    if (rank == 0) puts(now), fflush(stdout);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < rounds; round++) ways[way].run(comm);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, comm);
    MPI_Comm_free(&comm);
    if (rank == 0 && !any) printf("%s: ok\n", now), fflush(stdout);
    return any;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    /* Copies inherit it. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int any = 0, rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int at = 2; at < argc; at++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            if (!strcmp(argv[at], ways[way].name)) any |= goes_wrong(way, rounds);
    MPI_Finalize();
    return any;
}
