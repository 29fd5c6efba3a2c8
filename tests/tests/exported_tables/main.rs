//! Exported tables are obeyed by the libraries, without the shim: at both sides of every boundary
//! a call looks as it does where the library is forced to the algorithm that the table names.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use colltune_core::catalogue::{self, Facts, Steering};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::space::Range;
use colltune_tests::{Fingerprint, Job, Mpi, colltune, fingerprint, folder, job, runs_long};

mod database;
mod schema;
mod winners;

use Collective::Allreduce;
use database::database;
use winners::{MPICH, MPICH_5, MPICH_OTHER, OPENMPI, OPENMPI_OTHER, Winners};

const RANKS: [u32; 3] = [2, 3, 8];

#[test]
fn openmpi_obeys_its_rules_file_at_both_sides_of_every_boundary() {
    if let Some(mpi) = Mpi::OpenMpi.installed() {
        obeys(mpi, OPENMPI, OPENMPI_OTHER);
    }
}

#[test]
fn openmpi_5_obeys_its_rules_file_at_both_sides_of_every_boundary() {
    // Its launcher takes long to start.
    if runs_long()
        && let Some(mpi) = Mpi::OpenMpi5.installed()
    {
        obeys(mpi, OPENMPI, OPENMPI_OTHER);
    }
}

#[test]
fn mpich_obeys_its_selection_files_at_both_sides_of_every_boundary() {
    if let Some(mpi) = Mpi::Mpich.installed() {
        obeys(mpi, MPICH, MPICH_OTHER);
    }
}

#[test]
fn mpich_5_obeys_its_selection_files_at_both_sides_of_every_boundary() {
    if let Some(mpi) = Mpi::Mpich5.installed() {
        obeys(mpi, MPICH_5, MPICH_OTHER);
    }
}

/// Intel MPI shows no messages.
#[test]
fn intel_mpi_obeys_its_variables_at_both_sides_of_a_boundary() {
    if let Some(mpi) = Mpi::Intel.installed() {
        let table = adds_as_told(mpi, ["native:recursive_doubling", "native:ring"]);
        assert_eq!(table.len(), 1, "{table:?}");
    }
}

/// In its shared memory MPICH shows no messages.
#[test]
fn mpich_5_obeys_its_selection_files_in_shared_memory() {
    if let Some(mpi) = Mpi::Mpich5.installed() {
        adds_as_told(mpi, ["native:tree", "native:ring"]);
    }
}

/// Shows by the order of additions that the first allreduce is in force below 4 KiB, the second from there on; returns
/// the table.
fn adds_as_told(mpi: Mpi, names: [&'static str; 2]) -> Vec<(String, String)> {
    let [first, second] = names;
    let folder = folder();
    let table = export(
        mpi,
        &[(Allreduce, &[(0, first), (4096, second)])],
        folder.path(),
    );
    let sums = |variables: &[(String, String)]| sums(job(4).mpi(mpi), variables);
    let [below, above] = names.map(|name| sums(&forced(mpi, Allreduce, name)));
    assert_ne!(below, above, "both add in one order: this shows nothing");
    let told = [below[0].clone(), above[1].clone()];
    assert_ne!(
        sums(&[]),
        told,
        "the default adds alike: this shows nothing"
    );
    assert_eq!(sums(&table), told);
    table
}

/// The bits of allreduces of 1,023 and 1,024 floats: 4,092 and 4,096 bytes.
fn sums(job: Job, variables: &[(String, String)]) -> Vec<String> {
    let with = |job: Job, (name, value): &(String, String)| job.env(name, value);
    let outcome = variables
        .iter()
        .fold(job, with)
        .run("rounding", &["1", "1023", "1024"]);
    outcome.succeeds();
    let of_allreduce = |line: &&str| line.starts_with("allreduce ");
    let lines = outcome.stdout.lines().filter(of_allreduce);
    lines.map(str::to_owned).collect()
}

/// The library's own choice over several nodes runs allreduces among one rank of each: what is told about
/// communicators of one node is not told about these.
#[test]
fn mpich_5_keeps_its_own_choice_in_the_parts_of_a_communicator() {
    let Some(mpi) = Mpi::Mpich5.installed() else {
        return;
    };
    let folder = folder();
    let one = Range { lo: 1, hi: Some(2) };
    let more = Range { lo: 2, hi: None };
    let ring: Winners = &[(Allreduce, &[(0, "native:ring")])];
    let default: Winners = &[(Allreduce, &[(0, "default")])];
    let table = export_by_nodes(mpi, &[(one, ring), (more, default)], folder.path());
    let job = || job(8).mpi(mpi).without_short_cuts();
    assert_eq!(
        sums(job(), &table),
        sums(job(), &forced(mpi, Allreduce, "native:ring"))
    );
    // The library takes these ranks for four nodes of two.
    let on_four = || job().env("MPIR_CVAR_NUM_CLIQUES", "4");
    assert_eq!(sums(on_four(), &table), sums(on_four(), &[]));
    assert_ne!(
        sums(job(), &[]),
        sums(job(), &table),
        "both add in one order: this shows nothing"
    );
}

fn obeys(mpi: Mpi, winners: Winners, others: Winners) {
    let folder = folder();
    let table = export(mpi, winners, &folder.path().join("these"));
    assert_eq!(table.len(), 2, "{table:?}");
    let other_table = export(mpi, others, &folder.path().join("others"));
    let mut references: HashMap<(u32, Collective, u64, String), Fingerprint> = HashMap::new();
    for (collective, steps) in winners {
        let mut told_apart = 0;
        for n_ranks in RANKS {
            for bytes in sides(*collective, steps) {
                let expected = in_force(mpi, *collective, steps, n_ranks, bytes);
                let reference = references
                    .entry((n_ranks, *collective, bytes, expected.clone()))
                    .or_insert_with(|| {
                        fingerprint(
                            mpi,
                            n_ranks,
                            *collective,
                            bytes,
                            &forced(mpi, *collective, &expected),
                        )
                    });
                let seen = fingerprint(mpi, n_ranks, *collective, bytes, &table);
                assert_eq!(
                    &seen, reference,
                    "{collective}, {bytes} bytes, {n_ranks} ranks: {expected} is not in force"
                );
                if n_ranks == 8 {
                    let other = fingerprint(mpi, n_ranks, *collective, bytes, &other_table);
                    told_apart += u32::from(other != seen);
                }
            }
        }
        assert!(
            told_apart > 0,
            "{collective}: a table with other algorithms looks the same, so this test shows nothing"
        );
        println!(
            "{mpi:?} {collective}: {told_apart} of {} points differ under the other table",
            sides(*collective, steps).len()
        );
    }
}

/// Debian 12's libraries and PyPI's; other versions of them read the same tables.
fn library(mpi: Mpi) -> Library {
    let key = match mpi {
        Mpi::OpenMpi => "openmpi-4.1.4",
        Mpi::Intel => "intel-2021.19.0",
        Mpi::OpenMpi5 => "openmpi-5.0.11",
        Mpi::Mpich5 => "mpich-5.0.2",
        _ => "mpich-4.0.2",
    };
    key.parse().expect("a key")
}

/// The last size below and the first size from each boundary on; reductions have whole doubles.
fn sides(collective: Collective, steps: &[(u64, &str)]) -> Vec<u64> {
    let step = if collective.is_reduction() { 8 } else { 1 };
    let last = steps.last().map_or(0, |(from, _)| 4 * from);
    steps
        .iter()
        .skip(1)
        .flat_map(|(from, _)| [from - step, *from])
        .chain([last])
        .collect()
}

/// The winner of the cell, where its needs are met; else the default.
fn in_force(
    mpi: Mpi,
    collective: Collective,
    steps: &[(u64, &str)],
    n_ranks: u32,
    bytes: u64,
) -> String {
    let name = steps
        .iter()
        .rev()
        .find(|(from, _)| *from <= bytes)
        .expect("the first step begins at 0")
        .1;
    let variant =
        catalogue::find(library(mpi), collective, name).expect("a variant of the catalogue");
    let facts = Facts::usual(collective, bytes, n_ranks, 1);
    if variant.applies(&facts) {
        name.to_owned()
    } else {
        "default".to_owned()
    }
}

/// Variables that force a variant on every call of a collective, the library's own way.
fn forced(mpi: Mpi, collective: Collective, name: &str) -> Vec<(String, String)> {
    let variant =
        catalogue::find(library(mpi), collective, name).expect("a variant of the catalogue");
    let upper = collective.name().to_uppercase();
    match variant.steering {
        Steering::None => Vec::new(),
        Steering::OpenMpi { algorithm, .. } => vec![
            (
                "OMPI_MCA_coll_tuned_use_dynamic_rules".to_owned(),
                "1".to_owned(),
            ),
            (
                format!("OMPI_MCA_coll_tuned_{collective}_algorithm"),
                algorithm.to_string(),
            ),
            (
                format!("OMPI_MCA_coll_tuned_{collective}_algorithm_segmentsize"),
                variant.name.segsize.unwrap_or(0).to_string(),
            ),
        ],
        Steering::Intel { preset } => {
            vec![(format!("I_MPI_ADJUST_{upper}"), preset.to_string())]
        }
        Steering::Mpich { algorithm } => vec![
            (
                format!("MPIR_CVAR_{upper}_DEVICE_COLLECTIVE"),
                "0".to_owned(),
            ),
            (
                format!("MPIR_CVAR_{upper}_INTRA_ALGORITHM"),
                algorithm.to_owned(),
            ),
            (
                "MPIR_CVAR_COLLECTIVE_FALLBACK".to_owned(),
                "error".to_owned(),
            ),
        ],
    }
}

/// Exports a database with these winners and returns what its activate.sh sets.
fn export(mpi: Mpi, winners: Winners, folder: &Path) -> Vec<(String, String)> {
    let any = Range { lo: 1, hi: None };
    export_by_nodes(mpi, &[(any, winners)], folder)
}

/// The same where winners differ by the number of nodes.
fn export_by_nodes(mpi: Mpi, winners: &[(Range, Winners)], folder: &Path) -> Vec<(String, String)> {
    let db = database(library(mpi), winners, folder);
    let tables = folder.join("tables");
    let output = Command::new(colltune())
        .args(["export", "--format", mpi.product().name(), "--db"])
        .arg(&db)
        .arg("-o")
        .arg(&tables)
        .output()
        .expect("colltune starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let script = format!(". {}/activate.sh && env", tables.display());
    let output = Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .output()
        .expect("bash starts");
    let text = String::from_utf8(output.stdout).expect("variables are text");
    let set = |line: &&str| {
        ["OMPI_MCA_coll", "MPIR_CVAR", "I_MPI_ADJUST"]
            .iter()
            .any(|prefix| line.starts_with(prefix))
    };
    let pairs = text
        .lines()
        .filter(set)
        .filter_map(|line| line.split_once('='));
    let pairs: Vec<_> = pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert!(!pairs.is_empty(), "{script} sets nothing");
    pairs
}
