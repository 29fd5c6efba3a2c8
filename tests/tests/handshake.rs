//! All or none: unless every rank carries the shim with the same build and settings, all run untuned, with
//! one warning, and nothing is left behind that the program could receive.
//!
//! The handshake is the shim's only wait. It lies inside MPI_Init, and a rank without the shim is
//! out of its own by then: it may have a rendezvous message under way to a rank that still waits.

use std::time::Duration;

use colltune_tests::{Job, Mpi, Part, folder, job, on_each_library, part, tool, traces};

const DEADLINE: &str = "2s";
/// Where a rank is missing, all of it is waited for, and who comes late is only one more of those.
const SHORT: &str = "500ms";

fn asking(mpi: Mpi, db: &std::path::Path) -> Job {
    job(0)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .env("COLLTUNE_HANDSHAKE_TIMEOUT", DEADLINE)
}

/// The same where the ranks could be on several nodes, as far as they know.
fn scattered(mpi: Mpi, db: &std::path::Path) -> Job {
    asking(mpi, db).preload_tool(tool(mpi, "placeless"))
}

/// That with a launcher that has no name service.
fn nameless(mpi: Mpi, db: &std::path::Path) -> Job {
    scattered(mpi, db).preload_tool(tool(mpi, "nameless"))
}

/// A job that lacks a rank, whose ranks soon give up.
fn lacking(job: Job) -> Job {
    job.env("COLLTUNE_HANDSHAKE_TIMEOUT", SHORT)
}

/// A copy of the library's shim that says that it is made of other sources.
fn another_build(mpi: Mpi, folder: &std::path::Path) -> std::path::PathBuf {
    let mut built = std::fs::read(mpi.shim()).expect("the shim can be read");
    let mark = b"colltune made of ";
    let at = built.windows(mark.len()).position(|held| held == mark);
    let at = at.expect("it holds its stamp") + mark.len();
    let own = built[at..at + 16].to_vec();
    let places: Vec<usize> = (0..built.len() - 16)
        .filter(|&k| built[k..k + 16] == own)
        .collect();
    assert!(places.len() > 1, "the stamp stands in the note alone");
    for place in places {
        built[place..place + 16].reverse();
    }
    let other = folder.join("libcolltune.so");
    std::fs::write(&other, built).expect("a copy");
    other
}

/// One rank of the program that takes whatever arrives; messages of a size that is sent by rendezvous.
fn rank() -> Part {
    part(1, "first_receive", &["0", "1000000"])
}

on_each_library! {
    fn the_shim_missing_on_one_rank_leaves_the_job_as_it_is(mpi: Mpi) {
        let without = |missing: u32| [0, 1, 2].map(|place| if place == missing { rank().without_shim() } else { rank() });
        let cases = [0, 1, 2].map(|missing| (asking as fn(Mpi, &std::path::Path) -> Job, missing));
        for (job, missing) in cases.into_iter().chain([(scattered as _, 0), (scattered as _, 2)]) {
            let db = folder();
            let outcome = lacking(job(mpi, db.path())).run_parts(&without(missing));
            outcome.succeeds().prints("ok\n").says(&["runs without the shim", "untuned"]);
            outcome.claim(traces(db.path()).is_empty(), "something was recorded");
            outcome.claim(outcome.took < Duration::from_secs(20), "the deadline is 1 s");
        }
    }

    fn other_settings_on_one_rank_are_named(mpi: Mpi) {
        for (job, place) in [(asking as fn(Mpi, &std::path::Path) -> Job, 0), (asking, 1), (scattered, 1)] {
            let db = folder();
            let ranks = [0, 1].map(|at| if at == place { rank().env("COLLTUNE_SEED", "5") } else { rank() });
            let outcome = job(mpi, db.path()).run_parts(&ranks);
            outcome.succeeds().prints("ok\n").says(&["rank 1", "another build or other settings", "untuned"]);
        }
    }

    /// Its catalogue may be another one, and what rank 0 hands out stands by its place in that.
    fn another_build_on_one_rank_is_named(mpi: Mpi) {
        let place = folder();
        let other = another_build(mpi, place.path());
        for (asked, place) in [(asking as fn(Mpi, &std::path::Path) -> Job, 0), (scattered, 1)] {
            let db = folder();
            let ranks = [0, 1].map(|at| if at == place { rank().with_shim(other.clone()) } else { rank() });
            let outcome = asked(mpi, db.path()).run_parts(&ranks);
            outcome.succeeds().prints("ok\n").says(&["rank 1", "another build or other settings", "untuned"]);
        }
        let db = folder();
        let trusting = asking(mpi, db.path()).env("COLLTUNE_HANDSHAKE", "trust");
        let outcome = trusting.run_parts(&[rank(), rank().with_shim(other.clone())]);
        outcome.succeeds().prints("ok\n").says(&["rank 1", "another build or other settings", "untuned"]);
    }

    fn a_rank_that_is_off_counts_as_without_the_shim(mpi: Mpi) {
        let db = folder();
        let outcome = lacking(asking(mpi, db.path())).run_parts(&[rank(), rank().env("COLLTUNE_MODE", "off")]);
        outcome.succeeds().prints("ok\n").says(&["untuned"]);
    }

    fn the_exit_code_stays_the_programs_own_when_a_rank_lacks_the_shim(mpi: Mpi) {
        let db = folder();
        let parts = |missing: Part| [part(1, "first_receive", &["7", "8"]), missing];
        let bare = job(0).mpi(mpi).run_parts(&parts(part(1, "first_receive", &["7", "8"])));
        let outcome = lacking(asking(mpi, db.path())).run_parts(&parts(part(1, "first_receive", &["7", "8"]).without_shim()));
        outcome.exits(bare.code.unwrap_or(-1)).prints(&bare.stdout).says(&["untuned"]);
    }

    /// Ranks that a script starts: shells and helpers come and go under the preload.
    fn ranks_inside_a_shell_script_are_tuned(mpi: Mpi) {
        let db = folder();
        let program = colltune_tests::program(mpi, "first_receive");
        let script = format!("true; echo $(echo 1) >/dev/null; {} 0 1000000; code=$?; ls / >/dev/null; exit $code", program.display());
        let outcome = asking(mpi, db.path()).run_parts(&[part(1, "/bin/sh", &["-c", &script]), rank()]);
        outcome.succeeds().prints("ok\n").is_silent();
        outcome.claim(traces(db.path()).len() == 2, "both ranks record");
    }

    fn one_rank_of_a_node_asks_the_launcher_besides_rank_0(mpi: Mpi) {
        let db = folder();
        let job = scattered(mpi, db.path()).env("COLLTUNE_HANDSHAKE_TIMEOUT", "30s").preload_tool(tool(mpi, "name_clients"));
        let outcome = job.run_parts(&[part(8, "first_receive", &["0", "8"])]);
        outcome.succeeds().prints("ok\n");
        let clients = outcome.stderr.matches("asks").count();
        outcome.claim(clients == 2, &format!("{clients} of 8 ranks asked the launcher"));
        // Without one Open MPI 5.0 takes what is on its stack.
        outcome.claim(!mpi.is_openmpi() || !outcome.stderr.contains("no range"), "a rank asked without a range");
        outcome.claim(!traces(db.path()).is_empty(), "nothing was recorded");
    }

    /// They meet each other, whether there is a name service or not.
    fn ranks_that_are_all_on_one_node_ask_nobody(mpi: Mpi) {
        for tools in [&["name_clients"][..], &["name_clients", "nameless"]] {
            let db = folder();
            // Rank 0 lets the others come for a thousandth of it.
            let job = asking(mpi, db.path()).env("COLLTUNE_HANDSHAKE_TIMEOUT", "10000s");
            let job = tools.iter().fold(job, |job, name| job.preload_tool(tool(mpi, name)));
            let outcome = job.run_parts(&[part(4, "first_receive", &["0", "8"])]);
            outcome.succeeds().prints("ok\n").is_silent();
            outcome.claim(!traces(db.path()).is_empty(), "nothing was recorded");
        }
    }

    /// All learn that the launcher has no name service, and stay untuned at once.
    fn without_a_name_service_jobs_run_untuned(mpi: Mpi) {
        let db = folder();
        let outcome = nameless(mpi, db.path()).run_parts(&[rank(), rank(), rank()]);
        outcome.succeeds().prints("ok\n").says(&["no name service", "COLLTUNE_HANDSHAKE=trust"]);
        outcome.claim(traces(db.path()).is_empty(), "something was recorded");
    }

    /// Of which launchers each says in its own way that it started all ranks on one node.
    fn ranks_of_pals_and_flux_on_one_node_ask_nobody(mpi: Mpi) {
        let told = [&[("PALS_LOCAL_SIZE", "2")][..], &[("FLUX_JOB_SIZE", "2"), ("FLUX_JOB_NNODES", "1")]];
        for variables in told {
            let db = folder();
            // Rank 0 lets the others come for a thousandth of it.
            let job = nameless(mpi, db.path()).env("COLLTUNE_HANDSHAKE_TIMEOUT", "10000s");
            let job = variables.iter().fold(job, |job, (name, value)| job.env(name, value));
            job.run_parts(&[rank(), rank()]).succeeds().prints("ok\n").is_silent();
            assert_eq!(traces(db.path()).len(), 2, "{variables:?}");
        }
        let db = folder();
        let job = nameless(mpi, db.path()).env("FLUX_JOB_SIZE", "2").env("FLUX_JOB_NNODES", "2");
        job.run_parts(&[rank(), rank()]).succeeds().prints("ok\n").says(&["no name service", "untuned"]);
    }

    fn trust_lets_the_ranks_ask_each_other(mpi: Mpi) {
        for job in [asking, nameless] {
            let db = folder();
            let outcome = job(mpi, db.path()).env("COLLTUNE_HANDSHAKE", "trust").run_parts(&[rank(), rank()]);
            outcome.succeeds().prints("ok\n").is_silent();
            outcome.claim(traces(db.path()).len() == 2, "both ranks record");
        }
    }

    fn trust_compares_settings(mpi: Mpi) {
        for job in [asking, nameless] {
            let db = folder();
            let other = [rank(), rank().env("COLLTUNE_SEED", "5"), rank()];
            let outcome = job(mpi, db.path()).env("COLLTUNE_HANDSHAKE", "trust").run_parts(&other);
            outcome.succeeds().prints("ok\n").says(&["rank 1", "another build or other settings", "untuned"]);
            outcome.claim(traces(db.path()).is_empty(), "something was recorded");
        }
    }

    /// A promise that does not hold ends the job with a sentence, where nothing but the ranks can be asked.
    fn trust_names_the_ranks_that_are_missing(mpi: Mpi) {
        for missing in [0, 2] {
            let db = folder();
            let parts = [0, 1, 2].map(|place| if place == missing { rank().without_shim() } else { rank() });
            let outcome = lacking(nameless(mpi, db.path())).env("COLLTUNE_HANDSHAKE", "trust").run_parts(&parts);
            outcome.claim(!outcome.timed_out && outcome.code != Some(0), "the job goes on");
            outcome.says(&["of 3 ranks", &format!(": {missing};"), "trust"]);
        }
        // Where the launcher can be asked it runs untuned.
        let db = folder();
        let parts = [rank(), rank().without_shim()];
        let outcome = lacking(asking(mpi, db.path())).env("COLLTUNE_HANDSHAKE", "trust").run_parts(&parts);
        outcome.succeeds().prints("ok\n").says(&["rank 1", "runs without the shim", "untuned"]);
    }

    /// What fails on one rank behind the verdict is agreed on, too.
    fn an_attribute_that_one_rank_cannot_make_leaves_all_untuned(mpi: Mpi) {
        let db = folder();
        let job = asking(mpi, db.path()).preload_tool(tool(mpi, "failing_keyval"));
        let outcome = job.run_parts(&[rank(), rank(), rank()]);
        outcome.succeeds().prints("ok\n").says(&["attribute", "untuned on all ranks"]);
        outcome.claim(traces(db.path()).is_empty(), "something was recorded");
    }
}

/// A name server of Hydra's that lasts, as sites have one for jobs that connect to each other.
#[test]
fn jobs_at_one_name_server_do_not_meet() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let server = format!("127.0.0.1:{}", port.expect("a free port").port());
    let [lacking, first, second] = [0; 3].map(|_| folder());
    // The first job's names stay behind, because its ranks never agree; the others run at the same time.
    let script = "port=${1#*:}; hydra_nameserver -port \"$port\" & server=$!; \
                  for turn in $(seq 600); do (: <>\"/dev/tcp/127.0.0.1/$port\") 2>/dev/null && break; sleep 0.1; done; \
                  COLLTUNE_DB=$4 mpirun.mpich -nameserver $1 -n 1 \"$2\" 0 8 : -n 1 env -u LD_PRELOAD \"$2\" 0 8; a=$?; \
                  COLLTUNE_DB=$5 mpirun.mpich -nameserver $1 -n 3 \"$2\" 0 8 & one=$!; \
                  COLLTUNE_DB=$6 mpirun.mpich -nameserver $1 -n 3 \"$2\" 0 8 & other=$!; \
                  wait $one; b=$?; wait $other; c=$?; kill $server; echo ended $a $b $c";
    let program = colltune_tests::program(mpi, "first_receive");
    let [a, b, c] = [&lacking, &first, &second].map(|db| db.path().to_string_lossy().into_owned());
    let outcome = asking(mpi, lacking.path()).run_command(&[
        "bash",
        "-c",
        script,
        "bash",
        &server,
        &program.to_string_lossy(),
        "",
        &a,
        &b,
        &c,
    ]);
    outcome
        .succeeds()
        .prints("ok\nok\nok\nended 0 0 0\n")
        .says(&["runs without the shim"]);
    let n_traces = [&lacking, &first, &second].map(|db| traces(db.path()).len());
    // Of a node's ranks the first and the last record.
    outcome.claim(
        n_traces[0] == 0 && n_traces[1] > 0 && n_traces[1] == n_traces[2],
        &format!("traces: {n_traces:?}"),
    );
}
