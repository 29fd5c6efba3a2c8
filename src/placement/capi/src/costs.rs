//! Measured costs that are smoothed and follow the mesh: a handle that the caller keeps.

use std::ffi::c_int;

use crate::convert::{check_mesh, slice, slice_mut};
use crate::fence::{Failure, fence};
use placement::{Costs, Inheritance, Octant, Smoothing};

/// Makes a handle; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_costs_new(
    dimensions: u8,
    octants: *const Octant,
    n: usize,
    weight: f64,
    repeats: c_int,
    costs: *mut *mut Costs,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let octants = unsafe { slice(octants, n, "the octants")? };
        check_mesh(dimensions, octants)?;
        let smoothing = Smoothing {
            weight: if weight == 0.0 {
                Smoothing::default().weight
            } else {
                weight
            },
            inheritance: match repeats {
                0 => Inheritance::Share,
                _ => Inheritance::Repeat,
            },
            ..Smoothing::default()
        };
        let made = Box::new(Costs::new(smoothing, dimensions, octants)?);
        // SAFETY: the caller promises room for one pointer.
        unsafe { slice_mut(costs, 1, "the handle of the costs")?[0] = Box::into_raw(made) };
        Ok(())
    })
}

/// Takes measured times in; see the header.
///
/// # Safety
/// `costs` is null or a handle without another user now; `times` points to `n` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_costs_observe(
    costs: *mut Costs,
    times: *const f64,
    n: usize,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (costs, times) = unsafe { (handle(costs)?, slice(times, n, "the measured times")?) };
        Ok(costs.observe(times)?)
    })
}

/// Follows a changed mesh; see the header.
///
/// # Safety
/// `costs` is null or a handle without another user now; `octants` points to `n` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_costs_adapt(
    costs: *mut Costs,
    octants: *const Octant,
    n: usize,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (costs, octants) = unsafe { (handle(costs)?, slice(octants, n, "the octants")?) };
        check_mesh(costs.dimensions(), octants)?;
        costs.adapt(octants);
        Ok(())
    })
}

/// The costs for a problem; see the header.
///
/// # Safety
/// `costs` is null or a handle without another user now; `values` has room for `n` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_costs_get(
    costs: *mut Costs,
    values: *mut f64,
    n: usize,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that a non-null pointer is a handle.
        let found = unsafe { handle(costs)? }.costs();
        Failure::length("the costs", found.len(), n)?;
        // SAFETY: the caller promises room for `n` entries.
        unsafe { slice_mut(values, n, "the costs")?.copy_from_slice(&found) };
        Ok(())
    })
}

/// Ends a handle; see the header.
///
/// # Safety
/// `costs` is null or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_costs_free(costs: *mut Costs) {
    if !costs.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller gives it back once.
        drop(unsafe { Box::from_raw(costs) });
    }
}

/// The costs behind a handle.
///
/// # Safety
/// `costs` is null or a handle without another user during `'a`.
unsafe fn handle<'a>(costs: *mut Costs) -> Result<&'a mut Costs, Failure> {
    // SAFETY: by the caller's promise.
    unsafe { costs.as_mut() }.ok_or_else(|| Failure::null("the handle of the costs"))
}
