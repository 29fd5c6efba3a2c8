/* A tool that sets the variable that LATE_SWITCH names, once the library has started. With MPIR_CVAR_ENABLE_FT from the
 * start MPICH's device ch4 itself fails an assertion in its first wait (MPID_Request_is_anysource of 4.0 and later). */
#include <mpi.h>
#include <stdlib.h>

int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    const char *name = getenv("LATE_SWITCH");
    if (name) setenv(name, "1", 1);
    return code;
}
