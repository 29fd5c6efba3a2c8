//! Predefined datatypes by the names that libraries give them, and the operations that each takes.

/// What a predefined datatype stands for; it decides which predefined operations take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// An integer of C.
    Integer,
    /// An integer of Fortran, or an address, offset or count.
    Whole,
    Floating,
    Complex,
    Logical,
    Byte,
    /// Characters and packed data: no predefined operation takes them.
    Text,
    /// Two integers: a value and its place.
    IntegerPair,
    /// Two of anything else, of which one may be a floating-point value with its place.
    Pair,
}

/// What a predefined operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combines {
    /// MAX, MIN.
    Extreme,
    /// SUM, PROD.
    Arithmetic,
    Logical,
    Bitwise,
    /// MINLOC, MAXLOC.
    Located,
}

use Combines::{Arithmetic, Bitwise, Extreme, Located};

impl Sort {
    /// What the standard says of the predefined type that a library calls `name`, if it knows the name.
    ///
    /// `None` as well where a name tells the size of an element and the type has another one: then the handle
    /// is not the type of that name (Intel MPI has other types than MPICH 5 under some of its numbers).
    pub fn of(name: &str, bytes: u64) -> Option<Sort> {
        let name = name.strip_prefix("MPI_")?;
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let width = name[stem.len()..].parse::<u64>().ok();
        let sized = match stem {
            "INTEGER" => Some(Sort::Whole),
            "REAL" => Some(Sort::Floating),
            "COMPLEX" => Some(Sort::Complex),
            "LOGICAL" => Some(Sort::Logical),
            _ => None,
        };
        if sized.is_some() {
            return sized.filter(|_| width.is_none_or(|width| width == bytes));
        }
        if let Some(bits) = name.strip_prefix("INT").or(name.strip_prefix("UINT"))
            && let Some(bits) = bits.strip_suffix("_T")
        {
            return (bits.parse() == Ok(8 * bytes)).then_some(Sort::Integer);
        }
        Some(match name {
            "SIGNED_CHAR" | "UNSIGNED_CHAR" | "SHORT" | "UNSIGNED_SHORT" | "INT" | "UNSIGNED"
            | "LONG" | "UNSIGNED_LONG" | "LONG_LONG" | "LONG_LONG_INT" | "UNSIGNED_LONG_LONG" => {
                Sort::Integer
            }
            "AINT" | "OFFSET" | "COUNT" => Sort::Whole,
            "FLOAT" | "DOUBLE" | "LONG_DOUBLE" | "DOUBLE_PRECISION" => Sort::Floating,
            "DOUBLE_COMPLEX"
            | "C_COMPLEX"
            | "C_FLOAT_COMPLEX"
            | "C_DOUBLE_COMPLEX"
            | "C_LONG_DOUBLE_COMPLEX"
            | "CXX_FLOAT_COMPLEX"
            | "CXX_DOUBLE_COMPLEX"
            | "CXX_LONG_DOUBLE_COMPLEX" => Sort::Complex,
            "C_BOOL" | "CXX_BOOL" => Sort::Logical,
            "BYTE" => Sort::Byte,
            "CHAR" | "WCHAR" | "CHARACTER" | "PACKED" => Sort::Text,
            "2INT" | "2INTEGER" | "SHORT_INT" | "LONG_INT" => Sort::IntegerPair,
            "FLOAT_INT" | "DOUBLE_INT" | "LONG_DOUBLE_INT" | "2REAL" | "2DOUBLE_PRECISION"
            | "2COMPLEX" | "2DOUBLE_COMPLEX" => Sort::Pair,
            _ => return None,
        })
    }

    /// Whether what a predefined operation makes of such elements cannot depend on their order.
    pub fn is_exact(self) -> bool {
        !matches!(self, Sort::Floating | Sort::Complex | Sort::Pair)
    }
}

impl Combines {
    /// Whether the standard defines the operation on such a datatype; a library may lack the type or the operation.
    pub fn takes(self, sort: Sort) -> bool {
        use Sort::{Byte, Complex, Floating, Integer, IntegerPair, Logical, Pair, Whole};
        match self {
            Extreme => matches!(sort, Integer | Whole | Floating),
            Arithmetic => matches!(sort, Integer | Whole | Floating | Complex),
            Combines::Logical => matches!(sort, Integer | Logical),
            Bitwise => matches!(sort, Integer | Whole | Byte),
            Located => matches!(sort, IntegerPair | Pair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fortran_stand_beside_those_of_c() {
        for (name, bytes, sort) in [
            ("MPI_DOUBLE_COMPLEX", 16, Sort::Complex),
            ("MPI_COMPLEX", 8, Sort::Complex),
            ("MPI_COMPLEX8", 8, Sort::Complex),
            ("MPI_COMPLEX32", 32, Sort::Complex),
            ("MPI_CXX_LONG_DOUBLE_COMPLEX", 32, Sort::Complex),
            ("MPI_INTEGER", 8, Sort::Whole),
            ("MPI_INTEGER8", 8, Sort::Whole),
            ("MPI_INTEGER16", 16, Sort::Whole),
            ("MPI_COUNT", 8, Sort::Whole),
            ("MPI_REAL", 8, Sort::Floating),
            ("MPI_REAL2", 2, Sort::Floating),
            ("MPI_REAL16", 16, Sort::Floating),
            ("MPI_LOGICAL1", 1, Sort::Logical),
            ("MPI_CXX_BOOL", 1, Sort::Logical),
            ("MPI_CHARACTER", 1, Sort::Text),
            ("MPI_CHAR", 1, Sort::Text),
            ("MPI_UINT16_T", 2, Sort::Integer),
            ("MPI_INT", 4, Sort::Integer),
            ("MPI_BYTE", 1, Sort::Byte),
            ("MPI_2INTEGER", 8, Sort::IntegerPair),
            ("MPI_2REAL", 8, Sort::Pair),
        ] {
            assert_eq!(Sort::of(name, bytes), Some(sort), "{name}");
        }
    }

    #[test]
    fn a_name_that_nobody_knows_or_that_lies_is_no_sort() {
        for (name, bytes) in [
            ("", 4),
            ("INT", 4),
            ("MPI_", 4),
            ("MPI_INT_T", 4),
            ("MPI_INTERN", 4),
            ("MPI_LB", 0),
            ("MPIX_C_BF16", 1),
            ("MPI_LOGICAL2", 1),
            ("MPI_INTEGER8", 4),
            ("MPI_INT64_T", 4),
            ("MPI_REAL8 of mine", 8),
        ] {
            assert_eq!(Sort::of(name, bytes), None, "{name}");
        }
    }

    #[test]
    fn operations_take_what_the_standard_lists() {
        use Sort::{Byte, Complex, Floating, Integer, IntegerPair, Logical, Pair, Text, Whole};
        let all = [
            Integer,
            Whole,
            Floating,
            Complex,
            Logical,
            Byte,
            Text,
            IntegerPair,
            Pair,
        ];
        let taken = |combines: Combines| all.map(|sort| u8::from(combines.takes(sort)));
        assert_eq!(taken(Extreme), [1, 1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(taken(Arithmetic), [1, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(taken(Combines::Logical), [1, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(taken(Bitwise), [1, 1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(taken(Located), [0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }
}
