//! The launcher's name service as MPI has it.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::abi::{self, Info};
use crate::handshake::board::{Board, with_spaces, without_spaces};
use crate::library::{self, Handles, Pmpi};

type InfoCreate = unsafe extern "C" fn(*mut Info) -> c_int;
type InfoSet = unsafe extern "C" fn(Info, *const c_char, *const c_char) -> c_int;
type InfoFree = unsafe extern "C" fn(*mut Info) -> c_int;

pub struct Names<'a> {
    pmpi: &'a Pmpi,
    handles: &'a Handles,
    world: String,
    /// Where names are looked up. Open MPI 5.0 takes the range from the stack where a look-up gives none
    /// (pull request 14345), and then finds nothing.
    range: Option<Info>,
}

impl<'a> Names<'a> {
    /// `world` is a name that no other world at the same name server has.
    pub fn new(pmpi: &'a Pmpi, handles: &'a Handles, world: String) -> Names<'a> {
        let range = cfg!(mpi = "openmpi").then(|| make_range(handles)).flatten();
        Names {
            pmpi,
            handles,
            world,
            range,
        }
    }

    fn name(&self, what: &str) -> CString {
        CString::new(format!("colltune-{}-{what}", self.world)).expect("the parts hold no NUL")
    }
}

/// An info that says what publishing means without one.
fn make_range(handles: &Handles) -> Option<Info> {
    let [create, set] = [c"PMPI_Info_create", c"PMPI_Info_set"].map(library::find);
    if create.is_null() || set.is_null() {
        return None;
    }
    let mut info = handles.info_null;
    // SAFETY: the symbols are the MPI functions of these names; `info` is what the first makes, and the strings
    // are NUL-terminated.
    let code = unsafe {
        let create = std::mem::transmute::<*mut c_void, InfoCreate>(create);
        let set = std::mem::transmute::<*mut c_void, InfoSet>(set);
        match create(&mut info) {
            abi::SUCCESS => set(info, c"range".as_ptr(), c"session".as_ptr()),
            code => code,
        }
    };
    (code == abi::SUCCESS).then_some(info)
}

impl Drop for Names<'_> {
    fn drop(&mut self) {
        let free = library::find(c"PMPI_Info_free");
        if let Some(mut info) = self.range
            && !free.is_null()
        {
            // SAFETY: the symbol is the MPI function of this name, and the info is ours.
            unsafe { std::mem::transmute::<*mut c_void, InfoFree>(free)(&mut info) };
        }
    }
}

impl Board for Names<'_> {
    fn publish(&self, what: &str, text: &str) -> bool {
        let text = without_spaces(text, abi::MPI_MAX_PORT_NAME as usize - 1);
        let text = CString::new(text).expect("control characters are left out");
        // SAFETY: both strings are NUL-terminated and live over the call; errors are returned.
        unsafe {
            (self.pmpi.publish_name)(
                self.name(what).as_ptr(),
                self.handles.info_null,
                text.as_ptr(),
            ) == abi::SUCCESS
        }
    }

    fn lookup(&self, _: u32, what: &str) -> Option<String> {
        let mut text = vec![0u8; abi::MPI_MAX_PORT_NAME as usize + 1];
        let target = text.as_mut_ptr().cast::<c_char>();
        let info = self.range.unwrap_or(self.handles.info_null);
        // SAFETY: `text` holds MPI_MAX_PORT_NAME characters and a NUL; errors are returned.
        let code = unsafe { (self.pmpi.lookup_name)(self.name(what).as_ptr(), info, target) };
        let end = text.iter().position(|byte| *byte == 0)?;
        (code == abi::SUCCESS && end > 0)
            .then(|| with_spaces(&String::from_utf8_lossy(&text[..end])))
    }

    fn withdraw(&self, what: &str, text: &str) {
        let text = without_spaces(text, abi::MPI_MAX_PORT_NAME as usize - 1);
        let text = CString::new(text).expect("control characters are left out");
        // SAFETY: both strings are NUL-terminated and live over the call; errors are returned.
        unsafe {
            (self.pmpi.unpublish_name)(
                self.name(what).as_ptr(),
                self.handles.info_null,
                text.as_ptr(),
            )
        };
    }
}
