//! Module files: read by their languages, and by Lmod itself where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_tests::{on_a_library, on_each_library, skip};

use super::{SECOND, Site};

/// What a module file may call, in both languages: prints what it sets, and says on stderr what it says.
const LUA: &str = r#"
local file, doing = arg[1], arg[2]
local quiet = function() end
help, whatis, family = quiet, quiet, quiet
mode = function() return doing end
setenv = function(name, value) print(name .. "=" .. value) end
prepend_path = function(name, value) print(name .. "=" .. value) end
LmodMessage = function(text) io.stderr:write(text .. "\n") end
dofile(file)
"#;
const TCL: &str = r#"
set doing [lindex $argv 1]
proc module-whatis {text} {}
proc conflict {args} {}
proc module-info {what which} { global doing; return [expr {$which eq $doing}] }
proc setenv {name value} { puts "$name=$value" }
proc prepend-path {name value} { puts "$name=$value" }
source [lindex $argv 0]
"#;

/// A language of module files.
#[derive(Clone, Copy)]
enum Language {
    Lua,
    Tcl,
}

impl Language {
    /// Those whose interpreters are here.
    fn installed() -> Vec<Language> {
        let works = |program: &str, argument: &str| {
            let mut command = Command::new(program);
            command.arg(argument).stdin(std::process::Stdio::null());
            command.output().is_ok()
        };
        let lua = works("lua5.4", "-v") || skip("needs lua5.4").unwrap_or(false);
        let tcl = works("tclsh", "/dev/null") || skip("needs tclsh").unwrap_or(false);
        let found = [(lua, Language::Lua), (tcl, Language::Tcl)];
        found
            .into_iter()
            .filter_map(|(is_here, one)| is_here.then_some(one))
            .collect()
    }

    /// What a module sets, sorted, and what it says.
    fn read(self, module: &Path, doing: &str) -> (Vec<String>, String) {
        let scratch = colltune_tests::folder();
        let script = scratch.path().join("script");
        let (program, text, file) = match self {
            Language::Lua => (
                "lua5.4",
                LUA,
                PathBuf::from(format!("{}.lua", module.display())),
            ),
            Language::Tcl => ("tclsh", TCL, module.to_owned()),
        };
        std::fs::write(&script, text).unwrap();
        let output = Command::new(program)
            .arg(&script)
            .arg(file)
            .arg(doing)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let mut set: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        set.sort();
        (set, said)
    }
}

fn module(site: &Site, name: &str) -> PathBuf {
    site.path().join("modulefiles").join(name)
}

/// What `activate.sh` of a version exports.
fn activated(site: &Site, version: &str) -> Vec<String> {
    let folder = site.path().join("versions").join(version).join("tables");
    let script = folder
        .join(site.mpi.library().to_string())
        .join("activate.sh");
    let line = format!(". {}; env", script.display());
    let output = Command::new("env")
        .args(["-i", "bash", "-c", &line])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let is_told = |line: &&str| line.starts_with("OMPI_MCA_coll") || line.starts_with("MPIR_CVAR");
    let mut told: Vec<String> = text.lines().filter(is_told).map(str::to_owned).collect();
    told.sort();
    assert!(!told.is_empty(), "{}", script.display());
    told
}

on_each_library! {
    fn a_module_switches_on_the_tables_of_the_version_in_force_unless_the_site_is_off(mpi: Mpi) {
        let site = Site::published(mpi);
        site.publish(SECOND, &[]);
        let tables = module(&site, &format!("colltune-tables/{}", mpi.library()));
        for language in Language::installed() {
            let read = |doing| language.read(&tables, doing);
            assert_eq!(read("load"), (activated(&site, "000002"), String::new()));
            site.tells(&["--rollback"]);
            assert_eq!(read("load"), (activated(&site, "000001"), String::new()));
            site.tells(&["--off"]);
            let (set, said) = read("load");
            assert!(set.is_empty() && said.contains("/OFF is there"), "{set:?} {said}");
            // It is unloaded as it was loaded.
            let names = |set: &[String]| {
                let name = |one: &String| one.split_once('=').unwrap().0.to_owned();
                set.iter().map(name).collect::<Vec<_>>()
            };
            assert_eq!(names(&read("unload").0), names(&activated(&site, "000001")));
            site.tells(&["--on"]);
            site.tells(&["--rollback", "--to", "2"]);
        }
        std::fs::rename(site.path().join("site.json"), site.path().join("away")).unwrap();
        for language in Language::installed() {
            let (set, said) = language.read(&tables, "load");
            assert!(set.is_empty() && said.contains("cannot be read"), "{set:?} {said}");
            assert!(!language.read(&tables, "unload").0.is_empty());
        }
    }
}

on_a_library! {
    fn a_module_preloads_the_shim_and_names_the_site(mpi: Mpi) {
        let site = Site::published(mpi);
        let path = site.path();
        let shim = mpi.shim().canonicalize().unwrap();
        let mut expected = vec![
            format!("COLLTUNE_DB={}", path.display()),
            "COLLTUNE_MODE=exploit".to_owned(),
            format!("LD_PRELOAD={}", shim.display()),
        ];
        expected.sort();
        for language in Language::installed() {
            let found = language.read(&module(&site, &format!("colltune/{}", mpi.name())), "load");
            assert_eq!(found, (expected.clone(), String::new()));
        }
    }

    fn lmod_loads_and_unloads_them(mpi: Mpi) {
        let lmod = Path::new("/usr/share/lmod/lmod/libexec/lmod");
        if !lmod.exists() {
            return skip("needs lmod").unwrap_or_default();
        }
        let site = Site::published(mpi);
        let modules = site.path().join("modulefiles");
        // One of each language: Lmod takes what is Lua where both are there.
        std::fs::remove_file(module(&site, &format!("colltune-tables/{}.lua", mpi.library()))).unwrap();
        let names = [format!("colltune/{}", mpi.name()), format!("colltune-tables/{}", mpi.library())];
        for (name, variable) in names.iter().zip([
            "COLLTUNE_DB",
            if mpi.is_openmpi() { "OMPI_MCA_coll_tuned_use_dynamic_rules" } else { "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE" },
        ]) {
            let line = format!(
                "m() {{ eval \"$({} bash \"$@\")\"; }}; m use {}; m load {name}; echo loaded ${variable}; m unload {name}; \
                 echo unloaded ${variable}",
                lmod.display(),
                modules.display()
            );
            let shell = Command::new("env").args(["-i", "HOME=/tmp", "PATH=/usr/bin:/bin", "bash", "-c", &line]).output().unwrap();
            let said = String::from_utf8_lossy(&shell.stdout).into_owned();
            let value = match variable {
                "COLLTUNE_DB" => site.path().display().to_string(),
                _ => activated(&site, "000001").iter().find_map(|one| Some(one.strip_prefix(variable)?.strip_prefix('=')?.to_owned())).unwrap(),
            };
            assert_eq!(said, format!("loaded {value}\nunloaded\n"), "{}", String::from_utf8_lossy(&shell.stderr));
        }
    }
}
