//! The frames of this thread's stack that are ours.
//!
//! A longjmp out of an error handler or of a program's operation leaves frames of ours without a trace: no guard
//! is dropped, and whatever they have noted elsewhere stays. Only the stack tells which of them are still there.
//! It is walked where that is in doubt, and where a panic wants to know in which of MPI's functions it is.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

type Context = c_void;
type Visit = extern "C" fn(*mut Context, *mut c_void) -> c_int;

// Of the unwinder that the standard library links.
unsafe extern "C" {
    fn _Unwind_Backtrace(visit: Visit, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
    fn _Unwind_FindEnclosingFunction(code: *mut c_void) -> *mut c_void;
}

/// One frame: where its code stands, and the lowest address of its memory.
#[derive(Clone, Copy, Default)]
struct Frame {
    code: usize,
    start: usize,
}

/// Shows the frames to `look`, from the innermost on, until it is false.
fn walk(mut look: impl FnMut(Frame) -> bool) {
    extern "C" fn visit<L: FnMut(Frame) -> bool>(
        context: *mut Context,
        look: *mut c_void,
    ) -> c_int {
        // SAFETY: the unwinder hands over its context, and what `walk` gave to it, which outlives the walk.
        let (frame, look) = unsafe {
            let frame = Frame {
                code: _Unwind_GetIP(context),
                start: _Unwind_GetCFA(context),
            };
            (frame, &mut *look.cast::<L>())
        };
        c_int::from(!look(frame))
    }
    fn start<L: FnMut(Frame) -> bool>(look: &mut L) {
        // SAFETY: the function has the signature that the unwinder calls, and gets what it casts back.
        unsafe { _Unwind_Backtrace(visit::<L>, std::ptr::from_mut(look).cast()) };
    }
    start(&mut look);
}

/// What is known of an address in code.
fn place_of(code: usize) -> Option<libc::Dl_info> {
    // SAFETY: all-zero bytes are a valid value of this struct of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the struct is valid to write to.
    let found = unsafe { libc::dladdr(code as *const c_void, &mut info) };
    (found != 0).then_some(info)
}

/// Whether an address in code is the shim's.
fn is_ours(code: usize) -> bool {
    static HERE: u8 = 0;
    let object = |address| place_of(address).map(|place| place.dli_fbase);
    object(code).is_some_and(|found| Some(found) == object((&raw const HERE).addr()))
}

/// Whether the frame of ours that holds the address `outer` is still there, somewhere below which the one runs
/// that holds `here`. Where the stack cannot be followed so far, because functions of the program have no unwind tables,
/// it is taken to have been left: what a handler's or an operation's function of such a program calls is a call like any
/// other then.
#[cold]
pub fn is_alive(outer: usize, here: usize) -> bool {
    holds(outer, here, is_ours).unwrap_or(false)
}

/// Whether a frame of the function of ours that begins at `function` holds the address `outer`, above the frame that
/// holds `here`; `None` where the stack cannot be followed so far.
#[cold]
pub fn is_of(function: usize, outer: usize, here: usize) -> Option<bool> {
    // An address behind a call may be the next function's first.
    let begins = |code: usize| {
        // SAFETY: any address in code may be asked for.
        let found = unsafe { _Unwind_FindEnclosingFunction((code - 1) as *mut c_void) };
        found.addr() == function
    };
    holds(outer, here, begins)
}

/// Whether the frame that holds the address `outer` is of such code, above the one that holds `here`; `None` where the
/// stack cannot be followed so far.
fn holds(outer: usize, here: usize, is_such: impl Fn(usize) -> bool) -> Option<bool> {
    if outer <= here {
        // Stacks grow downwards: what was there has returned, or is of another stack.
        return Some(false);
    }
    let (mut last, mut holds) = (Frame::default(), None);
    walk(|frame| {
        if frame.start > outer {
            // The last frame holds it. The caller's own is a new one in the place of the old.
            holds = Some(last.start > here && is_such(last.code));
        }
        last = frame;
        holds.is_none()
    });
    holds
}

thread_local! {
    /// An address in the frame of [`keep_out`] on this thread; 0 without one.
    static KEEPING_OUT: Cell<usize> = const { Cell::new(0) };
}

/// Runs what may call an error handler of the program's while a communicator's state is borrowed. Collectives that it calls
/// meanwhile are none of ours, at every level of threads.
#[inline(never)]
pub fn keep_out<R>(run: impl FnOnce() -> R) -> R {
    /// Ends with the call, or with the exception that leaves it.
    struct KeptOut(usize);
    impl Drop for KeptOut {
        fn drop(&mut self) {
            KEEPING_OUT.set(self.0);
        }
    }
    let here = 0u8;
    let _outer = KeptOut(KEEPING_OUT.replace((&raw const here).addr()));
    run()
}

/// Whether what runs in the frame that holds `here` was called from within [`keep_out`], which no longjmp has left.
#[inline]
pub fn is_kept_out(here: usize) -> bool {
    let outer = KEEPING_OUT.get();
    let is_within = outer != 0 && is_alive(outer, here);
    if !is_within {
        KEEPING_OUT.set(0);
    }
    is_within
}

/// The name of MPI's function, or of Fortran's, that the program called, while one of ours runs.
pub fn name_of_call() -> Option<String> {
    let mut name = None;
    walk(|frame| {
        // An address behind a call may be the next function's first.
        if let Some(place) = place_of(frame.code.wrapping_sub(1))
            && !place.dli_sname.is_null()
            && is_ours(frame.code)
        {
            // SAFETY: names of symbols are NUL-terminated and stay while their object is loaded.
            let text = unsafe { CStr::from_ptr(place.dli_sname) }.to_string_lossy();
            name = Some(text.into_owned());
        }
        true
    });
    name
}
