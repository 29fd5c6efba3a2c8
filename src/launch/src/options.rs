//! The options of the programs that start MPI jobs: which of them take another word.
//!
//! A launcher's line is read with its own table. An option that is in no table may take the next word or not: where
//! that leaves it open which word is the program, the line is not changed behind it (see [`super::line`]).

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// How many words follow an option; what it means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Words(usize),
    /// The number of ranks.
    Ranks,
    /// `-d` of Open MPI takes none, `-d 8` of PALS one.
    Number,
    /// `--option=value` or an optional value glued to it.
    Wdir,
    /// `NAME=VALUE` in one word.
    Assignment,
    /// `NAME` and `VALUE` in two words, or `NAME=VALUE` in one, for every context (`-genv`) or this one (`-env`).
    Genv,
    Env,
    /// A file that names the programs.
    Programs,
    /// Prints something and starts nothing.
    Information,
    /// In no table.
    Unknown,
}

/// Whose options a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `mpirun` and `mpiexec` of Open MPI, of Hydra and of PALS, whose options do not contradict each other.
    Mpi,
    Srun,
    /// `flux run` and `flux submit`.
    Flux,
    Aprun,
}

/// What takes no word, and what takes one.
struct Table {
    none: &'static str,
    one: &'static str,
}

const MPI: Table = Table {
    none: "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous debug-devel \
        debug debug-daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation \
        display-devel-map display-diffable-map display-map display-topo do-not-launch do-not-resolve dvm \
        enable-instant-on-support enable-recovery fwd-mpirun-port get-stack-traces index-argv-by-rank \
        leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm output-proctable \
        oversubscribe pernode q quiet report-bindings report-child-jobs-separately report-state-on-timeout \
        preload-binary set-cwd-to-session-dir show-progress tag-output timestamp-output tv use-hwthread-cpus use-regexp \
        v verbose xml xterm-leave stop-on-exec forward-signals-all personality-any noguess \
        genvnone genvall envnone envall enable-x disable-x print-all-exitcodes profile l prepend-rank \
        disable-auto-cleanup disable-hostname-propagation pmi-port skip-launch-node rr grr-all \
        line-buffer transfer no-transfer label no-label abort-on-failure no-abort-on-failure",
    one: "am bind-to N cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger \
        default-hostfile H host hnp hostfile launch-agent machinefile machine map-by max-restarts max-vm-size npernode \
        npersocket ompi-server output-filename path personality ppr prefix preload-files rank-by report-events \
        report-pid report-uri rf rankfile stdin timeout tune slot-list xterm dvm-uri pset display output stream-buffering \
        runtime-options with-ft soft arch file \
        genvlist f hosts envlist launcher launcher-exec rmk topolib membind demux iface ppn perhost prepend-pattern \
        outfile-pattern errfile-pattern nameserver order-nodes localhost usize gpus-per-proc bootstrap bootstrap-exec \
        ckpoint-interval ckpoint-prefix ckpoint-num ckpointlib grr \
        depth cpu-bind mem-bind gpu-bind exclude-hosts rlimits umask pmi",
};
const TWO: &str = "mca gmca omca ompimca prtemca pmixmca gpmixmca";

/// Of `srun`. What takes a value only where it is glued to it (`--nice=5`) takes no word.
const SRUN: Table = Table {
    none: "E H I k K l O s u v Q X Z bcast compress consolidate-segments contiguous debugger-test disable-status \
        exact exclusive external get-user-env hold immediate interactive kill-on-bad-exit label mpi-list nice no-allocate \
        no-kill no-shell oom-kill-step overcommit overlap oversubscribe preserve-env propagate pty quiet \
        quit-on-interrupt reboot resv-ports send-libs spread-job stepmgr test-only unbuffered \
        use-min-nodes verbose whole x11 container-mount-home no-container-mount-home container-remap-root \
        no-container-remap-root container-writable container-readonly container-entrypoint no-container-entrypoint",
    one: "A B C G J L M N S T W b c d e i m o p q r t w x accel-bind account acctg-freq bb \
        bbf bcast-exclude begin cluster-constraint clusters comment constraint container container-id core-spec \
        cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog \
        error exclude extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket \
        gpus-per-task gres gres-flags het-group hint input job-name jobid licenses mail-type mail-user mcs-label mem \
        mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network nodelist nodes ntasks-per-core \
        ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority \
        profile prolog qos relative reservation segment signal slurmd-debug sockets-per-node switches \
        task-epilog task-prolog thread-spec threads threads-per-core time time-min tmp treewidth tres-bind \
        tres-per-task uid wait wckey container-image container-mounts container-workdir container-name container-save \
        container-env",
};

/// Of `flux run` and `flux submit`.
const FLUX: Table = Table {
    none: "x exclusive u unbuffered l label-io v verbose dry-run quiet watch wait progress jps recursive",
    one: "B N S c g i o q t N nodes cores-per-task gpus-per-task cores tasks-per-node tasks-per-core \
        gpus-per-node queue bank time-limit urgency job-name setattr setopt dependency requires begin-time signal taskmap \
        env-remove env-file rlimit input output error flags add-file conf wait-event cc bcc log log-stderr",
};

/// Of `aprun`, Cray's old one and PALS's.
const APRUN: Table = Table {
    none: "B C T b q ss v batch-args bypass-app-transfer quiet strict-memory-containment sync-output",
    one: "D E F L N P R S a cc cp d j l m p r sj sl sn t architecture cpu-binding cpus-per-pe debug exclude-node-list \
        mpmd-env node-list node-list-file pes-per-node",
};

impl Table {
    fn takes(&self, name: &str) -> Takes {
        let in_list = |list: &str| list.split_whitespace().any(|known| known == name);
        match () {
            () if in_list(self.none) => Takes::Words(0),
            () if in_list(self.one) => Takes::Words(1),
            () => Takes::Unknown,
        }
    }
}

impl Dialect {
    /// By the launcher's name.
    pub fn of(launcher: &OsStr) -> Dialect {
        let name = Path::new(launcher).file_name();
        match name.and_then(OsStr::to_str) {
            Some("srun") => Dialect::Srun,
            Some("flux") => Dialect::Flux,
            Some("aprun") => Dialect::Aprun,
            _ => Dialect::Mpi,
        }
    }

    /// Whether `:` separates programs; else it is any word.
    pub fn has_several_programs(self) -> bool {
        self != Dialect::Flux
    }

    /// What an option takes: `option` is as it stands on the line, without a value that is glued to it.
    pub fn takes(self, option: &str) -> Takes {
        let name = option.trim_start_matches('-');
        match (self, name) {
            (_, "version" | "help" | "usage" | "info") => Takes::Information,
            (Dialect::Flux | Dialect::Aprun, "h") => Takes::Information,
            (Dialect::Srun, "h") if option == "-h" => Takes::Information,
            (Dialect::Srun | Dialect::Mpi, "V") => Takes::Information,
            (Dialect::Mpi, "h") => Takes::Information,
            (Dialect::Srun, "D" | "chdir") | (Dialect::Flux, "cwd") => Takes::Wdir,
            (Dialect::Aprun, "wdir") => Takes::Wdir,
            (Dialect::Srun | Dialect::Flux, "n" | "ntasks") => Takes::Ranks,
            (Dialect::Aprun, "n" | "pes") => Takes::Ranks,
            (Dialect::Mpi, "n" | "np" | "c") => Takes::Ranks,
            (Dialect::Srun, "multi-prog") => Takes::Programs,
            (Dialect::Srun, "export") | (Dialect::Flux, "env") => Takes::Assignment,
            (Dialect::Aprun, "e" | "environment-override") => Takes::Assignment,
            (Dialect::Srun, _) => SRUN.takes(name),
            (Dialect::Flux, _) => FLUX.takes(name),
            (Dialect::Aprun, _) => APRUN.takes(name),
            (Dialect::Mpi, "wd" | "wdir" | "chdir") => Takes::Wdir,
            (Dialect::Mpi, "x") => Takes::Assignment,
            (Dialect::Mpi, "genv") => Takes::Genv,
            (Dialect::Mpi, "env") => Takes::Env,
            (Dialect::Mpi, "app" | "configfile") => Takes::Programs,
            (Dialect::Mpi, "d") => Takes::Number,
            (Dialect::Mpi, _) if TWO.split_whitespace().any(|known| known == name) => {
                Takes::Words(2)
            }
            (Dialect::Mpi, _) => MPI.takes(name),
        }
    }

    /// Takes an option's word apart: the option, and the value that is glued to it.
    pub fn split(self, word: &str) -> (String, Option<OsString>) {
        let has_letters = self != Dialect::Mpi && !word.starts_with("--");
        if has_letters && self.takes(word) == Takes::Unknown {
            return self.split_letters(word);
        }
        match word.split_once('=').or_else(|| split_number(word)) {
            Some((option, value)) => (option.to_owned(), Some(value.into())),
            None => (word.to_owned(), None),
        }
    }

    /// `-lN2` is `-l -N 2`: the last option of such a word, and what is glued to that.
    fn split_letters(self, word: &str) -> (String, Option<OsString>) {
        let letters: Vec<char> = word.chars().skip(1).collect();
        for (place, letter) in letters.iter().enumerate() {
            let rest: String = letters[place + 1..].iter().collect();
            let option = format!("-{letter}");
            let is_flag = self.takes(&option) == Takes::Words(0);
            if rest.is_empty() {
                return (option, None);
            }
            if !is_flag || rest.starts_with(|c: char| !c.is_ascii_alphabetic()) {
                return (option, Some(rest.into()));
            }
        }
        (word.to_owned(), None)
    }
}

/// `-n64` and `-np64`: the option, and the number of ranks that is glued to it.
fn split_number(word: &str) -> Option<(&str, &str)> {
    let number = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let option = &word[..word.len() - number.len()];
    let is_joined = ["-n", "-np"].contains(&option) && number.parse::<u64>().is_ok();
    is_joined.then_some((option, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, find_launcher};

    fn read(line: &str) -> Line {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let launcher = find_launcher(&words);
        let is_program = |word: &OsStr, _: Option<&OsStr>| {
            let word = word.to_string_lossy();
            word.starts_with("./") || word == "apptainer"
        };
        Line::read(words, launcher, &is_program).expect("the line is read")
    }

    /// The programs of a line, each with its arguments; none of them in doubt.
    fn programs(line: &str) -> Vec<String> {
        let line = read(line);
        let text = |words: &[OsString]| {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        for context in &line.contexts {
            assert_eq!(context.unsure, None, "{}", text(&line.words));
        }
        let contexts = line.contexts.iter();
        contexts
            .map(|one| text(&line.words[one.program..one.end]))
            .collect()
    }

    #[test]
    fn programs_are_found_behind_the_options_of_every_dialect() {
        for (line, program) in [
            // Slurm: what takes a value only where it is glued to it, letters in one word.
            ("srun --nice ./a 1", "./a 1"),
            ("srun --nice=5 --bcast --send-libs -n2 ./a", "./a"),
            ("srun --bcast=/tmp/a --compress ./a", "./a"),
            ("srun -lN 2 -n 4 ./a", "./a"),
            ("srun -luN2 -K1 -I60 -mcyclic prog x", "prog x"),
            ("srun -J name --quit-on-interrupt --x11 prog", "prog"),
            ("srun --het-group 0,1 --exact -c2 prog", "prog"),
            (
                "srun --cpu-bind=verbose,cores --gpu-bind single:1 -D/tmp -e err prog",
                "prog",
            ),
            // Flux, whose ":" is an argument.
            ("flux run -n 4 ./a : ./b", "./a : ./b"),
            (
                "flux run -N2 -n8 -c 2 -o mpi=none -xvv --env=A=1 prog -n 3",
                "prog -n 3",
            ),
            (
                "flux submit --cwd=/w --setattr system.a=1 -lu -t 10m prog",
                "prog",
            ),
            (
                "flux mini run --tasks-per-node 2 --label-io --output out.txt -- prog",
                "prog",
            ),
            ("flux alloc -N2 flux run -n4 ./a", "./a"),
            // PALS.
            (
                "mpiexec --np 4 --ppn 2 -d 8 --cpu-bind depth --env A=1 --env B 2 prog 1",
                "prog 1",
            ),
            (
                "mpiexec -n 4 --depth=8 --line-buffer --no-transfer --hosts a,b prog",
                "prog",
            ),
            ("mpirun -d prog", "prog"),
            (
                "aprun -n 4 -N 2 -d 8 -cc depth -e A=1 -ss -L 1,2 prog",
                "prog",
            ),
            ("aprun -n4 -N2 -q -b --wdir /w prog", "prog"),
            ("mpirun --from-the-future -n 2 prog", "prog"),
            ("mpirun --from-the-future=1 prog", "prog"),
        ] {
            assert_eq!(programs(line), [program], "{line}");
        }
        assert_eq!(programs("aprun -n 1 ./a 1 : -n 2 ./b"), ["./a 1", "./b"]);
        assert_eq!(programs("srun -N1 ./a : -N 2 --nice ./b"), ["./a", "./b"]);
        assert_eq!(
            programs("mpiexec -n 1 --env A=1 ./a : -d 2 ./b"),
            ["./a", "./b"]
        );
    }

    #[test]
    fn what_only_asks_starts_nothing() {
        for line in [
            "flux run --help",
            "aprun -h",
            "srun -V",
            "srun --usage",
            "flux run -n 2",
        ] {
            assert_eq!(programs(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn options_in_no_table_leave_it_open_which_word_is_the_program() {
        for (line, unsure) in [
            ("srun --from-the-future x prog", Some("--from-the-future")),
            ("srun --from-the-future ./x ./a", Some("--from-the-future")),
            ("flux run -n2 --new a b", Some("--new")),
            ("aprun -Z a b", Some("-Z")),
            // One of them alone can be started.
            ("srun --from-the-future x ./a", None),
            ("srun --from-the-future ./a x", None),
            ("srun --from-the-future -- a", None),
            ("srun --from-the-future -n 2 a ./b", None),
        ] {
            let line = read(line);
            assert_eq!(line.contexts[0].unsure.as_deref(), unsure, "{line:?}");
        }
    }

    #[test]
    fn what_the_options_preload_and_where_they_go_is_seen() {
        for line in [
            "srun --export=ALL,LD_PRELOAD=x.so -D /w ./a",
            "flux run --env LD_PRELOAD=x.so --cwd /w ./a",
            "aprun -e LD_PRELOAD=x.so --wdir=/w ./a",
            "mpiexec --env LD_PRELOAD=x.so --wdir /w ./a",
            "mpiexec --genv=LD_PRELOAD=x.so --wdir /w ./a",
            "mpiexec -env LD_PRELOAD x.so -wdir /w ./a",
        ] {
            let read = read(line);
            let context = &read.contexts[0];
            assert_eq!(
                context.preload.as_deref(),
                Some(OsStr::new("x.so")),
                "{line}"
            );
            assert_eq!(context.wdir.as_deref(), Some(OsStr::new("/w")), "{line}");
        }
    }
}
