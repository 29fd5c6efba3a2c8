//! Ranks that are stopped again and again, as a throttled or shared processor does it.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Stops some ranks of a job for a share of the time, until it is asked what it did.
#[derive(Debug)]
pub struct DutyCycle {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<[Duration; 2]>,
}

/// How long the job's processes are looked for.
const APPEAR: Duration = Duration::from_secs(20);

impl DutyCycle {
    /// Of the ranks `ranks` of a job of Open MPI whose command line holds `mark`: they run for `runs` on the average,
    /// stand for `stands`, and so on. How long they run is drawn from an exponential distribution: a fixed period would
    /// fall into step with the program, and find it waiting each time.
    pub fn start(mark: &str, ranks: &[usize], [runs, stands]: [Duration; 2]) -> DutyCycle {
        let ends = Arc::new(AtomicBool::new(false));
        let (mark, ranks, told) = (mark.to_owned(), ranks.to_vec(), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            // Ranks may be real-time processes themselves: who stops them must come before them.
            be_punctual();
            let processes = appear(&mark, &ranks, &told);
            // All get the signal, also where the first one has ended already: none may be left standing.
            let tell = |signal| {
                let told = processes
                    .iter()
                    .filter(|&&one| kill_process(one, signal).is_ok());
                told.count() == processes.len()
            };
            let mut spent = [Duration::ZERO; 2];
            let mut since = Instant::now();
            let mut next = since;
            let mut random = Random::new();
            while !told.load(Ordering::Relaxed) {
                let runs = runs.mul_f64(random.exponential());
                for (nth, (span, signal)) in [(runs, Signal::STOP), (stands, Signal::CONT)]
                    .into_iter()
                    .enumerate()
                {
                    next += span;
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    if !tell(signal) {
                        tell(Signal::CONT);
                        return spent;
                    }
                    let now = Instant::now();
                    spent[nth] += now - since;
                    since = now;
                }
            }
            spent
        });
        DutyCycle { ends, thread }
    }

    /// Ends it; how many times as long as without the ranks' work took, by the time that they ran and stood.
    pub fn factor(self) -> f64 {
        self.ends.store(true, Ordering::Relaxed);
        let [ran, stood] = self.thread.join().expect("it ends");
        assert!(ran > Duration::ZERO, "the ranks were never found");
        1.0 + stood.as_secs_f64() / ran.as_secs_f64()
    }
}

/// Numbers that repeat themselves from run to run: xorshift64* (Vigna, 2016).
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// With a mean of 1.
    fn exponential(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        -((word as f64 + 0.5) / (1u64 << 53) as f64).ln()
    }
}

/// Real-time priority above that of ranks, where that is allowed.
fn be_punctual() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let thread = thread.file_name().unwrap_or_default();
    let mut command = Command::new("chrt");
    command.args(["-f", "-p", "50"]).arg(thread);
    let _ = command.stderr(Stdio::null()).status();
}

/// The processes of the ranks, when all of them are there.
fn appear(mark: &str, ranks: &[usize], ends: &AtomicBool) -> Vec<Pid> {
    let deadline = Instant::now() + APPEAR;
    while Instant::now() < deadline && !ends.load(Ordering::Relaxed) {
        let found = processes(mark, ranks);
        if found.len() == ranks.len() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Vec::new()
}

fn processes(mark: &str, ranks: &[usize]) -> Vec<Pid> {
    let wanted: Vec<String> = ranks
        .iter()
        .map(|rank| format!("OMPI_COMM_WORLD_RANK={rank}"))
        .collect();
    let is_rank = |process: &str| {
        let read = |file: &str| std::fs::read(format!("/proc/{process}/{file}"));
        let line = read("cmdline").unwrap_or_default();
        // Before they are our program, ranks are shells that pin them, and these have children.
        let exe = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        let name = exe.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("colltune-")
            && String::from_utf8_lossy(&line).contains(mark)
            && read("environ").is_ok_and(|all| {
                let mut words = all.split(|byte| *byte == 0);
                words.any(|word| wanted.iter().any(|one| one.as_bytes() == word))
            })
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.parse::<u32>().is_ok() && is_rank(name))
        .filter_map(|name| Pid::from_raw(name.parse().ok()?))
        .collect()
}
