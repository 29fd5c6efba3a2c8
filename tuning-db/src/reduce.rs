//! From the records of a run to what they say of each variant.
//!
//! All records of a run come together: those of several ranks are one call, and its time is the mean over the ranks.
//! Where the ranks agreed on the mean over all of them, that counts; else the recording ranks stand for all. Nothing
//! here trusts a clock: times are kept as they were measured, and what follows from two clocks is never below zero.

use std::collections::{BTreeMap, HashMap, HashSet};

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::record::Manner;
use colltune_core::select::mix;
use colltune_models::evidence::{
    COPY, COPY_NAME, Call, Evidence, Reduced as Halves, Shape, reduce_with_copies,
};
use parquet::data_type::ByteArray;

use crate::partition::Columns;
use crate::passed;

/// Numbers for the names of variants: places in the catalogue, and behind them the names that it does not know.
pub(crate) struct Names {
    names: BTreeMap<Collective, Vec<String>>,
    numbers: HashMap<(Collective, String), u16>,
    /// What ran before it was known to do what no call allows: its evidence is forgotten.
    barred: HashSet<(Collective, String)>,
}

/// One record, with its variant's name as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observation {
    pub comm: u64,
    pub call: u64,
    pub shape: Shape,
    pub variant: u16,
    /// With which it was drawn; 0 where that is unknown.
    pub probability: f64,
    /// Flags of its class.
    pub class: u8,
    pub manner: Manner,
    pub clock: u64,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub shift_ns: Option<u64>,
    pub after_ns: Option<u64>,
    pub mean_time_ns: Option<u64>,
    pub mean_shift_ns: Option<u64>,
    pub mean_after_ns: Option<u64>,
    pub work_ns: Option<u64>,
}

/// What one run says of one variant at one shape, or of calls that passed through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub manner: Manner,
    /// Of calls that passed through only the number of records and, as the level, their median time.
    pub evidence: Evidence,
    /// The time of its calls, mean over the ranks, in sum.
    pub seconds: f64,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reduced {
    pub rows: Vec<Row>,
    pub records: u64,
    pub calls: u64,
    /// A check word over all that was reduced.
    pub content: u64,
}

impl Names {
    pub fn new(library: Library) -> Names {
        let of = |collective| {
            let variants = catalogue::variants(library, collective);
            let names: Vec<String> = variants.iter().map(|one| one.name.to_string()).collect();
            (collective, names)
        };
        let names: BTreeMap<_, Vec<String>> = Collective::ALL.into_iter().map(of).collect();
        let mut numbers = HashMap::new();
        for (&collective, names) in &names {
            for (name, number) in names.iter().zip(0..) {
                numbers.insert((collective, name.clone()), number);
            }
        }
        let all = catalogue::all(library).into_iter();
        let barred = all
            .filter(catalogue::Variant::is_barred)
            .map(|one| (one.collective, one.name.to_string()));
        Names {
            names,
            numbers,
            barred: barred.collect(),
        }
    }

    /// No names at all.
    pub fn empty() -> Names {
        let (names, numbers, barred) = Default::default();
        Names {
            names,
            numbers,
            barred,
        }
    }

    /// How many names each collective has.
    pub fn lengths(&self) -> [usize; Collective::ALL.len()] {
        Collective::ALL.map(|collective| self.names.get(&collective).map_or(0, Vec::len))
    }

    /// The number of a name, a new one where it has none; `None` for what is barred, and once there are no more numbers.
    pub fn number(&mut self, collective: Collective, name: &str) -> Option<u16> {
        if self.barred.contains(&(collective, name.to_owned())) {
            return None;
        }
        if let Some(&number) = self.numbers.get(&(collective, name.to_owned())) {
            return Some(number);
        }
        let names = self.names.entry(collective).or_default();
        let number = u16::try_from(names.len()).ok()?;
        names.push(name.to_owned());
        self.numbers.insert((collective, name.to_owned()), number);
        Some(number)
    }

    pub fn name(&self, collective: Collective, number: u16) -> &str {
        if number == COPY {
            return COPY_NAME;
        }
        let names = self.names.get(&collective);
        let name = names.and_then(|names| names.get(usize::from(number)));
        name.map_or("", String::as_str)
    }
}

/// What a pair of names stands for, if anything.
type Numbered = Option<(Collective, u16)>;

/// Reads the rows of a partition as observations.
pub(crate) struct Reader<'a> {
    columns: &'a Columns,
    names: &'a mut Names,
    last: Option<(ByteArray, ByteArray, Numbered)>,
}

impl<'a> Reader<'a> {
    pub fn new(columns: &'a Columns, names: &'a mut Names) -> Reader<'a> {
        Reader {
            columns,
            names,
            last: None,
        }
    }

    /// `None` for a row that names a collective of which this colltune has never heard.
    pub fn observation(&mut self, row: usize) -> Option<Observation> {
        let (collective, variant) = self.variant(row)?;
        let columns = self.columns;
        Some(Observation {
            comm: columns.comm[row],
            call: columns.call[row],
            shape: Shape {
                collective,
                message_bytes: columns.message_bytes[row],
                nodes: columns.nodes[row],
                ppn: columns.ppn[row],
                n_ranks: columns.n_ranks[row],
            },
            variant,
            probability: columns.probability[row],
            class: columns.class[row],
            manner: columns.manner[row],
            clock: columns.clock[row],
            start_ns: columns.start_ns[row],
            duration_ns: columns.duration_ns[row],
            shift_ns: columns.shift_ns[row],
            after_ns: columns.after_ns[row],
            mean_time_ns: columns.mean_time_ns[row],
            mean_shift_ns: columns.mean_shift_ns[row],
            mean_after_ns: columns.mean_after_ns[row],
            work_ns: columns.work_ns[row],
        })
    }

    fn variant(&mut self, row: usize) -> Numbered {
        let (collective, variant) = (&self.columns.collective[row], &self.columns.variant[row]);
        if let Some((a, b, found)) = &self.last
            && (a, b) == (collective, variant)
        {
            return *found;
        }
        let text = |word: &ByteArray| String::from_utf8_lossy(word.data()).into_owned();
        let found = Collective::from_name(&text(collective))
            .and_then(|of| Some((of, self.names.number(of, &text(variant))?)));
        self.last = Some((collective.clone(), variant.clone(), found));
        found
    }
}

/// Reduces the records of one run, in an order that depends on nothing but the records.
pub(crate) fn reduce_run(mut observations: Vec<Observation>) -> Reduced {
    sort(&mut observations);
    let content = observations.iter().fold(0, |word, one| {
        let times = mix(one.duration_ns, one.mean_time_ns.unwrap_or(u64::MAX));
        mix(word ^ times, mix(one.comm, one.call))
    });
    let records = observations.len() as u64;
    let (blocking, passing) = by_manner(&mut observations);
    let (calls, passing) = (calls_of_sorted(blocking), passing_rows(passing));
    drop(observations);
    let mut seconds: HashMap<(Shape, u16), f64> = HashMap::new();
    for call in &calls {
        *seconds.entry((call.shape, call.variant)).or_default() += call.time_ns / 1e9;
    }
    let n_calls = calls.len() as u64;
    let row = |evidence: Evidence| Row {
        manner: Manner::Blocking,
        // The whole time of a variant stands once, though it may have several components.
        seconds: seconds
            .remove(&(evidence.shape, evidence.variant))
            .unwrap_or(0.0),
        evidence,
    };
    let Halves { evidence, copies } = reduce_with_copies(calls);
    let mut rows: Vec<Row> = evidence.into_iter().chain(copies).map(row).collect();
    rows.extend(passing);
    Reduced {
        rows,
        records,
        calls: n_calls,
        content,
    }
}

fn sort(observations: &mut [Observation]) {
    observations.sort_unstable_by_key(|one| {
        let what = (one.comm, one.call, one.shape, one.variant, one.manner);
        (what, one.clock, one.start_ns, one.duration_ns)
    });
}

/// Blocking calls, in their order, and those that passed through. In place: a run may have most of what memory holds.
fn by_manner(observations: &mut [Observation]) -> (&[Observation], &[Observation]) {
    let mut blocking = 0;
    for place in 0..observations.len() {
        if observations[place].manner == Manner::Blocking {
            observations.swap(blocking, place);
            blocking += 1;
        }
    }
    observations.split_at(blocking)
}

/// The calls of one run.
pub(crate) fn calls(mut observations: Vec<Observation>) -> Vec<Call> {
    sort(&mut observations);
    calls_of_sorted(&observations)
}

/// Sorted observations of one call stand together.
fn calls_of_sorted(observations: &[Observation]) -> Vec<Call> {
    let same = |a: &Observation, b: &Observation| {
        (a.comm, a.call, a.shape, a.variant) == (b.comm, b.call, b.shape, b.variant)
    };
    observations.chunk_by(same).map(call).collect()
}

fn call(ranks: &[Observation]) -> Call {
    let first = &ranks[0];
    let mean = |value: &dyn Fn(&Observation) -> Option<u64>| {
        let (n, sum) = ranks
            .iter()
            .filter_map(value)
            .fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value as f64));
        (n > 0.0).then(|| sum / n)
    };
    let time_ns = mean(&|one| one.mean_time_ns).or_else(|| mean(&|one| Some(one.duration_ns)));
    let shift_ns = mean(&|one| one.mean_shift_ns).or_else(|| mean(&|one| one.shift_ns));
    let after_ns = mean(&|one| one.mean_after_ns).or_else(|| mean(&|one| one.after_ns));
    let work_ns = mean(&|one| one.work_ns).unwrap_or_else(|| work(ranks) as f64);
    Call {
        run: 0,
        comm: first.comm,
        index: first.call,
        shape: first.shape,
        variant: first.variant,
        probability: first.probability,
        class: ranks.iter().map(|one| one.class).max().unwrap_or(0),
        start_ns: first.start_ns,
        // Logarithms need a time.
        time_ns: time_ns.unwrap_or(1.0).max(1.0),
        shift_ns,
        after_ns,
        work_ns: work_ns.max(1.0),
    }
}

/// From the last arrival to the last departure where the ranks share a clock, else the shortest time of any rank.
fn work(ranks: &[Observation]) -> u64 {
    let shortest = ranks.iter().map(|one| one.duration_ns).min().unwrap_or(0);
    let one_clock = ranks.iter().all(|one| one.clock == ranks[0].clock);
    if ranks[0].shape.nodes > 1 || !one_clock {
        return shortest;
    }
    let arrival = ranks.iter().map(|one| one.start_ns).max().unwrap_or(0);
    let ends = ranks
        .iter()
        .map(|one| one.start_ns.saturating_add(one.duration_ns));
    ends.max()
        .unwrap_or(0)
        .saturating_sub(arrival)
        .min(shortest.max(1))
}

/// Calls that passed through, by powers of two of their sizes: how many records, and their median time.
fn passing_rows(observations: &[Observation]) -> Vec<Row> {
    let mut durations: BTreeMap<(Shape, Manner), Vec<u64>> = BTreeMap::new();
    for one in observations {
        let [message_bytes, _] = passed::bounds(one.shape.message_bytes);
        let shape = Shape {
            message_bytes,
            n_ranks: 0,
            ..one.shape
        };
        durations
            .entry((shape, one.manner))
            .or_default()
            .push(one.duration_ns);
    }
    let row = |((shape, manner), mut durations): ((Shape, Manner), Vec<u64>)| {
        let middle = durations.len() / 2;
        let seconds = durations.iter().map(|&ns| ns as f64 / 1e9).sum();
        let (_, &mut median_ns, _) = durations.select_nth_unstable(middle);
        let evidence = Evidence {
            calls: durations.len() as u64,
            level_ns: median_ns as f64,
            ..Evidence::nothing(0, shape, 0)
        };
        Row {
            manner,
            evidence,
            seconds,
        }
    };
    durations.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_call_may_run_any_more_is_forgotten() {
        let mut names = Names::new("openmpi-4.1.4".parse().unwrap());
        let mut number = |name| names.number(Collective::Bcast, name);
        assert_eq!(number("native:scatter_allgather"), None);
        assert_eq!(number("native:scatter_allgather_ring"), None);
        assert!(number("native:pipeline").is_some());
        assert!(number("of another version").is_some());
    }
}
