//! Open MPI: communicators that carry a forced algorithm.
//!
//! `coll/tuned` reads `coll_tuned_<collective>_algorithm` and `_segmentsize` when a communicator is
//! made, and only while `coll_tuned_use_dynamic_rules` is set. That variable is read-only through
//! MPI_T in 4.1.4, and setting it in the environment would wake up rules and forced algorithms of
//! the user's that lie dormant, so `default` would change. The shim therefore sets the variables in
//! their storage (`mca_base_var_find`, `mca_base_var_get_value`) just around the making of its own
//! communicator and puts them back. Starting MPI_T instead would take 200 ms: it opens every
//! component (measured with 4 ranks on 2 cores).

use std::ffi::{CStr, c_char, c_int, c_void};

use colltune_core::catalogue::{Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::component::{self, Component};
use colltune_core::context::told::OPEN_MPI;

use crate::abi::Comm;
use crate::library::{self, Pmpi};
use crate::private::{self, Parent, Private, Who};
use crate::world::World;

const COLLECTIVES: usize = Collective::ALL.len();
/// What a carrier communicator forces for one collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Forced {
    algorithm: c_int,
    segsize: c_int,
}

/// The storage of Open MPI's variables.
struct Variables {
    use_dynamic_rules: *mut bool,
    /// `coll/han` stands above `coll/tuned` from 5.0 on. It reads its priority when a communicator is
    /// made, so that it can be kept off a carrier without changing what `default` runs.
    han_priority: Option<*mut c_int>,
    /// By collective; `None` where the library has no such variable.
    forced: [[Option<*mut c_int>; 2]; COLLECTIVES],
}

pub struct Steer {
    variables: Option<Variables>,
    /// What each carrier forces: the k-th variants of all collectives at once, to keep them few.
    carriers: Vec<[Forced; COLLECTIVES]>,
    /// For each collective and variant the carrier that runs it.
    carrier_of: [Vec<Option<usize>>; COLLECTIVES],
}
// SAFETY: the pointers are to static storage of the library. They are written while a carrier is
// made only, and carriers are made only where no rank runs MPI_THREAD_MULTIPLE.
unsafe impl Send for Steer {}
// SAFETY: through a reference nothing is written while another thread is in MPI: only one makes carriers.
unsafe impl Sync for Steer {}

/// The carriers beside one communicator, for all its members.
#[derive(Default)]
pub struct CarrierComms {
    made: Vec<Private>,
}

impl CarrierComms {
    /// Frees the carriers, without waiting for other ranks.
    pub fn free(&mut self, pmpi: &Pmpi) {
        for mut carrier in self.made.drain(..) {
            carrier.free(pmpi);
        }
    }
}

/// The user's settings of the algorithms of our variants' component, from the environment or a file of parameters, by
/// the variables' names there. `None` where they cannot be read.
pub fn told() -> Option<Vec<(String, String)>> {
    let lookup = Lookup::new()?;
    let is_on = lookup
        .storage(c"tuned", c"use_dynamic_rules")?
        .cast::<bool>();
    // SAFETY: the variable is a bool in static storage.
    if !unsafe { *is_on } {
        return Some(Vec::new());
    }
    let file = lookup
        .storage(c"tuned", c"dynamic_rules_filename")?
        .cast::<*const c_char>();
    // SAFETY: the storage of a string variable holds a pointer to a string or null.
    let file = unsafe { (!(*file).is_null()).then(|| CStr::from_ptr(*file)) };
    let file = file.map(|file| file.to_string_lossy().into_owned());
    let file = file.map(|file| ("dynamic_rules_filename".to_owned(), file));
    let forced = Collective::ALL.into_iter().flat_map(|collective| {
        let variable = |suffix: &str| {
            let name = format!("{collective}_algorithm{suffix}");
            let value = lookup.int(c"tuned", &std::ffi::CString::new(&*name).ok()?)?;
            Some((name, value.to_string()))
        };
        let algorithm = variable("").filter(|(_, value)| value != "0");
        let segsize = algorithm.as_ref().and_then(|_| variable("_segmentsize"));
        algorithm.into_iter().chain(segsize)
    });
    let all = file.into_iter().filter(|(_, file)| !file.is_empty());
    let all = all.chain(forced);
    Some(
        all.map(|(name, value)| (format!("{OPEN_MPI}{name}"), value))
            .collect(),
    )
}

/// The component that `default` is of.
pub fn component() -> Option<&'static str> {
    component::chosen(&Lookup::new()?.components())
}

impl Steer {
    pub fn new(variants: &[Vec<Variant>; COLLECTIVES]) -> Steer {
        let mut carriers: Vec<[Forced; COLLECTIVES]> = Vec::new();
        let mut carrier_of: [Vec<Option<usize>>; COLLECTIVES] = Default::default();
        let mut alone = Vec::new();
        for collective in Collective::ALL {
            let place = collective.index();
            carrier_of[place] = vec![None; variants[place].len()];
            let mut next = 0;
            for (which, variant) in variants[place].iter().enumerate() {
                let Steering::OpenMpi {
                    algorithm,
                    alone: is_alone,
                } = variant.steering
                else {
                    continue;
                };
                let segsize = variant.name.segsize.unwrap_or(0) as c_int;
                let forced = Forced { algorithm, segsize };
                if is_alone {
                    alone.push((place, which, forced));
                    continue;
                }
                if next == carriers.len() {
                    carriers.push(Default::default());
                }
                carriers[next][place] = forced;
                carrier_of[place][which] = Some(next);
                next += 1;
            }
        }
        for (place, which, forced) in alone {
            let mut only = [Forced::default(); COLLECTIVES];
            only[place] = forced;
            carrier_of[place][which] = Some(carriers.len());
            carriers.push(only);
        }
        let steered = carrier_of
            .each_ref()
            .map(|all| all.iter().any(Option::is_some));
        Steer {
            variables: Variables::find(&steered),
            carriers,
            carrier_of,
        }
    }

    /// Whether this rank can steer.
    pub fn able(&self) -> bool {
        self.variables.is_some()
    }

    /// Sees to it that a variant can be run. Collective over the communicator; the answer is the same on
    /// all its ranks.
    pub fn ready(
        &self,
        world: &World,
        parent: Parent,
        carriers: &mut CarrierComms,
        collective: Collective,
        variant: u16,
    ) -> bool {
        let Some(which) = self.carrier_of[collective.index()][usize::from(variant)] else {
            return false;
        };
        if carriers.made.len() < self.carriers.len() {
            carriers.made.resize(self.carriers.len(), Private::Unmade);
        }
        carriers.made[which].ready(world, parent, || self.make(world, parent, which))
    }

    /// Runs a variant that is ready.
    pub fn run(
        &self,
        world: &World,
        comm: Comm,
        carriers: &CarrierComms,
        collective: Collective,
        variant: u16,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        let which = self.carrier_of[collective.index()][usize::from(variant)];
        let Some(Private::Made(carrier)) = which.and_then(|which| carriers.made.get(which)) else {
            unreachable!("a variant runs only after it was said to be ready");
        };
        // The carrier returns errors; the program's handler is on its own communicator.
        private::report(world, comm, native(*carrier))
    }

    /// A call that was left by a longjmp has changed nothing: carriers are made where errors return.
    pub fn put_back(&self) {}

    #[cold]
    fn make(&self, world: &World, parent: Parent, which: usize) -> Private {
        let Some(variables) = &self.variables else {
            return Private::Failed;
        };
        let old = variables.set(&self.carriers[which]);
        let carrier = private::split(world, parent.comm, Who::All);
        variables.restore(old);
        carrier
    }
}

/// The values that a carrier's making replaced.
struct Old {
    use_dynamic_rules: bool,
    han_priority: c_int,
    forced: [Forced; COLLECTIVES],
}

impl Variables {
    /// Finds the storage. `None` where the library's own choice would win over ours: `coll/tuned`
    /// is not in use, another component stands above it, or a rules file is in force. `steered` says
    /// which collectives have native variants.
    fn find(steered: &[bool; COLLECTIVES]) -> Option<Variables> {
        let lookup = Lookup::new()?;
        let priority = *lookup.int(c"tuned", c"priority")?;
        let above = ["adapt", "sm", "hcoll", "ucc", "fca", "portals4"];
        let beaten = lookup
            .components()
            .into_iter()
            .filter(|other| other.enabled && above.contains(&other.name))
            .any(|other| other.priority > priority);
        let use_dynamic_rules = lookup
            .storage(c"tuned", c"use_dynamic_rules")?
            .cast::<bool>();
        let file = lookup
            .storage(c"tuned", c"dynamic_rules_filename")?
            .cast::<*const c_char>();
        // SAFETY: the storage of a string variable holds a pointer to a string or null.
        let has_rules = unsafe { *use_dynamic_rules && !(*file).is_null() && **file != 0 };
        if beaten || has_rules {
            return None;
        }
        let mut found = Variables {
            use_dynamic_rules,
            han_priority: lookup.int(c"han", c"priority").map(std::ptr::from_mut),
            forced: [[None; 2]; COLLECTIVES],
        };
        for collective in Collective::ALL {
            let variable = |suffix: &str| {
                let name = format!("{collective}_algorithm{suffix}");
                let name = std::ffi::CString::new(name).expect("no NUL");
                lookup.int(c"tuned", &name).map(std::ptr::from_mut)
            };
            // Some collectives know no segments.
            let forced = [variable(""), variable("_segmentsize")];
            if steered[collective.index()] && forced[0].is_none() {
                return None;
            }
            found.forced[collective.index()] = forced;
        }
        Some(found)
    }

    fn set(&self, forced: &[Forced; COLLECTIVES]) -> Old {
        let mut old = Old {
            use_dynamic_rules: false,
            han_priority: 0,
            forced: Default::default(),
        };
        // SAFETY: the pointers are to the library's static storage, and one thread uses MPI.
        unsafe {
            old.use_dynamic_rules = self.use_dynamic_rules.replace(true);
            if let Some(han) = self.han_priority {
                old.han_priority = han.replace(0);
            }
            for (place, forced) in forced.iter().enumerate() {
                let [algorithm, segsize] = self.forced[place];
                let replace = |variable: Option<*mut c_int>, value| {
                    variable.map_or(0, |variable| variable.replace(value))
                };
                old.forced[place].algorithm = replace(algorithm, forced.algorithm);
                old.forced[place].segsize = replace(segsize, forced.segsize);
            }
        }
        old
    }

    fn restore(&self, old: Old) {
        // SAFETY: the pointers are to the library's static storage, and one thread uses MPI.
        unsafe {
            *self.use_dynamic_rules = old.use_dynamic_rules;
            if let Some(han) = self.han_priority {
                *han = old.han_priority;
            }
            for (variables, old) in self.forced.iter().zip(&old.forced) {
                for (variable, value) in variables.iter().zip([old.algorithm, old.segsize]) {
                    if let Some(variable) = variable {
                        **variable = value;
                    }
                }
            }
        }
    }
}

type FindVariable = unsafe extern "C-unwind" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;
type GetValue =
    unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut c_int, *mut *const c_char) -> c_int;

/// Open MPI's own look-up of its variables.
struct Lookup {
    find: FindVariable,
    get: GetValue,
}

impl Lookup {
    fn new() -> Option<Lookup> {
        let object = library::loaded_object(&["libopen-pal.so"]);
        let symbol = |name: &CStr| {
            let found = library::find(name);
            if found.is_null() && !object.is_null() {
                // SAFETY: the object is loaded and its handle is never closed.
                unsafe { libc::dlsym(object, name.as_ptr()) }
            } else {
                found
            }
        };
        let (find, get) = (
            symbol(c"mca_base_var_find"),
            symbol(c"mca_base_var_get_value"),
        );
        if find.is_null() || get.is_null() {
            return None;
        }
        // SAFETY: these are the functions of Open MPI's opal/mca/base/mca_base_var.h of these names.
        unsafe {
            Some(Lookup {
                find: std::mem::transmute::<*mut c_void, FindVariable>(find),
                get: std::mem::transmute::<*mut c_void, GetValue>(get),
            })
        }
    }

    /// The storage of `coll_<component>_<name>`.
    fn storage(&self, component: &CStr, name: &CStr) -> Option<*mut c_void> {
        let mut storage: *mut c_void = std::ptr::null_mut();
        // SAFETY: the strings are NUL-terminated; a found variable's storage address is written.
        let code = unsafe {
            let index = (self.find)(
                c"ompi".as_ptr(),
                c"coll".as_ptr(),
                component.as_ptr(),
                name.as_ptr(),
            );
            if index < 0 {
                return None;
            }
            let target = (&raw mut storage).cast();
            (self.get)(index, target, std::ptr::null_mut(), std::ptr::null_mut())
        };
        (code == 0 && !storage.is_null()).then_some(storage)
    }

    /// Those that may run the collectives of a communicator of the world's ranks.
    fn components(&self) -> Vec<Component<'static>> {
        let all = [
            c"tuned",
            c"han",
            c"hcoll",
            c"ucc",
            c"xhc",
            c"acoll",
            c"adapt",
            c"sm",
            c"fca",
            c"portals4",
            c"basic",
        ];
        let known = |component: &'static CStr| {
            let enable = self.storage(component, c"enable");
            // SAFETY: the variable is an int, or a bool, whose one byte says the same.
            let enabled = enable.is_none_or(|enable| unsafe { *enable.cast::<u8>() } != 0);
            Some(Component {
                name: component.to_str().ok()?,
                priority: *self.int(component, c"priority")?,
                enabled,
            })
        };
        all.into_iter().filter_map(known).collect()
    }

    fn int(&self, component: &CStr, name: &CStr) -> Option<&'static mut c_int> {
        let storage = self.storage(component, name)?.cast::<c_int>();
        // SAFETY: the variable is an int in static storage, which lives until MPI_Finalize.
        Some(unsafe { &mut *storage })
    }
}
