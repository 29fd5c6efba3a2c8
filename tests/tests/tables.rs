//! Tables in force make another default, whose times count apart; and a job watches what tables hold in their place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, LoggedCall, Mpi, Trace, assert_ranks_agree, colltune, folder, job, learned,
    on_each_library, own_forcing, read_log, said_by_colltune as command, target_folder, tool,
    traces,
};

const RANKS: u32 = 2;
/// Thousands of slow calls take minutes where ranks wait for processors that others have.
const MORE: Duration = Duration::from_secs(180);
const BEST: &str = "node:shm";
/// What tables hold where that is the best.
const NATIVE: &str = "native:recursive_doubling";

fn database(mpi: Mpi) -> tempfile::TempDir {
    learned(mpi, Collective::Allreduce, BEST, Some(NATIVE))
}

/// Allreduces of 8 bytes with a database; the calls, on all ranks alike, and what was said.
fn allreduces(job: Job, db: &Path) -> (Vec<LoggedCall>, String) {
    let log = folder();
    // So that no choice is left, whatever the machine does: the library's own is slower.
    let tool = tool(job.library(), "slow_tool");
    let job = job.preload_tool(tool).env("SLOW", "asleep");
    let job = job.seed(1).db(db).log(log.path()).more_time(MORE);
    let outcome = job.run("frequent", &["1200", "1"]);
    outcome.succeeds().prints("ok\n");
    let mut log = read_log(log.path(), RANKS);
    assert_ranks_agree(&log);
    let calls = log.swap_remove(0).into_iter();
    let reduced = calls.filter(|call| call.collective == "allreduce");
    (reduced.collect(), outcome.messages().join("\n"))
}

/// What calls run behind the set-up, sampled ones or others.
fn ran(calls: &[LoggedCall], sampled: bool) -> BTreeSet<&str> {
    let behind_set_up = calls.iter().filter(|call| call.cell.is_some());
    let asked = behind_set_up.filter(|call| call.sampled == sampled);
    asked.map(|call| call.variant.as_str()).collect()
}

/// The variants that were recorded.
fn recorded(traces: &[Trace]) -> BTreeSet<String> {
    let of = |trace: &Trace| {
        let records = trace.records.iter().filter(|record| record.drawn);
        let names = records.map(|record| trace.variant(record).to_owned());
        names.collect::<BTreeSet<_>>()
    };
    traces.iter().flat_map(of).collect()
}

/// A job of the user's that tells the library which broadcast to run.
fn told(mpi: Mpi, job: Job) -> Job {
    let names = ["native:binomial", "native:basic_linear"].iter();
    let mut known =
        names.filter_map(|name| catalogue::find(mpi.library(), Collective::Bcast, name));
    own_forcing(job, &known.next().expect("the library has one of these"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A job whose environment switches on tables that do not exist.
fn with_tables(mpi: Mpi, job: Job) -> Job {
    let job = job.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    let switch = match mpi.is_openmpi() {
        true => "OMPI_MCA_coll_tuned_dynamic_rules_filename",
        false => "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    };
    job.env(switch, "/no/such/tables")
}

on_each_library! {
    fn what_tables_hold_runs_next_to_the_librarys_own_choice_and_is_recorded(mpi: Mpi) {
        let db = database(mpi);
        let watching = job(RANKS).mpi(mpi).preload().mode("tables");
        let (calls, said) = allreduces(watching, db.path());
        assert_eq!(ran(&calls, false), BTreeSet::from([NATIVE, "default"]), "the default is warmed up");
        assert_eq!(ran(&calls, true), BTreeSet::from([NATIVE, "default"]));
        let native = calls.iter().filter(|call| call.variant == NATIVE).count();
        assert!(native * 10 > calls.len() * 9, "{native} of {} calls ran what tables hold", calls.len());
        let pairs = BTreeSet::from([NATIVE.to_owned(), "default".to_owned()]);
        assert_eq!(recorded(&traces(db.path())), pairs);
        assert_eq!(said, "");
    }

    fn a_job_that_watches_tables_is_started_without_them(mpi: Mpi) {
        let db = database(mpi);
        let words = [text(&colltune()), "run", "--mode", "tables", "--db", text(db.path()), "--"].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let watching = job(RANKS).mpi(mpi).prefix(&words).env("COLLTUNE_LIB", target_folder());
        let (calls, said) = allreduces(with_tables(mpi, watching), db.path());
        assert!(ran(&calls, false).contains(NATIVE), "{said}");
        assert!(said.contains("this job runs without"), "{said}");
        let recorded = traces(db.path());
        assert!(recorded.iter().all(|trace| !is_told(trace)) && !recorded.is_empty());
    }

    fn without_that_nothing_is_watched_and_somebody_says_so(mpi: Mpi) {
        let db = database(mpi);
        let watching = told(mpi, job(RANKS).mpi(mpi).preload().mode("tables").db(db.path()));
        let outcome = watching.run("frequent", &["300", "1"]);
        outcome.succeeds().prints("ok\n").says(&["is told another one, by", "start the job without", "untuned"]);
        assert!(traces(db.path()).is_empty());
    }

    fn of_tables_that_hold_nothing_somebody_is_told(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, BEST, None);
        let watching = job(RANKS).mpi(mpi).preload().mode("tables").db(db.path());
        let outcome = watching.run("frequent", &["300", "1"]);
        outcome.succeeds().prints("ok\n").says(&["finds nothing to watch"]);
    }

    /// The default is another one, and what was learned of the library's own choice must not count it.
    fn what_is_recorded_where_the_library_was_told_counts_apart_and_makes_no_tables(mpi: Mpi) {
        let db = folder();
        allreduces(job(RANKS).mpi(mpi).preload().mode("explore"), db.path());
        let apart = told(mpi, job(RANKS).mpi(mpi).preload().mode("explore"));
        allreduces(apart, db.path());
        let recorded = traces(db.path());
        let n_told = recorded.iter().filter(|trace| is_told(trace)).count();
        assert_eq!(2 * n_told, recorded.len(), "half of the traces are of the job that was told");
        let trained = command(&["train", "--db", text(db.path())]);
        assert!(trained.status.success(), "{trained:?}");
        let warned = String::from_utf8_lossy(&trained.stderr).contains("no tables are made of them");
        assert!(warned, "{trained:?}");
        let mut keys: Vec<String> = fs::read_dir(db.path()).unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(&mpi.library().to_string()))
            .collect();
        keys.sort();
        let library = mpi.library().to_string();
        assert_eq!(keys.len(), 2, "{keys:?}");
        assert_eq!(keys[0], library);
        assert!(keys[1].starts_with(&format!("{library}@default@told-")), "{keys:?}");
        // Of two, only one can be meant.
        let (format, out) = (if mpi.is_openmpi() { "openmpi" } else { "mpich" }, folder());
        let export = ["export", "--db", text(db.path()), "--format", format, "-o", text(out.path())];
        let exported = command(&export);
        assert!(exported.status.success(), "{exported:?}");
        let shown = command(&["status", "--json", "--db", text(db.path())]);
        assert!(shown.status.success(), "{shown:?}");
        let named = [&export[..], &["--library", &keys[1]]].concat();
        let refused = command(&named);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("would lose that"), "{refused:?}");
    }

    fn exploiting_where_the_library_was_told_takes_what_was_learned_without_and_records_nothing(mpi: Mpi) {
        let db = database(mpi);
        let exploiting = told(mpi, job(RANKS).mpi(mpi).preload().mode("exploit"));
        let (calls, said) = allreduces(exploiting, db.path());
        assert!(ran(&calls, false).contains(BEST));
        assert_eq!(ran(&calls, true), BTreeSet::from([BEST, "default"]), "it is watched");
        assert!(traces(db.path()).is_empty(), "its default is no other job's");
        assert_eq!(said, "");
    }
}

/// Administrators write such settings into files of parameters.
#[test]
fn what_a_file_of_parameters_tells_open_mpi_counts_apart_too() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    for (text, tells) in [
        (
            "coll_tuned_use_dynamic_rules = 1\ncoll_tuned_bcast_algorithm = 1\n",
            true,
        ),
        (
            "coll_tuned_use_dynamic_rules = 0\ncoll_tuned_bcast_algorithm = 1\n",
            false,
        ),
    ] {
        let (db, file) = (folder(), folder());
        let file = file.path().join("params.conf");
        fs::write(&file, text).unwrap();
        let exploring = job(RANKS).mpi(mpi).preload().mode("explore");
        let exploring = exploring.env("OMPI_MCA_mca_base_param_files", &file);
        allreduces(exploring, db.path());
        let recorded = traces(db.path());
        assert!(!recorded.is_empty());
        assert!(
            recorded.iter().all(|trace| is_told(trace) == tells),
            "{text}"
        );
    }
}

/// Whether a user's settings chose algorithms of a job's library.
fn is_told(trace: &Trace) -> bool {
    trace.header.context.iter().any(|(name, _)| name == "told")
}
