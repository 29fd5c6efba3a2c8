//! The border: failures become codes and a message, panics too.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use placement::PlacementError;

/// Why a call fails: what it returns, and a message that reads after "failed to".
#[derive(Debug)]
pub struct Failure {
    code: c_int,
    message: String,
}

pub const OK: c_int = 0;
pub const NULL: c_int = 1;
pub const VALUE: c_int = 2;
pub const NAME: c_int = 3;
pub const NEEDS: c_int = 4;
pub const FAILED: c_int = 5;
pub const INTERNAL: c_int = 6;

impl Failure {
    pub fn null(what: &str) -> Self {
        Failure {
            code: NULL,
            message: format!("use {what}: the pointer is NULL"),
        }
    }

    pub fn value(message: String) -> Self {
        Failure {
            code: VALUE,
            message,
        }
    }

    /// Fails if an array has the wrong length.
    pub fn length(what: &str, expected: usize, found: usize) -> Result<(), Failure> {
        match expected == found {
            true => Ok(()),
            false => Err(Failure::value(format!(
                "use {what}: {found} entries where {expected} belong"
            ))),
        }
    }
}

impl From<PlacementError> for Failure {
    fn from(error: PlacementError) -> Self {
        use PlacementError::{Needs, Policy, PolicyArgument, UnknownCurve, UnknownPolicy};
        let code = match error {
            UnknownPolicy { .. } | PolicyArgument { .. } | UnknownCurve(_) => NAME,
            Needs { .. } => NEEDS,
            Policy { .. } => FAILED,
            _ => VALUE,
        };
        Failure {
            code,
            message: error.to_string(),
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Runs a call: the code that it returns, with the message kept for this thread.
///
/// A panic cannot leave anything half done that is used afterwards: the library keeps no state, and
/// results are written only when all is computed.
pub fn fence(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let (code, message) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => (OK, String::new()),
        Ok(Err(failure)) => (failure.code, failure.message),
        Err(panic) => (
            INTERNAL,
            format!("finish: the library has a bug ({})", reason(&*panic)),
        ),
    };
    let message = CString::new(message.replace('\0', "?")).unwrap_or_default();
    // The thread may be ending; then it cannot ask for the message.
    let _ = MESSAGE.try_with(|kept| kept.replace(message));
    code
}

fn reason(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "no reason given",
    }
}

/// This thread's message; the pointer is good until the next call.
pub fn message() -> *const c_char {
    MESSAGE
        .try_with(|kept| kept.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
