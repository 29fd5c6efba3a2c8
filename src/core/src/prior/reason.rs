//! Why a variant is not drawn where nothing is known.

use std::fmt;

use crate::catalogue::{Need, Unmet};
use crate::variant::{Family, Size};

/// Why a variant is not drawn before any training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Undrawn {
    /// It needs what no call is known to have.
    Barred,
    /// `exclude` in `colltune.toml` names it, for all cells or for a `[[space]]`.
    Excluded,
    /// Its family is off: `families` leaves it out, or is not set and `colltune calibrate` has not run.
    Family(Family),
    /// No call of the cell has what it needs.
    Needs(Unmet),
    /// The simulator, calibrated on this machine, finds it so many times as slow as the best.
    Calibration(f64),
    /// By messages and bytes alone it costs more than so many times as much as another one.
    Shape(f64),
    /// It is tried from so many bytes up to fewer than so many.
    Sizes(u64, u64),
    /// A smaller parameter makes the same of it.
    Alike,
}

impl Undrawn {
    /// Whether a training changes nothing about it: the site or the calls rule it out, not an expectation.
    pub fn is_final(self) -> bool {
        use Undrawn::{Barred, Excluded, Family, Needs};
        matches!(self, Barred | Excluded | Family(_) | Needs(_))
    }

    /// The rule's name, for programs.
    pub fn rule(self) -> &'static str {
        match self {
            Undrawn::Barred => "barred",
            Undrawn::Excluded => "excluded",
            Undrawn::Family(_) => "family",
            Undrawn::Needs(_) => "needs",
            Undrawn::Calibration(_) => "calibration",
            Undrawn::Shape(_) => "shape",
            Undrawn::Sizes(..) => "sizes",
            Undrawn::Alike => "alike",
        }
    }
}

impl fmt::Display for Undrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undrawn::Barred => {
                f.write_str("barred: the library's algorithm writes into a root's buffer")
            }
            Undrawn::Excluded => f.write_str("excluded by the site (`exclude` in colltune.toml)"),
            Undrawn::Family(family) => {
                write!(
                    f,
                    "family {} is off: `families` in colltune.toml leaves it out, or is not set and `colltune calibrate` has not run, or the learner \"ompicolltune\" draws the library's own alone",
                    family.name()
                )
            }
            Undrawn::Needs(Unmet::Call(Need::Hierarchy)) => {
                f.write_str("needs several nodes, with several ranks on one of them")
            }
            Undrawn::Needs(Unmet::Order) => {
                f.write_str("adds in another order than `reproducible = \"fixed\"` promises")
            }
            Undrawn::Needs(unmet) => write!(f, "needs {unmet}"),
            Undrawn::Calibration(ratio) => write!(f, "calibration: {ratio:.1}x the best"),
            Undrawn::Shape(factor) => write!(
                f,
                "by its messages and bytes more than {factor:.0}x another variant"
            ),
            Undrawn::Sizes(least, most) if least >= most => {
                f.write_str(
                    "never drawn, only forced: leaders of nodes are not tried with it, or it serves `reproducible = \"fixed\"` alone",
                )
            }
            Undrawn::Sizes(least, u64::MAX) => write!(f, "tried from {} on", Size(*least)),
            Undrawn::Sizes(least, most) => {
                write!(f, "tried from {} to below {}", Size(*least), Size(*most))
            }
            Undrawn::Alike => f.write_str("another value of its parameter does the same here"),
        }
    }
}
