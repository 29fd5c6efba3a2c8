//! The MPI library that is loaded already: its functions and predefined handles.
//!
//! The shim links no MPI. At the first MPI call it looks for the next definition behind itself
//! (another tool, or the library); where the library was loaded privately, as Python extensions
//! load theirs, among the loaded objects.

pub mod collectives;
mod handle_table;
mod predefined;
pub use handle_table::HandleTable;
pub use predefined::{Predefined, TakenBy, TypeFacts};

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::abi::{self, Aint, Comm, Datatype, Errhandler, Group, Handle, Info, Op, Request, bits};
use crate::library::collectives::Collectives;

pub type DeleteFn = unsafe extern "C-unwind" fn(Comm, c_int, *mut c_void, *mut c_void) -> c_int;
pub type CopyFn = unsafe extern "C-unwind" fn(
    Comm,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;

pub type Init = unsafe extern "C-unwind" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
pub type InitThread =
    unsafe extern "C-unwind" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
pub type Finalize = unsafe extern "C-unwind" fn() -> c_int;
pub type TypeGetEnvelope =
    unsafe extern "C-unwind" fn(Datatype, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
pub type TypeGetExtent = unsafe extern "C-unwind" fn(Datatype, *mut Aint, *mut Aint) -> c_int;

macro_rules! functions {
    ($(#[$doc:meta])* $vis:vis struct $name:ident, $prefix:literal {
        $($field:ident: $kind:ty = $suffix:literal;)*
    }) => {
        $(#[$doc])*
        $vis struct $name {
            $vis collectives: Collectives<c_int>,
            $($vis $field: $kind,)*
        }

        impl $name {
            /// `None` unless every function is there.
            fn resolve(find: impl Fn(&CStr) -> *mut c_void) -> Option<$name> {
                Some($name { collectives: Collectives::resolve($prefix)?, $($field: {
                    let name = const { concat!($prefix, $suffix, "\0") };
                    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
                    let address = find(name);
                    if address.is_null() {
                        return None;
                    }
                    // SAFETY: the symbol is the MPI function of this name, whose C signature is `$kind`.
                    unsafe { std::mem::transmute::<*mut c_void, $kind>(address) }
                },)* })
            }
        }
    };
}

functions! {
    /// The next definition of each function that the shim defines: another tool's or the library's.
    pub struct Next, "MPI_" {
        init: Init = "Init";
        init_thread: InitThread = "Init_thread";
        finalize: Finalize = "Finalize";
        barrier: unsafe extern "C-unwind" fn(Comm) -> c_int = "Barrier";
    }
}

functions! {
    /// The library's own functions.
    pub struct Pmpi, "PMPI_" {
        barrier: unsafe extern "C-unwind" fn(Comm) -> c_int = "Barrier";
        abort: unsafe extern "C-unwind" fn(Comm, c_int) -> c_int = "Abort";
        comm_rank: unsafe extern "C-unwind" fn(Comm, *mut c_int) -> c_int = "Comm_rank";
        comm_size: unsafe extern "C-unwind" fn(Comm, *mut c_int) -> c_int = "Comm_size";
        comm_test_inter: unsafe extern "C-unwind" fn(Comm, *mut c_int) -> c_int = "Comm_test_inter";
        comm_group: unsafe extern "C-unwind" fn(Comm, *mut Group) -> c_int = "Comm_group";
        group_free: unsafe extern "C-unwind" fn(*mut Group) -> c_int = "Group_free";
        group_translate_ranks: unsafe extern "C-unwind" fn(Group, c_int, *const c_int, Group, *mut c_int) -> c_int
            = "Group_translate_ranks";
        comm_split: unsafe extern "C-unwind" fn(Comm, c_int, c_int, *mut Comm) -> c_int = "Comm_split";
        comm_create: unsafe extern "C-unwind" fn(Comm, Group, *mut Comm) -> c_int = "Comm_create";
        comm_free: unsafe extern "C-unwind" fn(*mut Comm) -> c_int = "Comm_free";
        comm_create_keyval: unsafe extern "C-unwind" fn(CopyFn, DeleteFn, *mut c_int, *mut c_void) -> c_int
            = "Comm_create_keyval";
        comm_set_attr: unsafe extern "C-unwind" fn(Comm, c_int, *mut c_void) -> c_int = "Comm_set_attr";
        comm_delete_attr: unsafe extern "C-unwind" fn(Comm, c_int) -> c_int = "Comm_delete_attr";
        comm_get_attr: unsafe extern "C-unwind" fn(Comm, c_int, *mut c_void, *mut c_int) -> c_int = "Comm_get_attr";
        comm_get_errhandler: unsafe extern "C-unwind" fn(Comm, *mut Errhandler) -> c_int = "Comm_get_errhandler";
        comm_set_errhandler: unsafe extern "C-unwind" fn(Comm, Errhandler) -> c_int = "Comm_set_errhandler";
        comm_call_errhandler: unsafe extern "C-unwind" fn(Comm, c_int) -> c_int = "Comm_call_errhandler";
        errhandler_free: unsafe extern "C-unwind" fn(*mut Errhandler) -> c_int = "Errhandler_free";
        error_class: unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int = "Error_class";
        ibarrier: unsafe extern "C-unwind" fn(Comm, *mut Request) -> c_int = "Ibarrier";
        type_get_name: unsafe extern "C-unwind" fn(Datatype, *mut c_char, *mut c_int) -> c_int = "Type_get_name";
        type_get_envelope: TypeGetEnvelope = "Type_get_envelope";
        type_size: unsafe extern "C-unwind" fn(Datatype, *mut c_int) -> c_int = "Type_size";
        op_commutative: unsafe extern "C-unwind" fn(Op, *mut c_int) -> c_int = "Op_commutative";
        iprobe: unsafe extern "C-unwind" fn(c_int, c_int, Comm, *mut c_int, *mut c_void) -> c_int = "Iprobe";
        pack: unsafe extern "C-unwind" fn(*const c_void, c_int, Datatype, *mut c_void, c_int, *mut c_int, Comm) -> c_int
            = "Pack";
        unpack: unsafe extern "C-unwind" fn(*const c_void, c_int, *mut c_int, *mut c_void, c_int, Datatype, Comm) -> c_int
            = "Unpack";
        isend: unsafe extern "C-unwind" fn(*const c_void, c_int, Datatype, c_int, c_int, Comm, *mut Request) -> c_int
            = "Isend";
        irecv: unsafe extern "C-unwind" fn(*mut c_void, c_int, Datatype, c_int, c_int, Comm, *mut Request) -> c_int
            = "Irecv";
        wait: unsafe extern "C-unwind" fn(*mut Request, *mut c_void) -> c_int = "Wait";
        waitall: unsafe extern "C-unwind" fn(c_int, *mut Request, *mut c_void) -> c_int = "Waitall";
        test: unsafe extern "C-unwind" fn(*mut Request, *mut c_int, *mut c_void) -> c_int = "Test";
        cancel: unsafe extern "C-unwind" fn(*mut Request) -> c_int = "Cancel";
        reduce_local: unsafe extern "C-unwind" fn(*const c_void, *mut c_void, c_int, Datatype, Op) -> c_int
            = "Reduce_local";
        type_get_extent: TypeGetExtent = "Type_get_extent";
        type_get_true_extent: TypeGetExtent = "Type_get_true_extent";
        publish_name: unsafe extern "C-unwind" fn(*const c_char, Info, *const c_char) -> c_int = "Publish_name";
        lookup_name: unsafe extern "C-unwind" fn(*const c_char, Info, *mut c_char) -> c_int = "Lookup_name";
        unpublish_name: unsafe extern "C-unwind" fn(*const c_char, Info, *const c_char) -> c_int = "Unpublish_name";
        get_library_version: unsafe extern "C-unwind" fn(*mut c_char, *mut c_int) -> c_int = "Get_library_version";
        get_processor_name: unsafe extern "C-unwind" fn(*mut c_char, *mut c_int) -> c_int = "Get_processor_name";
    }
}

/// What an `int` does not count, where the library has such functions.
pub struct Large {
    pub type_size: Option<unsafe extern "C-unwind" fn(Datatype, *mut i64) -> c_int>,
    pub isend: Option<
        unsafe extern "C-unwind" fn(
            *const c_void,
            i64,
            Datatype,
            c_int,
            c_int,
            Comm,
            *mut Request,
        ) -> c_int,
    >,
    pub irecv: Option<
        unsafe extern "C-unwind" fn(
            *mut c_void,
            i64,
            Datatype,
            c_int,
            c_int,
            Comm,
            *mut Request,
        ) -> c_int,
    >,
}

#[cold]
pub fn large() -> &'static Large {
    static LARGE: OnceLock<Large> = OnceLock::new();
    LARGE.get_or_init(|| {
        let [type_size, isend, irecv] =
            [c"PMPI_Type_size_x", c"PMPI_Isend_c", c"PMPI_Irecv_c"].map(find);
        // SAFETY: the symbols are null, which is `None`, or the MPI functions of these names.
        unsafe {
            Large {
                type_size: std::mem::transmute::<*mut c_void, Option<_>>(type_size),
                isend: std::mem::transmute::<*mut c_void, Option<_>>(isend),
                irecv: std::mem::transmute::<*mut c_void, Option<_>>(irecv),
            }
        }
    })
}

static NEXT: OnceLock<Next> = OnceLock::new();
static PMPI: OnceLock<Option<Pmpi>> = OnceLock::new();

impl std::ops::Deref for Pmpi {
    type Target = Collectives<c_int>;

    #[inline(always)]
    fn deref(&self) -> &Collectives<c_int> {
        &self.collectives
    }
}

/// The next definitions. They exist whenever an MPI function can be called at all; a process that
/// calls one without an MPI library ends here, as it would without the shim.
pub fn next() -> &'static Next {
    NEXT.get_or_init(|| {
        Next::resolve(find).unwrap_or_else(|| {
            crate::warn::say("an MPI function was called, but no MPI library is loaded");
            std::process::abort();
        })
    })
}

/// The library's own functions; `None` when one is missing, and then the shim stays inert.
pub fn pmpi() -> Option<&'static Pmpi> {
    PMPI.get_or_init(|| Pmpi::resolve(find)).as_ref()
}

/// Looks a function up behind the shim, then in the MPI library among the loaded objects.
pub fn find(name: &CStr) -> *mut c_void {
    find_from(libc::RTLD_NEXT, name)
}

/// Whether the program's calls of a function reach the shim before any other tool.
pub fn is_ours(name: &CStr) -> bool {
    // SAFETY: dlsym takes a NUL-terminated name.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    static HERE: u8 = 0;
    let object_of = |address: *const c_void| {
        // SAFETY: all-zero bytes are a valid value of this struct of pointers.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked for; the struct is valid to write to.
        let found = unsafe { libc::dladdr(address, &mut info) };
        (found != 0).then_some(info.dli_fbase)
    };
    // The variable has no name outside, so its address is the shim's own whoever stands in front.
    object_of(first).is_some_and(|object| Some(object) == object_of((&raw const HERE).cast()))
}

/// Looks a variable up as the program itself would see it: an executable may hold the copy that
/// everybody uses (a copy relocation), and that stands in front of the shim.
fn find_variable(name: &CStr) -> *mut c_void {
    find_from(libc::RTLD_DEFAULT, name)
}

fn find_from(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: dlsym takes a NUL-terminated name, and the scope is one of its two special handles.
    let address = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if !address.is_null() {
        return address;
    }
    // Python or another host may load objects at any time, each in a private scope.
    let found = addresses_in(LIBRARIES, name);
    found.first().copied().unwrap_or(std::ptr::null_mut())
}

/// How the files of MPI libraries begin. Those for Fortran are objects of their own, and so are those with the names that
/// begin with PMPI in builds of MPICH that keep them apart (`libpmpi.so`, `libpmpi_abi.so`).
const LIBRARIES: &[&str] = &[
    "libmpi.so",
    "libpmpi",
    "libmpich.so",
    "libmpi_",
    "libmpifort.so",
    "libmpichfort.so",
];

/// Where a name is defined in the loaded objects whose file names begin with one of `files`, or in what those were linked
/// with: each address once, in the order in which objects were loaded. Nothing is loaded by this.
pub fn addresses_in(files: &[&str], name: &CStr) -> Vec<*mut c_void> {
    let mut found = Vec::new();
    for path in loaded_files(files) {
        // SAFETY: the path names an object that is loaded; RTLD_NOLOAD only raises its count.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: the handle came from dlopen; dlsym takes a NUL-terminated name.
        let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if address.is_null() || found.contains(&address) {
            // SAFETY: the object is as often open as it was before.
            unsafe { libc::dlclose(handle) };
        } else {
            // It stays open: what is at the address stays there.
            found.push(address);
        }
    }
    found
}

/// A handle of the first loaded object whose file name begins with one of `names`; null when there is none. Nothing is
/// loaded by this.
pub fn loaded_object(names: &[&str]) -> *mut c_void {
    let handles = loaded_files(names).into_iter().map(|path| {
        // SAFETY: the path names an object that is loaded; RTLD_NOLOAD only raises its count.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
    });
    let mut handles = handles.filter(|handle| !handle.is_null());
    handles.next().unwrap_or(std::ptr::null_mut())
}

/// The loaded objects whose file names begin with one of `names`, in the order in which they were loaded.
fn loaded_files(names: &[&str]) -> Vec<CString> {
    struct Search<'a> {
        names: &'a [&'a str],
        found: Vec<CString>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr hands over a valid info and the `data` given to it below.
        let (search, path) = unsafe {
            (
                &mut *data.cast::<Search>(),
                CStr::from_ptr((*info).dlpi_name),
            )
        };
        let text = path.to_string_lossy();
        let file = text.rsplit('/').next().unwrap_or("");
        if search.names.iter().any(|name| file.starts_with(name)) {
            search.found.push(path.to_owned());
        }
        0
    }
    let mut search = Search {
        names,
        found: Vec::new(),
    };
    // SAFETY: `visit` matches the expected signature and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// The predefined handles that the shim uses.
pub struct Handles {
    pub comm_world: Comm,
    pub comm_self: Comm,
    pub comm_null: Comm,
    pub datatype_null: Datatype,
    pub op_null: Op,
    /// Operations of one-sided communication, which no collective takes.
    pub one_sided: [Op; 2],
    pub info_null: Info,
    pub errors_return: Errhandler,
    pub max: Op,
    pub sum: Op,
    pub request_null: Request,
    /// The handle that Open MPI gives for whatever was complete at once; null where it is unknown.
    pub request_empty: Handle,
    pub byte: Datatype,
    pub uint64: Datatype,
    /// Fortran's INTEGER, where the library has it.
    pub integer: Option<Datatype>,
}

impl Handles {
    /// Whether a request stands for a call that was complete at once. Such a handle is no request of its
    /// own: several calls may have it at the same time.
    pub fn is_complete(&self, request: u64) -> bool {
        // The two highest bits of MPICH's handles are 01 for what is part of the library, through the standard
        // binary interface as well; there no address of another library is so low.
        let built_in = !cfg!(mpi = "openmpi") && request >> 30 == 1;
        built_in
            || [
                abi::request_bits(self.request_null),
                bits(self.request_empty),
            ]
            .contains(&request)
    }
}

impl Handles {
    /// `None` when a handle that the shim needs is missing. Call after MPI_Init.
    pub fn resolve() -> Option<Handles> {
        let handle = |constant: &abi::Constant| constant.handle(find_variable);
        Some(Handles {
            comm_world: handle(abi::MPI_COMM_WORLD)?,
            comm_self: handle(abi::MPI_COMM_SELF)?,
            comm_null: handle(abi::MPI_COMM_NULL)?,
            datatype_null: handle(abi::MPI_DATATYPE_NULL)?,
            op_null: handle(abi::MPI_OP_NULL)?,
            one_sided: [abi::MPI_REPLACE, abi::MPI_NO_OP]
                .map(|op| handle(op).unwrap_or(abi::NO_HANDLE)),
            info_null: handle(abi::MPI_INFO_NULL)?,
            errors_return: handle(abi::MPI_ERRORS_RETURN)?,
            max: handle(abi::MPI_MAX)?,
            sum: handle(abi::MPI_SUM)?,
            request_null: abi::request(handle(abi::MPI_REQUEST_NULL)?),
            request_empty: handle(&abi::Constant::Symbol(c"ompi_request_empty"))
                .unwrap_or(abi::NO_HANDLE),
            byte: handle(abi::MPI_BYTE)?,
            uint64: handle(abi::MPI_UINT64_T)?,
            integer: handle(abi::MPI_INTEGER),
        })
    }
}
