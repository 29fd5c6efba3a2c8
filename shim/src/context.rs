//! What this rank runs on, for the header of its trace.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use colltune_core::component;
use colltune_core::context::told;
use colltune_core::context::{Context, DataKey, Machine};
use colltune_core::library::Library;
use colltune_files::{MODEL_BYTES_MAX, read_text};

use crate::handout::OwnData;
use crate::steer;

/// More than the kernel says of one processor.
const FIRST_PROCESSOR_BYTES: u64 = 4096;

/// The key of the job's data: its library, its transport, and the user settings that choose the library's algorithms.
/// Data under other keys say nothing of this job. On rank 0.
pub fn own_data(library: Library) -> OwnData {
    let environment = environment();
    let mut told_by = told::settings(&environment, library);
    if let Some(told) = steer::told() {
        told_by.retain(|(name, _)| !name.starts_with(told::OPEN_MPI));
        told_by.extend(told);
    }
    let content = |file: &str| read_text(Path::new(file), MODEL_BYTES_MAX).ok();
    OwnData {
        key: DataKey::of_job(&environment, library, &told_by, content),
        told_by,
    }
}

fn environment() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The context of the job as this rank sees it. Reads the environment and two files of the kernel's, at start.
pub fn read(library: Library, shares_processors: bool) -> Context {
    let environment = environment();
    let machine = Machine {
        processor: &processor(),
        kernel: &kernel(),
    };
    let mut context = Context::new(&environment, library, machine);
    let shared = match shares_processors {
        true => "shared",
        false => "own",
    };
    let processors = format!("{shared}, {} of this rank", allowed_processors());
    context.columns.push(("processors".to_owned(), processors));
    if let Some(component) = steer::component() {
        let column = (component::COLUMN.to_owned(), component.to_owned());
        context.columns.push(column);
    }
    context
}

/// The processor's model as Linux names it; empty where it does not.
fn processor() -> String {
    // The processors of a node are of one model, and of hundreds there is much to read.
    let mut text = Vec::new();
    if let Ok(file) = File::open("/proc/cpuinfo") {
        let _ = file.take(FIRST_PROCESSOR_BYTES).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let names = ["model name", "Model", "cpu model", "cpu"];
    let named = names.iter().find_map(|name| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == *name)
    });
    named.map_or_else(String::new, |(_, model)| model.trim().to_owned())
}

/// The release of the kernel.
fn kernel() -> String {
    // SAFETY: zeros are a valid `utsname`, which is then written to.
    let mut system: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours, and the call writes it; the field ends with a NUL.
    let release = unsafe {
        libc::uname(&mut system);
        CStr::from_ptr(system.release.as_ptr())
    };
    release.to_string_lossy().into_owned()
}

/// How many processors this process may use; 0 where there are more than the list holds.
fn allowed_processors() -> u32 {
    let mut words = [0u64; 128];
    // SAFETY: the list has as many bytes as are announced.
    let code = unsafe {
        libc::sched_getaffinity(
            0,
            size_of_val(&words),
            words.as_mut_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    match code {
        0 => words.iter().map(|word| word.count_ones()).sum(),
        _ => 0,
    }
}
