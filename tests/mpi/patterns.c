/* Communicators in every pattern that a program may use.
 *
 * usage: patterns split|dup|create|short|overlap|inter|random SEED EVENTS
 * Every rank draws the same sequence of events (make, use or free a communicator) and takes part in
 * those whose communicator it belongs to, so each rank sees another interleaving.
 * Prints "ok" when every result is right. */
#include "step.h"

enum { POOL = 24 };
static MPI_Comm pool[POOL];
/* Bit r: world rank r is a member; 0 for a free place. Known alike on all ranks. */
static unsigned members[POOL];
static uint64_t state;
static int me, n_ranks, right = 1;

static unsigned below(unsigned n) { return (unsigned)(next_random(&state) % n); }

static int some(int wanted) {
    for (int i = (int)below(POOL), k = 0; k < POOL; k++, i = (i + 1) % POOL)
        if ((members[i] != 0) == wanted) return i;
    return 0;
}

static int is_in(int i) { return members[i] >> me & 1; }

static void drop(int i) {
    if (i == 0 || !members[i]) return;
    if (is_in(i)) MPI_Comm_free(&pool[i]);
    members[i] = 0;
}

static void use(int i, int times) {
    for (int k = 0; k < times; k++) {
        int which = (int)below(STEPS), size = 1 << below(14), count = size + (int)below(3);
        if (is_in(i)) right &= step(pool[i], which, count);
    }
}

/* Makes a communicator out of `parent` in place `at`: 0 dup, 1 split, 2 create, 3 create_group. */
static void make(int at, int parent, int how) {
    unsigned chosen = 0;
    for (int r = 0; r < n_ranks; r++)
        if ((members[parent] >> r & 1) && (how == 0 || below(3) > 0)) chosen |= 1u << r;
    if (!chosen) chosen = members[parent];
    int reversed = (int)below(2);
    /* MPICH 4.0.2 itself crashes in MPI_Comm_create_group on other parents than the world. */
    if (how == 3 && parent != 0) how = 2;
    if (is_in(parent)) {
        MPI_Group world, group;
        int list[32], n = 0;
        for (int r = 0; r < n_ranks; r++)
            if (chosen >> r & 1) list[n++] = r;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, n, list, &group);
        int in = chosen >> me & 1;
        pool[at] = MPI_COMM_NULL;
        if (how == 0) MPI_Comm_dup(pool[parent], &pool[at]);
        else if (how == 1) MPI_Comm_split(pool[parent], in ? 3 : MPI_UNDEFINED, reversed ? -me : me, &pool[at]);
        else if (how == 2) MPI_Comm_create(pool[parent], group, &pool[at]);
        else if (in) MPI_Comm_create_group(pool[parent], group, at, &pool[at]);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
    }
    members[at] = chosen;
}

static void inter(int events) {
    MPI_Comm half, bridge, merged;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me % 2 ? 0 : 1, 7, &bridge);
    MPI_Intercomm_merge(bridge, me % 2, &merged);
    int remote;
    MPI_Comm_remote_size(bridge, &remote);
    for (int k = 0; k < events; k++) {
        long mine = me % 2 + 1, sum = 0, got[32] = {0}, value = me == 0 ? k : -1;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, bridge);
        right &= sum == remote * (2 - me % 2);
        MPI_Allgather(&mine, 1, MPI_LONG, got, 1, MPI_LONG, bridge);
        for (int r = 0; r < remote; r++) right &= got[r] == 2 - me % 2;
        /* From world rank 0 to all of the other side. */
        MPI_Bcast(&value, 1, MPI_LONG, me % 2 ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge);
        if (me % 2) right &= value == k;
        right &= step(half, k, 100 + k);
        right &= step(merged, k, 100 + k);
    }
    MPI_Comm_free(&merged);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *pattern = argc > 1 ? argv[1] : "random";
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int events = argc > 3 ? atoi(argv[3]) : 100;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    pool[0] = MPI_COMM_WORLD;
    members[0] = (1u << n_ranks) - 1;

    if (!strcmp(pattern, "inter")) {
        inter(events);
        return conclude(right);
    }
    if (!strcmp(pattern, "overlap")) {
        /* Neighbours share a communicator, so every rank is in two and meets them in its own order. */
        for (int r = 0; r < n_ranks; r++) {
            unsigned pair = 1u << r | 1u << (r + 1) % n_ranks;
            int at = r + 1;
            MPI_Comm_split(MPI_COMM_WORLD, pair >> me & 1 ? 1 : MPI_UNDEFINED, me, &pool[at]);
            members[at] = pair;
        }
        for (int k = 0; k < events; k++) use((int)below((unsigned)n_ranks + 1), 1);
        for (int r = 0; r < n_ranks; r++) drop(r + 1);
        return conclude(right);
    }
    int how = !strcmp(pattern, "dup") ? 0 : !strcmp(pattern, "split") ? 1 : !strcmp(pattern, "create") ? 2 : -1;
    int brief = !strcmp(pattern, "short");
    for (int k = 0; k < events; k++) {
        if (brief) {
            make(1, 0, (int)below(4));
            use(1, below(20) ? 1 : 20);
            drop(1);
            continue;
        }
        unsigned what = below(10);
        if (what == 0) {
            int at = some(0);
            if (at) make(at, some(1), how >= 0 ? how : (int)below(4));
        } else if (what == 1 && k % 2) {
            drop(some(1));
        } else {
            use(some(1), 1 + (int)below(4));
        }
    }
    for (int i = 1; i < POOL; i++) drop(i);
    return conclude(right);
}
