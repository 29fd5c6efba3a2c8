// MPI's constants, which are macros, as variables that can be linked; and a check of what lib.rs says of this library:
// a function that is declared twice with different types does not compile.
#include <mpi.h>

#if HANDLES_ARE_NUMBERS
#ifdef OPEN_MPI
#error "MPICC is Open MPI's compiler, and the feature says mpich"
#endif
#define HANDLE_BYTES 4
#define STATUS_BYTES 20
#else
#ifndef OPEN_MPI
#error "MPICC is not Open MPI's compiler, and the feature says openmpi"
#endif
#define HANDLE_BYTES 8
#define STATUS_BYTES 24
#endif

_Static_assert(sizeof(MPI_Comm) == HANDLE_BYTES, "MPI_Comm");
_Static_assert(sizeof(MPI_Datatype) == HANDLE_BYTES, "MPI_Datatype");
_Static_assert(sizeof(MPI_Op) == HANDLE_BYTES, "MPI_Op");
_Static_assert(sizeof(MPI_Info) == HANDLE_BYTES, "MPI_Info");
_Static_assert(sizeof(MPI_Request) == HANDLE_BYTES, "MPI_Request");
_Static_assert(sizeof(MPI_Status) == STATUS_BYTES, "MPI_Status");
_Static_assert(MPI_SUCCESS == 0, "MPI_SUCCESS");

const MPI_Comm colltune_COMM_WORLD = MPI_COMM_WORLD;
const MPI_Comm colltune_COMM_SELF = MPI_COMM_SELF;
const MPI_Request colltune_REQUEST_NULL = MPI_REQUEST_NULL;
const MPI_Info colltune_INFO_NULL = MPI_INFO_NULL;
MPI_Status *const colltune_STATUS_IGNORE = MPI_STATUS_IGNORE;
const int colltune_COMM_TYPE_SHARED = MPI_COMM_TYPE_SHARED;
const void *const colltune_IN_PLACE = MPI_IN_PLACE;

const MPI_Datatype colltune_UINT8_T = MPI_UINT8_T;
const MPI_Datatype colltune_INT32_T = MPI_INT32_T;
const MPI_Datatype colltune_INT64_T = MPI_INT64_T;
const MPI_Datatype colltune_UINT64_T = MPI_UINT64_T;
const MPI_Datatype colltune_DOUBLE = MPI_DOUBLE;

const MPI_Op colltune_SUM = MPI_SUM;
const MPI_Op colltune_MIN = MPI_MIN;
const MPI_Op colltune_MAX = MPI_MAX;
const MPI_Op colltune_BXOR = MPI_BXOR;

// As lib.rs declares them.
int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm, int);
int MPI_Get_library_version(char *, int *);
int MPI_Comm_rank(MPI_Comm, int *);
int MPI_Comm_size(MPI_Comm, int *);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *);
int MPI_Comm_free(MPI_Comm *);
int PMPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
int PMPI_Comm_free(MPI_Comm *);

int MPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Allgatherv(const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Alltoallv(const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype,
                  MPI_Comm);
int MPI_Alltoallw(const void *, const int *, const int *, const MPI_Datatype *, void *, const int *, const int *,
                  const MPI_Datatype *, MPI_Comm);
int MPI_Barrier(MPI_Comm);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Exscan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Gather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Gatherv(const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Reduce_scatter(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Reduce_scatter_block(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Scan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Scatter(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Scatterv(const void *, const int *, const int *, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int PMPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int PMPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Barrier(MPI_Comm);
int PMPI_Ibarrier(MPI_Comm, MPI_Request *);
int PMPI_Reduce_local(const void *, void *, int, MPI_Datatype, MPI_Op);

int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Wait(MPI_Request *, MPI_Status *);
int MPI_Waitall(int, MPI_Request *, MPI_Status *);
int MPI_Waitany(int, MPI_Request *, int *, MPI_Status *);
int MPI_Request_get_status(MPI_Request, int *, MPI_Status *);
int MPI_Get_count(const MPI_Status *, MPI_Datatype, int *);
int PMPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int PMPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int PMPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int PMPI_Test(MPI_Request *, int *, MPI_Status *);
int PMPI_Wait(MPI_Request *, MPI_Status *);
int PMPI_Waitall(int, MPI_Request *, MPI_Status *);
