/* Wrong on purpose, so that who looks for such faults can be seen to find them.
 *
 * usage: short_buffer     a sum of 1024 numbers into room for one
 *        short_buffer race  two threads use one communicator at once */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *sum_often(void *comm) {
    int one = 1, sum;
    for (int k = 0; k < 1000; k++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (argc > 1) {
        MPI_Comm comm = MPI_COMM_SELF;
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) pthread_create(&threads[k], NULL, sum_often, &comm);
        for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    } else {
        double *from = calloc(1024, sizeof(double)), *to = malloc(sizeof(double));
        for (int k = 0; k < 20; k++) MPI_Allreduce(from, to, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        printf("%f\n", to[0]);
    }
    MPI_Finalize();
    return 0;
}
