/* A program that starts with the most open receive there is: whatever arrives, it takes.
 *
 * usage: first_receive EXIT_CODE BYTES
 * Every rank sends one message of BYTES to each other; then all check their collectives. */
#include "step.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int code = argc > 1 ? atoi(argv[1]) : 0, bytes = argc > 2 ? atoi(argv[2]) : 8, rank, size, right = 1, more = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes + 4096);
    MPI_Request *sends = malloc(sizeof(MPI_Request) * (size_t)size);
    memset(out, 'a' + rank, (size_t)bytes);
    for (int r = 0; r < size; r++) {
        sends[r] = MPI_REQUEST_NULL;
        if (r != rank) MPI_Isend(out, bytes, MPI_CHAR, r, 40 + rank, MPI_COMM_WORLD, &sends[r]);
    }
    for (int r = 1; r < size; r++) {
        MPI_Status status;
        int got;
        MPI_Recv(in, bytes + 4096, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &got);
        right &= got == bytes && status.MPI_TAG == 40 + status.MPI_SOURCE && in[bytes - 1] == 'a' + status.MPI_SOURCE;
    }
    for (int r = 0; r < size; r++) MPI_Wait(&sends[r], MPI_STATUS_IGNORE);
    for (int k = 0; k < 50; k++) {
        right &= step(MPI_COMM_WORLD, k, 20 * k);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &more, MPI_STATUS_IGNORE);
        right &= !more;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &more, MPI_STATUS_IGNORE);
        right &= !more;
    }
    if (!right) fprintf(stderr, "rank %d: something foreign arrived\n", rank);
    free(out);
    free(in);
    free(sends);
    int failed = conclude(right);
    return failed ? 99 : code;
}
