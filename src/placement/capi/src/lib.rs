//! The C interface of `colltune-placement`; `include/colltune_placement.h` is its documentation.
//!
//! Every function translates its arguments, calls the library behind [`fence`] and translates the
//! result. Nothing is written to the caller's memory before everything has succeeded, and no panic
//! crosses the border.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

mod convert;
mod fence;
mod layout;

mod balance;
mod costs;
mod mesh;

use convert::{certificate_of, check_mesh, slice, slice_mut, text};
use fence::{Failure, fence, message};
use layout::{Certificate, Problem};
use placement::{Curve, MigrationLimit, Octant, Policy};

/// Chooses the owners; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_place(
    policy: *const c_char,
    problem: *const Problem,
    owners: *mut u32,
    n_owners: usize,
    certificate: *mut Certificate,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (policy, problem) =
            unsafe { (text(policy, "the policy")?, convert::problem(problem)?) };
        // SAFETY: as above; the certificate may be absent.
        let room = unsafe { convert::check_certificate(certificate)? };
        let policy: Policy = policy.parse()?;
        let placement = placement::place(&policy, &problem)?;
        problem.check_owners(&placement.owners)?;
        Failure::length("the owners", placement.owners.len(), n_owners)?;
        let judged = match certificate.is_null() {
            true => None,
            false => Some(certificate_of(
                &placement.certify(&problem)?,
                &placement.owners,
            )),
        };
        // SAFETY: the caller promises room for `n_owners` entries; the inputs are no longer used.
        unsafe { slice_mut(owners, n_owners, "the owners")?.copy_from_slice(&placement.owners) };
        if let Some(judged) = judged {
            // SAFETY: it is not null, and its size is its own.
            unsafe { convert::write_certificate(certificate, room, &judged) };
        }
        Ok(())
    })
}

/// Judges owners; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_certify(
    problem: *const Problem,
    owners: *const u32,
    n_owners: usize,
    certificate: *mut Certificate,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let problem = unsafe { convert::problem(problem)? };
        if certificate.is_null() {
            return Err(Failure::null("the certificate"));
        }
        // SAFETY: as above.
        let (room, owners) = unsafe {
            (
                convert::check_certificate(certificate)?,
                slice(owners, n_owners, "the owners")?,
            )
        };
        let judged = certificate_of(&placement::certify(&problem, owners)?, owners);
        // SAFETY: it is not null, and its size is its own.
        unsafe { convert::write_certificate(certificate, room, &judged) };
        Ok(())
    })
}

/// Keeps a migration small; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_limit_migration(
    problem: *const Problem,
    proposed: *const u32,
    n_owners: usize,
    keep_fraction: f64,
    blocks_max: u64,
    bytes_max: u64,
    owners: *mut u32,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let problem = unsafe { convert::problem(problem)? };
        let limit = MigrationLimit {
            keep_fraction,
            blocks_max: Some(blocks_max).filter(|&max| max != u64::MAX),
            bytes_max: Some(bytes_max).filter(|&max| max != u64::MAX),
        };
        // SAFETY: as above. The borrow ends here, so `owners` may be the same array.
        let limited = placement::limit_migration(
            &problem,
            unsafe { slice(proposed, n_owners, "the proposed owners")? },
            &limit,
        )?;
        // SAFETY: the caller promises room for `n_owners` entries; the inputs are no longer used.
        unsafe { slice_mut(owners, n_owners, "the owners")?.copy_from_slice(&limited) };
        Ok(())
    })
}

/// Positions on a curve; see the header.
///
/// # Safety
/// Each pointer is null or points to as many valid entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_keys(
    curve: *const c_char,
    dimensions: u8,
    octants: *const Octant,
    n: usize,
    keys: *mut u64,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (curve, octants) =
            unsafe { (text(curve, "the curve")?, slice(octants, n, "the octants")?) };
        let curve: Curve = curve.parse()?;
        check_mesh(dimensions, octants)?;
        let found: Vec<u64> = octants.iter().map(|&o| curve.key(dimensions, o)).collect();
        // SAFETY: the caller promises room for `n` entries; the inputs are no longer used.
        unsafe { slice_mut(keys, n, "the keys")?.copy_from_slice(&found) };
        Ok(())
    })
}

/// The hash of an assignment; see the header.
///
/// # Safety
/// `owners` is null or points to `n` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_hash(owners: *const u32, n: usize) -> u64 {
    let mut hash = 0;
    fence(|| {
        // SAFETY: the caller promises that a non-null pointer is valid.
        hash = placement::hash(unsafe { slice(owners, n, "the owners")? });
        Ok(())
    });
    hash
}

/// The name of a policy; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn colltune_placement_policy(index: usize) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let names = Policy::names().into_iter();
        names
            .map(|name| CString::new(name).unwrap_or_default())
            .collect()
    });
    names
        .get(index)
        .map_or(std::ptr::null(), |name| CStr::as_ptr(name))
}

/// The version of the library; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn colltune_placement_version() -> u32 {
    let number = |text: &str| text.parse().unwrap_or(0);
    let (major, minor, patch): (u32, u32, u32) = (
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
    );
    major * 10_000 + minor * 100 + patch
}

/// The message of the last failure; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn colltune_placement_message() -> *const c_char {
    message()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod versions;
