//! Neighbour exchanges: every rank sends and receives what a plan says, in rounds.
//!
//! The plan is a JSON file: `{"ranks": 4, "patterns": [{"name": "lpt", "messages": [[0, 1, 2048]]}]}`, one
//! `[from, to, bytes]` for each message of a round. A round posts all receives, then all sends, and
//! waits for them. What is counted is what MPI says has arrived, and every message's bytes are looked
//! at: each message is filled with a distinct number.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::time::Instant;

use colltune_mpi as ffi;
use serde_json::{Value, json};

use crate::mpi::{self, Comm};

#[derive(clap::Args)]
pub struct Arguments {
    /// The messages to send.
    #[arg(long)]
    plan: PathBuf,
    /// Timed rounds of each pattern.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Rounds before the timed ones.
    #[arg(long, default_value_t = 20)]
    warmup: usize,
}

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let plan = read(&arguments.plan, world.n_ranks).unwrap_or_else(|problem| {
        eprintln!("colltune-mpibench: failed to {problem}");
        mpi::abort(1)
    });
    let mut wrong = 0;
    let patterns: Vec<Value> = plan
        .iter()
        .map(|pattern| {
            let mut exchange = Exchange::new(pattern, world.rank);
            let result = measure(arguments, world, &mut exchange);
            wrong += exchange.wrong;
            let counts = exchange.counts(world);
            json!({
                "name": pattern.name, "time_ns": result, "sends": counts[0], "bytes_sent": counts[1],
                "receives": counts[2], "bytes_received": counts[3],
            })
        })
        .collect();
    let wrong = world.maxima(&[wrong as f64])[0] as u64;
    json!({ "mode": "neighbours", "rounds": arguments.rounds, "patterns": patterns, "wrong": wrong })
}

/// The time of each round: that of its slowest rank.
fn measure(arguments: &Arguments, world: Comm, exchange: &mut Exchange) -> Vec<f64> {
    for _ in 0..arguments.warmup {
        exchange.round();
    }
    let times: Vec<f64> = (0..arguments.rounds)
        .map(|_| {
            world.synchronise();
            let start = Instant::now();
            exchange.round();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    world.maxima(&times)
}

/// The messages of one round, the same on all ranks: from, to, and bytes.
pub struct Pattern {
    pub name: String,
    pub messages: Vec<(usize, usize, usize)>,
}

fn read(path: &Path, n_ranks: usize) -> Result<Vec<Pattern>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("read {}: {error}", path.display()))?;
    let plan: Value =
        serde_json::from_str(&text).map_err(|error| format!("read {}: {error}", path.display()))?;
    if plan["ranks"].as_u64() != Some(n_ranks as u64) {
        return Err(format!(
            "use {}: it is for {} ranks, not {n_ranks}",
            path.display(),
            plan["ranks"]
        ));
    }
    let patterns = plan["patterns"].as_array();
    let patterns =
        patterns.ok_or_else(|| format!("read {}: it has no patterns", path.display()))?;
    patterns
        .iter()
        .map(|pattern| of(pattern, path, n_ranks))
        .collect()
}

fn of(pattern: &Value, path: &Path, n_ranks: usize) -> Result<Pattern, String> {
    let name = pattern["name"].as_str().unwrap_or("").to_owned();
    let message = |message: &Value| {
        let part = |index: usize| message[index].as_u64().map(|v| v as usize);
        let (from, to, bytes) = (part(0)?, part(1)?, part(2)?);
        let is_valid = from < n_ranks && to < n_ranks && from != to && bytes <= 1 << 30;
        is_valid.then_some((from, to, bytes))
    };
    let messages = pattern["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let read: Option<Vec<_>> = messages.iter().map(message).collect();
    let messages = read.ok_or_else(|| {
        format!(
            "use {}: a message of {name} is no [from, to, bytes]",
            path.display()
        )
    })?;
    Ok(Pattern { name, messages })
}

/// One rank's part of a pattern.
pub struct Exchange {
    /// Peer, buffer, and the number that fills it.
    sends: Vec<(c_int, Vec<u8>, u8)>,
    receives: Vec<(c_int, Vec<u8>, u8)>,
    bytes_sent: u64,
    bytes_received: u64,
    rounds: u64,
    wrong: u64,
}

impl Exchange {
    pub fn new(pattern: &Pattern, rank: usize) -> Exchange {
        let mut exchange = Exchange {
            sends: Vec::new(),
            receives: Vec::new(),
            bytes_sent: 0,
            bytes_received: 0,
            rounds: 0,
            wrong: 0,
        };
        for (index, &(from, to, bytes)) in pattern.messages.iter().enumerate() {
            let fill = (index % 251) as u8 + 1;
            if from == rank {
                exchange.sends.push((to as c_int, vec![fill; bytes], fill));
            }
            if to == rank {
                exchange
                    .receives
                    .push((from as c_int, vec![0; bytes], fill));
            }
        }
        exchange
    }

    /// Sends and receives everything once.
    pub fn round(&mut self) {
        let n = self.receives.len() + self.sends.len();
        // SAFETY: reading constant handles.
        let (world, datatype, null) = unsafe { (ffi::COMM_WORLD, ffi::UINT8_T, ffi::REQUEST_NULL) };
        let mut requests: Vec<ffi::MPI_Request> = vec![null; n];
        // SAFETY: a status is plain data, for which zeroes are a valid value; MPI fills it in.
        let mut statuses: Vec<ffi::MPI_Status> =
            (0..n).map(|_| unsafe { std::mem::zeroed() }).collect();
        let (to_receive, to_send) = requests.split_at_mut(self.receives.len());
        for ((from, buffer, _), request) in self.receives.iter_mut().zip(to_receive) {
            // SAFETY: the buffer holds as many bytes as are announced, and neither it nor the request is
            // touched before the wait below. Messages of one pair match in the order of the plan.
            let code = unsafe {
                ffi::MPI_Irecv(
                    buffer.as_mut_ptr().cast(),
                    buffer.len() as c_int,
                    datatype,
                    *from,
                    0,
                    world,
                    request,
                )
            };
            assert!(code == 0, "MPI_Irecv returned error code {code}");
        }
        for ((to, buffer, _), request) in self.sends.iter().zip(to_send) {
            // SAFETY: as above; the buffer is only read.
            let code = unsafe {
                ffi::MPI_Isend(
                    buffer.as_ptr().cast(),
                    buffer.len() as c_int,
                    datatype,
                    *to,
                    0,
                    world,
                    request,
                )
            };
            assert!(code == 0, "MPI_Isend returned error code {code}");
        }
        // SAFETY: `n` requests and as many statuses, all started above.
        let code =
            unsafe { ffi::MPI_Waitall(n as c_int, requests.as_mut_ptr(), statuses.as_mut_ptr()) };
        assert!(code == 0, "MPI_Waitall returned error code {code}");
        self.account(&statuses);
    }

    /// Counts what has arrived; in the first round every byte is looked at.
    fn account(&mut self, statuses: &[ffi::MPI_Status]) {
        self.bytes_sent += self
            .sends
            .iter()
            .map(|(_, buffer, _)| buffer.len() as u64)
            .sum::<u64>();
        for ((_, buffer, fill), status) in self.receives.iter_mut().zip(statuses) {
            let mut bytes: c_int = 0;
            // SAFETY: the status is that of a finished receive, the result is valid for writing.
            let code = unsafe { ffi::MPI_Get_count(status, ffi::UINT8_T, &mut bytes) };
            assert!(code == 0, "MPI_Get_count returned error code {code}");
            self.bytes_received += bytes as u64;
            if self.rounds == 0 && buffer.iter().any(|byte| byte != fill) {
                self.wrong += 1;
            }
        }
        self.rounds += 1;
    }

    /// For each rank: sends, bytes sent, receives, and bytes received in a round.
    fn counts(&self, world: Comm) -> [Vec<u64>; 4] {
        let rounds = self.rounds.max(1);
        let own = [
            self.sends.len() as u64,
            self.bytes_sent / rounds,
            self.receives.len() as u64,
            self.bytes_received / rounds,
        ];
        own.map(|value| {
            let mut values = vec![0.0; world.n_ranks];
            values[world.rank] = value as f64;
            world
                .maxima(&values)
                .into_iter()
                .map(|value| value as u64)
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_takes_its_own_messages_in_the_order_of_the_plan() {
        let pattern =
            json!({ "name": "p", "messages": [[0, 1, 5], [1, 0, 3], [0, 1, 0], [2, 0, 7]] });
        let pattern = of(&pattern, Path::new("plan.json"), 3).unwrap();
        let exchange = Exchange::new(&pattern, 0);
        let peers = |list: &[(c_int, Vec<u8>, u8)]| {
            list.iter()
                .map(|(p, b, _)| (*p, b.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(peers(&exchange.sends), [(1, 5), (1, 0)]);
        assert_eq!(peers(&exchange.receives), [(1, 3), (2, 7)]);
    }

    #[test]
    fn a_message_that_cannot_be_is_refused() {
        for message in [
            json!([0, 3, 1]),
            json!([1, 1, 1]),
            json!([0, 1]),
            json!(["a", 1, 1]),
            json!([0, 1, -1]),
        ] {
            let pattern = json!({ "name": "p", "messages": [message] });
            let error = of(&pattern, Path::new("plan.json"), 3).err().unwrap();
            assert!(error.contains("plan.json"), "{error}");
        }
    }
}
