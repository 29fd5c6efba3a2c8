//! `--lever nonblocking`: the library's own variables for nonblocking, persistent and neighbourhood collectives.

use std::process::Command;

use colltune_launch::nonblocking;
use colltune_tests::{colltune, is_long, job, on_each_library, program};

use super::{Line, exits};

on_each_library! {
    /// Every arm that is offered gives what the blocking call gives, and the library says that it runs it. One rank for each
    /// processor, as MPICH's ranks wait without yielding; in the long form also with 3 and 4 ranks.
    fn every_arm_is_right(mpi: Mpi) {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let few = processors.clamp(2, 5) as u32;
        let ranks: &[u32] = match (mpi.is_openmpi(), is_long()) {
            (true, _) => &[5],
            (false, true) => &[3, 4],
            (false, false) => &[few],
        };
        for (collective, is_of_neighbors, lever) in nonblocking::all(mpi.library()) {
            for (arm, &n) in lever.arms.iter().flat_map(|arm| ranks.iter().map(move |n| (arm, n))) {
                let arms = [(lever.name.clone(), arm.clone())].into();
                let set = nonblocking::assignments(&arms);
                let set = set.iter().fold(job(n).mpi(mpi), |job, (name, value)| job.env(name, value));
                if is_of_neighbors {
                    set.run("passing", &["1"]).succeeds().prints("ok\n");
                    continue;
                }
                let name = lever.name.strip_prefix("OMPI_MCA_").unwrap_or(&lever.name);
                let algorithm = arm.split(':').next().unwrap_or(arm);
                let outcome = set.run("chosen", &[collective.name(), name]);
                outcome.succeeds().prints(&format!("{name}={algorithm}\nok\n"));
            }
        }
    }
}

on_each_library! {
    /// The program sleeps unless the library itself says that it runs one arm.
    fn what_the_library_is_told_is_drawn_learned_run_and_exported(mpi: Mpi) {
        let (name, best) = match mpi.is_openmpi() {
            true => ("OMPI_MCA_coll_libnbc_ibcast_algorithm", "binomial"),
            false => ("MPIR_CVAR_IBCAST_INTRA_ALGORITHM", "tsp_tree"),
        };
        let line = Line::of(mpi, "overlapping");
        let log = line.path("log").display().to_string();
        let last = [best, &*log];
        let options = ["tune", "--no-calibration", "-n", "3", "--max-jobs", "30", "--json"];
        let tuned = line.run(&[&options[..], &["--lever", "nonblocking"]].concat(), &last);
        exits(&tuned, 0, &["Levers: ", name]);
        // MPICH's ranks wait without yielding: on a busy machine that takes longer than they sleep, and any arm is chosen.
        let is_best = |arm: &str| assert!(arm == best || !mpi.is_openmpi(), "{arm}: {tuned:?}");
        let told: serde_json::Value = serde_json::from_slice(&tuned.stdout).expect("JSON");
        is_best(told["levers"][name].as_str().expect("the arm that is chosen"));
        let ran = line.log();
        assert!(["ignore", "auto"].contains(&&*ran[0]), "the first job runs the default");
        // What ranks were told is what the ledger keeps.
        let of_levers = |job: &serde_json::Value| {
            let levers = job["levers"].as_str().expect("a text").to_owned();
            let mut arms = levers.split(';').filter_map(|arm| arm.split_once('='));
            let arm = arms.find(|(lever, _)| *lever == name);
            arm.map(|(_, arm)| arm.split(':').next().unwrap_or(arm).to_owned())
        };
        let kept = line.ledger();
        assert_eq!(kept.len(), ran.len());
        let mut drawn: Vec<String> = kept.iter().filter_map(of_levers).collect();
        let with_levers = drawn.len();
        let mut said = ran[ran.len() - with_levers..].to_vec();
        drawn.sort();
        said.sort();
        assert_eq!(drawn, said);
        drawn.dedup();
        assert!(drawn.len() > 2, "{drawn:?}");

        let exploits = line.run(&["run", "--mode", "exploit", "--lever", "nonblocking"], &last);
        let ran = line.log().pop().expect("what it ran");
        exits(&exploits, 0, &[&format!("lever {name}: {ran} (chosen)")]);
        is_best(&ran);
        // The user's own setting goes before all.
        let other = if mpi.is_openmpi() { "linear" } else { "tsp_ring" };
        let own = line.run_with(&[(name, other)], &["run", "--mode", "exploit", "--lever", "nonblocking"], &last);
        exits(&own, 0, &[&format!("{name} is set in the environment, and stays as it is")]);
        assert_eq!(line.log().last().unwrap(), other);

        let tables = line.path("tables");
        let mut export = Command::new(colltune());
        export.args(["export", "--format", mpi.name(), "--db"]).arg(line.path("db"));
        exits(&export.arg("-o").arg(&tables).output().expect("it starts"), 0, &[]);
        let activates = std::fs::read_to_string(tables.join("activate.sh")).expect("it is written");
        let exported = activates.split_once(&format!("export {name}=\"${{{name}:-"));
        let exported = exported.and_then(|(_, rest)| rest.split_once('}'));
        let exported = exported.map_or("auto", |(value, _)| value);
        is_best(exported);
        let script = format!(
            ". {}/activate.sh && exec {} -n 2 {} {}",
            tables.display(),
            mpi.launcher(),
            program(mpi, "overlapping").display(),
            last.join(" ")
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).envs(mpi.variables());
        shell.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        exits(&shell.output().expect("there is a shell"), 0, &["ok"]);
        assert_eq!(line.log().last().unwrap(), exported);
    }
}

on_each_library! {
    /// A program without such calls is told so, and one with them what it could try.
    fn what_is_not_called_is_not_tried_and_what_is_called_is_suggested(mpi: Mpi) {
        let line = Line::of(mpi, "paused");
        let log = line.path("log").display().to_string();
        let none = line.run(
            &["tune", "--no-calibration", "--lever", "nonblocking"],
            &["10", &log],
        );
        exits(&none, 0, &["no nonblocking, persistent or neighbourhood collective is recorded"]);
        // Most of its time it computes while they are under way.
        let line = Line::of(mpi, "overlapping");
        let suggests = line.run(&["tune", "--no-calibration"], &["-", &log, "400", "8", "2000"]);
        exits(&suggests, 0, &["`--lever nonblocking` tries "]);
    }
}
