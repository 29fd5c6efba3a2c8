//! Finding out that all ranks carry this shim with the same settings.

use std::time::Duration;

use colltune_core::environment;
use colltune_core::library::{Abi, Library};
use colltune_core::roster::hash_bytes;
use colltune_core::settings::parse_duration;

use crate::abi;
use crate::handout;
use crate::handshake::trust::{self, Trust};
use crate::handshake::{Handshake, Manager, Outcome};
use crate::library::{Handles, Pmpi};
use crate::warn::say;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const NO_NAME_SERVICE: &str = "this launcher has no name service, so it cannot be checked that all ranks carry the shim; \
     collectives run untuned. Where the launcher gives every rank the same environment, \
     COLLTUNE_HANDSHAKE=trust lets the ranks ask each other";

/// What has to be alike on all ranks: build and settings. At most 100 characters. Two builds may have other catalogues,
/// and ranks tell each other variants by their place in it.
pub fn identity(variables: &[(String, String)], library: Library) -> String {
    let settings = variables.iter().fold(0, |hash, (name, value)| {
        hash_bytes(hash_bytes(hash, name.as_bytes()), value.as_bytes())
    });
    let version = env!("CARGO_PKG_VERSION");
    let stamp = abi::STAMP;
    format!("colltune {version} ({stamp}) for {library}, settings {settings:016x}")
}

/// Agrees with the other ranks that all carry this shim; `None`: this rank stays inert, and has said so. `meanwhile` is
/// for rank 0, as in [`Handshake::run`].
pub fn shake_hands<'a>(
    (pmpi, handles): (&'a Pmpi, &'a Handles),
    (rank, n_ranks): (u32, u32),
    manager: &Manager,
    identity: String,
    variables: &[(String, String)],
    meanwhile: impl FnOnce(),
) -> Option<Handshake<'a>> {
    let trusts = handout::variable(variables, environment::HANDSHAKE) == Some("trust");
    // A world that another job spawned under MPICH has no name of its own to meet under.
    let is_spawned = std::env::var_os("PMI_SPAWNED").is_some_and(|value| value != "0")
        && abi::ABI != Abi::OpenMpi;
    if is_spawned && !trusts {
        return None;
    }
    let timeout = timeout(variables, rank);
    let trust = Trust {
        pmpi,
        handles,
        rank,
        n_ranks,
        identity: &identity.clone(),
        timeout: timeout.unwrap_or(trust::TIMEOUT),
    };
    let timeout = timeout.unwrap_or(HANDSHAKE_TIMEOUT);
    let handshake = Handshake::new((pmpi, handles), (rank, n_ranks), manager, identity, timeout);
    let outcome = match if is_spawned {
        Outcome::Unserved
    } else {
        handshake.run(meanwhile)
    } {
        Outcome::Unserved if trusts => trust.ask(),
        outcome => outcome,
    };
    match outcome {
        Outcome::Go => return Some(handshake),
        Outcome::Stay(problem) => say(&problem),
        Outcome::Unserved if rank == 0 => say(NO_NAME_SERVICE),
        Outcome::Unserved | Outcome::StaySilently => {}
    }
    None
}

/// How long the ranks may take to answer, where the user says so.
fn timeout(variables: &[(String, String)], rank: u32) -> Option<Duration> {
    let text = handout::variable(variables, environment::HANDSHAKE_TIMEOUT)?;
    parse_duration(text)
        .inspect_err(|problem| {
            if rank == 0 {
                say(&format!(
                    "failed to read COLLTUNE_HANDSHAKE_TIMEOUT: {problem}; {HANDSHAKE_TIMEOUT:?} is used"
                ));
            }
        })
        .ok()
}
