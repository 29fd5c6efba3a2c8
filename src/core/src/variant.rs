//! Names of variants: `family:algorithm[:key=value]`, the only form in which they are stored.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Where the code that runs a variant comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// What the library would do without us.
    Default,
    /// One of the library's own algorithms, steered.
    Native,
    /// A composition of the library's own collectives.
    Mockup,
    /// Our own schedule over point-to-point messages.
    P2p,
    /// Our own algorithm over shared memory inside the node.
    Node,
}

impl Family {
    pub const ALL: [Family; 5] = [
        Family::Default,
        Family::Native,
        Family::Mockup,
        Family::P2p,
        Family::Node,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Family::Default => "default",
            Family::Native => "native",
            Family::Mockup => "mockup",
            Family::P2p => "p2p",
            Family::Node => "node",
        }
    }
}

/// The parsed name of a variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantName {
    pub family: Family,
    /// Empty for `default` only.
    pub algorithm: String,
    /// Segment size in bytes, where the variant has one.
    pub segsize: Option<u64>,
}

/// The name of the library's own choice.
pub const DEFAULT: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VariantError {
    #[error("read the variant {0:?}: its family is not one of default, native, mockup, p2p, node")]
    Family(String),
    #[error(
        "read the variant {0:?}: it looks like family:algorithm[:key=value], as in native:ring:segsize=64KiB"
    )]
    Shape(String),
    #[error("read the variant {0:?}: the only known key is segsize, as in segsize=64KiB")]
    Key(String),
    #[error("read the size {0:?}: it is a number of bytes, KiB, MiB or GiB, as in 64KiB")]
    Size(String),
}

impl VariantName {
    pub fn default_choice() -> VariantName {
        VariantName {
            family: Family::Default,
            algorithm: String::new(),
            segsize: None,
        }
    }

    pub fn native(algorithm: &str, segsize: Option<u64>) -> VariantName {
        VariantName {
            family: Family::Native,
            algorithm: algorithm.to_owned(),
            segsize,
        }
    }
}

impl fmt::Display for VariantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.name())?;
        if self.family != Family::Default {
            write!(f, ":{}", self.algorithm)?;
        }
        if let Some(bytes) = self.segsize {
            write!(f, ":segsize={}", Size(bytes))?;
        }
        Ok(())
    }
}

impl FromStr for VariantName {
    type Err = VariantError;

    fn from_str(text: &str) -> Result<VariantName, VariantError> {
        let mut parts = text.split(':');
        let family = parts.next().unwrap_or("");
        let family = Family::ALL
            .into_iter()
            .find(|known| known.name() == family)
            .ok_or_else(|| VariantError::Family(text.to_owned()))?;
        let algorithm = parts.next().unwrap_or("").to_owned();
        let well_named =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-+".contains(c);
        if algorithm.is_empty() != (family == Family::Default) || !algorithm.chars().all(well_named)
        {
            return Err(VariantError::Shape(text.to_owned()));
        }
        let mut segsize = None;
        for part in parts {
            match part.split_once('=') {
                Some(("segsize", value)) if segsize.is_none() && family != Family::Default => {
                    segsize = Some(value.parse::<Size>()?.0);
                }
                _ => return Err(VariantError::Key(text.to_owned())),
            }
        }
        Ok(VariantName {
            family,
            algorithm,
            segsize,
        })
    }
}

/// A number of bytes that displays as `512`, `64KiB`, `1MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, bytes) in UNITS {
            if self.0 >= bytes && self.0.is_multiple_of(bytes) {
                return write!(f, "{}{unit}", self.0 / bytes);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Size {
    type Err = VariantError;

    fn from_str(text: &str) -> Result<Size, VariantError> {
        let bad = || VariantError::Size(text.to_owned());
        let (digits, unit) = UNITS
            .into_iter()
            .find_map(|(unit, bytes)| text.strip_suffix(unit).map(|digits| (digits, bytes)))
            .unwrap_or((text.strip_suffix('B').unwrap_or(text), 1));
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        digits
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(unit))
            .map(Size)
            .ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_written() {
        for text in [
            "default",
            "native:ring",
            "native:segmented_ring:segsize=64KiB",
            "node:shm+ring",
            "mockup:reduce+bcast",
        ] {
            assert_eq!(text.parse::<VariantName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn malformed_names_are_errors() {
        for text in [
            "",
            "native",
            "native:",
            "ring",
            "default:ring",
            "native:ring:segsize",
            "native:ring:segsize=",
            "native:ring:segsize=-1",
            "native:ring:radix=2",
            "native:Ring",
            "native:ring:segsize=1KiB:segsize=2KiB",
            "default:segsize=1KiB",
            "native:ring:segsize=99999999999GiB",
        ] {
            assert!(text.parse::<VariantName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_use_the_largest_unit_that_divides_them() {
        for (bytes, text) in [
            (0, "0"),
            (8, "8"),
            (1024, "1KiB"),
            (1536, "1536"),
            (65536, "64KiB"),
            (1 << 20, "1MiB"),
            (3 << 30, "3GiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes));
        }
    }
}
