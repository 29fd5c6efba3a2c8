//! Watching exported tables: a job does without them and has its ranks run what they hold, next to the library's own
//! choice, which could not run with tables in force.

use std::ffi::OsString;

use colltune_core::context::told;
use colltune_core::library::{Library, Product};

use crate::export::{mpich, openmpi};

/// The variables that switch tables on for a library and stand in the environment: they are left out of the job.
///
/// Errors: why the tables of this library cannot be watched, or these tables cannot be left out, with the remedy.
pub fn left_out(
    library: Library,
    words: &[OsString],
    environment: &[String],
) -> Result<Vec<&'static str>, String> {
    let mut switches = match library.product {
        Product::OpenMpi => vec![openmpi::RULES],
        Product::Mpich => mpich::SELECTION.map(|(name, _)| name).to_vec(),
        Product::Intel | Product::Cray | Product::Mvapich => {
            return Err(format!(
                "watch tables on {}, which cannot be told an algorithm while a job runs; `colltune compare` compares \
                 whole jobs",
                library.product.title()
            ));
        }
    };
    let on_line = switches.iter().find(|name| {
        let short = name.strip_prefix("OMPI_MCA_").unwrap_or(name);
        words
            .iter()
            .any(|word| word.to_string_lossy().contains(short))
    });
    if let Some(name) = on_line {
        return Err(format!(
            "watch tables that the line itself switches on: leave {name} out of it, the ranks run what the tables hold \
             without"
        ));
    }
    // Alone the switch has no effect, but the job's records name what is set.
    let forced = |name: &String| name.starts_with(told::OPEN_MPI) && name.contains("_algorithm");
    if library.product == Product::OpenMpi && !environment.iter().any(forced) {
        switches.push(openmpi::SWITCH);
    }
    switches.retain(|name| environment.iter().any(|other| other == name));
    Ok(switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(library: &str, line: &str, set: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let set: Vec<String> = set.iter().map(|name| (*name).to_owned()).collect();
        left_out(library.parse().unwrap(), &words, &set)
    }

    #[test]
    fn what_switches_tables_on_is_left_out_and_nothing_else() {
        let line = "mpirun -n 2 ./solver";
        for (library, name) in [
            ("openmpi-4.1.4", openmpi::RULES),
            ("mpich-4.0.2", mpich::SELECTION[1].0),
        ] {
            let other = "OMPI_MCA_coll_tuned_bcast_algorithm";
            let set = [name, other, openmpi::SWITCH];
            assert_eq!(asked(library, line, &set), Ok(vec![name]));
            assert_eq!(asked(library, line, &[other]), Ok(vec![]));
        }
        // Without a forced algorithm the switch serves the tables alone, so both are left out.
        let both = vec![openmpi::RULES, openmpi::SWITCH];
        assert_eq!(asked("openmpi-4.1.4", line, &both), Ok(both.clone()));
    }

    #[test]
    fn tables_on_the_line_and_libraries_that_are_told_before_a_job_are_refused() {
        for line in [
            "mpirun --mca coll_tuned_dynamic_rules_filename rules -n 2 ./solver",
            "mpirun -x OMPI_MCA_coll_tuned_dynamic_rules_filename -n 2 ./solver",
            "mpirun -n 2 env OMPI_MCA_coll_tuned_dynamic_rules_filename=rules ./solver",
        ] {
            let refused = asked("openmpi-4.1.4", line, &[]).unwrap_err();
            assert!(refused.contains(openmpi::RULES), "{refused}");
        }
        let refused = asked("intel-2021.17.0", "mpirun -n 2 ./solver", &[]).unwrap_err();
        assert!(refused.contains("Intel MPI"), "{refused}");
    }
}
