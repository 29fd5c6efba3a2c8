//! From the caller's structures to the library's, and back.

use std::ffi::{CStr, c_char};

use crate::fence::Failure;
use crate::layout::{CERTIFICATE_SIZE_MIN, Certificate, PROBLEM_SIZE_MIN, Problem, Traffic};
use placement::certificate::Contiguity;
use placement::{Graph, Limits, Matching, Memory, Mesh, Octant, Proof};

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
/// `pointer` is null or points to `n` valid entries, which do not change during `'a`.
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
/// `pointer` is null or points to `n` valid entries, which have no other user during `'a`.
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

/// The caller's structure behind `pointer`, whatever version of the header it was compiled with.
///
/// An older caller's structure ends before ours: what it lacks is zero, which every field takes for "not given". A
/// newer one's goes on behind ours: what we do not know must be zero, since it would be ignored.
///
/// # Safety
/// `pointer` is null or points to a structure that begins with its size and is as large as it says; all its bits zero
/// are a valid `T`.
unsafe fn versioned<T: Copy>(pointer: *const T, size_min: usize, what: &str) -> Result<T, Failure> {
    // SAFETY: by the caller's promise.
    let size = unsafe { size_of_caller(pointer, size_min, what)? };
    let bytes = pointer.cast::<u8>();
    let known = size.min(size_of::<T>());
    // SAFETY: the structure is `size` bytes long by the caller's promise.
    let unknown = unsafe { slice(bytes.add(known), size - known, what)? };
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(Failure::value(format!(
            "use {what}: the caller was compiled with a newer header and sets what this library does not know; \
             its struct_size is {size}, this library's is {}",
            size_of::<T>()
        )));
    }
    let mut ours = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are in both structures, and zeros are a valid `T`.
    unsafe {
        ours.as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes, known);
        Ok(ours.assume_init())
    }
}

/// What the structure says that its size is.
///
/// # Safety
/// `pointer` is null or points to a structure that begins with its size.
unsafe fn size_of_caller<T>(
    pointer: *const T,
    size_min: usize,
    what: &str,
) -> Result<usize, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    check_array(pointer, 1, what)?;
    // SAFETY: not null and aligned; the size comes first in every version of the structure.
    let size = unsafe { pointer.cast::<usize>().read() };
    // No version will have a structure of a mebibyte: such a size was never set.
    match (size_min..1 << 20).contains(&size) {
        true => Ok(size),
        false => Err(Failure::value(format!(
            "use {what}: its struct_size is {size}, below the {size_min} of the first version or beyond all measure; \
             start from the header's initializer"
        ))),
    }
}

/// How much of a certificate the caller has room for, if there is one to be written.
///
/// # Safety
/// As for the header: null, or a structure that begins with its size.
pub unsafe fn check_certificate(certificate: *const Certificate) -> Result<usize, Failure> {
    match certificate.is_null() {
        true => Ok(0),
        // SAFETY: by the caller's promise.
        false => unsafe { size_of_caller(certificate, CERTIFICATE_SIZE_MIN, "the certificate") },
    }
}

/// Writes as much of a certificate as the caller's version has; its own `struct_size` stays.
///
/// # Safety
/// `to` points to `size` bytes, which [`check_certificate`] has found.
pub unsafe fn write_certificate(to: *mut Certificate, size: usize, judged: &Certificate) {
    let known = size.min(size_of::<Certificate>());
    let first = size_of::<usize>();
    // SAFETY: both have `known` bytes; the first is the caller's own size.
    unsafe {
        let from = (&raw const *judged).cast::<u8>();
        to.cast::<u8>()
            .add(first)
            .copy_from_nonoverlapping(from.add(first), known - first);
    }
}

/// The library's problem.
///
/// # Safety
/// As for the header: null, or a structure whose arrays have the lengths that it tells.
pub unsafe fn problem<'a>(problem: *const Problem) -> Result<placement::Problem<'a>, Failure> {
    // SAFETY: by the caller's promise.
    let given = unsafe { versioned(problem, PROBLEM_SIZE_MIN, "the problem")? };
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
        .with_ranks_per_node(given.ranks_per_node.max(1))?;
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
    // SAFETY: as above; as many speeds as ranks.
    if let Some(speeds) = unsafe { optional(given.speeds, given.ranks as usize, "the speeds")? } {
        found = found.with_speeds(speeds)?;
    }
    if !given.memory_of_blocks.is_null() {
        // SAFETY: as above; one for each block and one for each rank.
        let (of_blocks, of_ranks) = unsafe {
            (
                slice(given.memory_of_blocks, n, "the memory of the blocks")?,
                slice(
                    given.memory_of_ranks,
                    given.ranks as usize,
                    "the memory of the ranks",
                )?,
            )
        };
        found = found.with_memory(Memory {
            of_blocks,
            of_ranks,
        })?;
    }
    found = found.with_matching(match given.matching {
        0 => Matching::KeepOrder,
        1 => Matching::Off,
        2 => Matching::Free,
        other => {
            return Err(Failure::value(format!(
                "use the matching {other}: it is 0, 1 or 2"
            )));
        }
    });
    Ok(found.with_limits(Limits {
        blocks_per_rank: Some(given.blocks_per_rank_max).filter(|&most| most > 0),
        bytes_per_block: given.bytes_per_block,
    })?)
}

/// A mesh without a problem, held to the rules of a problem's.
pub fn check_mesh(dimensions: u8, octants: &[Octant]) -> Result<Mesh<'_>, Failure> {
    let mesh = Mesh {
        dimensions,
        root_level: 0,
        octants,
    };
    placement::Problem::new(&vec![0.0; octants.len()], 1)?.with_mesh(mesh)?;
    Ok(mesh)
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
        ranks_over_memory: judged.memory.unwrap_or_default().ranks_over,
        over_memory_max: judged.memory.unwrap_or_default().over_max,
    }
}
