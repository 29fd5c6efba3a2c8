//! Programs in containers. The runtimes are scripts that stand in for the real ones: they write down their arguments,
//! give the program the environment that a container would have, and run it where they are.

use std::path::{Path, PathBuf};

use colltune_tests::{
    Job, Mpi, colltune, folder, job, on_each_library, program, target_folder, traces, write_to_run,
};

/// Writes down its words and environment; sets what its variables say, and starts the program behind the image.
const APPTAINER: &str = r#"#!/bin/sh
name=$(basename "$0" | tr a-z A-Z)
here=$(dirname "$0")
echo "$*" >>"$here/arguments"
env >>"$here/environment"
for variable in $(env | sed -n "s/^${name}ENV_\([A-Z_]*\)=.*/\1/p"); do
    eval "export $variable=\"\$${name}ENV_$variable\""
done
verb=$1
while [ "$1" != image.sif ]; do shift; done
shift
[ "$verb" = exec ] || set -- $(cat "$here/runscript")
exec "$@"
"#;

/// The same for runtimes that set variables by `--env` and bind by `--volume` and `--mount`.
const PODMAN: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/arguments"
shift
while [ "$1" != image ]; do
    [ "$1" != --env ] || export "$2"
    shift
done
shift
exec "$@"
"#;

fn stand_in(folder: &Path, name: &str, script: &str) -> String {
    let file = folder.join(name);
    write_to_run(script, &file);
    file.to_string_lossy().into_owned()
}

/// Two ranks that `colltune run` starts on this database.
fn started(mpi: Mpi, db: &Path) -> Job {
    let (command, db) = (colltune(), db.to_string_lossy().into_owned());
    let words = [&command.to_string_lossy(), "run", "--db", &db, "--"];
    let job = job(2).mpi(mpi).prefix(&words);
    job.env("COLLTUNE_LIB", target_folder())
}

fn held(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn path(mpi: Mpi) -> String {
    program(mpi, "first_receive").to_string_lossy().into_owned()
}

/// A shim that asks the C library for a version that it does not have, as a new one does in an old image.
fn too_new(mpi: Mpi, folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(mpi.shim()).expect("the shim can be read");
    let newest = |bytes: &[u8]| {
        let versions = bytes.windows(10).enumerate().filter_map(|(place, text)| {
            let minor = text.strip_prefix(b"GLIBC_2.")?;
            let minor: u32 = std::str::from_utf8(minor).ok()?.parse().ok()?;
            Some((minor, place))
        });
        versions.max().expect("it needs the C library").1
    };
    let place = newest(&bytes);
    bytes[place + 8..place + 10].copy_from_slice(b"99");
    let file = folder.join("libcolltune.so");
    std::fs::write(&file, bytes).expect("the folder is ours");
    file
}

on_each_library! {
    fn apptainer_is_told_what_the_ranks_need_and_nothing_is_preloaded_into_it(mpi: Mpi) {
        for name in ["apptainer", "singularity"] {
            let (db, scratch) = (folder(), folder());
            let runtime = stand_in(scratch.path(), name, APPTAINER);
            let job = started(mpi, db.path()).env("APPTAINER_BIND", "/scratch");
            let words = ["exec", "--nv", "-B", "/a:/b", "image.sif", &path(mpi), "0", "8"];
            job.run(&runtime, &words).succeeds().prints("ok\n").is_silent();
            assert_eq!(traces(db.path()).len(), 2);
            let environment = held(scratch.path(), "environment");
            let upper = name.to_uppercase();
            let shim = mpi.shim().canonicalize().expect("it is there");
            let (shim, at) = (shim.display(), db.path().display());
            let before = if name == "apptainer" { "/scratch," } else { "" };
            let bind = format!("\n{upper}_BIND={before}{shim}:{shim},{at}:{at}\n");
            assert!(environment.contains(&bind), "{environment}");
            assert!(environment.contains(&format!("\n{upper}ENV_COLLTUNE_DB={at}\n")), "{environment}");
            assert!(!environment.contains("\nLD_PRELOAD="), "{environment}");
            assert!(held(scratch.path(), "arguments").starts_with("exec --nv -B /a:/b image.sif sh -c "));
        }
    }

    /// The loader ends every program before it begins: an old image must cost the tuning and not the job.
    fn a_shim_that_the_image_cannot_load_costs_the_tuning_and_not_the_job(mpi: Mpi) {
        let (db, scratch) = (folder(), folder());
        let shim = too_new(mpi, scratch.path());
        let bare = job(1).mpi(mpi).preload_shim(shim.clone()).run("first_receive", &["0", "8"]);
        bare.ends().claim(bare.code != Some(0), "the loader takes it");
        let runtime = stand_in(scratch.path(), "apptainer", APPTAINER);
        let job = started(mpi, db.path()).env("COLLTUNE_LIB", &shim);
        let outcome = job.run(&runtime, &["exec", "image.sif", &path(mpi), "0", "8"]);
        outcome.succeeds().prints("ok\n").says(&["cannot be loaded in the container", "untuned"]);
        assert!(traces(db.path()).is_empty());
    }

    fn what_an_image_runs_by_itself_is_tuned(mpi: Mpi) {
        let (db, scratch) = (folder(), folder());
        let runtime = stand_in(scratch.path(), "apptainer", APPTAINER);
        std::fs::write(scratch.path().join("runscript"), format!("{} 0 8", path(mpi))).expect("the folder is ours");
        let outcome = started(mpi, db.path()).run(&runtime, &["run", "image.sif"]);
        outcome.succeeds().prints("ok\n").says(&["glibc 2.", "or newer"]);
        assert_eq!(traces(db.path()).len(), 2);
        assert!(held(scratch.path(), "environment").contains("\nAPPTAINERENV_LD_PRELOAD="));
    }

    fn podman_and_enroot_are_told_by_options(mpi: Mpi) {
        for (name, verb, bind) in [("podman", "run", "--volume"), ("enroot", "start", "--mount")] {
            let (db, scratch) = (folder(), folder());
            let runtime = stand_in(scratch.path(), name, PODMAN);
            let outcome = started(mpi, db.path()).run(&runtime, &[verb, "image", &path(mpi), "0", "8"]);
            outcome.succeeds().prints("ok\n").says(&["glibc 2.", "or newer"]);
            assert_eq!(traces(db.path()).len(), 2);
            let shim = mpi.shim().canonicalize().expect("it is there");
            let begin = format!("{verb} {bind} {0}:{0} {bind} {1}:{1} --env LD_PRELOAD={0} ", shim.display(), db.path().display());
            let told = held(scratch.path(), "arguments");
            assert!(told.starts_with(&begin), "{told}");
        }
    }

    fn of_other_runtimes_the_user_is_told_what_to_bind(mpi: Mpi) {
        let (db, scratch) = (folder(), folder());
        let runtime = stand_in(scratch.path(), "shifter", PODMAN);
        let outcome = started(mpi, db.path()).run(&runtime, &["--image=x", "image", &path(mpi), "0", "8"]);
        outcome.succeeds().prints("ok\n");
        let messages = outcome.messages();
        outcome.claim(messages.len() == 2, "there are not two messages");
        let shim = mpi.shim().canonicalize().expect("it is there");
        for path in [&shim, db.path()] {
            outcome.claim(messages[0].contains(&*path.to_string_lossy()), "a path is missing");
        }
        assert_eq!(traces(db.path()).len(), 2);
    }
}
