/* p4est: quadrants where their costs put them, in place of p4est_partition with a weight function:
 *     moved = colltune_p4est_partition(p4est, costs, "contiguous-optimal");
 * `costs` has one entry for each quadrant of the whole forest, gathered beforehand (MPI_Allgatherv); p4est keeps
 * quadrants in curve order, so a policy that scatters them is refused. The number that moved, or -1: see
 * colltune_placement_message(). */
#ifndef P4EST_PLACEMENT_H
#define P4EST_PLACEMENT_H
#include <colltune_placement.h>
#include <p4est.h>
#include <stdlib.h>

static p4est_gloidx_t colltune_p4est_partition(p4est_t *p4est, const double *costs, const char *policy) {
    const size_t n = (size_t)p4est->global_num_quadrants, ranks = (size_t)p4est->mpisize;
    uint32_t *owners = malloc((n + 1) * sizeof *owners);
    p4est_locidx_t *counts = calloc(ranks, sizeof *counts);
    colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
    colltune_placement_certificate found = COLLTUNE_PLACEMENT_CERTIFICATE;
    p4est_gloidx_t moved = -1;
    problem.blocks = n;
    problem.costs = costs;
    problem.ranks = (uint32_t)ranks;
    problem.matching = 1; /* ranks keep their order */
    if (owners && counts && colltune_placement_place(policy, &problem, owners, n, &found) == COLLTUNE_PLACEMENT_OK &&
        found.contiguity != 0) {
        for (size_t i = 0; i < n; i++)
            counts[owners[i]]++;
        moved = p4est_partition_given(p4est, counts);
    }
    free(counts);
    free(owners);
    return moved;
}
#endif
