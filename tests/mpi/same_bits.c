/* Allreduces of floats whose sums round: all ranks have the same bits.
 *
 * usage: same_bits [ordered]
 * "ordered": also of maxima of zeros of both signs and of what is no number, where it matters which operand is the first.
 * Prints "ok" where no two ranks differ. */
#include "step.h"
#include <math.h>

static int rank, size, right = 1;

static void check(const float *values, int count, const char *what, int in_place) {
    uint64_t hash = 1469598103934665603u, lowest, highest;
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    MPI_Reduce(&hash, &lowest, 1, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&hash, &highest, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && lowest != highest) {
        fprintf(stderr, "ranks differ: %s of %d floats on %d ranks%s\n", what, count, size, in_place ? ", in place" : "");
        right = 0;
    }
}

/* Commutes, as the program says, and rounds. */
static void mean(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    float *a = from, *b = to;
    for (int i = 0; i < *count; i++) b[i] = (a[i] + b[i]) * 0.7f;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int ordered = argc > 1 && !strcmp(argv[1], "ordered"), counts[] = {1, 2, 7, 100, 3000, 20000};
    MPI_Op own;
    MPI_Op_create(mean, 1, &own);
    float *a = malloc(20000 * sizeof *a), *b = malloc(20000 * sizeof *b);
    uint64_t state = 77u + (uint64_t)rank;
    for (int round = 0; round < 3; round++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int way = 0; way < 2 * (2 + ordered); way++) {
                int count = counts[c], in_place = way % 2, which = way / 2;
                MPI_Op ops[] = {MPI_SUM, own, MPI_MAX};
                const char *names[] = {"sum", "own operation", "maximum"};
                for (int i = 0; i < count; i++) {
                    a[i] = ldexpf((float)(next_random(&state) % 4000001) - 2000000.f, (int)(next_random(&state) % 40) - 20);
                    if (which == 2) a[i] = i % 3 == 0 ? (rank % 2 ? 0.f : -0.f) : i % 3 == 1 && rank == i % size ? NAN : a[i];
                }
                /* The smallest case: each other order of additions rounds otherwise. */
                float four[] = {1e6f, -1e6f, 1e-2f, 1e-2f};
                if (which == 0) a[0] = rank < 4 ? four[rank] : 1e-2f;
                memcpy(b, a, (size_t)count * sizeof *b);
                MPI_Allreduce(in_place ? MPI_IN_PLACE : a, b, count, MPI_FLOAT, ops[which], MPI_COMM_WORLD);
                check(b, count, names[which], in_place);
            }
    free(a), free(b);
    MPI_Op_free(&own);
    return conclude(right);
}
