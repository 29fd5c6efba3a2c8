//! Names of variants: `family:algorithm[:key=value]`, the only form in which they are stored.

use std::fmt;
use std::str::FromStr;

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::named::named;

named! {
    /// Where the code that runs a variant comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum Family {
        /// What the library would do without us.
        Default = "default",
        /// One of the library's own algorithms, steered.
        Native = "native",
        /// A composition of the library's own collectives. No variant is one any more; records of earlier versions
        /// name them.
        Mockup = "mockup",
        /// Our own schedule over point-to-point messages.
        P2p = "p2p",
        /// Our own algorithm over shared memory inside the node.
        Node = "node",
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
    /// Radix or fan-out, where an algorithm of our own has one.
    pub radix: Option<u32>,
    /// Messages under way at a time, where an algorithm of our own has that as a parameter.
    pub window: Option<u32>,
}

/// The name of the library's own choice.
pub const DEFAULT: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VariantError {
    #[error("read the variant {0:?}: its family is not one of default, native, p2p, node")]
    Family(String),
    #[error(
        "read the variant {0:?}: it looks like family:algorithm[:key=value], as in native:ring:segsize=64KiB"
    )]
    Shape(String),
    #[error(
        "read the variant {0:?}: the known keys are segsize, as in segsize=64KiB, and in our own families radix and window, as in radix=4"
    )]
    Key(String),
    #[error("read the size {0:?}: it is a number of bytes, KiB, MiB or GiB, as in 64KiB")]
    Size(String),
}

impl VariantName {
    pub fn default_choice() -> VariantName {
        VariantName::of(Family::Default, "")
    }

    pub fn native(algorithm: &str, segsize: Option<u64>) -> VariantName {
        VariantName {
            segsize,
            ..VariantName::of(Family::Native, algorithm)
        }
    }

    /// A name without parameters.
    pub fn of(family: Family, algorithm: &str) -> VariantName {
        VariantName {
            family,
            algorithm: algorithm.to_owned(),
            segsize: None,
            radix: None,
            window: None,
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
        if let Some(radix) = self.radix {
            write!(f, ":radix={radix}")?;
        }
        if let Some(window) = self.window {
            write!(f, ":window={window}")?;
        }
        Ok(())
    }
}

impl FromStr for VariantName {
    type Err = VariantError;

    fn from_str(text: &str) -> Result<VariantName, VariantError> {
        let mut parts = text.split(':');
        let family = parts.next().unwrap_or("");
        let family =
            Family::from_name(family).ok_or_else(|| VariantError::Family(text.to_owned()))?;
        let algorithm = parts.next().unwrap_or("").to_owned();
        let well_named =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-+".contains(c);
        if algorithm.is_empty() != (family == Family::Default) || !algorithm.chars().all(well_named)
        {
            return Err(VariantError::Shape(text.to_owned()));
        }
        let mut name = VariantName {
            family,
            algorithm,
            segsize: None,
            radix: None,
            window: None,
        };
        for part in parts {
            name.read_key(part)?
                .ok_or_else(|| VariantError::Key(text.to_owned()))?;
        }
        Ok(name)
    }
}

impl VariantName {
    /// Takes up `key=value`; `None` for a key that is unknown here or stands twice, and for a
    /// radix or window that is no positive number.
    fn read_key(&mut self, part: &str) -> Result<Option<()>, VariantError> {
        let own = !matches!(self.family, Family::Default | Family::Native);
        let number = |value: &str| value.parse::<u32>().ok().filter(|&number| number > 0);
        let taken = match part.split_once('=') {
            Some(("segsize", value))
                if self.segsize.is_none() && self.family != Family::Default =>
            {
                self.segsize = Some(value.parse::<Size>()?.0);
                self.segsize.map(drop)
            }
            Some(("radix", value)) if own && self.radix.is_none() => {
                self.radix = number(value);
                self.radix.map(drop)
            }
            Some(("window", value)) if own && self.window.is_none() => {
                self.window = number(value);
                self.window.map(drop)
            }
            _ => None,
        };
        Ok(taken)
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
            "p2p:bruck:radix=4",
            "p2p:scattered:window=16",
            "p2p:chain:segsize=32KiB:radix=4:window=2",
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
            "p2p:bruck:radix=0",
            "p2p:bruck:radix=x",
            "p2p:bruck:radix=2:radix=2",
            "p2p:bruck:fanout=2",
            "default:window=2",
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
