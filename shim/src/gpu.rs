//! Whether buffers may lie in a device's memory, which no load or store of ours may touch.
//!
//! Only its own rank would know that of one buffer in one call. So a communicator's members agree on whether any of
//! them might have such memory, and then leave all calls to the library.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::library::{self, find};

/// The functions that tell whose memory an address is, in the runtimes of NVIDIA, AMD and Intel.
const FUNCTIONS: [&CStr; 4] = [
    c"cuPointerGetAttribute",
    c"hipPointerGetAttribute",
    c"hipPointerGetAttributes",
    c"zeMemGetAllocProperties",
];
/// Where they are; programs, and runtimes that are linked into them, open these by themselves.
const OBJECTS: [&str; 3] = ["libcuda.so", "libamdhip64.so", "libze_loader.so"];

/// What libraries with their own word for it say of themselves, and the devices that this is about.
const AWARE: [(&CStr, &str); 4] = [
    (c"MPIX_Query_cuda_support", "/dev/nvidiactl"),
    (c"MPIX_Query_rocm_support", "/dev/kfd"),
    (c"MPIX_Query_hip_support", "/dev/kfd"),
    (c"MPIX_Query_ze_support", "/dev/dri"),
];

/// Whether this process may pass memory of a device's to the library: a runtime is loaded, or there is a device
/// for one that may be loaded later, and the library says that it takes such memory. That a library says no
/// proves nothing: what lies below it may, or a tool in front of it.
#[cold]
pub fn runtime_is_present() -> bool {
    static PRESENT: AtomicBool = AtomicBool::new(false);
    /// Objects that had been loaded when it was last asked; there are some always.
    static LOADED: AtomicU64 = AtomicU64::new(0);
    let loaded = objects_loaded();
    if LOADED.swap(loaded, Ordering::Relaxed) != loaded && (is_loaded() || may_come()) {
        PRESENT.store(true, Ordering::Relaxed);
    }
    PRESENT.load(Ordering::Relaxed)
}

fn is_loaded() -> bool {
    let defined = |name: &&CStr| {
        // SAFETY: dlsym takes a NUL-terminated name.
        !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
    };
    FUNCTIONS.iter().any(defined) || !library::loaded_object(&OBJECTS).is_null()
}

fn may_come() -> bool {
    AWARE.iter().any(|(name, device)| {
        let query = find(name);
        // SAFETY: the symbol is null, which is `None`, or the function of this name, which has no arguments.
        let query = unsafe {
            std::mem::transmute::<*mut c_void, Option<unsafe extern "C-unwind" fn() -> c_int>>(
                query,
            )
        };
        // SAFETY: it may be called at any time, as its documents say.
        query.is_some_and(|query| unsafe { query() } == 1) && Path::new(device).exists()
    })
}

/// How many objects this process has loaded so far. Some hundred nanoseconds.
fn objects_loaded() -> u64 {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: usize,
        adds: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr hands over a valid info and the number given to it below.
        unsafe { *adds.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut adds = 0u64;
    // SAFETY: the function has the signature that is called, and the number outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut adds).cast()) };
    adds
}
