//! Containers on a line: what the ranks need has to be seen inside them, and to be loadable there.
//!
//! ```text
//! mpirun -n 4 apptainer exec solver.sif ./solver
//! ```
//! Apptainer and Singularity read from variables what to bind and what the ranks' environment is, Podman, Docker and
//! Enroot from options. Other ways into a container are left as they are, and a message names what has to be bound. A
//! shim that needs another C library than the image has would end every process there; behind `apptainer exec` that
//! is tried before the program is started, and else said.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use colltune_core::environment;

use super::shim::{self, Assignments};

/// A container that a program is started in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    runtime: Runtime,
    /// Place of the runtime among the program's words.
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    /// With the beginning of its variables' names.
    Apptainer(&'static str),
    Podman,
    Enroot,
    /// Any other, which is not changed.
    Other,
}

/// What of a program is put differently for a container.
#[derive(Debug)]
pub struct Entered {
    /// For the runtime.
    pub variables: Assignments,
    pub program: Vec<OsString>,
}

/// Options of `apptainer exec` that take a word; and those that take none.
const TAKES: &str = "add-caps app apply-cgroups B bind blkio-weight blkio-weight-device cpu-shares cpus cpuset-cpus \
    cpuset-mems cwd pwd dns drop-caps env env-file fusemount H home hostname memory memory-reservation memory-swap \
    mount network network-args no-mount o overlay pem-path pids-limit S scratch security W workdir";
const TAKES_NONE: &str = "allow-setuid e cleanenv compat c contain C containall disable-cache docker-login f fakeroot \
    i ipc keep-privs n net no-eval no-home no-https no-init no-privs no-umask nv nvccli oom-kill-disable passphrase p pid \
    rocm underlay unsquash u userns uts w writable writable-tmpfs";

/// Started in the container: `sh -c TRY PRELOAD SHIM PROGRAM ...`.
const TRY: &str = "if [ -r \"$1\" ] && LD_PRELOAD=$1 sh -c : 2>/dev/null; then LD_PRELOAD=$0; export LD_PRELOAD; \
    elif [ \"${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}\" = 0 ]; then \
    echo \"colltune: $1 cannot be loaded in the container (is it bound? is the C library as new?); the job runs untuned\" \
    >&2; fi; shift; exec \"$@\"";

/// Programs that start another one.
const WRAPPERS: [&str; 8] = [
    "env", "nice", "numactl", "taskset", "time", "timeout", "chrt", "stdbuf",
];

/// The container that a program of a line is started in, if it is.
pub fn find(program: &[OsString]) -> Option<Container> {
    let found = |at: usize| {
        let name = Path::new(&program[at]).file_name()?.to_str()?;
        let runtime = match name {
            "apptainer" => Runtime::Apptainer("APPTAINER"),
            "singularity" => Runtime::Apptainer("SINGULARITY"),
            "podman" | "docker" => Runtime::Podman,
            "enroot" => Runtime::Enroot,
            "shifter" | "ch-run" => Runtime::Other,
            _ => return None,
        };
        let verbs: &[&str] = match runtime {
            Runtime::Apptainer(_) => &["exec", "run"],
            Runtime::Podman => &["run"],
            Runtime::Enroot => &["start"],
            Runtime::Other => return Some(Container { runtime, at }),
        };
        let verb = program[at + 1..].iter().find(|word| !is_option(word))?;
        let is_known = verbs.iter().any(|known| verb == known);
        let runtime = if is_known { runtime } else { Runtime::Other };
        Some(Container { runtime, at })
    };
    // What stands before it starts it; arguments of another program are its own.
    let starts_another = |word: &OsString| {
        let name = Path::new(word).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| WRAPPERS.contains(&name))
    };
    let n_places = match program.first().is_some_and(starts_another) {
        true => program.len(),
        false => program.len().min(1),
    };
    (0..n_places).find_map(found)
}

impl Container {
    /// Whether the program's own words say where it is bound, so that the user need not bind it.
    pub fn binds(self) -> bool {
        self.runtime != Runtime::Other
    }

    /// Whether a shim that cannot be loaded in the container is noticed there.
    pub fn tries(self, program: &[OsString]) -> bool {
        self.inside(program).is_some()
    }

    /// The program's words and its `variables` as the runtime wants them: `read` gives its own variables.
    pub fn enter(
        self,
        program: &[OsString],
        variables: Assignments,
        read: impl Fn(&str) -> Option<OsString>,
    ) -> Entered {
        let binds = to_bind(&variables);
        match self.runtime {
            Runtime::Apptainer(name) => self.enter_apptainer(name, program, variables, read),
            Runtime::Podman | Runtime::Enroot => {
                let bind = match self.runtime {
                    Runtime::Podman => "--volume",
                    _ => "--mount",
                };
                let options = binds.iter().flat_map(|path| [bind.into(), twice(path)]);
                let told = variables.iter().flat_map(|(name, value)| {
                    let mut word = OsString::from(format!("{name}="));
                    word.push(value);
                    ["--env".into(), word]
                });
                let mut words = program.to_vec();
                let behind = self.verb(program) + 1;
                words.splice(behind..behind, options.chain(told));
                Entered {
                    variables: Assignments::new(),
                    program: words,
                }
            }
            Runtime::Other => Entered {
                variables,
                program: program.to_vec(),
            },
        }
    }

    fn enter_apptainer(
        self,
        name: &str,
        program: &[OsString],
        variables: Assignments,
        read: impl Fn(&str) -> Option<OsString>,
    ) -> Entered {
        let mut bind = read(&format!("{name}_BIND"))
            .or_else(|| read("SINGULARITY_BIND"))
            .unwrap_or_default();
        for path in to_bind(&variables) {
            if !bind.is_empty() {
                bind.push(",");
            }
            bind.push(twice(&path));
        }
        let mut program = program.to_vec();
        let mut variables = variables;
        if let Some(inside) = self.inside(&program) {
            let preload = variables.iter().position(|(name, _)| name == "LD_PRELOAD");
            let preload = preload
                .map(|place| variables.remove(place).1)
                .unwrap_or_default();
            let shim = shim_of(&preload);
            let words = ["sh".into(), "-c".into(), TRY.into(), preload, shim.into()];
            program.splice(inside..inside, words);
        }
        let inner = variables
            .into_iter()
            .map(|(variable, value)| (format!("{name}ENV_{variable}"), value));
        Entered {
            variables: std::iter::once((format!("{name}_BIND"), bind))
                .chain(inner)
                .collect(),
            program,
        }
    }

    /// Place of the word that says what the runtime does.
    fn verb(self, program: &[OsString]) -> usize {
        let behind = self.at + 1;
        let place = program[behind..].iter().position(|word| !is_option(word));
        place.map_or(behind, |place| behind + place)
    }

    /// Where the program begins that `apptainer exec` starts, if that is certain.
    fn inside(self, program: &[OsString]) -> Option<usize> {
        let verb = self.verb(program);
        let is_exec = program.get(verb).is_some_and(|word| word == "exec");
        if !matches!(self.runtime, Runtime::Apptainer(_)) || !is_exec {
            return None;
        }
        let mut at = verb + 1;
        while let Some(word) = program.get(at).filter(|word| is_option(word)) {
            let text = word.to_str()?.trim_start_matches('-');
            let in_list = |list: &str| list.split_whitespace().any(|known| known == text);
            at += match () {
                () if in_list(TAKES) => 2,
                () if in_list(TAKES_NONE) || text.contains('=') => 1,
                () => return None,
            };
        }
        // Behind the image.
        (at + 1 < program.len()).then_some(at + 1)
    }
}

fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// What the ranks open: what is preloaded here, the database, and the folders of what else they write.
pub fn to_bind(variables: &Assignments) -> Vec<PathBuf> {
    let value = |name: &str| {
        let found = variables.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_os_str())
    };
    let log = value(environment::LOG).and_then(|text| text.to_str()?.strip_prefix("calls:"));
    let summary = value(environment::SUMMARY).and_then(|file| Path::new(file).parent());
    let messages = value(environment::MESSAGES).and_then(|text| text.to_str()?.split_once(':'));
    let preload = value("LD_PRELOAD").map(OsStr::to_string_lossy);
    let preload = preload.unwrap_or_default();
    let preloaded = preload.split(':').filter(|file| shim::is_preloaded(file));
    let others = [
        value(environment::DB).map(PathBuf::from),
        value(environment::FLIGHT).map(PathBuf::from),
        log.map(PathBuf::from),
        summary.map(Path::to_owned),
        messages.map(|(_, folder)| PathBuf::from(folder)),
    ];
    let mut paths: Vec<PathBuf> = preloaded
        .map(PathBuf::from)
        .chain(others.into_iter().flatten())
        .filter(|path| path.is_absolute())
        .collect();
    paths.dedup();
    paths
}

/// The first of ours among what is preloaded.
fn shim_of(preload: &OsStr) -> String {
    let text = preload.to_string_lossy();
    let mut ours = text.split(':').filter(|file| shim::is_preloaded(file));
    ours.next().unwrap_or_default().to_owned()
}

/// `PATH:PATH`: it is in the container where it is outside.
fn twice(path: &Path) -> OsString {
    let mut both = path.as_os_str().to_owned();
    both.push(":");
    both.push(path);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn text(words: &[OsString]) -> String {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn entered(line: &str, own: &[(&str, &str)]) -> (String, Vec<String>) {
        let program = words(line);
        let container = find(&program).expect("there is a container");
        let variables = vec![
            ("LD_PRELOAD".to_owned(), "/l/libcolltune.so:/u.so".into()),
            ("COLLTUNE_DB".to_owned(), "/db".into()),
            ("COLLTUNE_LOG".to_owned(), "calls:/log".into()),
        ];
        let read = |name: &str| {
            let found = own.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let entered = container.enter(&program, variables, read);
        let variables = entered.variables.iter();
        let variables =
            variables.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        (text(&entered.program), variables.collect())
    }

    #[test]
    fn apptainer_is_told_by_its_variables_and_the_shim_is_tried_inside() {
        let (program, variables) =
            entered("apptainer exec --nv -B /d:/e solver.sif ./solver 1", &[]);
        let inside = format!("sh -c {TRY} /l/libcolltune.so:/u.so /l/libcolltune.so ./solver 1");
        assert_eq!(
            program,
            format!("apptainer exec --nv -B /d:/e solver.sif {inside}")
        );
        assert_eq!(
            variables,
            [
                "APPTAINER_BIND=/l/libcolltune.so:/l/libcolltune.so,/db:/db,/log:/log",
                "APPTAINERENV_COLLTUNE_DB=/db",
                "APPTAINERENV_COLLTUNE_LOG=calls:/log",
            ]
        );
        let own = [
            ("SINGULARITY_BIND", "/scratch"),
            ("APPTAINER_BIND", "/data"),
        ];
        let (_, variables) = entered("env A=1 apptainer -q exec a.sif ./a", &own);
        assert!(variables[0].starts_with("APPTAINER_BIND=/data,/l/libcolltune.so:"));
        let (_, variables) = entered("apptainer exec a.sif ./a", &own[..1]);
        assert!(variables[0].starts_with("APPTAINER_BIND=/scratch,/l/"));
    }

    #[test]
    fn where_it_is_not_certain_what_starts_inside_the_runtime_preloads() {
        for line in [
            "singularity run solver.sif 1",
            "singularity exec --from-the-future x solver.sif ./solver",
        ] {
            let (program, variables) = entered(line, &[]);
            assert_eq!(program, line);
            assert!(variables[0].starts_with("SINGULARITY_BIND=/l/libcolltune.so:"));
            assert_eq!(
                variables[1],
                "SINGULARITYENV_LD_PRELOAD=/l/libcolltune.so:/u.so"
            );
            assert!(!find(&words(line)).unwrap().tries(&words(line)));
        }
    }

    #[test]
    fn podman_and_enroot_are_told_by_options() {
        let told = |bind: &str| {
            format!(
                "{bind} /l/libcolltune.so:/l/libcolltune.so {bind} /db:/db {bind} /log:/log --env \
                 LD_PRELOAD=/l/libcolltune.so:/u.so --env COLLTUNE_DB=/db --env COLLTUNE_LOG=calls:/log"
            )
        };
        let (program, variables) = entered("podman --log-level=error run --rm image ./a", &[]);
        let volumes = told("--volume");
        assert_eq!(
            program,
            format!("podman --log-level=error run {volumes} --rm image ./a")
        );
        assert!(variables.is_empty());
        let (program, _) = entered("enroot start image ./a", &[]);
        assert_eq!(
            program,
            format!("enroot start {} image ./a", told("--mount"))
        );
    }

    #[test]
    fn other_ways_into_a_container_are_left_as_they_are() {
        for line in [
            "shifter --image=x ./a",
            "ch-run image -- ./a",
            "podman exec c ./a",
        ] {
            let (program, variables) = entered(line, &[]);
            assert_eq!(program, line);
            assert_eq!(variables.len(), 3);
            assert!(!find(&words(line)).unwrap().binds());
        }
        assert_eq!(find(&words("./a --with apptainer.sif")), None);
        assert_eq!(find(&words("./podman.sh run")), None);
        assert_eq!(find(&words("./a docker run image")), None);
    }
}
