//! From the caller's structures to the library's, and back.

use std::ffi::{CStr, c_char};

use crate::fence::Failure;
use crate::layout::{Certificate, Problem, Traffic};
use placement::certificate::Contiguity;
use placement::{Graph, Limits, Mesh, Proof};

/// A C string.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte and outlives `'a`.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it is not null, so it is a string by the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::value(format!("read {what}: it is not UTF-8")))
}

/// Whether an array of `n` entries can exist at `pointer`; a null one only if it is empty.
fn check_array<T>(pointer: *const T, n: usize, what: &str) -> Result<(), Failure> {
    if pointer.is_null() && n > 0 {
        return Err(Failure::null(what));
    }
    if n > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::value(format!(
            "use {what}: no memory holds {n} entries"
        )));
    }
    if !pointer.is_aligned() {
        return Err(Failure::value(format!(
            "use {what}: the pointer is not aligned"
        )));
    }
    Ok(())
}

/// An array of the caller's.
///
/// # Safety
/// `pointer` is null or points to `n` valid entries, which nobody changes during `'a`.
pub unsafe fn slice<'a, T>(pointer: *const T, n: usize, what: &str) -> Result<&'a [T], Failure> {
    check_array(pointer, n, what)?;
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, not larger than memory, and valid by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, n) })
}

/// Like [`slice`]; a null pointer means that there is none.
///
/// # Safety
/// As for [`slice`].
unsafe fn optional<'a, T>(
    pointer: *const T,
    n: usize,
    what: &str,
) -> Result<Option<&'a [T]>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: by the caller's promise.
    unsafe { slice(pointer, n, what) }.map(Some)
}

/// An array of the caller's to write to.
///
/// # Safety
/// `pointer` is null or points to `n` valid entries, which nobody else uses during `'a`.
pub unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    n: usize,
    what: &str,
) -> Result<&'a mut [T], Failure> {
    check_array(pointer.cast_const(), n, what)?;
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null, aligned, not larger than memory, and ours alone by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, n) })
}

/// The caller's structure behind `pointer`, if its size is the one that we know.
///
/// # Safety
/// `pointer` is null or points to a structure that begins with its size.
unsafe fn sized<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    check_array(pointer, 1, what)?;
    // SAFETY: not null and aligned; the size comes first in every version of the structure.
    let size = unsafe { pointer.cast::<usize>().read() };
    match size == size_of::<T>() {
        true => Ok(()),
        false => Err(Failure::value(format!(
            "use {what}: its struct_size is {size}, this library's is {}",
            size_of::<T>()
        ))),
    }
}

/// Checks a certificate that is to be written, if there is one.
///
/// # Safety
/// As for the header: null, or a structure that begins with its size.
pub unsafe fn check_certificate(certificate: *const Certificate) -> Result<(), Failure> {
    match certificate.is_null() {
        true => Ok(()),
        // SAFETY: by the caller's promise.
        false => unsafe { sized(certificate, "the certificate") },
    }
}

/// The library's problem.
///
/// # Safety
/// As for the header: null, or a structure whose arrays have the lengths that it tells.
pub unsafe fn problem<'a>(problem: *const Problem) -> Result<placement::Problem<'a>, Failure> {
    // SAFETY: by the caller's promise.
    let given = unsafe {
        sized(problem, "the problem")?;
        &*problem
    };
    let (n, edges) = (given.blocks, given.graph_edges);
    // SAFETY: by the caller's promise each array is null or as long as the structure tells.
    let (costs, octants, offsets, owners, machine) = unsafe {
        (
            slice(given.costs, n, "the costs")?,
            optional(given.octants, n, "the octants")?,
            optional(
                given.graph_offsets,
                n.saturating_add(1),
                "the graph's offsets",
            )?,
            optional(given.owners, n, "the owners")?,
            optional(given.machine, 1, "the machine")?,
        )
    };
    let mut found = placement::Problem::new(costs, given.ranks)?
        .with_ranks_per_node(given.ranks_per_node.max(1))?
        .with_threads(given.threads as usize);
    if let Some(octants) = octants {
        found = found.with_mesh(Mesh {
            dimensions: given.dimensions,
            root_level: given.root_level,
            octants,
        })?;
    }
    if let Some(offsets) = offsets {
        // SAFETY: as above; these two belong to the offsets.
        let (neighbours, bytes) = unsafe {
            (
                slice(given.graph_neighbours, edges, "the graph's neighbours")?,
                slice(given.graph_bytes, edges, "the graph's bytes")?,
            )
        };
        found = found.with_graph(Graph {
            offsets,
            neighbours,
            bytes,
        })?;
    }
    if let Some(owners) = owners {
        found = found.with_owners(owners)?;
    }
    if let Some(machine) = machine {
        found = found.with_machine(machine[0])?;
    }
    Ok(found.with_limits(Limits {
        blocks_per_rank: Some(given.blocks_per_rank_max).filter(|&most| most > 0),
        bytes_per_block: given.bytes_per_block,
    })?)
}

/// The caller's form of a certificate.
pub fn certificate_of(judged: &placement::Certificate, owners: &[u32]) -> Certificate {
    let traffic = |traffic: placement::certificate::Traffic| Traffic {
        messages: traffic.messages,
        bytes: traffic.bytes,
    };
    let migration = judged.migration.unwrap_or_default();
    Certificate {
        struct_size: size_of::<Certificate>(),
        makespan: judged.makespan,
        mean: judged.mean,
        bound: judged.bound,
        gap: judged.gap,
        optimal: match judged.optimal {
            None => 0,
            Some(Proof::LowerBound) => 1,
            Some(Proof::Policy) => 2,
        },
        contiguity: match judged.contiguity {
            Contiguity::Scattered => 0,
            Contiguity::Contiguous => 1,
            Contiguity::ContiguousOptimum => 2,
        },
        blocks_per_rank_max: judged.blocks_per_rank_max,
        same_rank: traffic(judged.locality.same_rank),
        same_node: traffic(judged.locality.same_node),
        remote: traffic(judged.locality.remote),
        curve_score: judged.locality.curve_score,
        migrated_blocks: migration.blocks,
        migrated_bytes: migration.bytes,
        hash: placement::hash(owners),
    }
}
