//! What the user of one job asks for: the mode, forced variants, the log.

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::catalogue;
use crate::collective::Collective;
use crate::library::Library;
use crate::named::named;
use crate::spelling;
use crate::variant::VariantName;

named! {
    /// What the shim does in a job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
    pub enum Mode {
        /// Draw variants and record times.
        Explore = "explore",
        /// Run the best known variant, record what watches over it.
        Exploit = "exploit",
        /// The same of the library's own algorithms alone, as exported tables hold them.
        Tables = "tables",
        /// Run the library's default, record times.
        Record = "record",
        /// Do nothing.
        Off = "off",
    }
}

impl Mode {
    pub const fn records(self) -> bool {
        matches!(self, Mode::Explore | Mode::Record)
    }

    /// Whether what was learned is run.
    pub const fn exploits(self) -> bool {
        matches!(self, Mode::Exploit | Mode::Tables)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("read the mode {0:?} (allowed: explore, exploit, tables, record, off)")]
    Mode(String),
    #[error("read the forced variant {text:?}: {problem}")]
    Force { text: String, problem: String },
    #[error("read the log {0:?} (allowed: calls:DIR)")]
    Log(String),
}

impl std::str::FromStr for Mode {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Mode, RequestError> {
        Mode::from_name(text).ok_or_else(|| RequestError::Mode(text.to_owned()))
    }
}

/// How many variants an error names at most.
const SUGGESTED: usize = 6;

/// A variant for every call of a collective to which it applies.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Forced {
    pub collective: Collective,
    pub variant: String,
}

/// Reads `allreduce=native:ring;bcast=native:pipeline:segsize=32KiB`, with `;` or `,` between the parts, without
/// asking which variants a library has; empty parts are left out.
///
/// Errors: `Force` naming the part, and the allowed values for an unknown collective.
pub fn parse_force(text: &str) -> Result<Vec<Forced>, RequestError> {
    let mut forced: Vec<Forced> = Vec::new();
    for part in text
        .split([';', ','])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let bad = |problem: String| RequestError::Force {
            text: part.to_owned(),
            problem,
        };
        let (collective, variant) = part.split_once('=').ok_or_else(|| {
            bad("it looks like COLLECTIVE=VARIANT, as in allreduce=native:ring".to_owned())
        })?;
        let collective = Collective::from_name(collective.trim()).ok_or_else(|| {
            let known: Vec<_> = Collective::ALL.into_iter().map(Collective::name).collect();
            bad(format!(
                "unknown collective {:?} (allowed: {})",
                collective.trim(),
                known.join(", ")
            ))
        })?;
        let variant = variant
            .trim()
            .parse::<VariantName>()
            .map_err(|error| bad(error.to_string()))?
            .to_string();
        if forced.iter().any(|other| other.collective == collective) {
            return Err(bad(format!("{collective} is forced twice")));
        }
        forced.push(Forced {
            collective,
            variant,
        });
    }
    Ok(forced)
}

/// Checks forced variants against what `library` has.
///
/// Errors: `Force` naming the variant and those nearest to it.
pub fn check_force(forced: &[Forced], library: Library) -> Result<(), RequestError> {
    for Forced {
        collective,
        variant,
    } in forced
    {
        if catalogue::find(library, *collective, variant).is_none() {
            let known: Vec<_> = catalogue::variants(library, *collective)
                .iter()
                .map(|variant| variant.name.to_string())
                .collect();
            let near = spelling::nearest(variant, known.iter().map(String::as_str), SUGGESTED);
            return Err(RequestError::Force {
                text: format!("{collective}={variant}"),
                problem: format!(
                    "{library} has no such variant; nearest of its {} are {} (`colltune variants` lists all)",
                    known.len(),
                    near.join(", ")
                ),
            });
        }
    }
    Ok(())
}

/// Reads `calls:DIR`, the folder that takes the call logs.
pub fn parse_log(text: &str) -> Result<String, RequestError> {
    text.strip_prefix("calls:")
        .filter(|folder| !folder.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| RequestError::Log(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Product;

    const LIBRARY: Library = Library {
        product: Product::OpenMpi,
        version: (4, 1, 4),
    };

    #[test]
    fn modes_read_back_and_others_are_named() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
        }
        let error = "exploid".parse::<Mode>().unwrap_err().to_string();
        assert!(
            error.contains("exploid") && error.contains("exploit, tables, record"),
            "{error}"
        );
    }

    #[test]
    fn forced_variants_are_checked_against_the_catalogue() {
        let forced =
            parse_force("allreduce=native:ring; bcast=native:pipeline:segsize=32KiB;").unwrap();
        assert_eq!(forced.len(), 2);
        assert_eq!(check_force(&forced, LIBRARY), Ok(()));
        let by_comma = parse_force("allreduce=native:ring,bcast=native:pipeline:segsize=32KiB");
        assert_eq!(by_comma.as_ref(), Ok(&forced));
        let error = check_force(&parse_force("allreduce=native:rink").unwrap(), LIBRARY)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("native:rink") && error.contains("are native:ring, "),
            "{error}"
        );
        let all = catalogue::variants(LIBRARY, Collective::Bcast).len();
        let error = check_force(&parse_force("bcast=p2p:binary_tre").unwrap(), LIBRARY)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("are p2p:binary_tree") && all > 50 && error.len() < 500,
            "{all} variants, {} characters: {error}",
            error.len()
        );
        for text in [
            "allreduce",
            "allreduce=",
            "alreduce=default",
            "bcast=ring",
            "bcast=default;bcast=default",
            "=default",
        ] {
            assert!(parse_force(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_force(""), Ok(Vec::new()));
    }

    #[test]
    fn only_call_logs_are_known() {
        assert_eq!(parse_log("calls:/tmp/x"), Ok("/tmp/x".to_owned()));
        for text in ["calls", "calls:", "/tmp/x", "messages:/tmp"] {
            assert!(parse_log(text).is_err());
        }
    }
}
