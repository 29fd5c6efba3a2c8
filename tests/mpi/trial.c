// trial LOG CALLS FAIL_AT WAIT_AT PIPE: writes a line into LOG each time it is run, "with" or "without" the tuner, and
// makes CALLS small allreduces. TRIAL_SLEEPS_IN names a mode of the tuner in which the first one takes three seconds more,
// in its operation, as in a program that loses what its single collectives gain. Its run number FAIL_AT fails; WAIT_AT opens PIPE and never ends.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

static int log_run(const char *path) {
    const char *preload = getenv("LD_PRELOAD");
    FILE *log = fopen(path, "a+");
    if (!log) return -1;
    fprintf(log, "%s\n", preload && strstr(preload, "libcolltune.so") ? "with" : "without");
    fflush(log);
    rewind(log);
    int runs = 0;
    for (int c; (c = fgetc(log)) != EOF;) runs += c == '\n';
    fclose(log);
    return runs;
}

static void add_slowly(void *in, void *inout, int *count, MPI_Datatype *type) {
    for (int k = 0; k < *count; k++) ((double *)inout)[k] += ((double *)in)[k];
    sleep(3);
    (void)type;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, run = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 6) return 2;
    if (rank == 0) run = log_run(argv[1]);
    printf("output of the program\n");
    if (rank == 0 && run == atoi(argv[4])) {
        if (open(argv[5], O_WRONLY) < 0) return 2;
        for (;;) pause();
    }
    const char *mode = getenv("COLLTUNE_MODE"), *sleeps_in = getenv("TRIAL_SLEEPS_IN");
    if (mode && sleeps_in && !strcmp(mode, sleeps_in)) {
        double mine = rank, sum;
        MPI_Op slow;
        MPI_Op_create(add_slowly, 1, &slow);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, slow, MPI_COMM_WORLD);
        MPI_Op_free(&slow);
    }
    for (int call = 0; call < atoi(argv[2]); call++) {
        double mine = rank, sum;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    int fails = rank == 0 && run == atoi(argv[3]);
    if (fails) fprintf(stderr, "the mesh is tangled\n");
    MPI_Finalize();
    return fails ? 7 : 0;
}
