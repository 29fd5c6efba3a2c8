/* asks: a program that asks in which order to run three nested loops. Each epoch is a product of two matrices. */
#include <colltune.h>
#include <stdio.h>

enum { N = 256, EPOCHS = 20 };
static double a[N][N], b[N][N], c[N][N];

/* By columns of b, which lie far apart in memory, or by its rows. */
static void multiply(int by_rows) {
    memset(c, 0, sizeof c);
    for (int i = 0; i < N; i++)
        for (int one = 0; one < N; one++)
            for (int two = 0; two < N; two++) {
                int j = by_rows ? two : one, k = by_rows ? one : two;
                c[i][j] += a[i][k] * b[k][j];
            }
}

int main(int argc, char **argv) {
    static const char *const arms[] = {"columns", "rows"};
    int rank, used[2] = {0, 0};
    double sum = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = b[i][j] = 1.0 / (1 + j);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int arm = colltune_choose(MPI_COMM_WORLD, "order", 2, arms, N);
        used[arm]++;
        multiply(arm);
        sum += c[epoch][epoch];
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        colltune_done(MPI_COMM_WORLD, "order", 1); /* one product a rank */
    }
    if (rank == 0) printf("%d epochs by columns, %d by rows\n", used[0], used[1]);
    MPI_Finalize();
    return 0;
}
