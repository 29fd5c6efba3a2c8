/* How persistent collectives are called in the library that this is built for. */
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define INIT(name) MPI_##name##_init
#else
#define INIT(name) MPIX_##name##_init
#endif

#ifdef MPICH_VERSION
#define IS_MPICH 1
#else
#define IS_MPICH 0
#endif
