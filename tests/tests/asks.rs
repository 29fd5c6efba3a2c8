//! Programs in C, C++ and Fortran that ask for the arms of their levers by `include/colltune.h`: without the shim, with it,
//! and built as whoever has installed it builds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_tests::{FORTRAN_INTERFACES, Mpi, folder, job, on_each_library, skip};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Compiles in `folder`, where Fortran's modules go, too; `None` without a compiler.
fn compile(compiler: &str, words: &[&str], folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(name);
    let mut line = Command::new(compiler);
    line.args(words).arg("-o").arg(&program);
    let Ok(output) = line.current_dir(folder).output() else {
        return skip(&format!("{compiler} is not installed"));
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line:?} failed:\n{said}");
    Some(program)
}

/// The header gives no warning with these options.
const STRICT: [&str; 6] = [
    "-O1",
    "-Wall",
    "-Wextra",
    "-pedantic",
    "-Wshadow",
    "-Werror",
];

/// The program in each language and with each interface of MPI that is installed.
fn programs(mpi: Mpi, folder: &Path) -> Vec<PathBuf> {
    let file = |path: &str| text(&top().join(path).canonicalize().expect(path)).to_owned();
    let source = file("tests/mpi/asks.c");
    let c = [&STRICT[..], &["-std=c99", &source, "-ldl"]].concat();
    let skip_bindings = [
        "-DOMPI_SKIP_MPICXX",
        "-DMPICH_SKIP_MPICXX",
        "-Wno-long-long",
    ];
    let cpp = ["-x", "c++", "-std=c++11", &source, "-lstdc++", "-ldl"];
    let cpp = [&STRICT[..], &skip_bindings, &cpp].concat();
    let compiler = mpi.compiler();
    let mut all = vec![
        compile(&compiler, &c, folder, "in_c"),
        compile(&compiler, &cpp, folder, "in_cpp"),
    ];
    let fortran = format!("mpifort.{}", mpi.name());
    let module = |name: &str| {
        let source = file(&format!("include/{name}.f90"));
        let words = [
            "-std=f2018",
            "-O1",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-c",
            &source,
        ];
        let object = compile(&fortran, &words, folder, &format!("{name}.o"))?;
        Some(text(&object).to_owned())
    };
    let (Some(own), Some(of_f08)) = (module("colltune"), module("colltune_f08")) else {
        return all.into_iter().flatten().collect();
    };
    for interface in FORTRAN_INTERFACES {
        let (define, source) = (format!("-D{interface}"), file("tests/mpi/asks.F90"));
        // MPI's own files are warned of.
        let mut words = vec![
            "-O1",
            "-w",
            "-fallow-argument-mismatch",
            &define,
            &source,
            &own,
        ];
        if interface == "MODULE_MPI_F08" {
            words.push(&of_f08);
        }
        all.push(compile(&fortran, &words, folder, interface));
    }
    all.into_iter().flatten().collect()
}

on_each_library! {
    fn without_the_tuner_the_first_arm_is_used_or_the_one_that_a_variable_names(mpi: Mpi) {
        let place = folder();
        for program in programs(mpi, place.path()) {
            let program = text(&program);
            let runs = |levers: &str, arm: &str| {
                let run = job(3).mpi(mpi).env("COLLTUNE_LEVERS", levers);
                let outcome = run.run(program, &["2", "plain", "a;b", r"c\d", "cplx:50"]);
                outcome.succeeds().prints(&format!("{arm} {arm}\n")).is_silent();
            };
            runs("", "plain");
            runs("other=cplx:50;word", "plain");
            runs("way=cplx:50", "cplx:50");
            runs(r"x=1; way =a\;b;y=2", "a;b");
            runs(r"way=c\\d", r"c\d");
            runs(r"way=c\d", r"c\d");
            let run = job(3).mpi(mpi).env("COLLTUNE_LEVERS", "way=cplx:5");
            let outcome = run.run(program, &["3", "plain", "cplx:50"]);
            outcome.succeeds().prints("plain plain plain\n");
            let said = "colltune: COLLTUNE_LEVERS names way=cplx:5, which the program does not offer: its first arm is used\n";
            outcome.claim(outcome.stderr == said, "it is said by one rank, once");
        }
    }
}

on_each_library! {
    fn with_the_tuner_all_ranks_get_its_arm_in_every_language(mpi: Mpi) {
        let place = folder();
        for program in programs(mpi, place.path()) {
            let db = folder();
            let run = || job(3).mpi(mpi).preload().db(db.path()).mode("explore").seed(7);
            let told = run().env("COLLTUNE_LEVERS", r"way=a\;b");
            let outcome = told.run(text(&program), &["2", "plain", "a;b", "cplx:50"]);
            outcome.succeeds().prints("a;b a;b\n").is_silent();
            let outcome = run().run(text(&program), &["24", "plain", "a;b", "cplx:50"]);
            outcome.succeeds().is_silent();
            let arms: Vec<&str> = outcome.stdout.split_whitespace().collect();
            for arm in ["plain", "a;b", "cplx:50"] {
                let drawn = arms.iter().filter(|one| **one == arm).count();
                outcome.claim((1..23).contains(&drawn), "an arm was drawn never, or always");
            }
            outcome.claim(arms.len() == 24, "not an arm for each epoch");
        }
    }
}

/// The code of the book's page in a language.
fn in_the_book(language: &str) -> String {
    let page = std::fs::read_to_string(top().join("docs/book/src/levers.md")).expect("a page");
    let code = page.split(&format!("```{language}\n")).nth(1);
    let code = code.and_then(|rest| rest.split("```").next());
    code.expect(language).to_owned()
}

on_each_library! {
    fn what_the_book_shows_compiles(mpi: Mpi) {
        let place = folder();
        let write = |name: &str, language: &str| {
            std::fs::write(place.path().join(name), in_the_book(language)).expect("written");
        };
        let here = |path: &str| top().join(path).canonicalize().expect(path);
        let (header, stubs) = (here("include"), here("examples/placement-adapters/stubs"));
        let header = format!("-I{}", text(&header));
        // Of AMReX: its warnings do not count.
        let stubs = format!("-isystem{}", text(&stubs));
        write("in.c", "c");
        let c = [&STRICT[..], &["-std=c99", &header, "-c", "in.c"]].concat();
        compile(&mpi.compiler(), &c, place.path(), "c.o");
        write("in.cc", "cpp");
        let skip_bindings = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-Wno-long-long"];
        let cpp = ["-std=c++17", "-include", "mpi.h", &header, &stubs, "-c", "in.cc"];
        let cpp = [&STRICT[..], &skip_bindings, &cpp].concat();
        compile(&mpi.compiler(), &cpp, place.path(), "cc.o");
        write("in.f90", "fortran");
        let module = here("include/colltune.f90");
        let words = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", text(&module), "in.f90"];
        compile(&format!("mpifort.{}", mpi.name()), &words, place.path(), "none");
    }
}

/// Installs the header's files below an empty folder, whose prefix is what a program sees.
fn installed(prefix: &Path) {
    let done = Command::new(top().join("scripts/install-header"))
        .env("PREFIX", prefix)
        .env_remove("DESTDIR")
        .output();
    let done = done.expect("the script starts");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn pkg_config_and_cmake_find_the_header_and_the_modules() {
    let Some(mpi) = Mpi::ALL.iter().find_map(|mpi| mpi.installed()) else {
        return;
    };
    let place = folder();
    let prefix = place.path().join("usr");
    installed(&prefix);
    let source = std::fs::read_to_string(top().join("tests/mpi/asks.c")).expect("a program");
    let source = source.replace("\"../../include/colltune.h\"", "<colltune.h>");
    std::fs::write(place.path().join("asks.c"), source).expect("written");
    let ask = |words: &[&str]| {
        let mut line = Command::new("pkg-config");
        let path = prefix.join("share/pkgconfig");
        line.args(words).env("PKG_CONFIG_PATH", path).output()
    };
    let Ok(flags) = ask(&["--cflags", "--libs", "colltune"]) else {
        return skip("pkg-config is not installed").unwrap_or(());
    };
    let flags = String::from_utf8(flags.stdout).expect("UTF-8");
    let words: Vec<&str> = std::iter::once("asks.c")
        .chain(flags.split_whitespace())
        .collect();
    let compiler = mpi.compiler();
    let Some(program) = compile(&compiler, &words, place.path(), "asks") else {
        return;
    };
    let outcome = job(2).mpi(mpi).run(text(&program), &["1", "one", "two"]);
    outcome.succeeds().prints("one\n").is_silent();
    let modules = ask(&["--variable=fortrandir", "colltune"])
        .expect("as before")
        .stdout;
    let modules = String::from_utf8(modules).expect("UTF-8");
    for module in ["colltune.f90", "colltune_f08.f90"] {
        assert!(
            Path::new(modules.trim()).join(module).is_file(),
            "{modules}{module}"
        );
    }

    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nfind_package(MPI REQUIRED COMPONENTS C)\n\
        find_package(colltune 0.2 REQUIRED)\nadd_executable(user asks.c)\n\
        target_link_libraries(user colltune::colltune MPI::MPI_C)\n";
    std::fs::write(place.path().join("CMakeLists.txt"), lists).expect("written");
    let cmake = |words: &[&str]| {
        Command::new("cmake")
            .args(words)
            .current_dir(place.path())
            .output()
    };
    let prefix_path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let with = format!("-DMPI_C_COMPILER={compiler}");
    let Ok(configured) = cmake(&["-S", ".", "-B", "build", &prefix_path, &with]) else {
        return skip("CMake is not installed").unwrap_or(());
    };
    assert!(configured.status.success(), "{configured:?}");
    let built = cmake(&["--build", "build"]).expect("as before");
    assert!(built.status.success(), "{built:?}");
    let outcome = job(2)
        .mpi(mpi)
        .run(text(&place.path().join("build/user")), &["1", "one"]);
    outcome.succeeds().prints("one\n").is_silent();
}
