//! The programs: what each is, what it needs, and what is made ready for it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use colltune_core::library::Abi;

use crate::suites::place::in_source_tree;
use colltune_launch::needs::resolve;
use colltune_launch::shim;

/// A program that people run, or one of ours in its manner.
pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    /// Makes its input, and gives the words that start it.
    pub prepare: fn(&Kitchen) -> anyhow::Result<Vec<OsString>>,
}

#[rustfmt::skip] // One line each reads as a table.
pub const PROGRAMS: [Program; 10] = [
    Program { name: "lammps", about: "molecular dynamics, a Lennard-Jones melt", prepare: lammps },
    Program { name: "gromacs", about: "molecular dynamics, water with particle-mesh Ewald sums", prepare: gromacs },
    Program { name: "quantum-espresso", about: "plane waves, silicon to self-consistency", prepare: quantum_espresso },
    Program { name: "fft", about: "a three-dimensional FFT in mpi4py", prepare: fft },
    Program { name: "mpi4py-fft", about: "a three-dimensional FFT by mpi4py-fft, which exchanges derived types", prepare: mpi4py_fft },
    Program { name: "poisson-cg", about: "a conjugate-gradient solver", prepare: poisson_cg },
    Program { name: "mini-app", about: "adaptive mesh refinement", prepare: mini_app },
    Program { name: "imbalanced", about: "a strongly scaled solver with uneven compute", prepare: imbalanced },
    Program { name: "sort", about: "ten large alltoalls", prepare: sort },
    Program { name: "communicators", about: "rows and columns of a grid, made anew every 200 steps", prepare: communicators },
];

/// Where inputs are made.
pub struct Kitchen {
    /// The program's own folder, empty.
    pub folder: PathBuf,
    pub abi: Abi,
    pub quick: bool,
}

impl Kitchen {
    fn pick<'a>(&self, full: &'a str, quick: &'a str) -> &'a str {
        if self.quick { quick } else { full }
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let file = self.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        Ok(file)
    }

    /// Runs a tool in the folder.
    fn run(&self, tool: &Path, arguments: &[&str], input: Option<&Path>) -> anyhow::Result<()> {
        let stdin = match input {
            Some(file) => std::fs::File::open(file)
                .with_context(|| format!("open {}", file.display()))?
                .into(),
            None => Stdio::null(),
        };
        let mut command = Command::new("timeout");
        let output = command
            .args(["-k", "2", "120"])
            .arg(tool)
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(stdin)
            .env("OMP_NUM_THREADS", "1")
            .output()
            .with_context(|| format!("start {}", tool.display()))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let end = stderr.lines().rfind(|line| !line.trim().is_empty());
            let tool = tool.display();
            bail!("run {tool} {}: {}", arguments.join(" "), end.unwrap_or(""));
        }
        Ok(())
    }

    /// Builds a C program by the library's own compiler.
    pub fn compile(&self, source: &Path) -> anyhow::Result<OsString> {
        let name = format!("mpicc.{}", self.abi.name());
        let compiler = resolve(OsStr::new(&name), None).with_context(|| format!("find {name}"))?;
        let program = self.folder.join("program");
        let words = [source.as_os_str(), OsStr::new("-o"), program.as_os_str()];
        let words = words.map(|word| word.to_string_lossy().into_owned());
        let [source, to, file] = words.each_ref().map(String::as_str);
        self.run(&compiler, &["-O2", source, to, file, "-lm"], None)?;
        Ok(program.into_os_string())
    }

    fn compile_text(&self, name: &str, text: &str) -> anyhow::Result<OsString> {
        self.compile(&self.write(name, text)?)
    }
}

/// A tool in PATH, or the sentence that says which of Debian's packages has it.
fn tool(name: &str, package: &str) -> anyhow::Result<PathBuf> {
    resolve(OsStr::new(name), None)
        .with_context(|| format!("find {name}: Debian's package {package} has it"))
}

fn words(program: impl Into<OsString>, arguments: &[&str]) -> Vec<OsString> {
    let mut words = vec![program.into()];
    words.extend(arguments.iter().map(OsString::from));
    words
}

fn lammps(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = tool("lmp", "lammps")?;
    let input = kitchen.write("lennard-jones.in", include_str!("lennard-jones.in"))?;
    let steps = kitchen.pick("4000", "1500");
    let mut line = words(program, &["-log", "none", "-screen", "none"]);
    line.extend(words("-var", &["steps", steps, "-in"]));
    line.push(input.into_os_string());
    Ok(line)
}

fn gromacs(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let (program, serial) = (tool("gmx_mpi", "gromacs")?, tool("gmx", "gromacs")?);
    let input = |integrator, steps| {
        let text = include_str!("water.mdp");
        text.replace("INTEGRATOR", integrator)
            .replace("STEPS", steps)
    };
    kitchen.write("water.top", include_str!("water.top"))?;
    kitchen.write("rest.mdp", &input("steep", "50"))?;
    kitchen.write("run.mdp", &input("md", kitchen.pick("1500", "400")))?;
    let make_ready = |line: &str| kitchen.run(&serial, &split(line), None);
    make_ready("solvate -cs spc216 -box 2.6 2.6 2.6 -p water.top -o box.gro")?;
    make_ready("grompp -f rest.mdp -c box.gro -p water.top -o rest.tpr -maxwarn 5")?;
    make_ready("mdrun -s rest.tpr -deffnm rest -ntmpi 1 -ntomp 1")?;
    make_ready("grompp -f run.mdp -c rest.gro -p water.top -o run.tpr -maxwarn 5")?;
    let file = |name: &str| kitchen.folder.join(name).into_os_string();
    let mut line = words(program, &["mdrun", "-s"]);
    line.push(file("run.tpr"));
    line.extend(words("-deffnm", &[]));
    line.push(file("out"));
    line.extend(words(
        "-ntomp",
        &split("1 -noconfout -npme 0 -pin off -nobackup"),
    ));
    Ok(line)
}

fn quantum_espresso(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = tool("pw.x", "quantum-espresso")?;
    let atom = tool("ld1.x", "quantum-espresso")?;
    // The pseudopotential is computed, too.
    let input = kitchen.write("silicon-atom.in", include_str!("silicon-atom.in"))?;
    kitchen.run(&atom, &[], Some(&input))?;
    let text = include_str!("silicon.in")
        .replace("FOLDER", &kitchen.folder.to_string_lossy())
        .replace("GRID", kitchen.pick("6", "4"));
    let input = kitchen.write("silicon.in", &text)?;
    let mut line = words(program, &["-i"]);
    line.push(input.into_os_string());
    Ok(line)
}

fn fft(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let script = kitchen.write("fft.py", include_str!("fft.py"))?;
    python(kitchen, "numpy", &script, &["64", kitchen.pick("60", "20")])
}

fn mpi4py_fft(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let script = kitchen.write("slabs.py", include_str!("slabs.py"))?;
    python(
        kitchen,
        "mpi4py_fft",
        &script,
        &["32", kitchen.pick("1000", "300")],
    )
}

/// A script by a Python that has a module and mpi4py.
fn python(
    kitchen: &Kitchen,
    module: &str,
    script: &Path,
    arguments: &[&str],
) -> anyhow::Result<Vec<OsString>> {
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(|python| can_use_mpi(python, module, kitchen.abi))
        .with_context(|| {
            let package = module.replace('_', "-");
            format!("find a Python with mpi4py and {module}: Debian's packages python3-mpi4py and python3-{package} have them")
        })?;
    let mut line = words(python, &[]);
    line.push(script.into());
    line.extend(arguments.iter().map(OsString::from));
    Ok(line)
}

/// Whether a Python has what the script needs, on the library that jobs run on.
fn can_use_mpi(python: &str, module: &str, abi: Abi) -> bool {
    let script = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; \
                  print(MPI.Get_library_version())";
    let script = format!("{script}; import {module}");
    let output = Command::new(python).args(["-c", &script]).output();
    output.is_ok_and(|output| {
        let is_open_mpi = String::from_utf8_lossy(&output.stdout).contains("Open MPI");
        output.status.success() && is_open_mpi == (abi == Abi::OpenMpi)
    })
}

fn poisson_cg(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = kitchen.compile(&source("examples/poisson-cg/poisson_cg.c")?)?;
    Ok(words(program, &["--n", kitchen.pick("48", "32")]))
}

fn mini_app(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = shim::file(kitchen.abi)?.with_file_name("colltune-amr");
    if !program.is_file() {
        bail!("find {}: `make build` builds it", program.display());
    }
    let problem = "--nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2 --num_tsteps";
    let mut line = words(program, &split(problem));
    line.push(kitchen.pick("100", "30").into());
    Ok(line)
}

fn imbalanced(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = kitchen.compile(&source("tests/mpi/imbalanced.c")?)?;
    let iterations = kitchen.pick("6000", "3000");
    Ok(words(program, &["20", "random", iterations]))
}

fn sort(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = kitchen.compile_text("sort.c", include_str!("sort.c"))?;
    Ok(words(program, &["262144", "10"]))
}

fn communicators(kitchen: &Kitchen) -> anyhow::Result<Vec<OsString>> {
    let program = kitchen.compile_text("communicators.c", include_str!("communicators.c"))?;
    Ok(words(program, &[kitchen.pick("8000", "3000"), "200"]))
}

fn source(path: &str) -> anyhow::Result<PathBuf> {
    in_source_tree(path).with_context(|| format!("find {path} in the source tree"))
}

fn split(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::SUITES;

    #[test]
    fn names_are_of_one_thing() {
        for (place, program) in PROGRAMS.iter().enumerate() {
            let same = |other: &Program| other.name == program.name;
            assert!(!PROGRAMS[..place].iter().any(same), "{}", program.name);
            assert!(SUITES.iter().all(|suite| suite.name != program.name));
            assert!(!program.about.is_empty());
        }
    }

    #[test]
    fn what_is_not_installed_is_named_with_its_package() {
        let error = tool("no-such-program", "some-package").unwrap_err();
        assert_eq!(
            error.to_string(),
            "find no-such-program: Debian's package some-package has it"
        );
    }
}
