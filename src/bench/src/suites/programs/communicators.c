/* Many communicators: a grid of ranks with its rows and columns, and new ones of both kinds every so often.
 *
 * usage: communicators STEPS LIFE
 * In each step a sum over the row, a broadcast down the column, a gathering over the row, with some computing in
 * between; after LIFE steps the communicators are made anew. */
#include <mpi.h>
#include <stdlib.h>

static void compute(double us) {
    for (double end = MPI_Wtime() + us * 1e-6; MPI_Wtime() < end;) {}
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 2000, life = argc > 2 ? atoi(argv[2]) : 200, rank, size, right = 1, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dimensions[2] = {0, 0};
    MPI_Dims_create(size, 2, dimensions);
    int columns = dimensions[1], row_of = rank / columns, column_of = rank % columns;
    MPI_Comm row = MPI_COMM_NULL, column = MPI_COMM_NULL;
    static double vector[512], gathered[512 * 64];
    for (int k = 0; k < steps; k++) {
        if (k % life == 0) {
            if (k) MPI_Comm_free(&row), MPI_Comm_free(&column);
            MPI_Comm_split(MPI_COMM_WORLD, row_of, column_of, &row);
            MPI_Comm_split(MPI_COMM_WORLD, column_of, row_of, &column);
        }
        double one = 1, sum = 0;
        compute(20);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, row);
        vector[0] = row_of == 0 ? k : -1;
        MPI_Bcast(vector, 512, MPI_DOUBLE, 0, column);
        MPI_Allgather(vector, 32, MPI_DOUBLE, gathered, 32, MPI_DOUBLE, row);
        right &= sum == columns && vector[0] == k && gathered[32 * (columns - 1)] == k;
    }
    MPI_Comm_free(&row), MPI_Comm_free(&column);
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return rank == 0 && !all;
}
