//! Deciding step after step when and how blocks are placed anew: a handle that the caller keeps.

use std::ffi::{c_char, c_int};

use crate::convert::{problem, slice_mut, text};
use crate::fence::{Failure, fence};
use crate::layout::Problem;
use placement::{Balancer, Policy, Prices, Trigger};

/// Makes a handle; see the header.
///
/// # Safety
/// Each pointer is null or points to what the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_balancer_new(
    policy: *const c_char,
    trigger: *const c_char,
    mesh_life: f64,
    balancer: *mut *mut Balancer,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (policy, trigger) =
            unsafe { (text(policy, "the policy")?, text(trigger, "the trigger")?) };
        let (policy, trigger): (Policy, Trigger) = (policy.parse()?, trigger.parse()?);
        // SAFETY: the caller promises room for one pointer.
        let room = unsafe { slice_mut(balancer, 1, "the handle of the balancer")? };
        let made = Balancer::new(policy, mesh_life, 0).with_triggers(vec![trigger]);
        room[0] = Box::into_raw(Box::new(made));
        Ok(())
    })
}

/// Another policy from now on; see the header.
///
/// # Safety
/// `balancer` is null or a handle without another user now; `policy` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_balancer_use(
    balancer: *mut Balancer,
    policy: *const c_char,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (balancer, policy) = unsafe { (handle(balancer)?, text(policy, "the policy")?) };
        balancer.use_policy(policy.parse()?);
        Ok(())
    })
}

/// Decides after a step; see the header.
///
/// # Safety
/// `balancer` is null or a handle without another user now; each other pointer is null or points to as many valid
/// entries as the header asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_balancer_step(
    balancer: *mut Balancer,
    step: u64,
    mesh_changed: c_int,
    given: *const Problem,
    placing: f64,
    per_byte: f64,
    owners: *mut u32,
    n_owners: usize,
    placed: *mut c_int,
) -> c_int {
    fence(|| {
        // SAFETY: the caller promises that non-null pointers are valid; null is refused inside.
        let (balancer, problem) = unsafe { (handle(balancer)?, problem(given)?) };
        Failure::length("the owners", problem.n_blocks(), n_owners)?;
        // SAFETY: the caller promises room for one number.
        let answer = unsafe { slice_mut(placed, 1, "the answer")? };
        let present = problem.owners().map(<[u32]>::to_vec);
        let prices = Prices { placing, per_byte };
        let found = balancer.step(step, mesh_changed != 0, problem, prices)?;
        answer[0] = c_int::from(found.is_some());
        let found = found.map(|proposal| proposal.owners).or(present);
        // SAFETY: the caller promises room for `n_owners` entries; the inputs are no longer used.
        let room = unsafe { slice_mut(owners, n_owners, "the owners")? };
        room.copy_from_slice(&found.unwrap_or_default());
        Ok(())
    })
}

/// Ends a handle; see the header.
///
/// # Safety
/// `balancer` is null or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colltune_placement_balancer_free(balancer: *mut Balancer) {
    if !balancer.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller gives it back once.
        drop(unsafe { Box::from_raw(balancer) });
    }
}

/// The balancer behind a handle.
///
/// # Safety
/// `balancer` is null or a handle without another user during `'a`.
unsafe fn handle<'a>(balancer: *mut Balancer) -> Result<&'a mut Balancer, Failure> {
    // SAFETY: by the caller's promise.
    unsafe { balancer.as_mut() }.ok_or_else(|| Failure::null("the handle of the balancer"))
}
