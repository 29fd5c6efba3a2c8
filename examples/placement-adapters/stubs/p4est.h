/* As much of p4est's forest as the adapter calls; not p4est. */
#ifndef P4EST_H
#define P4EST_H
#include <stdint.h>
typedef int32_t p4est_locidx_t;
typedef int64_t p4est_gloidx_t;
typedef struct p4est {
    int mpisize;
    p4est_gloidx_t global_num_quadrants;
    p4est_gloidx_t *global_first_quadrant; /* mpisize + 1 of them */
} p4est_t;
p4est_gloidx_t p4est_partition_given(p4est_t *p4est, const p4est_locidx_t *num_quadrants_in_proc);
#endif
