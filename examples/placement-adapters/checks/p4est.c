/* A forest of thirty quadrants on five ranks; prints the owner of each after the partition. */
#include "colltune_p4est.h"
#include <stdio.h>

p4est_gloidx_t p4est_partition_given(p4est_t *p4est, const p4est_locidx_t *num_quadrants_in_proc) {
    p4est_gloidx_t first = 0, moved = 0;
    for (int rank = 0; rank < p4est->mpisize; rank++) {
        for (p4est_gloidx_t i = first; i < first + num_quadrants_in_proc[rank]; i++) {
            moved += i < p4est->global_first_quadrant[rank] || i >= p4est->global_first_quadrant[rank + 1];
            printf("%d ", rank);
        }
        first += num_quadrants_in_proc[rank];
    }
    printf("\n");
    return first == p4est->global_num_quadrants ? moved : -2;
}

int main(void) {
    p4est_gloidx_t first[6] = {0, 6, 12, 18, 24, 30};
    p4est_t forest = {5, 30, first};
    double costs[30];
    for (int i = 0; i < 30; i++)
        costs[i] = i < 6 ? 5 : 1;
    p4est_gloidx_t moved = colltune_p4est_partition(&forest, costs, "contiguous-optimal");
    if (moved <= 0)
        return 1;
    printf("%d\n", (int)moved);
    costs[3] = -1;
    return colltune_p4est_partition(&forest, costs, "contiguous-optimal") != -1 ||
           colltune_p4est_partition(&forest, costs, "round-robin") != -1;
}
