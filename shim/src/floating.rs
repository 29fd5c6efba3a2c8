//! The program's floating-point environment: its traps and its rounding are not for arithmetic of ours.
//!
//! With traps on (gfortran's -ffpe-trap, feenableexcept) a conversion that saturates would kill the
//! program; and ranks that round differently would weigh and draw differently. Sums of the program's
//! own numbers stay under its own environment.

/// Runs `work` under the default environment, and puts the program's back, raised flags included.
pub fn by_default<T>(work: impl FnOnce() -> T) -> T {
    let _program = Program(control::read());
    control::write(control::DEFAULT);
    apart(work)
}

/// Not inlined, so that no arithmetic moves across the change of the environment.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

struct Program(control::Word);

impl Drop for Program {
    fn drop(&mut self) {
        control::write(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    /// MXCSR: masks of traps, rounding, and the flags. The x87 unit is not used by code of ours.
    pub type Word = u32;
    /// All traps masked, to nearest, nothing raised.
    pub const DEFAULT: Word = 0x1f80;

    pub fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: the instruction stores four bytes at the address of a local of four bytes.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub fn write(word: Word) {
        // SAFETY: the word is one that was read or the processor's own default, so no reserved bit is set.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    /// FPCR: traps and rounding.
    pub type Word = u64;
    pub const DEFAULT: Word = 0;

    pub fn read() -> Word {
        let word: Word;
        // SAFETY: reading the register changes nothing.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
        word
    }

    pub fn write(word: Word) {
        // SAFETY: the word is one that was read or the default of the architecture.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub type Word = ();
    pub const DEFAULT: Word = ();

    pub fn read() -> Word {}

    pub fn write(_: Word) {}
}
