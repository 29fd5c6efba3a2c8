//! The state before the first step: root blocks, their first values, and the first sums.

use super::owners::first_mesh;
use super::state::{Count, Epoch, Gas, Run};
use crate::blocks::Blocks;
use crate::checksum::{self, Checksums};
use crate::compat::Compat;
use crate::cost::Slowness;
use crate::exact_sum::ExactSum;
use crate::exchange::Exchange;
use crate::exchange::face::Faces;
use crate::exchange::intake::Intake;
use crate::exchange::plan::{Plan, View, Within};
use crate::field::{Field, Meaning, Slot};
use crate::leaf::Leaf;
use crate::mesh::Mesh;
use crate::placement::topology::Topology;
use crate::ranks::Ranks;
use crate::report::Times;
use crate::settings::{Settings, Work};
use crate::shape::BlockShape;
use crate::stencil::Machine;
use crate::telemetry::Counting;

impl<'a> Run<'a> {
    pub(super) fn start(
        counting: &'a Counting<'a>,
        settings: &'a Settings,
        topology: Option<Topology>,
    ) -> Run<'a> {
        let ranks: &dyn Ranks = counting;
        let compat = settings
            .options
            .compat
            .then(|| Compat::start(ranks, settings));
        let mesh = first_mesh(settings, ranks.n_ranks());
        let blocks = first_blocks(settings, &mesh, ranks.rank());
        let faces = Faces {
            stored: settings.shape,
            ghosted: settings.ghosted(),
            reach: settings.reach(),
            crossing: settings.crossing(),
        };
        let n_blocks = mesh.len() as u64;
        let mut run = Run {
            ranks,
            counting,
            settings,
            own: Vec::new(),
            own_leaves: Vec::new(),
            parts: Default::default(),
            gas: Gas::new(settings),
            time: 0.0,
            telemetry: None,
            vtk_steps: Vec::new(),
            last_checkpoint: None,
            block_times: Vec::new(),
            steps_observed: 0,
            near_shock: Vec::new(),
            slowness: Slowness::default(),
            balancer: settings.balancer(0, &mesh),
            epoch: Epoch::default(),
            topology,
            faces,
            plan: Plan::default(),
            intake: Intake::default(),
            intake_share: 0.0,
            exchange: Exchange::recorded(counting.recorder.clone()),
            objects: settings.objects.clone(),
            machine: Machine::default(),
            scratch: vec![0.0; settings.ghosted().cells_per_var()],
            sums: Checksums::default(),
            first_sums: Vec::new(),
            own_sums: vec![ExactSum::default(); settings.shape.n_vars],
            compat,
            times: Times::default(),
            step_times: Vec::new(),
            count: Count {
                blocks_min: n_blocks,
                blocks_max: n_blocks,
                ..Count::default()
            },
            n_stages: 0,
            mesh,
            blocks,
        };
        run.connect_blocks();
        run.fill_gas();
        run.sum_at_start();
        run
    }

    /// The exchange of the mesh as it is now.
    pub(super) fn connect_blocks(&mut self) {
        let rank = self.ranks.rank();
        self.own_leaves = self.blocks.in_memory(&self.mesh, rank);
        let slots = self.blocks.slots.as_slice();
        self.own = self.own_leaves.iter().map(|&i| slots[i]).collect();
        self.block_times = vec![0.0; self.own.len()];
        self.near_shock = vec![false; self.own.len()];
        let view = View {
            mesh: &self.mesh,
            rank,
            slots,
            faces: &self.faces,
        };
        if self.settings.work == Work::Seven {
            self.plan = Plan::new(view, self.settings.sweeps, Within::Counted);
            let bundling = self.settings.manner.bundling;
            self.intake = Intake::new(view, &self.own_leaves, &self.plan, bundling);
        } else {
            self.plan = Plan::new(view, self.settings.sweeps, Within::Listed);
        }
        self.parts = self.parts_of_gas();
        let counts = self.mesh.per_rank(self.ranks.n_ranks());
        let most = counts.into_iter().max().unwrap_or(0);
        self.count.of_a_rank_max = self.count.of_a_rank_max.max(most);
    }

    /// A gas that overlaps advances first what gets nothing from other ranks.
    fn parts_of_gas(&self) -> [Vec<usize>; 2] {
        let partners = self.plan.sweeps.iter().flat_map(|sweep| &sweep.partners);
        let mut awaiting: Vec<Slot> = partners
            .flat_map(|partner| partner.receives.iter().map(|half| half.slot))
            .collect();
        awaiting.sort_unstable();
        let waits = |&nth: &usize| {
            !self.settings.overlaps || awaiting.binary_search(&self.own[nth]).is_ok()
        };
        let (outer, inner) = (0..self.own.len()).partition(waits);
        [inner, outer]
    }

    pub(super) fn sum_at_start(&mut self) {
        if let Some(compat) = &self.compat {
            let field = &self.blocks.field;
            let quick = |var| compat.sum(checksum::quick(field, &self.own, var));
            self.sums.last = (0..self.settings.shape.n_vars).map(quick).collect();
            self.first_sums = checksum::gather(self.ranks, &self.exact_sums());
        } else {
            self.first_sums = self.reduced_sums();
            self.sums.first.clone_from(&self.first_sums);
            self.sums.last.clone_from(&self.first_sums);
        }
    }
}

fn meaning(settings: &Settings) -> Meaning {
    match settings.work {
        Work::Euler => Meaning::Gas {
            gamma: settings.options.gamma,
        },
        _ => Meaning::Total,
    }
}

fn first_blocks(settings: &Settings, mesh: &Mesh, rank: usize) -> Blocks {
    let shape = settings.shape;
    let field = match settings.work {
        Work::Seven => Field::by_variable(shape),
        _ => Field::new(shape),
    };
    let mut blocks = Blocks::new(field, meaning(settings), mesh, rank);
    if settings.work == Work::Euler {
        return blocks;
    }
    for i in mesh.own(rank) {
        let leaf = mesh.leaves()[i];
        for var in 0..shape.n_vars {
            let cells = blocks.field.var_mut(blocks.slots[i], var);
            fill(shape, settings.options.seed, leaf, var, cells);
        }
    }
    blocks
}

/// Values in [0, 1) that depend on the seed, the block, the variable and the cell alone.
///
/// Source: the SplitMix64 sequence (Steele, Lea & Flood, OOPSLA 2014).
fn fill(shape: BlockShape, seed: u64, leaf: Leaf, var: usize, cells: &mut [f64]) {
    let mut state = mix(mix(seed ^ leaf.packed()).wrapping_add(var as u64));
    for row in shape.rows() {
        for cell in &mut cells[row..row + shape.cells[0]] {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            *cell = (mix(state) >> 11) as f64 * 2.0f64.powi(-53);
        }
    }
}

fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
