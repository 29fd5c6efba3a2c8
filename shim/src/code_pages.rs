//! The pages of our own code that the start alone has needed.
//!
//! A rank counts every page of the library's file that it has looked at, though all ranks of a node share it, and some
//! systems add that up over the ranks. Linux takes the neighbours of each page along, so behind the start that is most of
//! the code, of which calls need little.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Takes them out of this process's page table. They stay in memory, and what is needed again is found there.
/// Breakpoints that a debugger has set in our code are lost.
pub fn let_go() {
    // SAFETY: the callback has the right signature and keeps nothing that it is given.
    unsafe { libc::dl_iterate_phdr(Some(let_go_of), null_mut()) };
}

/// Does it in the loaded object that this function belongs to; then the others need not be looked at.
unsafe extern "C" fn let_go_of(object: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the loader hands over a valid object with so many headers.
    let (start, headers) = unsafe {
        let object = &*object;
        let count = usize::from(object.dlpi_phnum);
        (
            object.dlpi_addr as usize,
            std::slice::from_raw_parts(object.dlpi_phdr, count),
        )
    };
    let loaded = || {
        headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
    };
    let extent = |header: &libc::Elf64_Phdr| {
        let from = start + header.p_vaddr as usize;
        (from, from + header.p_memsz as usize)
    };
    let here = let_go as *const () as usize;
    let holds = |header: &libc::Elf64_Phdr| {
        let (from, to) = extent(header);
        (from..to).contains(&here)
    };
    if !loaded().any(holds) {
        return 0;
    }
    // SAFETY: it only asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize;
    // What may ever be written is no longer what stands in the file.
    for header in loaded().filter(|header| header.p_flags & libc::PF_W == 0) {
        let (from, to) = extent(header);
        let (from, to) = (from.next_multiple_of(page), to / page * page);
        if from < to {
            // SAFETY: the pages are mapped from the library's file and never written, so each is found there again.
            unsafe { libc::madvise(from as *mut c_void, to - from, libc::MADV_DONTNEED) };
        }
    }
    1
}
