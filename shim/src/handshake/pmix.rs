//! What Slurm's PMIx has instead of a name service: each rank's own values, which others get by its rank.
//!
//! A value is put and committed by its rank alone; whoever asks gets it from that rank's node. There is no fence:
//! a rank without the shim is not needed. The library's own client is used, among the loaded objects.
//!
//! The declarations are those of the PMIx standard's C interface as OpenPMIx 3 to 6 lay it out (`pmix_common.h`;
//! the header of 4.2 and of the 7.0 to come agree): a key has 512 bytes, a namespace 256, a value is a 16-bit
//! type and a union of 24 bytes at 8. Version 2 has a smaller union and is left alone.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::handshake::board::{Board, with_spaces, without_spaces};
use crate::library;

const MAJOR_VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
const SUCCESS: c_int = 0;
const STRING: u16 = 3;
const BOOL: u16 = 1;
const INT: u16 = 6;
const GLOBAL: u8 = 3;
/// What a server that cannot answer makes us wait for one question.
const TIMEOUT_S: c_int = 1;
const LENGTH_MAX: usize = 255;

#[repr(C)]
#[derive(Clone, Copy)]
union Data {
    flag: bool,
    integer: c_int,
    string: *mut c_char,
    room: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
struct Directive {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

#[repr(C)]
struct Process {
    namespace: [u8; 256],
    rank: u32,
}

const _: () = assert!(size_of::<Value>() == 32 && std::mem::offset_of!(Value, data) == 8);
const _: () = assert!(size_of::<Directive>() == 552 && size_of::<Process>() == 260);

type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const Directive,
    usize,
    *mut *mut Value,
) -> c_int;
type Initialized = unsafe extern "C" fn() -> c_int;
type GetVersion = unsafe extern "C" fn() -> *const c_char;

pub struct Pmix {
    namespace: [u8; 256],
    put: Put,
    commit: Commit,
    get: Get,
}

impl Pmix {
    /// The client that the library has initialised; `None` where there is none that we know.
    pub fn find(namespace: &str) -> Option<Pmix> {
        let object = library::loaded_object(&["libpmix.so"]);
        let symbol = |name: &CStr| {
            // SAFETY: the object is loaded, and the name NUL-terminated.
            let address = unsafe { libc::dlsym(object, name.as_ptr()) };
            (!object.is_null() && !address.is_null()).then_some(address)
        };
        let [put, commit, get] = [
            symbol(c"PMIx_Put")?,
            symbol(c"PMIx_Commit")?,
            symbol(c"PMIx_Get")?,
        ];
        let [initialized, version] = [symbol(c"PMIx_Initialized")?, symbol(c"PMIx_Get_version")?];
        // SAFETY: the symbols are the functions of these names, whose signatures all known versions share. The
        // version is a string of the library's that stays.
        unsafe {
            let version = std::mem::transmute::<*mut c_void, GetVersion>(version)();
            if version.is_null() || !is_known(&CStr::from_ptr(version).to_string_lossy()) {
                return None;
            }
            if std::mem::transmute::<*mut c_void, Initialized>(initialized)() == 0 {
                return None;
            }
            Some(Pmix {
                namespace: padded(namespace)?,
                put: std::mem::transmute::<*mut c_void, Put>(put),
                commit: std::mem::transmute::<*mut c_void, Commit>(commit),
                get: std::mem::transmute::<*mut c_void, Get>(get),
            })
        }
    }
}

/// `OpenPMIx 4.2.2, repo rev: ...`
fn is_known(version: &str) -> bool {
    let number = version.split_whitespace().nth(1).unwrap_or("");
    let major = number
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    major.is_some_and(|major: u32| MAJOR_VERSIONS.contains(&major))
}

fn padded<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let length = text.len();
    bytes
        .get_mut(..length)
        .filter(|_| length < N)?
        .copy_from_slice(text.as_bytes());
    Some(bytes)
}

fn key(what: &str) -> CString {
    CString::new(format!("colltune-{what}")).expect("what is said holds no NUL")
}

fn directive(name: &str, kind: u16, data: Data) -> Directive {
    Directive {
        key: padded(name).expect("the standard's keys are short"),
        flags: 0,
        value: Value { kind, data },
    }
}

impl Board for Pmix {
    fn publish(&self, what: &str, text: &str) -> bool {
        let text = CString::new(without_spaces(text, LENGTH_MAX))
            .expect("control characters are left out");
        let mut data = Data { room: [0; 3] };
        data.string = text.as_ptr().cast_mut();
        let mut value = Value { kind: STRING, data };
        // SAFETY: key and text are NUL-terminated and live over the call, which copies them.
        unsafe {
            (self.put)(GLOBAL, key(what).as_ptr(), &mut value) == SUCCESS
                && (self.commit)() == SUCCESS
        }
    }

    /// Asks the publisher's node, whatever an earlier answer was. A node that does not know the value yet says so
    /// at once.
    fn lookup(&self, publisher: u32, what: &str) -> Option<String> {
        let process = Process {
            namespace: self.namespace,
            rank: publisher,
        };
        let mut seconds = Data { room: [0; 3] };
        seconds.integer = TIMEOUT_S;
        let mut yes = Data { room: [0; 3] };
        yes.flag = true;
        let directives = [
            directive("pmix.get.refresh", BOOL, yes),
            directive("pmix.timeout", INT, seconds),
        ];
        let mut found: *mut Value = std::ptr::null_mut();
        // SAFETY: all arguments live over the call; the library writes the address of a value from malloc, which is
        // ours then, as is the string in it.
        unsafe {
            let code = (self.get)(
                &process,
                key(what).as_ptr(),
                directives.as_ptr(),
                directives.len(),
                &mut found,
            );
            if code != SUCCESS || found.is_null() {
                return None;
            }
            let text = ((*found).kind == STRING && !(*found).data.string.is_null()).then(|| {
                let string = (*found).data.string;
                let text = with_spaces(&CStr::from_ptr(string).to_string_lossy());
                libc::free(string.cast());
                text
            });
            libc::free(found.cast());
            text
        }
    }

    /// PMIx takes nothing back; the values end with the job.
    fn withdraw(&self, _: &str, _: &str) {}
}
