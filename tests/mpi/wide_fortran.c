/* Behind the shim: plays an Open MPI that was built with -fdefault-integer-8, whose Fortran functions and handles take
 * eight bytes for an INTEGER. What is defined here is what `wide_integers` calls, and what the shim asks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int64_t Fint;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "there is no %s\n", name);
        abort();
    }
    return found;
}

/* A handle is an INTEGER, of which every bit counts. */
static MPI_Fint narrow(Fint handle) {
    if (handle < INT32_MIN || handle > INT32_MAX) {
        fprintf(stderr, "half of a handle is not the caller's: %llx\n", (unsigned long long)handle);
        abort();
    }
    return (MPI_Fint)handle;
}

#define CONVERTS(kind, name)                                     \
    kind wide_##name(Fint handle) __asm__("PMPI_" #name);        \
    kind wide_##name(Fint handle) {                              \
        kind (*from)(MPI_Fint) = (kind(*)(MPI_Fint))next("PMPI_" #name); \
        return from(narrow(handle));                             \
    }
CONVERTS(MPI_Comm, Comm_f2c)
CONVERTS(MPI_Datatype, Type_f2c)
CONVERTS(MPI_Op, Op_f2c)
CONVERTS(MPI_Request, Request_f2c)

int PMPI_Type_size(MPI_Datatype type, int *size) {
    int (*ask)(MPI_Datatype, int *) = (int (*)(MPI_Datatype, int *))next("PMPI_Type_size");
    int code = ask(type, size);
    if (type == MPI_INTEGER) *size = sizeof(Fint);
    return code;
}

static int *ints(const Fint *list, Fint comm) {
    int n;
    PMPI_Comm_size(wide_Comm_f2c(comm), &n);
    int *copy = malloc(n * sizeof *copy);
    for (int rank = 0; rank < n; rank++) copy[rank] = (int)list[rank];
    return copy;
}

void mpi_init_(Fint *code) { *code = PMPI_Init(NULL, NULL); }

void mpi_finalize_(Fint *code) { *code = PMPI_Finalize(); }

void mpi_barrier_(Fint *comm, Fint *code) { *code = PMPI_Barrier(wide_Comm_f2c(*comm)); }

void mpi_allreduce_(void *send, void *recv, Fint *count, Fint *type, Fint *op, Fint *comm, Fint *code) {
    *code = PMPI_Allreduce(send, recv, (int)*count, wide_Type_f2c(*type), wide_Op_f2c(*op), wide_Comm_f2c(*comm));
}

void mpi_allgatherv_(void *send, Fint *count, Fint *type, void *recv, Fint *counts, Fint *places, Fint *recv_type,
                     Fint *comm, Fint *code) {
    int *narrow_counts = ints(counts, *comm), *narrow_places = ints(places, *comm);
    *code = PMPI_Allgatherv(send, (int)*count, wide_Type_f2c(*type), recv, narrow_counts, narrow_places,
                            wide_Type_f2c(*recv_type), wide_Comm_f2c(*comm));
    free(narrow_counts);
    free(narrow_places);
}

void mpi_iallreduce_(void *send, void *recv, Fint *count, Fint *type, Fint *op, Fint *comm, Fint *request, Fint *code) {
    MPI_Request begun;
    *code = PMPI_Iallreduce(send, recv, (int)*count, wide_Type_f2c(*type), wide_Op_f2c(*op), wide_Comm_f2c(*comm), &begun);
    *request = PMPI_Request_c2f(begun);
}

void mpi_waitall_(Fint *n, Fint *requests, void *statuses, Fint *code) {
    (void)statuses;
    *code = MPI_SUCCESS;
    for (Fint place = 0; place < *n; place++) {
        MPI_Request request = wide_Request_f2c(requests[place]);
        int found = PMPI_Wait(&request, MPI_STATUS_IGNORE);
        if (found != MPI_SUCCESS) *code = found;
        requests[place] = PMPI_Request_c2f(request);
    }
}

/* Without a place for the code, as mpi_f08 may call it. */
void mpi_barrier_f08_(Fint *comm, Fint *code) {
    Fint found = PMPI_Barrier(wide_Comm_f2c(*comm));
    if (code) *code = found;
}
