/* Places the blocks of an adaptive mesh on ranks, and certifies how good a placement is.
 *
 * Link with -lcolltune_placement. No function uses MPI, keeps a pointer that it was given, or lets
 * an error of the library end the program: each returns a code, and a message tells the rest.
 * All functions may be called from several threads at once.
 *
 *   double costs[6] = {3, 1, 1, 1, 2, 2};
 *   uint32_t owners[6];
 *   colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
 *   problem.blocks = 6; problem.costs = costs; problem.ranks = 2;
 *   if (colltune_placement_place("lpt-swap", &problem, owners, 6, NULL) != COLLTUNE_PLACEMENT_OK)
 *       fprintf(stderr, "failed to %s\n", colltune_placement_message());
 */
#ifndef COLLTUNE_PLACEMENT_H
#define COLLTUNE_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header: major * 10000 + minor * 100 + patch. Structures grow at their ends and begin with their
 * size, so a program and a library of different versions work together: what an older program does not tell counts as
 * 0, and a newer program is refused only where it sets what an older library does not know. */
#define COLLTUNE_PLACEMENT_VERSION 200

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns. */
enum {
    COLLTUNE_PLACEMENT_OK = 0,
    COLLTUNE_PLACEMENT_NULL = 1,    /* a pointer that is needed is NULL */
    COLLTUNE_PLACEMENT_VALUE = 2,   /* a number, a length or an array is not valid */
    COLLTUNE_PLACEMENT_NAME = 3,    /* there is no policy or curve of that name */
    COLLTUNE_PLACEMENT_NEEDS = 4,   /* the policy needs a part of the problem that is missing */
    COLLTUNE_PLACEMENT_FAILED = 5,  /* the policy gave up */
    COLLTUNE_PLACEMENT_INTERNAL = 6 /* a bug of the library */
};

/* A square or cube of side 2^(21 - level), named by its lower corner in units of the finest level:
 * each coordinate is below 2^21 and a multiple of the side; z is 0 in two dimensions. */
typedef struct colltune_octant {
    uint32_t x, y, z;
    uint8_t level; /* at most 21 */
} colltune_octant;

/* A message of b bytes takes latency + b * per_byte, in the unit of the costs. */
typedef struct colltune_link {
    double latency, per_byte;
} colltune_link;

typedef struct colltune_machine {
    colltune_link same_node, remote;
} colltune_machine;

/* What is to be placed. Everything per block is in curve order and `blocks` long. Start from
 * COLLTUNE_PLACEMENT_PROBLEM, set blocks, costs and ranks, and whatever else is known. */
typedef struct colltune_placement_problem {
    size_t struct_size;         /* sizeof(colltune_placement_problem) */
    size_t blocks;
    const double *costs;        /* finite, at least 0 */
    uint32_t ranks;             /* at least 1, at most 2^26 */
    uint32_t ranks_per_node;    /* 0 is taken as 1 */
    const colltune_octant *octants; /* or NULL */
    uint8_t dimensions;         /* 2 or 3, if there are octants */
    uint8_t root_level;         /* the level of a block that is not refined */
    const uint64_t *graph_offsets; /* blocks + 1 of them, or NULL: row b is offsets[b] .. offsets[b + 1] */
    const uint32_t *graph_neighbours; /* the blocks that block b sends to */
    const uint64_t *graph_bytes;      /* the size of each message */
    size_t graph_edges;         /* the length of the two arrays above */
    const uint32_t *owners;     /* the present owners, or NULL */
    uint32_t blocks_per_rank_max; /* 0: no limit */
    uint64_t bytes_per_block;   /* for the bytes of a migration */
    const colltune_machine *machine; /* or NULL */
    uint32_t threads;           /* ignored: a policy runs on the thread that calls */
    uint32_t reserved;          /* 0 */
    /* Since 0.2.0. */
    const double *speeds;       /* one per rank, above 0, or NULL: a block of cost 1 takes a rank 1 / speed */
    uint32_t matching;          /* with owners, ranks are renumbered so that little moves: 0 but for placements in curve
                                 * order, 1 never, 2 always */
    uint32_t reserved_too;      /* 0 */
    const uint64_t *memory_of_blocks; /* what each block needs of memory, or NULL */
    const uint64_t *memory_of_ranks;  /* what each rank has, if there is the one above */
} colltune_placement_problem;

#define COLLTUNE_PLACEMENT_PROBLEM { sizeof(colltune_placement_problem) }

typedef struct colltune_traffic {
    uint64_t messages, bytes;
} colltune_traffic;

/* What a placement is worth. Start from COLLTUNE_PLACEMENT_CERTIFICATE. */
typedef struct colltune_placement_certificate {
    size_t struct_size;  /* sizeof(colltune_placement_certificate) */
    double makespan;     /* the time of the rank that takes longest: its load over its speed */
    double mean;         /* all costs over all speeds */
    double bound;        /* no placement has a smaller makespan */
    double gap;          /* makespan / bound - 1 */
    int32_t optimal;     /* 0 not proved, 1 it meets the bound, 2 proved by the policy */
    int32_t contiguity;  /* 0 scattered, 1 contiguous, 2 no contiguous placement is better */
    uint32_t blocks_per_rank_max;
    /* Messages of one exchange, over the graph or else between neighbours on the curve. */
    colltune_traffic same_rank, same_node, remote;
    double curve_score;  /* per block: 0 same rank, 1 adjacent rank, 2 same node, 3 elsewhere */
    uint64_t migrated_blocks, migrated_bytes; /* 0 without present owners */
    uint64_t hash;       /* xxh3-64 of the owners as little-endian 32-bit numbers */
    /* Since 0.2.0. */
    uint64_t ranks_over_memory; /* ranks whose blocks need more than the rank has: 0 if the placement is allowed */
    uint64_t over_memory_max;   /* how much more, at most */
} colltune_placement_certificate;

#define COLLTUNE_PLACEMENT_CERTIFICATE { sizeof(colltune_placement_certificate) }

/* The version of the library, as COLLTUNE_PLACEMENT_VERSION counts. */
uint32_t colltune_placement_version(void);

/* Chooses the owners by a policy, such as "contiguous", "lpt-swap" or "cplx:50". A policy that does not heed unequal
 * speeds is refused where there are such. In builds with METIS "graphlb" calls srand() of the C library: a program
 * that uses rand() finds its sequence begun anew. `n_owners` is the
 * length of `owners` and has to equal the number of blocks. `certificate` may be NULL. Nothing is
 * written unless the result is COLLTUNE_PLACEMENT_OK. */
int colltune_placement_place(const char *policy, const colltune_placement_problem *problem,
                             uint32_t *owners, size_t n_owners,
                             colltune_placement_certificate *certificate);

/* Judges owners, whoever chose them. */
int colltune_placement_certify(const colltune_placement_problem *problem, const uint32_t *owners,
                               size_t n_owners, colltune_placement_certificate *certificate);

/* Goes from the present owners (problem->owners) towards `proposed` as far as is allowed:
 * `keep_fraction` of the blocks stay, and at most `blocks_max` blocks and `bytes_max` bytes move
 * (UINT64_MAX: no limit). `owners` may be `proposed`. */
int colltune_placement_limit_migration(const colltune_placement_problem *problem,
                                       const uint32_t *proposed, size_t n_owners,
                                       double keep_fraction, uint64_t blocks_max,
                                       uint64_t bytes_max, uint32_t *owners);

/* The positions of octants on the curve "morton" or "hilbert": sorting by key, then level, gives the
 * curve order. */
int colltune_placement_keys(const char *curve, uint8_t dimensions, const colltune_octant *octants,
                            size_t n, uint64_t *keys);

typedef struct colltune_contact_bytes {
    uint64_t face, edge, corner; /* 0: such blocks send each other nothing; in two dimensions there are no edges */
} colltune_contact_bytes;

/* The neighbour graph of `n` leaves that do not overlap, for a problem: `offsets` has n + 1 entries, the other two
 * arrays have `room`. `edges` is the number of neighbours in all; with NULL for both and no room only that is told. */
int colltune_placement_neighbours(uint8_t dimensions, const colltune_octant *octants, size_t n,
                                  const colltune_contact_bytes *contact, uint64_t *offsets,
                                  uint32_t *neighbours, uint64_t *bytes, size_t room, size_t *edges);

/* Measured costs: smoothed from step to step, and carried through refinement. A handle may be used by one thread at a
 * time, and is the same on every rank if the same is done to it there. */
typedef struct colltune_placement_costs colltune_placement_costs;

/* A handle for the leaves `octants`. `weight` in (0, 1] is that of a new measurement; 0: 0.3. A refined block costs its
 * part of its parent's cost, or with `repeats` as much as that. */
int colltune_placement_costs_new(uint8_t dimensions, const colltune_octant *octants, size_t n,
                                 double weight, int repeats, colltune_placement_costs **costs);

/* Takes in a time for each leaf; NaN where there is none. Times beyond four times the old cost are damped. */
int colltune_placement_costs_observe(colltune_placement_costs *costs, const double *times, size_t n);

/* The mesh has changed to `octants`. */
int colltune_placement_costs_adapt(colltune_placement_costs *costs, const colltune_octant *octants,
                                   size_t n);

/* The costs of the leaves, for a problem; of what was never measured the mean of the others, or 1. */
int colltune_placement_costs_get(colltune_placement_costs *costs, double *values, size_t n);

/* Ends a handle; NULL is none. */
void colltune_placement_costs_free(colltune_placement_costs *costs);

/* When and how one run places its blocks anew, step after step: a policy that may be replaced, a trigger, how long
 * meshes live, and what was not worth it. A handle may be used by one thread at a time, and decides alike on every
 * rank if the same is told to it there. */
typedef struct colltune_placement_balancer colltune_placement_balancer;

/* A handle for a run before its first step, 1. `trigger` says when a policy is asked: "never", "every:N", "mesh-change",
 * "imbalance:X" (makespan above 1 + X times the mean) or "break-even" (the gain exceeds what placing and moving take). A
 * mesh is first expected to live for `mesh_life` steps. */
int colltune_placement_balancer_new(const char *policy, const char *trigger, double mesh_life,
                                    colltune_placement_balancer **balancer);

/* Blocks are placed by `policy` from now on, whenever the trigger asks. */
int colltune_placement_balancer_use(colltune_placement_balancer *balancer, const char *policy);

/* Decides after `step`. `problem` has the costs and the present owners; `mesh_changed` is 1 if the mesh has in this step.
 * For "break-even", `placing` is the time of computing a placement and `per_byte` that of moving a byte, of which a block
 * has problem->bytes_per_block; both in the unit of the costs. `placed` becomes 1 if `owners` are new ones, and 0 if they
 * are the present ones. `owners` may be problem->owners. */
int colltune_placement_balancer_step(colltune_placement_balancer *balancer, uint64_t step, int mesh_changed,
                                     const colltune_placement_problem *problem, double placing,
                                     double per_byte, uint32_t *owners, size_t n_owners, int *placed);

/* Ends a handle; NULL is none. */
void colltune_placement_balancer_free(colltune_placement_balancer *balancer);

/* The hash of an assignment; 0 if `owners` is NULL and n is not 0. */
uint64_t colltune_placement_hash(const uint32_t *owners, size_t n);

/* The name of policy `index` with what may follow it, such as "cplx:0..100|auto"; NULL behind the
 * last one. Valid for ever. */
const char *colltune_placement_policy(size_t index);

/* What went wrong in this thread's last call; reads after "failed to". Empty after a success; valid
 * until this thread's next call. */
const char *colltune_placement_message(void);

#ifdef __cplusplus
}
#endif

#endif
