/* asks EPOCHS ARM ...: asks so many times for an arm of the lever `way` and says that the work was done. Rank 0 prints the
 * arms. Also compiled as C++, and with warnings that no caller of the header should see. */
#include "../../include/colltune.h"

int main(int argc, char **argv) {
    int rank, epoch, epochs, n_arms = argc - 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    epochs = atoi(argv[1]);
    for (epoch = 0; epoch < epochs; ++epoch) {
        const char *const *arms = (const char *const *)(argv + 2);
        int arm = colltune_choose(MPI_COMM_WORLD, "way", n_arms, arms, 8.0);
        /* The ranks must have chosen alike. */
        int mine[2], all[2];
        mine[0] = arm;
        mine[1] = -arm;
        MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (all[0] != -all[1]) MPI_Abort(MPI_COMM_WORLD, 3);
        if (rank == 0) printf("%s%s", arms[arm], epoch + 1 < epochs ? " " : "\n");
        colltune_done(MPI_COMM_WORLD, "way", 1e6);
    }
    MPI_Finalize();
    return 0;
}
