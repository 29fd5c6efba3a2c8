//! Launchers of other makers, which scripts stand in for: they take these options, and start the ranks with the library's
//! own launcher.

use std::path::Path;

use colltune_tests::{
    Mpi, Outcome, colltune, folder, job, on_each_library, program, target_folder, traces,
    write_to_run,
};

/// `NAME COMMAND OPTIONS -n RANKS -- PROGRAM ...` without options unknown to the library; `$1` starts ranks.
const STAND_IN: &str = r#"#!/bin/sh
while :; do
    case $1 in
        -n | --np) ranks=$2; shift 2 ;;
        --from-the-future | -o | --env | --ppn | -d | --cpu-bind) shift 2 ;;
        -x) export "$2"; shift 2 ;;
        run | --exclusive) shift ;;
        *) break ;;
    esac
done
exec LAUNCHER -n "$ranks" "$@"
"#;

/// What `colltune run` makes of `words`, the first of which is a launcher's name.
fn started(mpi: Mpi, db: &Path, words: &[&str]) -> Outcome {
    let scratch = folder();
    let launcher = scratch.path().join(words[0]);
    let own = match mpi.is_openmpi() {
        true => format!(
            "{} --oversubscribe --mca mpi_yield_when_idle 1",
            mpi.launcher()
        ),
        false => mpi.launcher(),
    };
    let script = STAND_IN.replace("LAUNCHER", &own);
    write_to_run(&script, &launcher);
    let (command, db) = (colltune(), db.to_string_lossy().into_owned());
    let program = program(mpi, "first_receive");
    let named = [&command, &launcher, &program].map(|path| path.to_string_lossy().into_owned());
    let [command, launcher, program] = &named;
    let line = words[1..].iter().map(|word| match *word {
        "PROGRAM" => program.as_str(),
        word => word,
    });
    let own = [command.as_str(), "run", "--db", &db, "--", launcher];
    let line: Vec<&str> = own.into_iter().chain(line).chain(["0", "8"]).collect();
    job(0)
        .mpi(mpi)
        .env("COLLTUNE_LIB", target_folder())
        .run_command(&line)
}

on_each_library! {
    fn lines_of_flux_and_pals_are_tuned(mpi: Mpi) {
        for words in [
            &["flux", "run", "-n", "2", "-o", "mpi=none", "--exclusive", "PROGRAM"][..],
            &["mpiexec", "--np", "2", "--ppn", "2", "-d", "1", "--cpu-bind", "depth", "--env", "A=1", "PROGRAM"],
            &["aprun", "-n", "2", "-d", "1", "PROGRAM"],
        ] {
            let db = folder();
            let outcome = started(mpi, db.path(), words);
            outcome.succeeds().prints("ok\n").is_silent();
            outcome.claim(traces(db.path()).len() == 2, "it is not tuned");
        }
    }

    /// Nothing is put in front of a word that may be an option's value.
    fn an_option_that_nobody_knows_is_passed_on_whole(mpi: Mpi) {
        for launcher in ["mpirun", "srun"] {
            let db = folder();
            let words = [launcher, "-n", "2", "--from-the-future", "/bin/true", "PROGRAM"];
            let outcome = started(mpi, db.path(), &words);
            outcome.succeeds().prints("ok\n").says(&["--from-the-future", "own means"]);
            outcome.claim(traces(db.path()).len() == 2, "it is not tuned");
        }
    }
}
