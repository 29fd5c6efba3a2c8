//! The MPI library that is loaded already: its handles and the functions that are asked here. Nothing is linked.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;

/// A handle as it is passed. MPICH's are the low 32 bits: whole registers are passed on, so that a program on another
/// library survives.
#[cfg(feature = "mpich")]
pub type Handle = u64;
#[cfg(not(feature = "mpich"))]
pub type Handle = *mut c_void;

/// A handle as it stands in memory.
#[cfg(feature = "mpich")]
pub type Stored = u32;
#[cfg(not(feature = "mpich"))]
pub type Stored = *mut c_void;

/// What tells handles apart.
pub fn bits(handle: Handle) -> u64 {
    let unused = u64::BITS - 8 * size_of::<Stored>() as u32;
    (handle as usize as u64) << unused >> unused
}

/// A handle that was read in memory.
pub fn loaded(stored: Stored) -> Handle {
    stored as Handle
}

/// What stands where the library is to write a handle.
pub const NO_HANDLE: Stored = 0usize as Stored;

pub const SUCCESS: c_int = 0;
/// MPI_THREAD_MULTIPLE, the highest level.
pub const THREAD_MULTIPLE: c_int = if cfg!(feature = "mpi_abi") { 4096 } else { 3 };

/// MPI_COMM_WORLD; `None` where another library is loaded than this build is for. Binary interfaces fix these numbers.
pub fn comm_world() -> Option<Handle> {
    // An executable may hold the copy that everybody uses.
    let openmpis = find_from(libc::RTLD_DEFAULT, c"ompi_mpi_comm_world");
    match (cfg!(feature = "openmpi"), openmpis.is_null()) {
        (true, false) => Some(openmpis as Handle),
        (false, true) if cfg!(feature = "mpich") => Some(0x4400_0000usize as Handle),
        (false, true) => Some(0x101usize as Handle),
        _ => None,
    }
}

/// Looks a function up behind this library, then in the MPI library among the loaded objects; null where there is none.
pub fn find(name: &CStr) -> *mut c_void {
    find_from(libc::RTLD_NEXT, name)
}

fn find_from(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: dlsym takes a NUL-terminated name, and the scope is one of its two special handles.
    let address = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if !address.is_null() {
        return address;
    }
    // Python and other hosts load the library into a private scope.
    let addresses = loaded_libraries().into_iter().map(|path| {
        // SAFETY: the path names an object that is loaded; RTLD_NOLOAD only raises its count, so that it stays.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() {
                null_mut()
            } else {
                libc::dlsym(handle, name.as_ptr())
            }
        }
    });
    let mut found = addresses.filter(|address| !address.is_null());
    found.next().unwrap_or(null_mut())
}

/// The paths of loaded objects whose files have the names of MPI libraries.
fn loaded_libraries() -> Vec<CString> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr hands over a valid info and the `found` given to it below.
        let (path, found) = unsafe {
            (
                CStr::from_ptr((*info).dlpi_name),
                &mut *found.cast::<Vec<CString>>(),
            )
        };
        let text = path.to_string_lossy();
        let file = text.rsplit('/').next().unwrap_or("");
        if ["libmpi", "libpmpi"]
            .iter()
            .any(|stem| file.starts_with(stem))
        {
            found.push(path.to_owned());
        }
        0
    }
    let mut found: Vec<CString> = Vec::new();
    // SAFETY: `visit` has the expected signature, and `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

macro_rules! asked {
    ($($field:ident: fn($($argument:ty),*) = $name:literal;)*) => {
        /// The library's own functions. All are local: none sends a message.
        pub struct Pmpi {
            $(pub $field: unsafe extern "C-unwind" fn($($argument),*) -> c_int,)*
        }

        impl Pmpi {
            /// `None` where one is missing.
            pub fn resolve() -> Option<Pmpi> {
                Some(Pmpi { $($field: {
                    let address = find($name);
                    // SAFETY: null is `None`, and otherwise the symbol is MPI's function of this name and signature.
                    unsafe { std::mem::transmute::<*mut c_void, Option<unsafe extern "C-unwind" fn($($argument),*) -> c_int>>(address) }?
                },)* })
            }
        }
    };
}

asked! {
    comm_rank: fn(Handle, *mut c_int) = c"PMPI_Comm_rank";
    comm_size: fn(Handle, *mut c_int) = c"PMPI_Comm_size";
    comm_test_inter: fn(Handle, *mut c_int) = c"PMPI_Comm_test_inter";
    comm_group: fn(Handle, *mut Stored) = c"PMPI_Comm_group";
    comm_remote_group: fn(Handle, *mut Stored) = c"PMPI_Comm_remote_group";
    group_size: fn(Handle, *mut c_int) = c"PMPI_Group_size";
    group_translate_ranks: fn(Handle, c_int, *const c_int, Handle, *mut c_int) = c"PMPI_Group_translate_ranks";
    group_free: fn(*mut Stored) = c"PMPI_Group_free";
    type_size: fn(Handle, *mut i64) = c"PMPI_Type_size_x";
    query_thread: fn(*mut c_int) = c"PMPI_Query_thread";
}
