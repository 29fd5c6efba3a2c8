//! Whether this build serves the library that the program runs on. All ranks run one library, so all answer alike.

use colltune_core::library::Library;

use crate::abi;
use crate::library::{Handles, Pmpi};
use crate::private;

/// The library and its handles.
///
/// Errors: why this job runs untuned, as a sentence.
pub fn served(pmpi: &Pmpi, version_text: &str) -> Result<(Library, Handles), String> {
    let library = Library::from_version_text(version_text)
        .and_then(Library::known)
        .map_err(|error| format!("failed to {error}; collectives run untuned"))?;
    if !abi::ABI.serves(library.product) {
        return Err(format!(
            "this libcolltune.so serves {}, the program runs on {library}; `colltune run` preloads the right one; collectives run untuned",
            abi::ABI.name()
        ));
    }
    let handles = Handles::resolve().ok_or_else(|| {
        format!(
            "this build of {library} lacks a handle that colltune needs; collectives run untuned"
        )
    })?;
    // Ranks may make one call from C and from Fortran, so that either both are tuned or neither is.
    match integer_bytes(pmpi, &handles) {
        Some(bytes) if bytes > 4 => Err(format!(
            "the INTEGERs of Fortran have {bytes} bytes in this build of {library}, and colltune knows those of 4 alone; \
             collectives run untuned"
        )),
        _ => Ok((library, handles)),
    }
}

/// Bytes of Fortran's INTEGER; `None` for a library without Fortran, which may call the question an error.
fn integer_bytes(pmpi: &Pmpi, handles: &Handles) -> Option<i32> {
    let comms = [handles.comm_world, handles.comm_self];
    let handlers = comms.map(|comm| private::silence(pmpi, handles, comm));
    let mut bytes = 0;
    // SAFETY: the handle is one of the library's own; one number is written.
    let code = handles
        .integer
        .map(|integer| unsafe { (pmpi.type_size)(integer, &mut bytes) });
    for (comm, handler) in comms.into_iter().zip(handlers) {
        private::restore(pmpi, comm, handler);
    }
    (code == Some(abi::SUCCESS)).then_some(bytes)
}
