/* collective_fingerprint: shows which algorithm a collective really ran, by who sent what to whom.
 *
 *     collective_fingerprint --collective allreduce|bcast|...|barrier --bytes N
 *                            [--type byte|int|double] [--times K] [--warmup W] [--root R] [--hold R] [--sends yes|no]
 *                            [--then --collective ...]
 *
 * Behind --then comes another case, which begins when the one before is reported. N is the message_bytes of the call: the
 * vector of reductions and bcast, one rank's block of allgather(v), gather(v) and scatter(v), one pair's block of
 * alltoall(v, w). Rank 0 prints one line of JSON for each case:
 *
 *     collective, bytes, type, times, ranks, library
 *     right        whether every call's result was right (exact for byte and int, within the rounding bound for double)
 *     hook         where messages were seen: "pml" (Open MPI), "ucp" (MPICH), "none" (--sends no)
 *     sends        per rank the messages that it sent inside the calls, as [peer in MPI_COMM_WORLD, bytes], in order
 *     messages     per rank the same without the order: [peer, bytes, how often], sorted
 *     order_digest, message_digest     of those two
 *     result_bits  digest of the result of a reduction, on the root or on all ranks: with --type double it depends on the order of the
 *                  additions, because the contributions differ in size by up to 2^52 and in sign
 *     same_bits    whether all ranks of an allreduce got the same bits
 *     before_hold  with --hold R, per rank how many messages it had sent when nothing moved any more without rank R, which
 *                  enters late: tells algorithms apart that send the same messages but wait at different places
 *
 * How messages are seen. Not by timing, and without the help of the tuner under test:
 *  - Open MPI (4.1, 5.0): `--mca pml_monitoring_enable 1` puts pml/monitoring between the collectives and the
 *    network; it reports each message to mca_common_monitoring_record_pml, which this program defines before the library
 *    does. (4.1.4 itself withdraws the MPI_T variables pml_monitoring_messages_* at the end of MPI_Init.) `--mca pml ob1`
 *    would shut the monitoring out.
 *  - MPICH (4.x, ch4:ucx): the same with ucp_tag_send_nbx. Debian's MPICH takes all messages through UCX. One with its own
 *    shared memory does so only under MPIR_CVAR_NOLOCAL=1, where every rank counts as a node and no `smp` algorithm can run.
 * Link with -rdynamic -ldl -lm: the definitions below must be visible to the libraries.
 *
 * Exit status: 0; 1 when a result was wrong or no message can be seen; 2 for wrong usage.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_RANKS = 1024, MAX_MESSAGES = 1 << 16, UNKNOWN = -1 };

/* ------------------------------------------------------------------ the hooks */

struct message {
    int peer, sequence;
    long bytes;
};

static struct message messages[MAX_MESSAGES];
static volatile int n_messages, counting;
static volatile long seen; /* by the hooks, counting or not */
static volatile long *posted; /* n_messages of every rank, in memory that all ranks share; for --hold */
static int world_rank, n_ranks;
static const char *hook = "none";

static void *endpoints[MAX_RANKS]; /* MPICH: the endpoint of each rank */
static int learning = UNKNOWN;     /* MPICH: the rank that the message under way goes to */

static void note(int peer, long bytes)
{
    seen++;
    if (!counting)
        return;
    if (n_messages < MAX_MESSAGES)
        messages[n_messages] = (struct message){.peer = peer, .sequence = n_messages, .bytes = bytes};
    n_messages++;
    if (posted)
        posted[world_rank] = n_messages;
}

void mca_common_monitoring_record_pml(int peer, size_t bytes, int tag)
{
    static void (*next)(int, size_t, int);
    if (!next) {
        /* The component's dependency is not in the global scope, where RTLD_NEXT looks. */
        void *library = dlopen("libmca_common_monitoring.so.50", RTLD_NOLOAD | RTLD_LAZY);
        if (!library)
            library = dlopen("libmca_common_monitoring.so.60", RTLD_NOLOAD | RTLD_LAZY);
        next = library ? (void (*)(int, size_t, int))dlsym(library, "mca_common_monitoring_record_pml") : NULL;
    }
    hook = "pml";
    note(peer, (long)bytes);
    if (next && next != mca_common_monitoring_record_pml)
        next(peer, bytes, tag);
}

/* The head of ucp_request_param_t, as UCX 1.9 and later have it. */
struct ucp_parameters {
    uint32_t fields, flags;
    void *request, *callback;
    uint64_t datatype;
};

enum { UCP_HAS_DATATYPE = 1 << 3, UCP_CLASS_MASK = 7, UCP_CLASS_SHIFT = 3 };

static void note_ucp(void *endpoint, size_t count, const struct ucp_parameters *parameters)
{
    long bytes = (long)count;
    int peer = 0;
    hook = "ucp";
    if (learning != UNKNOWN)
        endpoints[learning] = endpoint;
    while (peer < n_ranks && endpoints[peer] != endpoint)
        peer++;
    if (parameters->fields & UCP_HAS_DATATYPE)
        bytes = parameters->datatype & UCP_CLASS_MASK ? UNKNOWN : (long)(count * (parameters->datatype >> UCP_CLASS_SHIFT));
    note(peer < n_ranks ? peer : UNKNOWN, bytes);
}

typedef void *ucp_send(void *, const void *, size_t, uint64_t, const struct ucp_parameters *);

void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct ucp_parameters *parameters)
{
    static ucp_send *next;
    if (!next)
        next = (ucp_send *)dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    note_ucp(endpoint, count, parameters);
    return next(endpoint, buffer, count, tag, parameters);
}

void *ucp_tag_send_sync_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct ucp_parameters *parameters)
{
    static ucp_send *next;
    if (!next)
        next = (ucp_send *)dlsym(RTLD_NEXT, "ucp_tag_send_sync_nbx");
    note_ucp(endpoint, count, parameters);
    return next(endpoint, buffer, count, tag, parameters);
}

/* What this program needs to agree on goes through point-to-point messages: a forced algorithm concerns collectives, and may
 * refuse such small ones. */
static void hand_out(void *buffer, int bytes, int from)
{
    if (world_rank != from)
        MPI_Recv(buffer, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int rank = 0; world_rank == from && rank < n_ranks; rank++)
        if (rank != from)
            MPI_Send(buffer, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
}

static int all_of(int mine)
{
    if (world_rank != 0)
        MPI_Send(&mine, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    for (int rank = 1; world_rank == 0 && rank < n_ranks; rank++) {
        int one;
        MPI_Recv(&one, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mine &= one;
    }
    hand_out(&mine, sizeof mine, 0);
    return mine;
}

/* Sends a message to every rank: shows whether the hooks see all peers, and whose endpoint is whose. */
static int hooks_work(void)
{
    int mine = 1, byte = 0;
    for (int distance = 1; distance < n_ranks; distance++) {
        int to = (world_rank + distance) % n_ranks, from = (world_rank + n_ranks - distance) % n_ranks;
        MPI_Request request;
        MPI_Irecv(&byte, 1, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
        long before = seen;
        learning = to;
        MPI_Send(&byte, 1, MPI_BYTE, to, 0, MPI_COMM_WORLD);
        learning = UNKNOWN;
        mine &= seen == before + 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return all_of(mine);
}

/* ------------------------------------------------------------------ the collective */

enum collective {
    ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, REDUCE, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV, ALLTOALLV, ALLTOALLW,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, BARRIER, N_COLLECTIVES
};
enum type { BYTE, INT, DOUBLE, N_TYPES };
static const char *const collective_names[] = {
    "allreduce", "bcast",     "allgather",      "alltoall",             "reduce", "allgatherv", "gather", "gatherv", "scatter",
    "scatterv",  "alltoallv", "alltoallw",      "reduce_scatter", "reduce_scatter_block", "scan",   "exscan", "barrier"};
static const char *const type_names[] = {"byte", "int", "double"};

struct job {
    int collective, type, count, times, warmup, root, hold, sends;
    long bytes;
};

static int size_of(int type) { return type == BYTE ? 1 : type == INT ? (int)sizeof(int) : (int)sizeof(double); }

static uint64_t mixed(uint64_t z) /* SplitMix64's finaliser (Steele, Lea, Flood 2014) */
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Element i that rank `from` sends to rank `to` (0 where everybody gets the same). */
static double value(int type, int from, int to, int i)
{
    uint64_t bits = mixed(mixed(mixed((uint64_t)from) + (uint64_t)to) + (uint64_t)i);
    if (type == BYTE)
        return (double)(bits & 0xff);
    if (type == INT)
        return (double)(bits & 0xffff);
    return (bits >> 63 ? -1 : 1) * ldexp(1 + (double)(bits & 0xfffff) / 0x100000, (int)(bits >> 32) % 52);
}

static void store(int type, void *buffer, size_t at, double number)
{
    if (type == BYTE)
        ((unsigned char *)buffer)[at] = (unsigned char)number;
    else if (type == INT)
        ((int *)buffer)[at] = (int)number;
    else
        ((double *)buffer)[at] = number;
}

static double load(int type, const void *buffer, size_t at)
{
    return type == BYTE ? ((const unsigned char *)buffer)[at] : type == INT ? ((const int *)buffer)[at] : ((const double *)buffer)[at];
}

static int is_alltoall(int collective) { return collective == ALLTOALL || collective == ALLTOALLV || collective == ALLTOALLW; }

static int is_allgather(int collective) { return collective == ALLGATHER || collective == ALLGATHERV; }

static int is_gather(int collective) { return collective == GATHER || collective == GATHERV; }

static int is_scatter(int collective) { return collective == SCATTER || collective == SCATTERV; }

static int is_reduction(int collective)
{
    return collective == ALLREDUCE || collective == REDUCE || (collective >= REDUCE_SCATTER && collective <= EXSCAN);
}

/* What a rank gets of a vector of `count` elements: its first one, and how many. */
static int part_of(const struct job *job, int rank, int *first)
{
    int share = job->count / n_ranks, rest = job->collective == REDUCE_SCATTER ? job->count % n_ranks : 0;
    if (job->collective != REDUCE_SCATTER && job->collective != REDUCE_SCATTER_BLOCK) {
        *first = 0;
        return job->count;
    }
    *first = rank * share + (rank < rest ? rank : rest);
    return share + (rank < rest);
}

static void fill(const struct job *job, void *send)
{
    int blocks = is_alltoall(job->collective) || is_scatter(job->collective) ? n_ranks : 1;
    for (int to = 0; to < blocks; to++)
        for (int i = 0; i < job->count; i++)
            store(job->type, send, (size_t)to * job->count + i, value(job->type, world_rank, to, i));
}

static void call(const struct job *job, void *send, void *receive)
{
    MPI_Datatype type = job->type == BYTE ? MPI_BYTE : job->type == INT ? MPI_INT : MPI_DOUBLE;
    MPI_Op op = job->type == BYTE ? MPI_BXOR : MPI_SUM;
    static int counts[MAX_RANKS], at[MAX_RANKS], bytes_at[MAX_RANKS];
    static MPI_Datatype types[MAX_RANKS];
    int n = job->count, root = job->root, first;
    MPI_Comm comm = MPI_COMM_WORLD;
    for (int rank = 0; rank < n_ranks; rank++) {
        counts[rank] = job->collective == REDUCE_SCATTER ? part_of(job, rank, &first) : n;
        at[rank] = rank * n;
        bytes_at[rank] = at[rank] * size_of(job->type);
        types[rank] = type;
    }
    switch (job->collective) {
    case ALLGATHERV: MPI_Allgatherv(send, n, type, receive, counts, at, type, comm); break;
    case GATHER: MPI_Gather(send, n, type, receive, n, type, root, comm); break;
    case GATHERV: MPI_Gatherv(send, n, type, receive, counts, at, type, root, comm); break;
    case SCATTER: MPI_Scatter(send, n, type, receive, n, type, root, comm); break;
    case SCATTERV: MPI_Scatterv(send, counts, at, type, receive, n, type, root, comm); break;
    case ALLTOALLV: MPI_Alltoallv(send, counts, at, type, receive, counts, at, type, comm); break;
    case ALLTOALLW: MPI_Alltoallw(send, counts, bytes_at, types, receive, counts, bytes_at, types, comm); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(send, receive, counts, type, op, comm); break;
    case REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(send, receive, n / n_ranks, type, op, comm); break;
    case SCAN: MPI_Scan(send, receive, n, type, op, comm); break;
    case EXSCAN: MPI_Exscan(send, receive, n, type, op, comm); break;
    case BARRIER: MPI_Barrier(comm); break;
    case ALLREDUCE: MPI_Allreduce(send, receive, job->count, type, op, MPI_COMM_WORLD); break;
    case BCAST: MPI_Bcast(world_rank == job->root ? send : receive, job->count, type, job->root, MPI_COMM_WORLD); break;
    case ALLGATHER: MPI_Allgather(send, job->count, type, receive, job->count, type, MPI_COMM_WORLD); break;
    case ALLTOALL: MPI_Alltoall(send, job->count, type, receive, job->count, type, MPI_COMM_WORLD); break;
    default: MPI_Reduce(send, receive, job->count, type, op, job->root, MPI_COMM_WORLD);
    }
}

static int reduced_right(const struct job *job, const void *receive, int i)
{
    int first, ranks = job->collective == SCAN ? world_rank + 1 : job->collective == EXSCAN ? world_rank : n_ranks;
    part_of(job, world_rank, &first);
    double sum = 0, magnitude = 0, got = load(job->type, receive, (size_t)i);
    unsigned exclusive = 0;
    for (int rank = 0; rank < ranks; rank++) {
        double one = value(job->type, rank, 0, first + i);
        sum += one;
        magnitude += fabs(one);
        exclusive ^= (unsigned)one;
    }
    if (job->type == BYTE)
        return got == exclusive;
    /* Two sums of n numbers in different orders: each within (n-1) u sum|x| of the true one, to first order; 2x for the rest. */
    return fabs(got - sum) <= (job->type == DOUBLE ? 4 * n_ranks * 0x1p-53 * magnitude : 0);
}

static int is_right(const struct job *job, const void *receive)
{
    int collective = job->collective, first, count = part_of(job, world_rank, &first);
    int at_root_alone = collective == REDUCE || is_gather(collective);
    if ((collective == BCAST && world_rank == job->root) || (at_root_alone && world_rank != job->root) ||
        (collective == EXSCAN && world_rank == 0) || collective == BARRIER)
        return 1;
    int gathers = is_allgather(collective) || is_gather(collective);
    int blocks = gathers || is_alltoall(collective) ? n_ranks : 1;
    for (int from = 0; from < blocks; from++)
        for (int i = 0; i < count; i++) {
            size_t at = (size_t)from * count + i;
            double got = load(job->type, receive, at);
            int right = gathers                   ? got == value(job->type, from, 0, i)
                        : is_alltoall(collective) ? got == value(job->type, from, world_rank, i)
                        : is_scatter(collective)  ? got == value(job->type, job->root, world_rank, i)
                        : collective == BCAST     ? got == value(job->type, job->root, 0, i)
                                                  : reduced_right(job, receive, i);
            if (!right)
                return 0;
        }
    return 1;
}

/* ------------------------------------------------------------------ --hold */

/* Memory that the ranks of this machine share, whatever the library thinks of nodes. */
static volatile long *share_counters(void)
{
    char name[4096] = "";
    int file = -1;
    if (world_rank == 0) {
        const char *directory = getenv("TMPDIR");
        snprintf(name, sizeof name, "%s/collective_fingerprint.XXXXXX", directory ? directory : "/tmp");
        file = mkstemp(name);
        if (file < 0 || ftruncate(file, MAX_RANKS * sizeof(long)))
            perror(name);
    }
    hand_out(name, sizeof name, 0);
    if (world_rank != 0)
        file = open(name, O_RDWR);
    void *memory = mmap(NULL, MAX_RANKS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        unlink(name);
    if (file < 0 || memory == MAP_FAILED) {
        fprintf(stderr, "collective_fingerprint: --hold needs all ranks on one machine\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(file);
    return memory;
}

/* Returns when no rank has sent anything for half a second. */
static void wait_until_quiet(void)
{
    long sum = -1;
    for (int quiet = 0; quiet < 10; quiet++) {
        long now = 0;
        for (int rank = 0; rank < n_ranks; rank++)
            now += posted[rank];
        if (now != sum)
            quiet = 0;
        sum = now;
        usleep(50000);
    }
}

/* ------------------------------------------------------------------ the report */

static uint64_t digest(uint64_t hash, const void *bytes, size_t length) /* FNV-1a */
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static const uint64_t EMPTY_DIGEST = 0xcbf29ce484222325u;

static int by_peer_and_bytes(const void *left, const void *right)
{
    const struct message *a = left, *b = right;
    return a->peer != b->peer ? (a->peer > b->peer) - (a->peer < b->peer) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void print_messages(struct message *all, const int *counts, uint64_t *order_digest, uint64_t *message_digest)
{
    struct message *one = all;
    printf(", \"sends\": [");
    for (int rank = 0; rank < n_ranks; rank++) {
        printf("%s[", rank ? ", " : "");
        for (int i = 0; i < counts[rank]; i++, one++) {
            printf("%s[%d, %ld]", i ? ", " : "", one->peer, one->bytes);
            long entry[] = {rank, one->peer, one->bytes};
            *order_digest = digest(*order_digest, entry, sizeof entry);
        }
        printf("]");
    }
    printf("], \"messages\": [");
    one = all;
    for (int rank = 0; rank < n_ranks; rank++) {
        printf("%s[", rank ? ", " : "");
        qsort(one, (size_t)counts[rank], sizeof *one, by_peer_and_bytes);
        for (int i = 0, run; i < counts[rank]; i += run) {
            for (run = 1; i + run < counts[rank] && by_peer_and_bytes(&one[i], &one[i + run]) == 0; run++)
                ;
            printf("%s[%d, %ld, %d]", i ? ", " : "", one[i].peer, one[i].bytes, run);
            long entry[] = {rank, one[i].peer, one[i].bytes, run};
            *message_digest = digest(*message_digest, entry, sizeof entry);
        }
        one += counts[rank];
        printf("]");
    }
    printf("]");
}

static void gather_and_print_messages(void)
{
    int counts[MAX_RANKS], bytes[MAX_RANKS], offsets[MAX_RANKS], total = 0, mine = n_messages;
    uint64_t order_digest = EMPTY_DIGEST, message_digest = EMPTY_DIGEST;
    if (mine > MAX_MESSAGES) {
        fprintf(stderr, "collective_fingerprint: more than %d messages: ask for fewer --times\n", MAX_MESSAGES);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int rank = 0; world_rank == 0 && rank < n_ranks; total += bytes[rank++]) {
        bytes[rank] = counts[rank] * (int)sizeof(struct message);
        offsets[rank] = total;
    }
    struct message *all = malloc((size_t)total + 1);
    MPI_Gatherv(messages, mine * (int)sizeof(struct message), MPI_BYTE, all, bytes, offsets, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (world_rank == 0) {
        print_messages(all, counts, &order_digest, &message_digest);
        printf(", \"order_digest\": \"%016llx\", \"message_digest\": \"%016llx\"", (unsigned long long)order_digest,
               (unsigned long long)message_digest);
    }
    free(all);
}

static void print_result_bits(const struct job *job, const void *receive)
{
    int first, count = part_of(job, world_rank, &first);
    uint64_t mine = digest(EMPTY_DIGEST, receive, (size_t)count * size_of(job->type)), all[MAX_RANKS];
    int same = 1;
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (world_rank != 0)
        return;
    for (int rank = 0; rank < n_ranks; rank++)
        same &= all[rank] == all[0];
    if (job->collective == ALLREDUCE)
        printf(", \"result_bits\": \"%016llx\", \"same_bits\": %s", (unsigned long long)all[0], same ? "true" : "false");
    else if (job->collective == REDUCE)
        printf(", \"result_bits\": \"%016llx\"", (unsigned long long)all[job->root]);
    else if (is_reduction(job->collective))
        printf(", \"result_bits\": \"%016llx\"",
               (unsigned long long)digest(EMPTY_DIGEST, all, (size_t)n_ranks * sizeof *all));
}

static void print_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n\"\\")] = '\0';
    for (char *c = version; *c; c++)
        if (*c == '\t')
            *c = ' ';
    printf(", \"library\": \"%s\"", version);
}

/* ------------------------------------------------------------------ the run */

static int complain(const char *problem, const char *what)
{
    if (world_rank == 0)
        fprintf(stderr,
                "collective_fingerprint: %s%s\n"
                "usage: --collective allreduce|bcast|...|barrier --bytes N [--type byte|int|double]\n"
                "       [--times K] [--warmup W] [--root R] [--hold R] [--sends yes|no] [--then --collective ...]\n",
                problem, what);
    return 2;
}

static int index_of(const char *name, const char *const *names, int n)
{
    int index = 0;
    while (index < n && strcmp(name, names[index]))
        index++;
    return index < n ? index : UNKNOWN;
}

static int number_from(const char *text, long low, long high, long *number)
{
    char *end;
    *number = strtol(text, &end, 10);
    return *text && !*end && *number >= low && *number <= high;
}

static int read_job(int n_words, char **words, struct job *job)
{
    long bytes = UNKNOWN, times = 1, warmup = 0, root = 0, hold = UNKNOWN;
    *job = (struct job){.collective = UNKNOWN, .type = UNKNOWN, .sends = 1};
    for (int i = 0; i < n_words; i += 2) {
        const char *name = words[i], *text = i + 1 < n_words ? words[i + 1] : NULL;
        int fine;
        if (!text)
            return complain("no value for ", name);
        if (!strcmp(name, "--collective"))
            fine = (job->collective = index_of(text, collective_names, N_COLLECTIVES)) != UNKNOWN;
        else if (!strcmp(name, "--type"))
            fine = (job->type = index_of(text, type_names, N_TYPES)) != UNKNOWN;
        else if (!strcmp(name, "--bytes"))
            fine = number_from(text, 0, 1 << 30, &bytes);
        else if (!strcmp(name, "--times"))
            fine = number_from(text, 1, 1000000, &times);
        else if (!strcmp(name, "--warmup"))
            fine = number_from(text, 0, 1000000, &warmup);
        else if (!strcmp(name, "--root"))
            fine = number_from(text, 0, n_ranks - 1, &root);
        else if (!strcmp(name, "--hold"))
            fine = number_from(text, 0, n_ranks - 1, &hold);
        else if (!strcmp(name, "--sends"))
            fine = (job->sends = index_of(text, (const char *const[]){"no", "yes"}, 2)) != UNKNOWN;
        else
            return complain("unknown option ", name);
        if (!fine)
            return complain("wrong value for ", name);
    }
    if (job->collective == UNKNOWN || bytes == UNKNOWN)
        return complain("--collective and --bytes are needed", "");
    if (job->type == UNKNOWN)
        job->type = !is_reduction(job->collective) ? BYTE : bytes % 8 == 0 ? DOUBLE : bytes % 4 == 0 ? INT : BYTE;
    if (bytes % size_of(job->type))
        return complain("--bytes is no multiple of the type's size", "");
    if (hold != UNKNOWN && !job->sends)
        return complain("--hold needs --sends yes", "");
    job->bytes = bytes;
    job->count = (int)(bytes / size_of(job->type));
    job->times = (int)times;
    job->warmup = (int)warmup;
    job->root = (int)root;
    job->hold = (int)hold;
    return 0;
}

/* Runs one case and reports it; whether the results were right on all ranks. */
static int run_case(const struct job *job)
{
    long before_hold[MAX_RANKS];
    int right = 1;
    size_t length = (size_t)n_ranks * job->bytes + 1;
    void *send = malloc(length), *receive = malloc(length);
    fill(job, send);
    n_messages = 0;
    if (job->hold != UNKNOWN && !posted)
        posted = share_counters();
    if (posted)
        posted[world_rank] = 0;
    for (int k = 0; k < job->warmup; k++)
        call(job, send, receive);

    for (int k = 0; k < job->times; k++) {
        memset(receive, 0x55, length);
        MPI_Barrier(MPI_COMM_WORLD);
        if (job->hold == world_rank && k == 0) {
            wait_until_quiet();
            for (int rank = 0; rank < n_ranks; rank++)
                before_hold[rank] = posted[rank];
        }
        counting = job->sends; /* from here to the end of the call this rank sends nothing else */
        call(job, send, receive);
        counting = 0;
        right &= is_right(job, receive);
    }

    int all_right = all_of(right);
    if (world_rank == 0) {
        printf("{\"collective\": \"%s\", \"bytes\": %ld, \"type\": \"%s\", \"times\": %d, \"ranks\": %d", collective_names[job->collective],
               job->bytes, type_names[job->type], job->times, n_ranks);
        print_library();
        printf(", \"right\": %s, \"hook\": \"%s\"", all_right ? "true" : "false", job->sends ? hook : "none");
    }
    if (job->sends)
        gather_and_print_messages();
    print_result_bits(job, receive);
    if (job->hold != UNKNOWN) {
        hand_out(before_hold, n_ranks * (int)sizeof *before_hold, job->hold);
        for (int rank = 0; world_rank == 0 && rank < n_ranks; rank++)
            printf("%s%ld", rank ? ", " : ", \"before_hold\": [", before_hold[rank]);
        if (world_rank == 0)
            printf("]");
    }
    if (world_rank == 0) {
        printf("}\n");
        fflush(stdout); /* a later case may end the job */
    }
    free(send);
    free(receive);
    return all_right;
}

int main(int argc, char **argv)
{
    int status = 0, n_cases = 0, sends = 0, right = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (n_ranks > MAX_RANKS)
        status = complain("too many ranks", "");
    struct job *cases = malloc((size_t)argc * sizeof *cases); /* no more than words */
    for (int from = 1, to; status == 0 && from <= argc; from = to + 1) {
        for (to = from; to < argc && strcmp(argv[to], "--then"); to++)
            ;
        status = read_job(to - from, argv + from, &cases[n_cases]);
        sends |= cases[n_cases++].sends;
    }
    if (status == 0 && sends && n_ranks > 1 && !hooks_work()) {
        if (world_rank == 0)
            fprintf(stderr, "collective_fingerprint: no message can be seen. Open MPI: --mca pml_monitoring_enable 1 (and no "
                            "--mca pml ob1); MPICH: MPIR_CVAR_NOLOCAL=1; or --sends no\n");
        status = 1;
    }
    for (int i = 0; status == 0 && i < n_cases; i++)
        right &= run_case(&cases[i]);
    free(cases);
    MPI_Finalize();
    return status ? status : !right;
}
