//! Arguments as C and Fortran pass them, and what they are.

use std::ffi::c_int;

use crate::library::{Handle, Stored};

/// An argument that stands for one value.
pub trait Plain {
    type Value;
    /// Only of arguments that a call has taken.
    fn get(self) -> Self::Value;
}

/// An argument that is the place of handles.
pub trait Place: Copy {
    /// What tells the handle at this place of a list apart.
    fn bits(self, place: usize) -> u64;
}

/// The arguments of C.
pub mod c {
    use super::{Handle, Place, Plain, Stored, c_int};
    use crate::library::{bits, loaded};

    pub type Int = c_int;
    pub type Type = Handle;
    pub type Comm = Handle;
    pub type Requests = *mut Stored;
    pub type Comms = *mut Stored;

    macro_rules! plain {
        ($($type:ty)*) => {
            $(impl Plain for $type {
                type Value = $type;
                #[inline(always)]
                fn get(self) -> $type {
                    self
                }
            })*
        };
    }
    plain!(c_int i64 Handle);

    impl Place for *mut Stored {
        fn bits(self, place: usize) -> u64 {
            if self.is_null() {
                return 0;
            }
            // SAFETY: MPI asks for a list that is so long.
            bits(loaded(unsafe { *self.add(place) }))
        }
    }
}

/// The arguments of Fortran, all references. Its handles are numbers, in MPICH those of C.
#[cfg(not(feature = "mpi_abi"))]
#[allow(dead_code, reason = "on MPICH only functions without buffers need it")]
pub mod fortran {
    use super::{Handle, Place, Plain, c_int};
    use crate::library::bits;

    macro_rules! handles {
        ($($type:ident: $pointer:ty = $function:literal;)*) => {
            $(
                #[derive(Clone, Copy)]
                #[repr(transparent)]
                pub struct $type($pointer);

                impl $type {
                    fn handle(self, place: usize) -> Handle {
                        // SAFETY: MPI asks for a list that is so long; one value is a list.
                        let number = unsafe { *self.0.add(place) };
                        #[cfg(feature = "mpich")]
                        return Handle::from(number as u32);
                        #[cfg(feature = "openmpi")]
                        {
                            use std::sync::OnceLock;
                            type FromFortran = unsafe extern "C-unwind" fn(c_int) -> Handle;
                            static FOUND: OnceLock<Option<FromFortran>> = OnceLock::new();
                            let found = FOUND.get_or_init(|| {
                                let address = crate::library::find($function);
                                // SAFETY: null is `None`, and otherwise it is MPI's function of this name.
                                unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<FromFortran>>(address) }
                            });
                            // SAFETY: any number may be asked for.
                            found.map_or(std::ptr::null_mut(), |convert| unsafe { convert(number) })
                        }
                    }
                }

                impl Plain for $type {
                    type Value = Handle;
                    fn get(self) -> Handle {
                        self.handle(0)
                    }
                }

                impl Place for $type {
                    fn bits(self, place: usize) -> u64 {
                        bits(self.handle(place))
                    }
                }
            )*
        };
    }
    handles! {
        Type: *const c_int = c"PMPI_Type_f2c";
        Comm: *const c_int = c"PMPI_Comm_f2c";
        Requests: *mut c_int = c"PMPI_Request_f2c";
        Comms: *mut c_int = c"PMPI_Comm_f2c";
    }

    #[derive(Clone, Copy)]
    #[repr(transparent)]
    pub struct Int(*const c_int);
    pub type Count = Int;

    impl Plain for Int {
        type Value = c_int;
        #[inline(always)]
        fn get(self) -> c_int {
            // SAFETY: every argument is passed by reference; of an INTEGER of eight bytes the lower half comes first.
            unsafe { *self.0 }
        }
    }
}
