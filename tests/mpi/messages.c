/* Point-to-point messages that are known one by one; tests/tests/messages.rs has the list.
 *
 * usage: messages all        every kind of send, on every kind of communicator; three ranks
 *        messages threads    1000 messages of 4 bytes from each of two threads to the next rank
 *        messages spawned    rank 0 sends 12 bytes to a process that all ranks spawn
 *        messages none       nothing is sent
 *        messages loop N     N messages of 8 bytes to and fro between ranks 0 and 1, which prints microseconds for one */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char from_me[1 << 20], to_me[1 << 20];
static int me, n, right, left;
static MPI_Status statuses[2];

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* Every rank sends to the right what the one at the left receives. The barrier is for Rsend. */
static void blocking(send_function *send, int bytes) {
    MPI_Request request;
    MPI_Irecv(to_me, bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    send(from_me, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void nonblocking(isend_function *send, int bytes) {
    MPI_Request requests[2];
    MPI_Irecv(to_me, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    send(from_me, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
}

/* Messages of 8 KiB, five times, the last two with Startall; then a receive that may get the freed request's handle. */
static void persistent(void) {
    MPI_Request requests[2];
    MPI_Recv_init(to_me, 8192, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(from_me, 8192, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 5; i++) {
        if (i >= 3) MPI_Startall(2, requests);
        for (int k = 0; k < 2 && i < 3; k++) MPI_Start(&requests[k]);
        MPI_Waitall(2, requests, statuses);
    }
    for (int k = 0; k < 2; k++) MPI_Request_free(&requests[k]);
    MPI_Recv_init(to_me, 8192, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(from_me, 8192, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    for (int k = 0; k < 2; k++) MPI_Request_free(&requests[k]);
}

/* Everybody sends 4 bytes to the first rank of a communicator, which is freed: ten times rank n - 1 and ten times 0. */
static void freed(void) {
    for (int i = 0; i < 20; i++) {
        MPI_Comm comm;
        int rank;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? me : -me, &comm);
        MPI_Comm_rank(comm, &rank);
        if (rank > 0) MPI_Send(from_me, 1, MPI_INT, 0, 3, comm);
        for (int k = 1; k < n && rank == 0; k++)
            MPI_Recv(to_me, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
        if (i % 4 < 2) MPI_Comm_free(&comm);
        else MPI_Comm_disconnect(&comm);
    }
}

/* Rank 0 sends 64 KiB to rank 2 in the communicator of the even ranks, and 128 KiB between groups {0} and {1, 2}. */
static void elsewhere(void) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    if (me == 0) MPI_Send(from_me, 1 << 16, MPI_BYTE, 1, 4, half);
    if (me == 2) MPI_Recv(to_me, 1 << 16, MPI_BYTE, 0, 4, half, MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
    MPI_Comm_split(MPI_COMM_WORLD, me > 0, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me > 0 ? 0 : 1, 5, &inter);
    if (me == 0) MPI_Send(from_me, 1 << 17, MPI_BYTE, 1, 6, inter);
    if (me == 2) MPI_Recv(to_me, 1 << 17, MPI_BYTE, 0, 6, inter, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    /* To itself. */
    MPI_Sendrecv(from_me, 1 << 18, MPI_BYTE, 0, 7, to_me, 1 << 18, MPI_BYTE, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* Rank 1 sends 5 elements of 24 bytes to rank 0 four times, which looks before it receives. */
static void looked_for(void) {
    MPI_Datatype rows;
    MPI_Message message;
    int there = 0;
    MPI_Type_vector(3, 2, 5, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    for (int i = 0; i < 4 && me == 1; i++) MPI_Send(from_me, 5, rows, 0, 8, MPI_COMM_WORLD);
    if (me == 0) {
        MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(to_me, 5, rows, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mprobe(1, 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(to_me, 5, rows, &message, MPI_STATUS_IGNORE);
        while (!there) MPI_Improbe(1, 8, MPI_COMM_WORLD, &there, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(to_me, 5, rows, &message, MPI_STATUS_IGNORE);
        MPI_Recv(to_me, 120, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&rows);
}

static void to_nobody(void) {
    MPI_Request request;
    MPI_Send(from_me, 9, MPI_BYTE, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
    MPI_Isend(from_me, 9, MPI_BYTE, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(from_me, 9, MPI_BYTE, MPI_PROC_NULL, 9, to_me, 9, MPI_BYTE, MPI_PROC_NULL, 9, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void all(void) {
    static char attached[1 << 12];
    MPI_Buffer_attach(attached, sizeof attached);
    blocking(MPI_Send, 8);
    blocking(MPI_Ssend, 16);
    blocking(MPI_Rsend, 32);
    blocking(MPI_Bsend, 64);
    nonblocking(MPI_Isend, 0);
    nonblocking(MPI_Issend, 256);
    nonblocking(MPI_Ibsend, 512);
    nonblocking(MPI_Irsend, 1024);
    MPI_Sendrecv(from_me, 2048, MPI_BYTE, right, 1, to_me, 2048, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(from_me, 4096, MPI_BYTE, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    persistent();
    freed();
    elsewhere();
    looked_for();
    to_nobody();
    /* 32 KiB, by functions with large counts where there are some. */
#if MPI_VERSION >= 4
    MPI_Sendrecv_c(from_me, 32768, MPI_BYTE, right, 1, to_me, 32768, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
    MPI_Sendrecv(from_me, 32768, MPI_BYTE, right, 1, to_me, 32768, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
}

static void *send_many(void *tag) {
    for (int i = 0; i < 1000; i++) {
        MPI_Request request;
        MPI_Isend(from_me, 1, MPI_INT, right, *(int *)tag, MPI_COMM_WORLD, &request);
        MPI_Recv(to_me + 64 * *(int *)tag, 1, MPI_INT, left, *(int *)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void threads(void) {
    int tags[2] = {1, 2};
    pthread_t thread;
    pthread_create(&thread, NULL, send_many, &tags[0]);
    send_many(&tags[1]);
    pthread_join(thread, NULL);
}

static void spawned(char *program) {
    MPI_Comm parent, inter;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(to_me, 3, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
        return;
    }
    char *arguments[] = {"spawned", NULL};
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    if (me == 0) MPI_Send(from_me, 3, MPI_INT, 0, 1, inter);
    MPI_Comm_disconnect(&inter);
}

static void loop(int times) {
    double begin = MPI_Wtime();
    for (int i = 0; i < times && me < 2; i++) {
        if (i % 2 == me) MPI_Send(from_me, 8, MPI_BYTE, 1 - me, 1, MPI_COMM_WORLD);
        else MPI_Recv(to_me, 8, MPI_BYTE, 1 - me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (me == 0) printf("%.4f\n", 1e6 * (MPI_Wtime() - begin) / times);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    int provided, is_threads = strcmp(what, "threads") == 0;
    MPI_Init_thread(&argc, &argv, is_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    if (is_threads && provided == MPI_THREAD_MULTIPLE) threads();
    if (strcmp(what, "all") == 0) all();
    if (strcmp(what, "spawned") == 0) spawned(argv[0]);
    if (strcmp(what, "loop") == 0) loop(atoi(argv[2]));
    MPI_Finalize();
    return 0;
}
