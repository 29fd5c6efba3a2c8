//! MPICH, through its own binary interface or the standard one: control variables that are read at each call.
//!
//! `MPIR_CVAR_<COLLECTIVE>_INTRA_ALGORITHM` names the algorithm, and `..._DEVICE_COLLECTIVE` must
//! be off for it, or the device's own composition would apply it to parts of the communicator only.
//! Values are found by name: MPICH gives no enumeration through MPI_T (4.0.2 to 5.0.2), so their order is
//! read off the variable's description, and in 4.0, whose descriptions have lost their line ends, checked
//! against the catalogue. Other libraries with this binary interface cannot be steered while they run.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use colltune_core::catalogue::{Steering, Variant, left_out};
use colltune_core::collective::Collective;

use crate::abi::{self, Comm};
use crate::library::{self, Pmpi};
use crate::private::Parent;
use crate::world::World;

const COLLECTIVES: usize = Collective::ALL.len();

type InitThread = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
type GetIndex = unsafe extern "C-unwind" fn(*const c_char, *mut c_int) -> c_int;
#[rustfmt::skip]
type GetInfo = unsafe extern "C-unwind" fn(c_int, *mut c_char, *mut c_int, *mut c_int, *mut u64, *mut c_void,
                                    *mut c_char, *mut c_int, *mut c_int, *mut c_int) -> c_int;
type HandleAlloc =
    unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut *mut c_void, *mut c_int) -> c_int;
type Access = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int;

struct Tools {
    get_index: GetIndex,
    get_info: GetInfo,
    handle_alloc: HandleAlloc,
    read: Access,
    write: Access,
}

/// One control variable that holds an int.
struct Variable {
    handle: *mut c_void,
    /// What it held before a call of ours, while that is under way.
    held: AtomicI32,
}

struct Control {
    algorithm: Variable,
    device: Variable,
    /// For each variant the value that names it.
    values: Vec<Option<c_int>>,
}

pub struct Steer {
    tools: Option<Tools>,
    /// By collective; `None` where the library offers no choice, or one that is not known here.
    controls: [Option<Control>; COLLECTIVES],
    /// One more than the collective whose variables hold what the call that is under way needs; 0 for none.
    steered: AtomicUsize,
}
// SAFETY: handles are used only where no rank runs MPI_THREAD_MULTIPLE, so by one thread at a time.
unsafe impl Send for Steer {}
// SAFETY: what references lead to is used by one thread at a time: no rank runs MPI_THREAD_MULTIPLE then.
unsafe impl Sync for Steer {}

/// MPICH needs no communicators of ours.
#[derive(Default)]
pub struct CarrierComms;

impl CarrierComms {
    pub fn free(&mut self, _: &Pmpi) {}
}

/// The environment says all.
pub fn told() -> Option<Vec<(String, String)>> {
    None
}

/// MPICH has no components to tell of.
pub fn component() -> Option<&'static str> {
    None
}

impl Steer {
    pub fn new(variants: &[Vec<Variant>; COLLECTIVES]) -> Steer {
        let steerable = |variant: &Variant| matches!(variant.steering, Steering::Mpich { .. });
        let any = variants.iter().flatten().any(steerable);
        let tools = any.then(Tools::find).flatten();
        let controls = Collective::ALL.map(|collective| {
            let variants = &variants[collective.index()];
            let tools = tools.as_ref().filter(|_| variants.iter().any(steerable))?;
            tools.control(collective, variants)
        });
        Steer {
            tools,
            controls,
            steered: AtomicUsize::new(0),
        }
    }

    /// Whether this rank can steer.
    pub fn able(&self) -> bool {
        self.controls.iter().any(Option::is_some)
    }

    /// Whether the library has the variant. The same on all ranks that can steer.
    pub fn ready(
        &self,
        _: &World,
        _: Parent,
        _: &mut CarrierComms,
        collective: Collective,
        variant: u16,
    ) -> bool {
        self.controls[collective.index()]
            .as_ref()
            .is_some_and(|control| control.values[usize::from(variant)].is_some())
    }

    /// Runs a variant that is ready.
    pub fn run(
        &self,
        _: &World,
        comm: Comm,
        _: &CarrierComms,
        collective: Collective,
        variant: u16,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        let (Some(tools), Some(control)) = (&self.tools, &self.controls[collective.index()]) else {
            unreachable!("a variant runs only after it was said to be ready");
        };
        let Some(value) = control.values[usize::from(variant)] else {
            unreachable!("a variant runs only after it was said to be ready");
        };
        // What the user, the library or the program itself, just now, set: `default` must find it.
        tools.replace(&control.algorithm, value);
        tools.replace(&control.device, 0);
        self.steered
            .store(collective.index() + 1, Ordering::Relaxed);
        let _steered = Steered(self);
        native(comm)
    }

    /// Gives the variables that are set back to `default`. So ends every call, and one that was left by a
    /// longjmp once the next one finds out.
    pub fn put_back(&self) {
        let steered = self.steered.swap(0, Ordering::Relaxed).checked_sub(1);
        let control = steered.and_then(|place| self.controls[place].as_ref());
        if let (Some(tools), Some(control)) = (&self.tools, control) {
            for variable in [&control.device, &control.algorithm] {
                tools.set(variable, variable.held.load(Ordering::Relaxed));
            }
        }
    }
}

/// A call with variables of its own. An exception that leaves it gives them back, too.
struct Steered<'a>(&'a Steer);

impl Drop for Steered<'_> {
    fn drop(&mut self) {
        self.0.put_back();
    }
}

impl Tools {
    fn find() -> Option<Tools> {
        let symbol = |name: &CStr| Some(library::find(name)).filter(|address| !address.is_null());
        // SAFETY: each symbol is the MPI_T function of this name, whose C signature is the target's.
        let (init, tools) = unsafe {
            use std::mem::transmute;
            let init = transmute::<*mut c_void, InitThread>(symbol(c"MPI_T_init_thread")?);
            let tools = Tools {
                get_index: transmute::<*mut c_void, GetIndex>(symbol(c"MPI_T_cvar_get_index")?),
                get_info: transmute::<*mut c_void, GetInfo>(symbol(c"MPI_T_cvar_get_info")?),
                handle_alloc: transmute::<*mut c_void, HandleAlloc>(symbol(
                    c"MPI_T_cvar_handle_alloc",
                )?),
                read: transmute::<*mut c_void, Access>(symbol(c"MPI_T_cvar_read")?),
                write: transmute::<*mut c_void, Access>(symbol(c"MPI_T_cvar_write")?),
            };
            (init, tools)
        };
        let mut provided = 0;
        // SAFETY: the library is initialised; MPI_T counts how often it is.
        let code = unsafe { init(0, &mut provided) };
        (code == abi::SUCCESS).then_some(tools)
    }

    fn control(&self, collective: Collective, variants: &[Variant]) -> Option<Control> {
        let name = collective.name().to_uppercase();
        let (algorithm, description) =
            self.variable(&format!("MPIR_CVAR_{name}_INTRA_ALGORITHM"))?;
        let (device, _) = self.variable(&format!("MPIR_CVAR_{name}_DEVICE_COLLECTIVE"))?;
        let name_of = |variant: &Variant| match variant.steering {
            Steering::Mpich { algorithm } => Some(algorithm),
            _ => None,
        };
        let values = values_by_line(&description).or_else(|| {
            let drawn = variants.iter().filter_map(name_of);
            values_by_order(&description, drawn.chain(left_out(collective)))
        })?;
        let value_of = |variant: &Variant| {
            let name = name_of(variant)?;
            values
                .iter()
                .find(|(other, _)| *other == name)
                .map(|(_, value)| *value)
        };
        Some(Control {
            algorithm,
            device,
            values: variants.iter().map(value_of).collect(),
        })
    }

    /// A variable and its description.
    fn variable(&self, name: &str) -> Option<(Variable, String)> {
        let name = CString::new(name).ok()?;
        let mut text = vec![0u8; 8192];
        let (mut index, mut count, mut value) = (0, 0, 0);
        let (mut verbosity, mut bind, mut scope) = (0, 0, 0);
        // A handle: four bytes in one binary interface, eight in the other.
        let mut datatype = 0u64;
        let (mut name_length, mut text_length) = (0, text.len() as c_int);
        let mut handle = std::ptr::null_mut();
        // SAFETY: every pointer is to a local that is large enough; a null name is allowed.
        unsafe {
            if (self.get_index)(name.as_ptr(), &mut index) != abi::SUCCESS {
                return None;
            }
            let info = (self.get_info)(
                index,
                std::ptr::null_mut(),
                &mut name_length,
                &mut verbosity,
                &mut datatype,
                std::ptr::null_mut(),
                text.as_mut_ptr().cast(),
                &mut text_length,
                &mut bind,
                &mut scope,
            );
            if info != abi::SUCCESS
                || (self.handle_alloc)(index, std::ptr::null_mut(), &mut handle, &mut count)
                    != abi::SUCCESS
                || count != 1
                || (self.read)(handle, (&raw mut value).cast()) != abi::SUCCESS
            {
                return None;
            }
        }
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..end]).into_owned();
        Some((
            Variable {
                handle,
                held: AtomicI32::new(value),
            },
            text,
        ))
    }

    /// Sets a variable, and keeps what it held.
    fn replace(&self, variable: &Variable, value: c_int) {
        let mut held: c_int = 0;
        // SAFETY: the handle is of an int variable, and `held` is an int.
        unsafe { (self.read)(variable.handle, (&raw mut held).cast()) };
        variable.held.store(held, Ordering::Relaxed);
        self.set(variable, value);
    }

    fn set(&self, variable: &Variable, mut value: c_int) {
        // SAFETY: the handle is of an int variable, and `value` is an int.
        unsafe { (self.write)(variable.handle, (&raw mut value).cast()) };
    }
}

/// Each value's name and number, where a description explains each value in a separate line: `smp - Force smp
/// algorithm`. `None` for a description of one line.
fn values_by_line(description: &str) -> Option<Vec<(&str, c_int)>> {
    let explained = description.lines().skip(1);
    let names = explained.map(|line| Some(line.split_once(" - ")?.0.trim()));
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    let known = names.first() == Some(&"auto");
    known.then(|| names.into_iter().zip(0..).collect())
}

/// The value of each of `names`, by their order in a variable's description.
///
/// The text runs on without line ends: `... algorithmauto - Internal ... nb   - Force ...smp - Force`.
/// `None` unless every value that the text explains is one of the names, for only then is a name's
/// place its number.
fn values_by_order<'a>(
    description: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<Vec<(&'a str, c_int)>> {
    let explained = |name: &str| {
        let ends = description
            .match_indices(name)
            .map(|(start, _)| start + name.len());
        let mut ends =
            ends.filter(|&end| description[end..].trim_start_matches(' ').starts_with("- "));
        ends.next().filter(|_| ends.next().is_none())
    };
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in ["auto", "nb"].into_iter().chain(names) {
        found.push((explained(name)?, name));
    }
    found.sort_unstable();
    let complete = description.matches(" - ").count() == found.len();
    complete.then(|| {
        found
            .into_iter()
            .zip(0..)
            .map(|((_, name), value)| (name, value))
            .collect()
    })
}
