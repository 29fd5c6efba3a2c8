//! Environment variables: whether one is mistyped or disturbs, and what they say over settings.

use colltune_core::environment;
use colltune_core::settings::Settings;

use super::findings::Findings;
use crate::export::{mpich, openmpi};

/// A line for each that is wrong or changes what is measured, or one that there is none.
pub fn check(report: &mut Findings) {
    let mut quiet = true;
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let ours = name.starts_with(environment::PREFIX);
        let Some(value) = value.to_str() else {
            if ours {
                report.fail(
                    format_args!("{name}: it is no text in UTF-8"),
                    format_args!("`unset {name}`"),
                );
                quiet = false;
            }
            continue;
        };
        if ours && !environment::is_known(&name) {
            let near = environment::meant_by(&name)
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            report.fail(
                format_args!("{name}: colltune has no such variable{near}"),
                format_args!("`unset {name}`"),
            );
            quiet = false;
        } else if let Err(error) = Settings::default().override_with(&name, value) {
            report.fail(
                format_args!("{name}: failed to {error}"),
                format_args!("set it anew, or `unset {name}`"),
            );
            quiet = false;
        } else if switches_tables(&name) {
            report.warn(
                format_args!(
                    "{name}={value}: tables are in force, so `default` is what they hold, and what jobs record counts apart"
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
