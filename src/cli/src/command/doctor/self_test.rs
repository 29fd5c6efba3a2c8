//! A job of two ranks under the shim: whether calls are steered and results right.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::Duration;

use colltune_core::environment;
use colltune_core::library::{Abi, Product};

use super::findings::Findings;
use super::launchers::ALLOW_ROOT;
use colltune_launch::library::of_launcher;
use colltune_launch::shim;
use colltune_launch::trial::{Interrupt, watched};

/// Two ranks under the preloaded shim check the results of every collective.
pub fn run(report: &mut Findings, abi: Abi, launcher: &OsStr, interrupt: &Interrupt) {
    let name = abi.name();
    let Ok(shim) = shim::file(abi) else { return };
    let helper = shim.with_file_name("colltune-mpibench");
    if !helper.is_file() {
        return report.warn(
            format_args!("self test for {name}: {} is missing", helper.display()),
            "`make build` builds it",
        );
    }
    let folder = std::env::temp_dir().join(format!("colltune-doctor-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&folder);
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(&shim);
    let mut command = Command::new(launcher);
    command.args(["-n", "2", "env"]);
    if of_launcher(launcher).product == Some(Product::Intel) {
        // It reads its algorithms before a job, others during it.
        command.arg("I_MPI_ADJUST_ALLREDUCE=1").arg(assigned(
            environment::PRESETS,
            "allreduce[0,inf)=native:recursive_doubling",
        ));
    }
    command.arg(preload).arg(assigned(
        environment::FORCE,
        "allreduce=native:recursive_doubling",
    ));
    command.arg("COLLTUNE_SETUP_AFTER=1").arg(assigned(
        environment::LOG,
        &format!("calls:{}", folder.display()),
    ));
    command
        .arg(&helper)
        .args(["reference-check", "--sizes", "8,4KiB"]);
    command.envs(ALLOW_ROOT.map(|name| (name, "1")));
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let result = ends_within(command, Duration::from_secs(60), interrupt);
    let log = std::fs::read_to_string(folder.join("rank-0.jsonl")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(&folder);
    match result {
        Err(problem) => report.fail(
            format_args!("self test for {name}: {problem}"),
            format_args!(
                "`{} -n 2 {} reference-check` shows what it says; where no job may run, `colltune doctor --no-self-test`",
                launcher.display(),
                helper.display()
            ),
        ),
        Ok(()) if !log.contains("native:recursive_doubling") => report.fail(
            format_args!("self test for {name}: results are right, but no call was steered"),
            format_args!(
                "`colltune run --force allreduce=native:recursive_doubling -- {} -n 2 {} reference-check` says why",
                launcher.display(),
                helper.display()
            ),
        ),
        Ok(()) => report.ok(format!("self test for {name}: 2 ranks, steered calls, right results")),
    }
}

fn assigned(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// Runs a command silently; the error says how it ended.
fn ends_within(mut command: Command, limit: Duration, interrupt: &Interrupt) -> Result<(), String> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match watched(quiet, Some(limit), interrupt, &mut || ()) {
        Ok((_, status)) if status.success() => Ok(()),
        Ok((_, status)) => Err(format!("it ended with {status}")),
        Err(ended) => Err(ended.to_string()),
    }
}
