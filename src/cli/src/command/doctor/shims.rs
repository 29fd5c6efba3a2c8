//! Shims: whether each library's is built, of these sources, and loads where its library is not.

use std::ffi::OsString;

use colltune_core::library::Abi;

use super::findings::Findings;
use colltune_launch::needs::{self, Needs};
use colltune_launch::shim;

/// One line for each launcher's library.
pub fn check(report: &mut Findings, launchers: &[(Abi, OsString)]) {
    for (abi, _) in launchers {
        let name = abi.name();
        match shim::file(*abi) {
            Err(error) => {
                // It names the remedy itself, in a second sentence.
                let text = error.to_string();
                let (found, remedy) = text
                    .split_once(". ")
                    .unwrap_or((&text, "`make build` builds it"));
                report.fail(format_args!("shim for {name}: failed to {found}"), remedy);
            }
            Ok(file) => match needs::of_file(&file) {
                Needs::NoMpi => match shim::newer_sources(&file) {
                    None => report.ok(format!("shim for {name}: {}", file.display())),
                    Some(sources) => report.warn(
                        format_args!(
                            "shim for {name}: {} was built of other sources than those in {}",
                            file.display(),
                            sources.display()
                        ),
                        "`make build` builds it again",
                    ),
                },
                Needs::NotElf => report.fail(
                    format_args!("shim for {name}: {} is no shared library", file.display()),
                    "`make build` builds it again",
                ),
                Needs::Mpi(_) | Needs::UnknownMpi(_) => report.fail(
                    format_args!(
                        "shim for {name}: {} needs an MPI library itself, which breaks programs without it",
                        file.display()
                    ),
                    "`make build` builds it again",
                ),
            },
        }
    }
}

/// Programs on the standard binary interface are no launcher's; a site without any needs no such build.
pub fn check_standard(report: &mut Findings) {
    if let Ok(file) = shim::file(Abi::Standard) {
        report.ok(format!(
            "shim for {}: {}",
            Abi::Standard.name(),
            file.display()
        ));
    }
}
