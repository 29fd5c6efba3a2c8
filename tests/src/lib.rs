//! Builder harness for tests that start MPI jobs.
//!
//! ```no_run
//! use colltune_tests::{Mpi, job};
//! let outcome = job(4).mpi(Mpi::OpenMpi).preload().force("allreduce=native:ring").run("collectives", &["3"]);
//! outcome.succeeds().prints("ok\n");
//! ```
//! A job has a deadline, behind which everything that it started is killed, and a panic that names
//! the command: a hang is a failure. Where an MPI library is missing, the test is counted as
//! skipped ([`skip`]), never as passed in silence.
#![forbid(unsafe_code)]

mod library;
mod program;
#[path = "../../shim/stamp.rs"]
mod stamp;
mod wheel;

mod job;
mod outcome;

mod calls;
mod skip;
mod trace;

mod cluster;
mod copies;
mod duty;

mod fingerprint;
mod forcing;
mod learned;
mod memory;
mod nodes;
mod slurm;
mod viewers;

pub use calls::{LoggedCall, assert_ranks_agree, read_log};
pub use cluster::Cluster;
pub use copies::{copy_to_run, open_to_all, write_to_run};
pub use duty::DutyCycle;
pub use fingerprint::{Fingerprint, fingerprint_of, fingerprints, fingerprints_of};
pub use forcing::own_forcing;
pub use job::{Job, Part, is_root, job, part};
pub use learned::learned;
pub use library::{
    Mpi, colltune, colltune_bench, colltune_lab, said_by, said_by_colltune, target_folder,
};
pub use nodes::{all_right_on, between_nodes, count_nodes, on_nodes};
pub use outcome::Outcome;
pub use program::{FORTRAN_INTERFACES, fortran, program, sanitized, tool, untabled};
pub use skip::{is_long, runs_long, skip};
pub use slurm::{Batch, Slurm};
pub use trace::{Trace, open_traces, read_trace, traces};
pub use viewers::{is_readable_in_a_browser, is_valid_html, seen_in_viewers};
pub use wheel::wheel;

/// A fresh folder for a test's database and logs; removed when dropped.
pub fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new()
        .prefix("colltune-test-")
        .tempdir()
        .expect("the temporary folder is writable");
    // Jobs of another user look inside, too.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("the folder is ours");
    folder
}

/// States a claim in which the MPI library plays no part, and tests it with one; long tests with each.
#[macro_export]
macro_rules! on_a_library {
    ($($(#[$doc:meta])* fn $name:ident($mpi:ident: Mpi) $body:block)*) => { $(
        $(#[$doc])*
        #[test]
        fn $name() {
            fn claim($mpi: $crate::Mpi) $body
            $crate::Mpi::any().into_iter().for_each(claim);
        }
    )* };
}

/// States a claim once and tests it with each MPI library.
#[macro_export]
macro_rules! on_each_library {
    ($($(#[$doc:meta])* fn $name:ident($mpi:ident: Mpi) $body:block)*) => { $(
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports, reason = "a claim need not use everything")]
            use super::*;

            fn claim($mpi: $crate::Mpi) $body

            #[test]
            fn openmpi() {
                if let Some(mpi) = $crate::Mpi::OpenMpi.installed() {
                    claim(mpi);
                }
            }

            #[test]
            fn mpich() {
                if let Some(mpi) = $crate::Mpi::Mpich.installed() {
                    claim(mpi);
                }
            }
        }
    )* };
}
