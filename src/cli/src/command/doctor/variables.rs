//! Environment variables: whether one is mistyped or disturbs, and what they say over settings.

use colltune_core::environment;
use colltune_core::settings::Settings;

use super::findings::Findings;
use crate::export::{mpich, openmpi};
use crate::variables::Wrong;

/// A line for each that is wrong or changes what is measured, or one that there is none.
pub fn check(report: &mut Findings) {
    let mut quiet = true;
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if let Some(wrong) = Wrong::find(&name, &value) {
            report.fail(&wrong, format_args!("set it anew, or `unset {name}`"));
            quiet = false;
            continue;
        }
        if let Some(today) = environment::renamed(&name) {
            report.warn(
                format_args!("{name}: the setting has another name now, {today}"),
                format_args!("set {today} in its place"),
            );
            quiet = false;
            continue;
        }
        let Some(value) = value.to_str() else {
            continue;
        };
        if switches_tables(&name) {
            report.warn(
                format_args!(
                    "{name}={value}: selection tables are active, so `default` means their choice; jobs are recorded under another key"
                ),
                "tune in a shell without them; `colltune run --mode tables` watches them",
            );
            quiet = false;
        } else if ["OMPI_MCA_coll", "MPIR_CVAR_COLL", "I_MPI_ADJUST"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || forces(&name)
        {
            report.warn(
                format_args!(
                    "{name}={value}: changes what `default` means; where it names algorithms, data recorded with it \
                     count apart, else they do not compare"
                ),
                format_args!("`unset {name}`, or have it in every job"),
            );
            quiet = false;
        }
    }
    if let Some(preload) = std::env::var("LD_PRELOAD")
        .ok()
        .filter(|value| !value.is_empty())
    {
        report.warn(
            format_args!("LD_PRELOAD={preload}: kept, behind the shim"),
            "`unset LD_PRELOAD` where it is not meant for the job",
        );
    }
    if quiet {
        report.ok("variables: none disturbs");
    }
}

/// What the variables say over some settings. Of one that makes no sense [`check`] tells.
pub fn with_variables(mut settings: Settings) -> Settings {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            let _ = settings.override_with(name, value);
        }
    }
    settings
}

/// Whether a variable names exported tables, or others.
fn switches_tables(name: &str) -> bool {
    name == openmpi::RULES || mpich::SELECTION.iter().any(|(other, _)| *other == name)
}

fn forces(name: &str) -> bool {
    name.starts_with("MPIR_CVAR_")
        && [
            "_INTRA_ALGORITHM",
            "_DEVICE_COLLECTIVE",
            "_DEVICE_COLLECTIVES",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}
