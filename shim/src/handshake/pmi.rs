//! The name service of Slurm's PMI-1, as `srun --mpi=pmi2` has it for MPICH.
//!
//! MPICH cannot use it: it waits for `rc=0` where Slurm answers `info=ok`, so its own MPI_Publish_name fails though
//! the name is there. Between two requests of the library's the socket is idle, and each request has one answer. So
//! ours are sent in between, in MPI_Init alone, and their answers are read to the end before the library goes on.

use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use crate::handshake::board::{Board, with_spaces, without_spaces};

const LENGTH_MAX: usize = 255;
/// Longer than any answer to what is asked here.
const ANSWER_MAX: usize = 4096;

pub struct Pmi {
    socket: c_int,
    job: String,
}

impl Pmi {
    /// `socket` is the library's connection with the process manager, `job` the step's name.
    pub fn new(socket: c_int, job: String) -> Pmi {
        Pmi { socket, job }
    }

    fn service(&self, what: &str) -> String {
        format!("colltune-{}-{what}", self.job)
    }

    fn ask(&self, request: &str) -> Option<String> {
        // SAFETY: the descriptor stays the library's: it is not closed here, and only read and written.
        let stream = unsafe { File::from_raw_fd(self.socket) };
        let mut stream = ManuallyDrop::new(stream);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        let mut byte = [0];
        // Byte by byte, because what follows the line end is not ours.
        while answer.len() < ANSWER_MAX {
            match stream.read(&mut byte) {
                Ok(1) if byte[0] == b'\n' => return String::from_utf8(answer).ok(),
                Ok(1) => answer.push(byte[0]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
        None
    }
}

/// The value of `key` in `cmd=lookup_result info=ok port=...`.
fn value<'a>(answer: &'a str, key: &str) -> Option<&'a str> {
    answer
        .split(' ')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

fn is_well(answer: &str) -> bool {
    value(answer, "info") == Some("ok") || value(answer, "rc") == Some("0")
}

impl Board for Pmi {
    fn publish(&self, what: &str, text: &str) -> bool {
        let service = self.service(what);
        let port = without_spaces(text, LENGTH_MAX);
        let request = format!("cmd=publish_name service={service} port={port}\n");
        self.ask(&request).is_some_and(|answer| is_well(&answer))
    }

    fn lookup(&self, _: u32, what: &str) -> Option<String> {
        let request = format!("cmd=lookup_name service={}\n", self.service(what));
        let answer = self.ask(&request)?;
        is_well(&answer)
            .then(|| value(&answer, "port").map(with_spaces))
            .flatten()
    }

    fn withdraw(&self, what: &str, _: &str) {
        self.ask(&format!(
            "cmd=unpublish_name service={}\n",
            self.service(what)
        ));
    }
}
