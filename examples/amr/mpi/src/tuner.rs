//! Who chooses the arms of levers: a preloaded tuner, whose functions are found at run time as `include/colltune.h` finds
//! them, or else the variable `COLLTUNE_LEVERS`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use colltune_core::{environment, levers};
use colltune_mpi::MPI_Comm;

type Choose =
    unsafe extern "C" fn(MPI_Comm, *const c_char, c_int, *const *const c_char, f64) -> c_int;
type Done = unsafe extern "C" fn(MPI_Comm, *const c_char, f64);

/// The functions of the tuner that this process was started with.
#[derive(Clone, Copy)]
pub struct Tuner {
    choose: Choose,
    done: Done,
}

impl Tuner {
    /// None where no tuner is preloaded, on any rank of a job alike.
    pub fn find() -> Option<Tuner> {
        static FOUND: OnceLock<Option<Tuner>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let (choose, done) = (symbol(c"colltune_choose"), symbol(c"colltune_done"));
            if choose.is_null() || done.is_null() {
                return None;
            }
            // SAFETY: functions of these names have these types wherever they are: `include/colltune.h` declares them.
            Some(unsafe {
                Tuner {
                    choose: std::mem::transmute::<*mut c_void, Choose>(choose),
                    done: std::mem::transmute::<*mut c_void, Done>(done),
                }
            })
        })
    }

    /// The tuner's answer; the first arm for one that is none.
    pub fn choose(self, comm: MPI_Comm, lever: &str, arms: &[String], size: f64) -> usize {
        let (lever, arms): (CString, Vec<CString>) =
            (text(lever), arms.iter().map(|arm| text(arm)).collect());
        let addresses: Vec<*const c_char> = arms.iter().map(|arm| arm.as_ptr()).collect();
        let n_arms = c_int::try_from(arms.len()).expect("a count fits an int");
        // SAFETY: the communicator is valid, the texts end with NUL and outlive the call, and there are as many as is said.
        let arm = unsafe { (self.choose)(comm, lever.as_ptr(), n_arms, addresses.as_ptr(), size) };
        usize::try_from(arm)
            .ok()
            .filter(|arm| *arm < arms.len())
            .unwrap_or(0)
    }

    pub fn done(self, comm: MPI_Comm, lever: &str, work: f64) {
        let lever = text(lever);
        // SAFETY: the communicator is valid, and the text ends with NUL and outlives the call.
        unsafe { (self.done)(comm, lever.as_ptr(), work) };
    }
}

/// What `COLLTUNE_LEVERS` of this process names for a lever: an arm, or an arm that is not offered, or nothing.
pub fn named(lever: &str, arms: &[String]) -> Result<usize, String> {
    let named = std::env::var(environment::LEVERS).unwrap_or_default();
    match levers::parse(&named).remove(lever) {
        None => Ok(0),
        Some(arm) => arms.iter().position(|offered| *offered == arm).ok_or(arm),
    }
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym takes a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn text(text: &str) -> CString {
    CString::new(text).expect("names of levers and arms have no NUL")
}
