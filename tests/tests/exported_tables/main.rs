//! Exported tables are obeyed by the libraries, without the shim: at both sides of every boundary
//! a call looks as it does where the library is forced to the algorithm that the table names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use colltune_core::catalogue::{self, Facts, Steering};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::space::Range;
use colltune_core::variant::DEFAULT;
use colltune_tests::{Fingerprint, Job, Mpi, colltune, fingerprints, folder, job, runs_long};

mod database;
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

/// The library's own choice over several nodes runs allreduces among one rank of each: rules for communicators of one
/// node do not apply to these.
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
    for n_ranks in RANKS {
        let points = points(mpi, winners, n_ranks);
        let cases: Vec<_> = points.iter().map(|point| point.case).collect();
        let references = references(mpi, &points, n_ranks);
        let seen = fingerprints(mpi, n_ranks, &cases, &table);
        for (point, seen) in points.iter().zip(&seen) {
            let ((collective, bytes), expected) = (point.case, point.expected);
            assert_eq!(
                seen, &references[&point.case],
                "{collective}, {bytes} bytes, {n_ranks} ranks: {expected} is not in force"
            );
        }
        if n_ranks == 8 {
            let under_other = fingerprints(mpi, n_ranks, &cases, &other_table);
            for (collective, _) in winners {
                let of_both = cases.iter().zip(seen.iter().zip(&under_other));
                let of_both = of_both.filter(|((of, _), _)| of == collective);
                let differ: Vec<bool> = of_both.map(|(_, (seen, other))| seen != other).collect();
                let told_apart = differ.iter().filter(|differs| **differs).count();
                assert!(
                    told_apart > 0,
                    "{collective}: a table with other algorithms looks the same, so this test shows nothing"
                );
                println!(
                    "{mpi:?} {collective}: {told_apart} of {} points differ under the other table",
                    differ.len()
                );
            }
        }
    }
}

/// A collective, and with how many bytes it is called.
type Case = (Collective, u64);

/// A call at one side of a boundary.
struct Point<'a> {
    case: Case,
    /// The variant that is in force there.
    expected: &'a str,
    /// Its place among its collective's winners; the default has none.
    place: Option<usize>,
}

/// The calls at both sides of every boundary.
fn points<'a>(mpi: Mpi, winners: Winners<'a>, n_ranks: u32) -> Vec<Point<'a>> {
    let of_one = |&(collective, steps): &(Collective, &'a [(u64, &'a str)])| {
        let sizes = sides(collective, steps).into_iter();
        sizes.map(move |bytes| in_force(mpi, (collective, bytes), steps, n_ranks))
    };
    winners.iter().flat_map(of_one).collect()
}

/// How each point looks where the library is forced to what is in force there: one job for each place, whose winners
/// of all collectives it forces at once, and one in which nothing is forced. No winner runs another collective inside,
/// so what is forced for one leaves the others as they are.
fn references(mpi: Mpi, points: &[Point], n_ranks: u32) -> HashMap<Case, Fingerprint> {
    let mut jobs: BTreeMap<Option<usize>, Vec<&Point>> = BTreeMap::new();
    for point in points {
        jobs.entry(point.place).or_default().push(point);
    }
    let of_job = |points: Vec<&Point>| {
        let cases: Vec<_> = points.iter().map(|point| point.case).collect();
        let variables: BTreeSet<_> = points
            .iter()
            .flat_map(|point| forced(mpi, point.case.0, point.expected))
            .collect();
        let variables: Vec<_> = variables.into_iter().collect();
        let seen = fingerprints(mpi, n_ranks, &cases, &variables);
        cases.into_iter().zip(seen)
    };
    jobs.into_values().flat_map(of_job).collect()
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

/// A call, with the winner of its cell where the winner's needs are met, else with the default.
fn in_force<'a>(mpi: Mpi, case: Case, steps: &'a [(u64, &'a str)], n_ranks: u32) -> Point<'a> {
    let (collective, bytes) = case;
    let place = steps
        .iter()
        .rposition(|(from, _)| *from <= bytes)
        .expect("the first step begins at 0");
    let winner = steps[place].1;
    let variant =
        catalogue::find(library(mpi), collective, winner).expect("a variant of the catalogue");
    let facts = Facts::usual(collective, bytes, n_ranks, 1);
    let (expected, place) = if variant.is_steered() && variant.applies(&facts) {
        (winner, Some(place))
    } else {
        (DEFAULT, None)
    };
    Point {
        case,
        expected,
        place,
    }
}

/// Variables that force a variant on every call of a collective, the library's own way.
fn forced(mpi: Mpi, collective: Collective, name: &str) -> Vec<(String, String)> {
    let variant =
        catalogue::find(library(mpi), collective, name).expect("a variant of the catalogue");
    let upper = collective.name().to_uppercase();
    match variant.steering {
        Steering::None => Vec::new(),
        Steering::OpenMpi { algorithm, alone } => {
            assert!(!alone, "{name} runs others, which may be forced as well");
            vec![
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
            ]
        }
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
