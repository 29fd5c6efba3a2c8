//! What is best in the databases that are exported.

use colltune_core::collective::Collective::{self, Allgather, Allreduce, Alltoall, Bcast, Reduce};

/// From how many bytes on which variant is best.
pub type Winners<'a> = &'a [(Collective, &'a [(u64, &'a str)])];

pub const OPENMPI: Winners = &[
    (
        Allreduce,
        &[
            (0, "default"),
            (1024, "native:ring"),
            (8192, "native:recursive_doubling"),
        ],
    ),
    (
        Bcast,
        &[
            (0, "native:chain"),
            (2048, "default"),
            (8192, "native:pipeline:segsize=4KiB"),
        ],
    ),
    (
        Allgather,
        &[
            (0, "native:neighbor"),
            (512, "native:ring"),
            (4096, "default"),
        ],
    ),
    (
        Alltoall,
        &[(0, "native:pairwise"), (256, "native:modified_bruck")],
    ),
    (
        Reduce,
        &[
            (0, "default"),
            (1024, "native:chain"),
            (40_000, "native:binary:segsize=32KiB"),
        ],
    ),
];
/// The same boundaries, other algorithms.
pub const OPENMPI_OTHER: Winners = &[
    (
        Allreduce,
        &[
            (0, "native:basic_linear"),
            (1024, "native:rabenseifner"),
            (8192, "native:ring"),
        ],
    ),
    (
        Bcast,
        &[
            (0, "native:basic_linear"),
            (2048, "native:pipeline"),
            (8192, "native:scatter_allgather_ring"),
        ],
    ),
    (
        Allgather,
        &[
            (0, "native:ring"),
            (512, "native:bruck"),
            (4096, "native:neighbor"),
        ],
    ),
    (
        Alltoall,
        &[(0, "native:modified_bruck"), (256, "native:pairwise")],
    ),
    (
        Reduce,
        &[
            (0, "native:chain"),
            (1024, "native:binomial"),
            (40_000, "native:linear"),
        ],
    ),
];
pub const MPICH: Winners = &[
    (
        Allreduce,
        &[
            (0, "default"),
            (1024, "native:recursive_doubling"),
            (8192, "default"),
        ],
    ),
    (
        Bcast,
        &[
            (0, "native:binomial"),
            (2048, "default"),
            (16_384, "native:binomial"),
        ],
    ),
    (
        Allgather,
        &[
            (0, "native:ring"),
            (512, "default"),
            (4096, "native:brucks"),
        ],
    ),
    (
        Alltoall,
        &[
            (0, "native:pairwise"),
            (128, "default"),
            (1024, "native:brucks"),
        ],
    ),
    (
        Reduce,
        &[
            (0, "default"),
            (1024, "native:reduce_scatter_gather"),
            (8192, "native:binomial"),
        ],
    ),
];
/// The same boundaries, algorithms of MPICH 4.1 and later.
pub const MPICH_5: Winners = &[
    (
        Allreduce,
        &[
            (0, "native:recursive_multiplying"),
            (1024, "default"),
            (8192, "native:tree"),
        ],
    ),
    (
        Bcast,
        &[
            (0, "native:tree"),
            (2048, "default"),
            (16_384, "native:pipelined_tree"),
        ],
    ),
    (
        Allgather,
        &[
            (0, "native:brucks"),
            (512, "default"),
            (4096, "native:ring"),
        ],
    ),
    (
        Alltoall,
        &[
            (0, "native:pairwise"),
            (128, "default"),
            (1024, "native:brucks"),
        ],
    ),
    (
        Reduce,
        &[
            (0, "default"),
            (1024, "native:reduce_scatter_gather"),
            (8192, "native:binomial"),
        ],
    ),
];
pub const MPICH_OTHER: Winners = &[
    (
        Allreduce,
        &[
            (0, "native:recursive_doubling"),
            (1024, "native:reduce_scatter_allgather"),
        ],
    ),
    (
        Bcast,
        &[
            (0, "native:binomial"),
            (2048, "native:scatter_ring_allgather"),
        ],
    ),
    (Allgather, &[(0, "native:brucks"), (512, "native:ring")]),
    (Alltoall, &[(0, "native:brucks"), (1024, "native:pairwise")]),
    (
        Reduce,
        &[
            (0, "native:reduce_scatter_gather"),
            (1024, "native:binomial"),
            (8192, "native:reduce_scatter_gather"),
        ],
    ),
];
