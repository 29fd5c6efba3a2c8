//! User settings that choose a library's algorithms: rules or selection files, as `colltune export` writes them, or
//! variables. With them the library's own choice is another one, and times of the two are two data sets.

use std::fmt;

use crate::collective::Collective;
use crate::library::{Library, Product};
use crate::preset;
use crate::roster::hash_bytes;

/// The column of a context that says it.
pub const COLUMN: &str = "told";
const PREFIX: &str = "told-";
/// What the variables of the component of Open MPI begin with that has our variants, where environments hold them.
pub const OPEN_MPI: &str = "OMPI_MCA_coll_tuned_";

/// A hash of these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToldWord(u32);

impl ToldWord {
    /// What these settings come to ([`settings`]), in whatever order; `None` where there are none. The same tables in
    /// another place are the same, so `content` reads a file that is named.
    pub fn new(
        settings: &[(String, String)],
        content: impl Fn(&str) -> Option<String>,
    ) -> Option<ToldWord> {
        if settings.is_empty() {
            return None;
        }
        let mut settings: Vec<_> = settings.iter().collect();
        settings.sort_unstable();
        let said = |seed, text: &str| hash_bytes(seed, text.as_bytes());
        let word = settings.into_iter().fold(1, |word, (name, value)| {
            let is_file = name.to_lowercase().contains("file");
            let content = is_file.then(|| content(value)).flatten();
            said(said(word, name), content.as_ref().unwrap_or(value))
        });
        Some(ToldWord((word ^ (word >> 32)) as u32))
    }

    /// The same of jobs that do not run the library's own choice of reductions, but one in a fixed order.
    pub fn with_fixed_order(told: Option<ToldWord>) -> ToldWord {
        let before = told.map_or(1, |told| told.0.into());
        let word = hash_bytes(before, b"reproducible=fixed");
        ToldWord((word ^ (word >> 32)) as u32)
    }

    /// What it displays as.
    pub fn from_name(name: &str) -> Option<ToldWord> {
        let digits = name.strip_prefix(PREFIX)?;
        let word = ToldWord(u32::from_str_radix(digits, 16).ok()?);
        // In one spelling.
        (word.to_string() == name).then_some(word)
    }
}

impl fmt::Display for ToldWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:08x}", self.0)
    }
}

/// The variables of an environment that choose algorithms of `library`, sorted. Variables without effect are left
/// out, and so are those that `colltune run` itself draws before a job.
pub fn settings(environment: &[(String, String)], library: Library) -> Vec<(String, String)> {
    let all = environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.trim()));
    let all: Vec<_> = all.filter(|(_, value)| !value.is_empty()).collect();
    let is_told = |name: &str, value: &str| match library.product {
        Product::OpenMpi => is_told_to_open_mpi(&all, name, value),
        Product::Mpich => is_told_to_mpich(name, value),
        Product::Intel => is_told_to_intel(&all, library, name, value),
        // Their own names for it are not known here.
        Product::Cray | Product::Mvapich => false,
    };
    let told = all.iter().filter(|(name, value)| is_told(name, value));
    let mut told: Vec<_> = told
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    told.sort_unstable();
    told.dedup();
    told
}

fn value_of<'a>(all: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let variable = all.iter().find(|(other, _)| *other == name);
    variable.map(|(_, value)| *value)
}

/// Each component has a switch, without which it looks at nothing else.
fn is_told_to_open_mpi(all: &[(&str, &str)], name: &str, value: &str) -> bool {
    let is_on = |switch: &str| {
        let value = value_of(all, switch).unwrap_or_default().to_lowercase();
        !["", "0", "false", "f", "no", "n", "disabled", "off"].contains(&value.as_str())
    };
    [
        (OPEN_MPI, "use_dynamic_rules"),
        ("OMPI_MCA_coll_han_", "use_dynamic_file_rules"),
    ]
    .into_iter()
    .any(|(component, switch)| {
        name.strip_prefix(component).is_some_and(|rest| {
            let is_choice = rest == "dynamic_rules_filename"
                || (rest.contains("_algorithm") && !["0", "ignore"].contains(&value));
            is_choice && is_on(&format!("{component}{switch}"))
        })
    })
}

/// A collective's variables that differ from their defaults, and the files.
fn is_told_to_mpich(name: &str, value: &str) -> bool {
    let Some(rest) = name.strip_prefix("MPIR_CVAR_") else {
        return false;
    };
    let of_collective = Collective::ALL.into_iter().find_map(|collective| {
        let rest = rest.strip_prefix(&collective.name().to_uppercase())?;
        rest.strip_prefix('_')
    });
    let is_told = |rest: &str| match rest {
        "COMPOSITION" => value != "0",
        "DEVICE_COLLECTIVE" => !is_yes(value),
        _ => rest.ends_with("INTRA_ALGORITHM") && value != "auto",
    };
    rest.contains("COLL_SELECTION_TUNING_JSON_FILE")
        || (rest == "DEVICE_COLLECTIVES" && value != "percoll")
        || of_collective.is_some_and(is_told)
}

fn is_yes(value: &str) -> bool {
    ["1", "true", "yes", "on", "t", "y"].contains(&value.to_lowercase().as_str())
}

fn is_told_to_intel(all: &[(&str, &str)], library: Library, name: &str, value: &str) -> bool {
    let drawn = value_of(all, crate::environment::PRESETS);
    let drawn = drawn.and_then(preset::parse).unwrap_or_default();
    let is_drawn = Collective::ALL.into_iter().any(|collective| {
        let told = preset::adjustment(&drawn, library, collective);
        preset::variable(collective) == name && told.as_deref() == Some(value)
    });
    !is_drawn && (name.starts_with("I_MPI_ADJUST_") || name.starts_with("I_MPI_TUNING"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(library: &str, text: &str) -> Vec<(String, String)> {
        let variables = text.split(' ').filter_map(|one| one.split_once('='));
        let variables: Vec<_> = variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        settings(&variables, library.parse().unwrap())
    }

    #[test]
    fn a_library_is_told_by_what_takes_effect() {
        let told = [
            (
                "openmpi-4.1.4",
                "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_dynamic_rules_filename=rules",
            ),
            (
                "openmpi-5.0.3",
                "OMPI_MCA_coll_tuned_use_dynamic_rules=true OMPI_MCA_coll_tuned_allreduce_algorithm=ring",
            ),
            (
                "openmpi-5.0.3",
                "OMPI_MCA_coll_han_use_dynamic_file_rules=1 OMPI_MCA_coll_han_dynamic_rules_filename=rules",
            ),
            (
                "mpich-4.0.2",
                "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=a.json",
            ),
            (
                "mpich-4.0.2",
                "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE=b.json",
            ),
            ("mpich-4.0.2", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial"),
            ("mpich-4.0.2", "MPIR_CVAR_DEVICE_COLLECTIVES=none"),
            ("mpich-4.0.2", "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0"),
            ("mpich-4.0.2", "MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM=mpir"),
            ("intel-2021.17.0", "I_MPI_ADJUST_BCAST=1"),
            (
                "intel-2021.17.0",
                "I_MPI_ADJUST_BCAST=2 COLLTUNE_PRESETS=allreduce:0-=preset:1",
            ),
        ];
        for (library, text) in told {
            assert!(!of(library, text).is_empty(), "{library} {text}");
        }
        let untold = [
            ("openmpi-4.1.4", ""),
            ("openmpi-4.1.4", "OMPI_MCA_coll_tuned_use_dynamic_rules=1"),
            ("openmpi-4.1.4", "OMPI_MCA_coll_tuned_bcast_algorithm=1"),
            (
                "openmpi-4.1.4",
                "OMPI_MCA_coll_tuned_use_dynamic_rules=0 OMPI_MCA_coll_tuned_dynamic_rules_filename=rules",
            ),
            (
                "openmpi-4.1.4",
                "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_bcast_algorithm=0",
            ),
            ("mpich-4.0.2", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=auto"),
            ("mpich-4.0.2", "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=1"),
            ("mpich-4.0.2", "MPIR_CVAR_DEVICE_COLLECTIVES=percoll"),
            ("mpich-4.0.2", "MPIR_CVAR_IBCAST_INTRA_ALGORITHM=sched_auto"),
            ("mpich-4.0.2", "MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp"),
            ("intel-2021.17.0", "I_MPI_FABRICS=shm"),
        ];
        for (library, text) in untold {
            assert_eq!(of(library, text), [], "{library} {text}");
        }
    }

    #[test]
    fn what_is_drawn_before_a_job_is_not_told_by_the_user() {
        let library: Library = "intel-2021.17.0".parse().unwrap();
        let variants = crate::catalogue::variants(library, Collective::Bcast);
        let native = variants
            .iter()
            .find(|one| one.steering != crate::catalogue::Steering::None)
            .unwrap();
        let drawn = [preset::Preset {
            collective: Collective::Bcast,
            bytes: crate::space::Range { lo: 0, hi: None },
            variant: native.name.to_string(),
        }];
        let value = preset::adjustment(&drawn, library, Collective::Bcast).unwrap();
        let variables = |value: &str| {
            let presets = preset::spell(&drawn);
            let variables = [
                (crate::environment::PRESETS, presets.as_str()),
                (&preset::variable(Collective::Bcast), value),
            ];
            let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            settings(&owned, library)
        };
        assert_eq!(variables(&value), []);
        assert_eq!(variables("no such").len(), 1);
    }

    #[test]
    fn the_same_tables_elsewhere_are_the_same_and_others_in_their_place_are_not() {
        let at = |path: &str| vec![("RULES_FILE".to_owned(), path.to_owned())];
        let read = |path: &str, text: &str| {
            ToldWord::new(&at(path), |asked| (asked == path).then(|| text.to_owned()))
        };
        let one = read("a/rules.conf", "1");
        assert!(one.is_some());
        assert_eq!(one, read("b/rules.conf", "1"));
        assert_ne!(one, read("a/rules.conf", "2"));
        assert_ne!(
            ToldWord::new(&at("a"), |_| None),
            ToldWord::new(&at("b"), |_| None)
        );
        assert_eq!(ToldWord::new(&[], |_| None), None);
    }

    #[test]
    fn names_are_read_back_in_one_spelling() {
        // A folder of a database has this name.
        let settings = [
            ("A_FILE".to_owned(), "a".to_owned()),
            ("B".to_owned(), "1".to_owned()),
        ];
        let word = ToldWord::new(&settings, |_| None).map(|word| word.to_string());
        assert_eq!(word.as_deref(), Some("told-f8a01530"));
        let told = ToldWord(0x1f2e);
        assert_eq!(told.to_string(), "told-00001f2e");
        assert_eq!(ToldWord::from_name("told-00001f2e"), Some(told));
        for text in [
            "told-00001F2E",
            "told-1f2e",
            "told-",
            "00001f2e",
            "told-+0001f2e",
        ] {
            assert_eq!(ToldWord::from_name(text), None, "{text}");
        }
    }
}
