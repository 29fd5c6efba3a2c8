//! The library's file, and the functions of its C interface that a regression needs.

use std::ffi::{c_char, c_float, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use colltune_core::environment;

/// What is looked for without it: the name in XGBoost's own packages, and Debian's.
pub const NAMES: [&str; 2] = ["libxgboost.so", "libxgboost.so.0"];

/// XGBoost's library, loaded into this process.
#[derive(Clone, Copy)]
pub struct XgBoost {
    pub(crate) functions: &'static Functions,
}

/// A data set or a model of XGBoost's.
pub(crate) type Object = *mut c_void;
/// `bst_ulong`.
pub(crate) type Length = u64;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of `xgboost/c_api.h`.
        pub(crate) struct Functions {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Where it lies, as far as it is known.
            pub file: PathBuf,
        }

        impl Functions {
            fn of(library: &'static libloading::Library, file: PathBuf) -> Result<Functions, libloading::Error> {
                // SAFETY: these are the signatures that `xgboost/c_api.h` has had since 1.4, and the library stays
                // loaded as long as the process lives.
                unsafe { Ok(Functions { $($field: *library.get($name)?,)* file }) }
            }
        }
    };
}

functions! {
    version = b"XGBoostVersion\0": fn(*mut c_int, *mut c_int, *mut c_int);
    last_error = b"XGBGetLastError\0": fn() -> *const c_char;
    matrix_create = b"XGDMatrixCreateFromMat\0": fn(*const c_float, Length, Length, c_float, *mut Object) -> c_int;
    matrix_set = b"XGDMatrixSetFloatInfo\0": fn(Object, *const c_char, *const c_float, Length) -> c_int;
    matrix_free = b"XGDMatrixFree\0": fn(Object) -> c_int;
    booster_create = b"XGBoosterCreate\0": fn(*const Object, Length, *mut Object) -> c_int;
    booster_set = b"XGBoosterSetParam\0": fn(Object, *const c_char, *const c_char) -> c_int;
    booster_update = b"XGBoosterUpdateOneIter\0": fn(Object, c_int, Object) -> c_int;
    booster_predict = b"XGBoosterPredictFromDMatrix\0": fn(Object, Object, *const c_char, *mut *const Length, *mut Length, *mut *const c_float) -> c_int;
    booster_free = b"XGBoosterFree\0": fn(Object) -> c_int;
}

impl XgBoost {
    /// The library, loaded once in a process.
    ///
    /// Errors: what was tried and why it failed, with the remedy.
    pub fn load() -> Result<XgBoost, String> {
        static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            let named = std::env::var_os(environment::XGBOOST).filter(|file| !file.is_empty());
            let found = match named {
                Some(file) => of_file(PathBuf::from(file)),
                None => of_names(),
            };
            found.map_err(|error| format!("{error}; {}", remedy()))
        });
        let functions = loaded.as_ref().map_err(Clone::clone)?;
        Ok(XgBoost { functions })
    }

    /// Its version, and the file that was asked for.
    pub fn describe(&self) -> String {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: all three are valid for writing.
        unsafe { (self.functions.version)(&mut major, &mut minor, &mut patch) };
        let file = self.functions.file.display();
        format!("XGBoost {major}.{minor}.{patch} ({file})")
    }
}

fn of_names() -> Result<Functions, String> {
    let mut errors = Vec::new();
    for name in NAMES {
        match of_file(PathBuf::from(name)) {
            Ok(functions) => return Ok(functions),
            Err(error) => errors.push(error),
        }
    }
    Err(errors.join("; "))
}

fn remedy() -> String {
    format!(
        "install Debian's libxgboost0, or set {} to the libxgboost.so of XGBoost 1.4 or newer, as of `pip install xgboost-cpu`",
        environment::XGBOOST
    )
}

fn of_file(file: PathBuf) -> Result<Functions, String> {
    // SAFETY: whoever starts this process chose the file, by a variable or by the dynamic linker's folders; its
    // initialisers are those of a library that exists to be loaded into others.
    let library = unsafe { libloading::Library::new(&file) }.map_err(|error| error.to_string())?;
    // Threads of its own may run in it: it is never unloaded.
    Functions::of(Box::leak(Box::new(library)), file).map_err(|error| error.to_string())
}
