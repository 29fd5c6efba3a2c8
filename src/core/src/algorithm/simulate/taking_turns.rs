//! Ranks that share cores: one runs, the others wait for their turn.
//!
//! A rank that waits looks for its message whenever its core comes to it, and then lets the next one look, as MPI
//! libraries do that yield. So a core goes round its ranks, a turn each; the first that has something to do keeps it
//! until it waits again.

use super::machine::Cores;

/// All cores, and where their ranks are.
pub struct TakingTurns {
    /// By rank its core, and its place in the round.
    places: Vec<(u32, u32)>,
    cores: Vec<Core>,
    turn_ns: f64,
}

#[derive(Clone, Default)]
struct Core {
    /// Ranks that go round.
    n_ranks: u32,
    runs: Option<u32>,
    /// When the last one that ran began to wait, and its place in the round.
    left: f64,
    last: u32,
    /// Those with something to do, and since when.
    ready: Vec<(u32, f64)>,
    promises: u64,
}

/// The core comes to a rank that has something to do at this time, unless another one is ready before.
pub struct Promise {
    pub core: u32,
    pub number: u64,
    pub at: f64,
}

impl TakingTurns {
    /// `None` where there is a core for every rank. `node_of[rank]` is the node of each rank.
    pub fn new(cores: &Cores, node_of: &[u32]) -> Option<TakingTurns> {
        let core_of = cores_of(cores, node_of)?;
        let n_cores = core_of.iter().max().map_or(0, |core| core + 1);
        let first = Core {
            left: -cores.turn_ns,
            ..Core::default()
        };
        let mut all = vec![first; n_cores as usize];
        let mut place = |core: u32| {
            let of = &mut all[core as usize];
            of.n_ranks += 1;
            (core, of.n_ranks - 1)
        };
        let places: Vec<(u32, u32)> = core_of.into_iter().map(&mut place).collect();
        for core in &mut all {
            core.last = core.n_ranks.saturating_sub(1);
        }
        let shared = all.iter().any(|core| core.n_ranks > 1);
        shared.then_some(TakingTurns {
            places,
            cores: all,
            turn_ns: cores.turn_ns,
        })
    }

    pub fn holds(&self, rank: u32) -> bool {
        let (core, _) = self.places[rank as usize];
        self.cores[core as usize].runs == Some(rank)
    }

    /// A rank has something to do from this time on.
    pub fn wake(&mut self, rank: u32, at: f64) -> Option<Promise> {
        let (core, _) = self.places[rank as usize];
        let of = &mut self.cores[core as usize];
        match of.ready.iter_mut().find(|(other, _)| *other == rank) {
            Some((_, since)) => *since = since.min(at),
            None => of.ready.push((rank, at)),
        }
        self.next(core)
    }

    /// The rank that a promise was for, if nothing came between; it runs from now on.
    pub fn take(&mut self, core: u32, promise: u64) -> Option<u32> {
        if self.cores[core as usize].promises != promise {
            return None;
        }
        let (place, _) = self.earliest(core)?;
        let of = &mut self.cores[core as usize];
        let (rank, _) = of.ready.swap_remove(place);
        of.runs = Some(rank);
        Some(rank)
    }

    /// The rank waits from this time on.
    pub fn leave(&mut self, rank: u32, at: f64) -> Option<Promise> {
        let (core, place) = self.places[rank as usize];
        let of = &mut self.cores[core as usize];
        (of.runs, of.left, of.last) = (None, at, place);
        self.next(core)
    }

    fn next(&mut self, core: u32) -> Option<Promise> {
        if self.cores[core as usize].runs.is_some() {
            return None;
        }
        let (_, at) = self.earliest(core)?;
        let of = &mut self.cores[core as usize];
        of.promises += 1;
        Some(Promise {
            core,
            number: of.promises,
            at,
        })
    }

    /// Which of the ready ranks the core comes to first, and when.
    fn earliest(&self, core: u32) -> Option<(usize, f64)> {
        let of = &self.cores[core as usize];
        let n = of.n_ranks;
        let round = f64::from(n) * self.turn_ns;
        let comes = |&(rank, since): &(u32, f64)| {
            let (_, place) = self.places[rank as usize];
            // What came while a rank ran it finds before it leaves.
            if place == of.last && since <= of.left {
                return of.left;
            }
            let turns = (place + n - of.last - 1) % n + 1;
            let first = of.left + f64::from(turns) * self.turn_ns;
            match round > 0.0 && since > first {
                true => first + ((since - first) / round).ceil() * round,
                false => first.max(since),
            }
        };
        let all = of.ready.iter().map(comes).enumerate();
        all.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// By rank its core; ranks of a node go round its cores.
fn cores_of(cores: &Cores, node_of: &[u32]) -> Option<Vec<u32>> {
    let n_nodes = node_of.iter().max().map_or(0, |node| node + 1);
    let most = node_of.len() as f64;
    if cores.per_node < 1.0 {
        let n_cores = (cores.per_node * f64::from(n_nodes)).round().max(1.0);
        let n_cores = n_cores.min(most) as u32;
        return Some(
            (0..node_of.len() as u32)
                .map(|rank| rank % n_cores)
                .collect(),
        );
    }
    if cores.per_node >= most {
        return None;
    }
    let per_node = cores.per_node as u32;
    let mut seen = vec![0u32; n_nodes as usize];
    let core = |node: &u32| {
        let local = &mut seen[*node as usize];
        *local += 1;
        node * per_node + (*local - 1) % per_node
    };
    Some(node_of.iter().map(core).collect())
}
