//! Module files for a site folder: Lua for Lmod, Tcl for Lmod and Environment Modules.
//!
//! They are about the site and not about a version: which one is in force a job asks when it starts, and what a library
//! reads itself is looked up when the module is loaded. So nothing has to be written anew where another version is put
//! in force. A module is unloaded as it was loaded, whatever became of the site meanwhile.

use std::path::Path;

use colltune_core::context::DataKey;
use colltune_core::library::{Abi, Product};
use colltune_core::site::{FILE, OFF, VERSIONS};

use super::{mpich, openmpi};

/// The folder of the modules that preload the shim, and of those that switch tables on.
const PRELOAD: &str = "colltune";
const TABLES: &str = "colltune-tables";

/// A module in both languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub folder: &'static str,
    pub name: String,
    pub lua: String,
    pub tcl: String,
}

/// Whether a path can stand in both languages as it is.
pub fn can_name(path: &Path) -> bool {
    let plain = |one: char| one.is_alphanumeric() || "/._-+,=@~".contains(one);
    path.to_str().is_some_and(|text| text.chars().all(plain))
}

/// Preloads the shim, whose jobs then take what is in force in the site folder.
pub fn preload(site: &Path, abi: Abi, shim: &Path) -> Module {
    let (site, shim, name) = (site.display(), shim.display(), abi.name());
    let what = format!("tuned MPI collectives for programs on {name}, by preload");
    Module {
        folder: PRELOAD,
        name: name.to_owned(),
        lua: format!(
            "-- Written by `colltune publish`.\n\
             help([[Jobs of this shell run the collective operations of MPI as {site} has it.]])\n\
             whatis(\"Name: colltune\")\n\
             whatis(\"Description: {what}\")\n\
             family(\"colltune\")\n\
             setenv(\"COLLTUNE_DB\", \"{site}\")\n\
             setenv(\"COLLTUNE_MODE\", \"exploit\")\n\
             prepend_path(\"LD_PRELOAD\", \"{shim}\")\n"
        ),
        tcl: format!(
            "#%Module1.0\n\
             # Written by `colltune publish`.\n\
             proc ModulesHelp {{ }} {{\n\
             \x20   puts stderr {{Jobs of this shell run the collective operations of MPI as {site} has it.}}\n\
             }}\n\
             module-whatis {{{what}}}\n\
             conflict colltune colltune-tables\n\
             setenv COLLTUNE_DB {{{site}}}\n\
             setenv COLLTUNE_MODE exploit\n\
             prepend-path LD_PRELOAD {{{shim}}}\n"
        ),
    }
}

/// Switches the tables of the version in force on, for a library that reads them itself; `None` where no file can be
/// named: the values are the tables, or there are none.
pub fn tables(site: &Path, key: &DataKey) -> Option<Module> {
    let variables = match key.library.product {
        Product::OpenMpi => vec![
            (openmpi::SWITCH, None),
            (openmpi::RULES, Some("rules.conf")),
        ],
        Product::Mpich => {
            let named = mpich::SELECTION.map(|(name, file)| (name, Some(file)));
            named.to_vec()
        }
        Product::Intel | Product::Cray | Product::Mvapich => return None,
    };
    let set = |set: &dyn Fn(&str, Option<&str>) -> String| {
        let lines = variables.iter().map(|(name, file)| set(name, *file));
        lines.collect::<String>()
    };
    let file = variables.iter().find_map(|(_, file)| *file)?;
    let site = site.display();
    let what = format!("tables for the collectives of {key}, without colltune in the job");
    let lua_set = set(&|name, file| match file {
        Some(file) => format!("   setenv(\"{name}\", tables .. \"/{file}\")\n"),
        None => format!("   setenv(\"{name}\", \"1\")\n"),
    });
    let tcl_set = set(&|name, file| match file {
        Some(file) => format!("    setenv {name} $tables/{file}\n"),
        None => format!("    setenv {name} 1\n"),
    });
    Some(Module {
        folder: TABLES,
        // What stands behind an @ is a version's affair in module names.
        name: key.to_string().replace(['@', ',', '+'], "-"),
        lua: format!(
            "-- Written by `colltune publish`. {site}/{FILE} says which version is in force.\n\
             help([[Jobs of this shell use the algorithms that are in force in {site}.]])\n\
             whatis(\"Name: colltune-tables\")\n\
             whatis(\"Description: {what}\")\n\
             family(\"colltune\")\n\
             local site = \"{site}\"\n\
             local function content(path)\n\
             \x20  local file = io.open(path)\n\
             \x20  local text = file and file:read(\"*a\")\n\
             \x20  if file then file:close() end\n\
             \x20  return file and (text or \"\")\n\
             end\n\
             local version = (content(site .. \"/{FILE}\") or \"\"):match('\"current\"%s*:%s*(%d+)') or \"0\"\n\
             local tables = string.format(\"%s/{VERSIONS}/%06d/tables/{key}\", site, tonumber(version))\n\
             if mode() == \"load\" and content(site .. \"/{OFF}\") then\n\
             \x20  LmodMessage(\"colltune: \" .. site .. \"/{OFF} is there; no tables are switched on\")\n\
             elseif mode() == \"load\" and not content(tables .. \"/{file}\") then\n\
             \x20  LmodMessage(\"colltune: \" .. tables .. \"/{file} cannot be read; no tables are switched on\")\n\
             else\n\
             {lua_set}\
             end\n"
        ),
        tcl: format!(
            "#%Module1.0\n\
             # Written by `colltune publish`. {site}/{FILE} says which version is in force.\n\
             proc ModulesHelp {{ }} {{\n\
             \x20   puts stderr {{Jobs of this shell use the algorithms that are in force in {site}.}}\n\
             }}\n\
             module-whatis {{{what}}}\n\
             conflict colltune colltune-tables\n\
             set site {{{site}}}\n\
             set version 0\n\
             catch {{\n\
             \x20   set file [open $site/{FILE}]\n\
             \x20   regexp {{\"current\"\\s*:\\s*([0-9]+)}} [read $file] all version\n\
             \x20   close $file\n\
             }}\n\
             set tables [format %s/{VERSIONS}/%06d/tables/{key} $site $version]\n\
             if {{[module-info mode load] && [file exists $site/{OFF}]}} {{\n\
             \x20   puts stderr \"colltune: $site/{OFF} is there; no tables are switched on\"\n\
             }} elseif {{[module-info mode load] && ![file readable $tables/{file}]}} {{\n\
             \x20   puts stderr \"colltune: $tables/{file} cannot be read; no tables are switched on\"\n\
             }} else {{\n\
             {tcl_set}\
             }}\n"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_language_would_read_otherwise_is_not_named() {
        assert!(can_name(Path::new("/site/colltune-0.1_x@y")));
        for path in [
            "/a b", "/a{b", "/a$b", "/a\"b", "/a[b]", "/a\\b", "/a:b", "/a\nb",
        ] {
            assert!(!can_name(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_library_whose_variables_are_the_table_has_no_module_of_tables() {
        let of = |key: &str| tables(Path::new("/site"), &key.parse().unwrap());
        assert_eq!(of("intel-2021.19.0"), None);
        let module = of("openmpi-4.1.4@ob1+tcp,vader").unwrap();
        assert_eq!(module.name, "openmpi-4.1.4-ob1-tcp-vader");
        assert!(module.tcl.contains("tables/openmpi-4.1.4@ob1+tcp,vader"));
        assert!(of("mpich-4.0.2").unwrap().lua.contains("/ch4.json"));
    }
}
