/* What the library says of its own variables. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Reads the library's control variable `name`, its value by its name; 0 where there is none. MPICH 4.0 has names of values
 * in the description alone. MPI_T is begun. */
static inline int control(const char *name, char value[256]) {
    static char text[1 << 14];
    int index, verbosity, length = sizeof text, bind, scope, count, number = -1, n = 256;
    MPI_Datatype type;
    MPI_T_enum of;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(name, &index)) return 0;
    int of_name = 0;
    MPI_T_cvar_get_info(index, NULL, &of_name, &verbosity, &type, &of, text, &length, &bind, &scope);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    MPI_T_cvar_read(handle, &number);
    MPI_T_cvar_handle_free(&handle);
    snprintf(value, 256, "%d", number);
    if (of != MPI_T_ENUM_NULL) {
        for (int i = 0, one; !MPI_T_enum_get_item(of, i, &one, value, (n = 256, &n)); i++)
            if (one == number) break;
    } else if (strstr(name, "ALGORITHM")) {
        char *at = text, *end = text;
        for (int i = 0; i <= number && at; i++) at = strstr(end, " - "), end = at ? at + 3 : end;
        while (at && at > text && at[-1] == ' ') at--;
        /* What stands before a name ends without a space. */
        char *begin = at;
        while (begin && begin > text && strncmp(begin, "auto", 4) && strncmp(begin, "sched_", 6) && strncmp(begin, "tsp_", 4))
            begin--;
        if (at) snprintf(value, 256, "%.*s", (int)(at - begin), begin);
    }
    return 1;
}
