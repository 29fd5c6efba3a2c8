/* Nonblocking, persistent and neighbourhood collectives, completed in every way that MPI has, among
 * requests of messages.
 *
 * usage: passing ROUNDS [threads]
 * With `threads` several threads do the same at once, each on communicators of its own.
 * In each round every nonblocking collective is started once on the world's duplicate and every
 * neighbourhood collective on a ring, blocking and nonblocking. Persistent ones are made once and
 * started in every round. Prints "ok" when every result is right. */
#include <pthread.h>

#include "step.h"
#include "persistent.h"

enum { N = 24, WAYS = 8, THREADS = 3, ALL = STEPS + 5, MESSAGES = 2 };

typedef struct {
    MPI_Comm comm, ring;
    int rank, size, rounds, right;
    int counts[STEP_RANKS], at[STEP_RANKS], bytes_at[STEP_RANKS];
    int pair[2], pair_at[2];
    MPI_Aint pair_bytes_at[2];
    MPI_Datatype types[STEP_RANKS];
    long *send[ALL], *recv[ALL], *kept_send[ALL], *kept_recv[ALL];
    MPI_Request requests[ALL + MESSAGES];
    MPI_Request persistent[ALL];
} Work;

/* One call of collective `which`, by the function that PREFIX makes of its name; MORE are the last arguments. */
#define CALL(which, f, MORE)                                                                            \
    switch (which) {                                                                                    \
    case 0: f(allreduce, Allreduce)(s, r, N, MPI_LONG, MPI_SUM, MORE); break;                           \
    case 1: f(bcast, Bcast)(r, N, MPI_LONG, 0, MORE); break;                                            \
    case 2: f(allgather, Allgather)(s, N, MPI_LONG, r, N, MPI_LONG, MORE); break;                       \
    case 3: f(alltoall, Alltoall)(s, N, MPI_LONG, r, N, MPI_LONG, MORE); break;                         \
    case 4: f(reduce, Reduce)(s, r, N, MPI_LONG, MPI_SUM, 0, MORE); break;                              \
    case 5: f(allgatherv, Allgatherv)(s, N, MPI_LONG, r, w->counts, w->at, MPI_LONG, MORE); break;      \
    case 6: f(gather, Gather)(s, N, MPI_LONG, r, N, MPI_LONG, 0, MORE); break;                          \
    case 7: f(gatherv, Gatherv)(s, N, MPI_LONG, r, w->counts, w->at, MPI_LONG, 0, MORE); break;         \
    case 8: f(scatter, Scatter)(s, N, MPI_LONG, r, N, MPI_LONG, 0, MORE); break;                        \
    case 9: f(scatterv, Scatterv)(s, w->counts, w->at, MPI_LONG, r, N, MPI_LONG, 0, MORE); break;       \
    case 10:                                                                                            \
        f(alltoallv, Alltoallv)(s, w->counts, w->at, MPI_LONG, r, w->counts, w->at, MPI_LONG, MORE);    \
        break;                                                                                          \
    case 11:                                                                                            \
        f(alltoallw, Alltoallw)(s, w->counts, w->bytes_at, w->types, r, w->counts, w->bytes_at, w->types, MORE); \
        break;                                                                                          \
    case 12: f(reduce_scatter, Reduce_scatter)(s, r, w->counts, MPI_LONG, MPI_SUM, MORE); break;        \
    case 13: f(reduce_scatter_block, Reduce_scatter_block)(s, r, N, MPI_LONG, MPI_SUM, MORE); break;    \
    case 14: f(scan, Scan)(s, r, N, MPI_LONG, MPI_SUM, MORE); break;                                    \
    case 15: f(exscan, Exscan)(s, r, N, MPI_LONG, MPI_SUM, MORE); break;                                \
    case 16: f(barrier, Barrier)(MORE); break;                                                          \
    }
#define NEIGHBORS(which, f, MORE)                                                                       \
    switch (which) {                                                                                    \
    case 17: f(neighbor_allgather, Neighbor_allgather)(s, N, MPI_LONG, r, N, MPI_LONG, MORE); break;    \
    case 18:                                                                                            \
        f(neighbor_allgatherv, Neighbor_allgatherv)(s, N, MPI_LONG, r, w->pair, w->pair_at, MPI_LONG, MORE); \
        break;                                                                                          \
    case 19: f(neighbor_alltoall, Neighbor_alltoall)(s, N, MPI_LONG, r, N, MPI_LONG, MORE); break;      \
    case 20:                                                                                            \
        f(neighbor_alltoallv, Neighbor_alltoallv)                                                       \
        (s, w->pair, w->pair_at, MPI_LONG, r, w->pair, w->pair_at, MPI_LONG, MORE);                     \
        break;                                                                                          \
    case 21:                                                                                            \
        f(neighbor_alltoallw, Neighbor_alltoallw)                                                       \
        (s, w->pair, w->pair_bytes_at, w->types, r, w->pair, w->pair_bytes_at, w->types, MORE);         \
        break;                                                                                          \
    }
#define BLOCKING(small, large) MPI_##large
#define STARTED(small, large) MPI_I##small
#define PREPARED(small, large) INIT(large)
/* Two arguments, or three, behind one name. */
#define REQUESTED(comm, request) comm, request
#define INFORMED(comm, request) comm, MPI_INFO_NULL, request

static void fill(Work *w, int which, int round, long *send, long *recv) {
    for (int i = 0; i < N * w->size || i < 2 * N; i++) {
        send[i] = w->rank * 1000003L + round * 7 + i;
        recv[i] = which == 1 && w->rank == 0 ? round + i : -1;
    }
}

/* What rank `from` of the communicator has at place i of its send buffer. */
static long sent(int from, int round, int i) { return from * 1000003L + round * 7 + i; }

static void check(Work *w, int which, int round, const long *r) {
    int n = w->size, me = w->rank;
    for (int i = 0; i < N; i++) {
        long sum = 0, before = 0, upto = 0;
        int block = which == 12 || which == 13 ? me * N + i : i;
        for (int from = 0; from < n; from++) {
            sum += sent(from, round, block);
            if (from < me) before += sent(from, round, i);
            if (from <= me) upto += sent(from, round, i);
        }
        int ok = 1, left = (me + n - 1) % n, next = (me + 1) % n;
        switch (which) {
        case 0: case 12: case 13: ok = r[i] == sum; break;
        case 1: ok = r[i] == round + i; break;
        case 2: case 5: for (int from = 0; from < n; from++) ok &= r[from * N + i] == sent(from, round, i); break;
        case 3: case 10: case 11:
            for (int from = 0; from < n; from++) ok &= r[from * N + i] == sent(from, round, me * N + i);
            break;
        case 4: ok = me != 0 || r[i] == sum; break;
        case 6: case 7: for (int from = 0; me == 0 && from < n; from++) ok &= r[from * N + i] == sent(from, round, i); break;
        case 8: case 9: ok = r[i] == sent(0, round, me * N + i); break;
        case 14: ok = r[i] == upto; break;
        case 15: ok = me == 0 || r[i] == before; break;
        case 17: case 18: ok = r[i] == sent(left, round, i) && r[N + i] == sent(next, round, i); break;
        /* The left neighbour sends what is for its right one, unless both are the same. */
        case 19: case 20: case 21:
            ok = r[i] == sent(left, round, N + i) && r[N + i] == sent(next, round, i);
            ok |= n <= 2;
            break;
        }
        if (!ok && w->right) fprintf(stderr, "rank %d: collective %d is wrong in round %d at %d\n", me, which, round, i);
        w->right &= ok;
    }
}

/* Completes `n` requests in one of MPI's ways. */
static void complete(MPI_Request *requests, int n, int way) {
    int index, flag = 0, done = 0, some, indices[ALL + MESSAGES];
    MPI_Status statuses[ALL + MESSAGES];
    switch (way) {
    case 0: for (int i = 0; i < n; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE); break;
    case 1: MPI_Waitall(n, requests, statuses); break;
    case 2: for (int i = 0; i < n; i++) MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE); break;
    case 3:
        while (done < n) {
            MPI_Waitsome(n, requests, &some, indices, statuses);
            if (some == MPI_UNDEFINED) break;
            done += some;
        }
        break;
    case 4: for (int i = 0; i < n; i++) for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE); break;
    case 5: while (!flag) MPI_Testall(n, requests, &flag, statuses); break;
    case 6:
        while (done < n) {
            MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
            if (flag && index == MPI_UNDEFINED) break;
            done += flag;
        }
        break;
    default:
        while (done < n) {
            MPI_Testsome(n, requests, &some, indices, statuses);
            if (some == MPI_UNDEFINED) break;
            done += some;
        }
    }
}

static void *work(void *argument) {
    Work *w = argument;
    w->right = 1;
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    for (int i = 0; i < w->size; i++) {
        w->counts[i] = N, w->at[i] = i * N, w->bytes_at[i] = 8 * i * N, w->types[i] = MPI_LONG;
    }
    for (int i = 0; i < 2; i++) w->pair[i] = N, w->pair_at[i] = i * N, w->pair_bytes_at[i] = 8 * i * N;
    w->types[0] = w->types[1] = MPI_LONG;
    for (int which = 0; which < ALL; which++) {
        size_t bytes = 8 * (size_t)N * (w->size < 2 ? 2 : w->size);
        w->send[which] = malloc(bytes), w->recv[which] = malloc(bytes);
        long *s = w->kept_send[which] = malloc(bytes), *r = w->kept_recv[which] = malloc(bytes);
        fill(w, which, 0, s, r);
        CALL(which, PREPARED, INFORMED(w->comm, &w->persistent[which]))
        NEIGHBORS(which, PREPARED, INFORMED(w->ring, &w->persistent[which]))
    }
    long out = w->rank, in[1];
    static const int of_mpich[] = {0, 4};
    for (int round = 0; round < w->rounds; round++) {
        int next = (w->rank + 1) % w->size, left = (w->rank + w->size - 1) % w->size;
        for (int which = 0; which < ALL; which++) {
            long *s = w->send[which], *r = w->recv[which];
            fill(w, which, round, s, r);
            CALL(which, STARTED, REQUESTED(w->comm, &w->requests[which]))
            NEIGHBORS(which, STARTED, REQUESTED(w->ring, &w->requests[which]))
        }
        MPI_Isend(&out, 1, MPI_LONG, next, 3, w->comm, &w->requests[ALL]);
        MPI_Irecv(&in[0], 1, MPI_LONG, left, 3, w->comm, &w->requests[ALL + 1]);
        complete(w->requests, ALL + MESSAGES, round % WAYS);
        for (int which = 0; which < ALL; which++) check(w, which, round, w->recv[which]);
        for (int i = 0; i < ALL + MESSAGES; i++) w->right &= w->requests[i] == MPI_REQUEST_NULL;
        w->right &= in[0] == left;

        for (int which = STEPS; which < ALL; which++) {
            long *s = w->send[which], *r = w->recv[which];
            fill(w, which, round, s, r);
            NEIGHBORS(which, BLOCKING, w->ring)
            check(w, which, round, r);
        }

        MPI_Request before[ALL];
        memcpy(before, w->persistent, sizeof before);
        /* MPICH 4.0 copies a rank's own block once, when the request is made. */
        int again = IS_MPICH ? 0 : round;
        for (int which = 0; which < ALL && !IS_MPICH; which++) fill(w, which, again, w->kept_send[which], w->kept_recv[which]);
        if (round % 2) MPI_Startall(ALL, w->persistent);
        else for (int which = 0; which < ALL; which++) MPI_Start(&w->persistent[which]);
        /* And lets such requests be completed by some functions alone. */
        complete(w->persistent, ALL, IS_MPICH ? of_mpich[round % 2] : (round + 3) % WAYS);
        for (int which = 0; which < ALL; which++) check(w, which, again, w->kept_recv[which]);
        w->right &= memcmp(before, w->persistent, sizeof before) == 0;
    }
    for (int which = 0; which < ALL; which++) {
        MPI_Request_free(&w->persistent[which]);
        w->right &= w->persistent[which] == MPI_REQUEST_NULL;
        free(w->send[which]);
        free(w->recv[which]);
        free(w->kept_send[which]);
        free(w->kept_recv[which]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 2 ? THREADS : 1, provided, rank, size, right = 1, one = 1, periodic = 1;
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    static Work works[THREADS];
    pthread_t ids[THREADS];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < threads; i++) {
        works[i].rounds = atoi(argv[1]);
        MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
        MPI_Cart_create(MPI_COMM_WORLD, one, &size, &periodic, 0, &works[i].ring);
    }
    if (threads == 1) work(&works[0]);
    else {
        for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, &works[i]);
        for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    }
    for (int i = 0; i < threads; i++) {
        right &= works[i].right;
        MPI_Comm_free(&works[i].comm);
        MPI_Comm_free(&works[i].ring);
    }
    return conclude(right);
}
