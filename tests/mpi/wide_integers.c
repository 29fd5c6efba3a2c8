/* What a Fortran program compiled with -fdefault-integer-8 does, on the library that `wide_fortran` plays.
 *
 * usage: wide_integers
 *
 * Every code is -1 before the call. Prints "ok" where all of each code was written, and all results are right. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MAX = 8, CALLS = 40 };

static int64_t n_wrong;

static void expect(const char *what, int64_t found, int64_t wanted) {
    if (found == wanted) return;
    n_wrong++;
    fprintf(stderr, "%s: %lld instead of %lld\n", what, (long long)found, (long long)wanted);
}

/* By their names alone, as a Fortran compiler calls them: mpi.h knows them with narrow INTEGERs or not at all. */
#define CALL(name, ...)                                                 \
    do {                                                                \
        int64_t code = -1;                                              \
        void (*function)() = (void (*)())dlsym(RTLD_DEFAULT, name);     \
        if (!function) abort();                                         \
        function(__VA_ARGS__ __VA_OPT__(,) &code);                      \
        expect(name, code, MPI_SUCCESS);                                \
    } while (0)

int main(void) {
    CALL("mpi_init_");
    int rank, n;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (n > RANKS_MAX) return 2;
    int64_t comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT64_T), sum = MPI_Op_c2f(MPI_SUM);
    int64_t counts[RANKS_MAX], places[RANKS_MAX], one = 1, two = 2;
    for (int i = 0; i < n; i++) {
        counts[i] = i + 1;
        places[i] = i * (i + 1) / 2;
    }
    for (int call = 0; call < CALLS; call++) {
        int64_t own = rank + call, total = -1;
        CALL("mpi_allreduce_", &own, &total, &one, &type, &sum, &comm);
        expect("sum", total, n * (n - 1) / 2 + (int64_t)n * call);

        int64_t block[RANKS_MAX], all[RANKS_MAX * (RANKS_MAX + 1) / 2] = {0};
        for (int i = 0; i <= rank; i++) block[i] = 100 * rank + i + call;
        CALL("mpi_allgatherv_", block, &counts[rank], &type, all, counts, places, &type, &comm);
        for (int from = 0; from < n; from++)
            for (int i = 0; i <= from; i++) expect("block", all[places[from] + i], 100 * from + i + call);

        int64_t requests[2] = {-1, -1}, totals[2] = {0};
        for (int i = 0; i < 2; i++) CALL("mpi_iallreduce_", &own, &totals[i], &one, &type, &sum, &comm, &requests[i]);
        CALL("mpi_waitall_", &two, requests, NULL);
        for (int i = 0; i < 2; i++) expect("nonblocking sum", totals[i], n * (n - 1) / 2 + (int64_t)n * call);

        CALL("mpi_barrier_", &comm);
        void (*barrier)(int64_t *, int64_t *) = (void (*)(int64_t *, int64_t *))dlsym(RTLD_DEFAULT, "mpi_barrier_f08_");
        if (!barrier) abort();
        barrier(&comm, NULL);
    }
    CALL("mpi_finalize_");
    if (n_wrong > 0) return 1;
    if (rank == 0) puts("ok");
    return 0;
}
