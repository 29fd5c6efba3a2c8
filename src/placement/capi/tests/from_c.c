/* Uses every function of the header as a C program would; prints the owners of the policies that are named, by hash. */
#include "colltune_placement.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                            \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "line %d: %s; failed to %s\n", __LINE__, #condition,     \
                    colltune_placement_message());                                   \
            return 1;                                                                \
        }                                                                            \
    } while (0)

int main(void) {
    double costs[8] = {3, 1, 1, 1, 2, 2, 4, 2};
    uint32_t owners[8], limited[8], before[8] = {0};
    colltune_octant octants[8];
    uint64_t keys[8];
    colltune_machine machine = {{1e-3, 0}, {1e-2, 0}};
    uint64_t offsets[9] = {0, 1, 2, 3, 4, 5, 6, 7, 7}, bytes[7] = {9, 9, 9, 9, 9, 9, 9};
    uint32_t neighbours[7] = {1, 2, 3, 4, 5, 6, 7};
    for (uint32_t i = 0; i < 8; i++)
        octants[i] = (colltune_octant){(i & 1) << 20, (i >> 1 & 1) << 20, (i >> 2) << 20, 1};

    colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
    problem.blocks = 8;
    problem.costs = costs;
    problem.ranks = 4;
    problem.ranks_per_node = 2;
    problem.octants = octants;
    problem.dimensions = 3;
    problem.graph_offsets = offsets;
    problem.graph_neighbours = neighbours;
    problem.graph_bytes = bytes;
    problem.graph_edges = 7;
    problem.owners = before;
    problem.bytes_per_block = 100;
    problem.machine = &machine;

    colltune_placement_certificate found = COLLTUNE_PLACEMENT_CERTIFICATE, again = found;
    EXPECT(colltune_placement_place("lpt-swap", &problem, owners, 8, &found) == COLLTUNE_PLACEMENT_OK);
    EXPECT(found.makespan == 4 && found.bound == 4 && found.gap == 0 && found.optimal == 1);
    EXPECT(found.same_rank.messages + found.same_node.messages + found.remote.messages == 7);
    EXPECT(found.same_rank.bytes + found.same_node.bytes + found.remote.bytes == 63);
    EXPECT(found.migrated_bytes == 100 * found.migrated_blocks && found.migrated_blocks > 0);
    EXPECT(found.hash == colltune_placement_hash(owners, 8));
    EXPECT(colltune_placement_certify(&problem, owners, 8, &again) == COLLTUNE_PLACEMENT_OK);
    EXPECT(again.makespan == found.makespan && again.hash == found.hash);

    EXPECT(colltune_placement_limit_migration(&problem, owners, 8, 0.5, UINT64_MAX, UINT64_MAX, limited) == 0);
    int moved = 0;
    for (int i = 0; i < 8; i++)
        moved += limited[i] != before[i];
    EXPECT(moved == 4);

    EXPECT(colltune_placement_keys("morton", 3, octants, 8, keys) == COLLTUNE_PLACEMENT_OK);
    for (uint64_t i = 0; i < 8; i++)
        EXPECT(keys[i] == i << 60);
    EXPECT(colltune_placement_keys("peano", 3, octants, 8, keys) == COLLTUNE_PLACEMENT_NAME);

    costs[5] = NAN;
    EXPECT(colltune_placement_place("lpt", &problem, owners, 8, NULL) == COLLTUNE_PLACEMENT_VALUE);
    EXPECT(strstr(colltune_placement_message(), "block 5"));
    costs[5] = 2;
    EXPECT(colltune_placement_place("no such policy", &problem, owners, 8, NULL) == COLLTUNE_PLACEMENT_NAME);
    EXPECT(colltune_placement_place("lpt", NULL, owners, 8, NULL) == COLLTUNE_PLACEMENT_NULL);

    EXPECT(colltune_placement_version() == COLLTUNE_PLACEMENT_VERSION);

    /* A slow rank gets less. */
    double speeds[4] = {1, 1, 1, 0.25};
    problem.speeds = speeds;
    EXPECT(colltune_placement_place("lpt-swap", &problem, owners, 8, &found) == COLLTUNE_PLACEMENT_OK);
    EXPECT(found.makespan >= found.bound && found.makespan <= 6);
    problem.speeds = NULL;

    /* The neighbours of eight cubes in a cube: each touches the seven others. */
    colltune_contact_bytes contact = {64, 8, 1};
    uint64_t rows[9], sizes[56];
    uint32_t others[56];
    size_t edges = 0;
    EXPECT(colltune_placement_neighbours(3, octants, 8, &contact, NULL, NULL, NULL, 0, &edges) == 0 && edges == 56);
    EXPECT(colltune_placement_neighbours(3, octants, 8, &contact, rows, others, sizes, 55, &edges) ==
           COLLTUNE_PLACEMENT_VALUE);
    EXPECT(colltune_placement_neighbours(3, octants, 8, &contact, rows, others, sizes, 56, &edges) == 0);
    EXPECT(rows[8] == 56 && others[0] == 1 && sizes[0] == 64 && others[6] == 7 && sizes[6] == 1);

    /* Measured costs are smoothed, and follow the mesh. */
    colltune_placement_costs *measured = NULL;
    double times[8] = {1, 1, 1, 1, 1, 1, 1, 9}, known[8];
    EXPECT(colltune_placement_costs_new(3, octants, 8, 0.5, 0, &measured) == COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_costs_observe(measured, times, 8) == COLLTUNE_PLACEMENT_OK);
    times[0] = 3;
    EXPECT(colltune_placement_costs_observe(measured, times, 8) == COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_costs_observe(measured, times, 7) == COLLTUNE_PLACEMENT_VALUE);
    EXPECT(colltune_placement_costs_get(measured, known, 8) == COLLTUNE_PLACEMENT_OK);
    EXPECT(known[0] == 2 && known[1] == 1 && known[7] == 9);
    colltune_octant root = {0, 0, 0, 0};
    EXPECT(colltune_placement_costs_adapt(measured, &root, 1) == COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_costs_get(measured, known, 1) == COLLTUNE_PLACEMENT_OK && known[0] == 17);
    EXPECT(colltune_placement_costs_get(NULL, known, 1) == COLLTUNE_PLACEMENT_NULL);
    colltune_placement_costs_free(measured);
    colltune_placement_costs_free(NULL);
    EXPECT(colltune_placement_costs_new(3, octants, 8, 2, 0, &measured) == COLLTUNE_PLACEMENT_VALUE);

    /* A run decides step after step, and may change its policy. */
    colltune_placement_balancer *run = NULL;
    double work[4] = {3, 1, 1, 1};
    uint32_t at[4] = {0, 0, 1, 1};
    int placed = -1;
    colltune_placement_problem blocks = COLLTUNE_PLACEMENT_PROBLEM;
    blocks.blocks = 4;
    blocks.costs = work;
    blocks.ranks = 2;
    EXPECT(colltune_placement_balancer_new("contiguous", "sometimes", 9, &run) != COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_balancer_new("contiguous", "imbalance:0.2", 9, &run) == COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_balancer_step(run, 1, 0, &blocks, 0, 0, at, 4, &placed) != COLLTUNE_PLACEMENT_OK);
    blocks.owners = at;
    EXPECT(colltune_placement_balancer_step(run, 1, 0, &blocks, 0, 0, at, 4, &placed) == COLLTUNE_PLACEMENT_OK);
    EXPECT(placed == 1 && at[0] == 0 && at[1] == 0 && at[2] == 1 && at[3] == 1);
    EXPECT(colltune_placement_balancer_use(run, "nothing") != COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_balancer_use(run, "contiguous-optimal") == COLLTUNE_PLACEMENT_OK);
    EXPECT(colltune_placement_balancer_step(run, 2, 0, &blocks, 0, 0, at, 4, &placed) == COLLTUNE_PLACEMENT_OK);
    EXPECT(placed == 1 && at[0] == 0 && at[1] == 1 && at[2] == 1 && at[3] == 1);
    EXPECT(colltune_placement_balancer_step(run, 3, 0, &blocks, 0, 0, at, 4, &placed) == COLLTUNE_PLACEMENT_OK);
    EXPECT(placed == 0 && at[1] == 1);
    EXPECT(colltune_placement_balancer_step(run, 4, 0, &blocks, 0, 0, at, 3, &placed) == COLLTUNE_PLACEMENT_VALUE);
    EXPECT(colltune_placement_balancer_step(NULL, 4, 0, &blocks, 0, 0, at, 4, &placed) == COLLTUNE_PLACEMENT_NULL);
    colltune_placement_balancer_free(run);

    /* The list of policies ends. */
    size_t listed = 0;
    while (colltune_placement_policy(listed))
        listed++;
    EXPECT(listed >= 15);

    /* The owners of each policy that is named on standard input, by hash. */
    char policy[64];
    while (fgets(policy, sizeof policy, stdin)) {
        policy[strcspn(policy, "\n")] = 0;
        EXPECT(colltune_placement_place(policy, &problem, owners, 8, NULL) == COLLTUNE_PLACEMENT_OK);
        printf("%s %016" PRIx64 "\n", policy, colltune_placement_hash(owners, 8));
    }
    return 0;
}
