//! The machine under a rank: its host, the clock that it reads, and what the system did to it.

use std::collections::HashMap;
use std::fs::read_to_string;

/// The names by which ranks know whether they share a host and a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    /// One for each boot of a kernel: containers of one machine share its clock.
    pub clock: String,
}

/// What happened to this thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub core: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    /// Page faults, minor and major.
    pub faults: u64,
}

impl Place {
    pub fn here() -> Place {
        let line = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
        Place {
            host: line("/proc/sys/kernel/hostname"),
            clock: line("/proc/sys/kernel/random/boot_id"),
        }
    }

    /// As bytes for other ranks.
    pub fn encode(&self) -> Vec<u8> {
        format!("{}\n{}", self.host, self.clock).into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Place {
        let text = String::from_utf8_lossy(bytes);
        let (host, clock) = text.split_once('\n').unwrap_or((&text, ""));
        Place {
            host: host.to_owned(),
            clock: clock.to_owned(),
        }
    }
}

/// Numbers different values in the order in which they first appear.
pub fn numbered<'a>(values: impl Iterator<Item = &'a str>) -> (Vec<u64>, Vec<String>) {
    let mut different: Vec<String> = Vec::new();
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let number = |value: &'a str| {
        *numbers.entry(value).or_insert_with(|| {
            different.push(value.to_owned());
            different.len() as u64 - 1
        })
    };
    (values.map(number).collect(), different)
}

impl Usage {
    /// As the system says; zeros where it does not.
    pub fn now() -> Usage {
        let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
        let stat = read_to_string("/proc/thread-self/stat").unwrap_or_default();
        Usage {
            core: rustix::thread::sched_getcpu() as u64,
            ..parsed(&status, &stat)
        }
    }

    /// What came on top of `before`.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            core: self.core,
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            faults: self.faults.saturating_sub(before.faults),
        }
    }
}

fn parsed(status: &str, stat: &str) -> Usage {
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    // The command's name may hold spaces; what follows its bracket does not. Faults are the 10th and 12th value.
    let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let nth = |n: usize| {
        let word = after.split_whitespace().nth(n);
        word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
    };
    Usage {
        core: 0,
        voluntary: of("voluntary_ctxt_switches:"),
        involuntary: of("nonvoluntary_ctxt_switches:"),
        faults: nth(7) + nth(9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_words_are_read_whatever_the_program_is_called() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 500 0 6 0 1 2 0 0 20";
        let usage = parsed(status, stat);
        assert_eq!(
            (usage.voluntary, usage.involuntary, usage.faults),
            (12, 3, 506)
        );
        assert_eq!(parsed("", ""), Usage::default());
        let usage = Usage::now();
        assert_eq!(usage.since(usage).faults, 0);
    }

    #[test]
    fn ranks_of_one_host_have_one_number() {
        let (numbers, hosts) = numbered(["b", "a", "b"].into_iter());
        assert_eq!(
            (numbers, hosts),
            (vec![0, 1, 0], vec!["b".into(), "a".into()])
        );
        let here = Place::here();
        assert_eq!(Place::decode(&here.encode()), here);
    }
}
