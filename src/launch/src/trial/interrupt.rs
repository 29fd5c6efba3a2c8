//! Signals that end this command: noted, so that it can end its jobs first and say where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use colltune_output::failure::Stopped;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Which of the signals came last; none yet.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Notes SIGINT, SIGTERM and SIGHUP from now on, but for those that this command was started to ignore (`nohup`).
    pub fn listen() -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let ignored = ignored();
        let heard = [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0);
        for signal in heard {
            signal_hook::flag::register_usize(signal, interrupt.0.clone(), signal as usize)
                .context("listen for signals")?;
        }
        Ok(interrupt)
    }

    /// The number of the signal that came, if one did.
    pub fn signal(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::SeqCst))
            .ok()
            .filter(|signal| *signal > 0)
    }
}

/// What a signal that ends this command leaves to say.
pub fn interrupted(signal: u8) -> anyhow::Error {
    anyhow::Error::new(Stopped {
        message: "interrupted; the running job was ended".to_owned(),
        code: 128u8.saturating_add(signal),
    })
}

/// The signals that this process ignores, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
