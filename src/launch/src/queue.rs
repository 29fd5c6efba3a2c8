//! Commands that hand a script to a queue or ask it for nodes, and start no rank themselves.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Why a line cannot be given the tuner, with the remedy; `None` for lines that start something here. `has_launcher`
/// says whether a launcher stands on the line.
pub fn refusal(words: &[OsString], has_launcher: bool) -> Option<String> {
    let word = |place: usize| {
        let word = Path::new(words.get(place)?);
        word.file_name().and_then(OsStr::to_str)
    };
    let (name, script) = match (word(0)?, word(1)) {
        (name @ ("sbatch" | "qsub"), _) => (name.to_owned(), true),
        ("flux", Some("batch")) => ("flux batch".to_owned(), true),
        (name @ ("salloc" | "bsub"), _) if !has_launcher => (name.to_owned(), name == "bsub"),
        ("flux", Some("alloc")) if !has_launcher => ("flux alloc".to_owned(), false),
        ("mpirun_rsh", _) => {
            return Some(
                "find the program behind mpirun_rsh, which takes hosts and variables before it: start the job with the \
                 library's own mpiexec"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    Some(match script {
        true => format!(
            "tune what {name} hands in: it runs later, on other nodes. Put `colltune run ... --` in the script, in front \
             of the mpirun or srun that starts the program, and hand that in as ever"
        ),
        false => format!(
            "tune what {name} starts: no launcher stands on the line. Write it there, as in `colltune run ... -- {name} -N 2 \
             srun ./solver`, or put `colltune run ... --` in front of it inside the allocation"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::find_launcher;

    fn refused(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        refusal(&words, find_launcher(&words).is_some())
    }

    #[test]
    fn what_only_hands_a_job_in_is_refused_with_the_way_out() {
        for line in [
            "sbatch -N2 job.sh",
            "/usr/bin/sbatch job.sh srun",
            "qsub job.pbs",
            "flux batch -n4 job.sh",
            "bsub -n 4 ./a",
            "salloc -N 2",
            "salloc -N2 ./a",
            "flux alloc -n2",
        ] {
            let text = refused(line).unwrap_or_else(|| panic!("{line} is not refused"));
            assert!(text.contains("colltune run ... --"), "{line}: {text}");
        }
        let text = refused("mpirun_rsh -np 2 n0 n1 A=1 ./a").expect("it is refused");
        assert!(text.contains("mpiexec"));
        for line in [
            "salloc -N2 srun ./a",
            "bsub -n 4 mpirun ./a",
            "flux alloc -n2 flux run ./a",
            "flux run ./a",
            "srun ./sbatch",
            "./job.sh",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
    }
}
