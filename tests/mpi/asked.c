// asked EPOCHS LOG [FAULT]: in each epoch the ranks ask for the arm of the lever `pause`, which is how many milliseconds they
// then sleep, and rank 0 adds it to LOG. It fails where ranks got different arms. With FAULT something about that is wrong. With
// `turned` the arm 0 has become the slowest one. With `timed` nobody sleeps, and rank 0 prints what a choice and an epoch's end
// take.
#include "../../include/colltune.h"

#include <math.h>
#include <unistd.h>

static const char *const arms[] = {"20", "0", "5"};
static const char *const others[] = {"5", "7", "0"};

static int is(int argc, char **argv, const char *fault) { return argc > 3 && !strcmp(argv[3], fault); }

int main(int argc, char **argv) {
    int rank, epoch, epochs;
    MPI_Comm comm = MPI_COMM_WORLD;
    FILE *log;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3) return 2;
    epochs = atoi(argv[1]);
    log = rank == 0 ? fopen(argv[2], "a") : NULL;
    if (is(argc, argv, "unchosen")) colltune_done(comm, "pause", 1);
    if (is(argc, argv, "many")) {
        const char **many = malloc(10000 * sizeof *many);
        for (int arm = 0; arm < 10000; ++arm) many[arm] = arm ? "x" : "first";
        if (colltune_choose(comm, "many", 10000, many, 1) != 0) return 3;
    }
    if (is(argc, argv, "named") && colltune_choose(comm, "a=b", 3, arms, 1) != 0) return 3;
    if (is(argc, argv, "one") && colltune_choose(comm, "one", 1, arms, 1) != 0) return 3;
    if (is(argc, argv, "timed")) {
        double choice = 0, end = 0;
        for (epoch = 0; epoch < epochs; ++epoch) {
            double start, chosen;
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
            colltune_choose(comm, "pause", 3, arms, 1);
            chosen = MPI_Wtime();
            colltune_done(comm, "pause", 1);
            choice += chosen - start;
            end += MPI_Wtime() - chosen;
        }
        if (rank == 0) printf("choice %.1f us, end %.1f us\n", 1e6 * choice / epochs, 1e6 * end / epochs);
        epochs = 0;
    }
    for (epoch = 0; epoch < epochs; ++epoch) {
        int arm = 0, range[2];
        double size = 100, work = 1;
        const char *const *offered = arms;
        if (is(argc, argv, "arms") && rank == 1) offered = others;
        if (is(argc, argv, "changes") && epoch > 2) offered = others;
        if (is(argc, argv, "work") && rank == 1) work = NAN;
        if (is(argc, argv, "nothing")) work = 0;
        if (is(argc, argv, "size")) size = 1 << (3 * rank);
        if (is(argc, argv, "freed")) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (!is(argc, argv, "missing") || rank != 1) arm = colltune_choose(comm, "pause", 3, offered, size);
        range[0] = arm;
        range[1] = -arm;
        MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (range[0] != -range[1]) MPI_Abort(MPI_COMM_WORLD, 9);
        if (log) fprintf(log, "%s\n", offered[arm]), fflush(log);
        usleep(1000 * (arm == 1 && is(argc, argv, "turned") ? 60 : atoi(offered[arm])) + 2000);
        if (is(argc, argv, "dies") && epoch == 9 && rank == 1) abort();
        if (is(argc, argv, "freed")) {
            MPI_Comm_free(&comm);
            comm = MPI_COMM_WORLD;
        } else if (!is(argc, argv, "undone") && !(is(argc, argv, "half") && rank == 1)) {
            colltune_done(comm, "pause", work);
        }
    }
    if (log) fclose(log);
    MPI_Finalize();
    return 0;
}
