//! A blast whose exact shock stands for its gas.

mod common;

use colltune_amr::leaf::Leaf;
use colltune_amr::settings::Settings;
use colltune_emulate::cost::Costs;
use colltune_emulate::mesh::{Shock, settings};
use colltune_emulate::program::{Given, History, Program};
use colltune_emulate::run::{Keep, Scenario, run};
use common::{a_machine, plain_costs, scenario, words};

const BLAST: &str = "--physics euler --problem sedov --boundary periodic --domain -1 -1 -1 1 1 1 --sedov_energy .01 \
    --sedov_radius .15 --nx 8 --ny 8 --nz 8 --npx 4 --npy 4 --npz 4 --num_refine 2 --refine_freq 4 --time .5 \
    --num_tsteps 24";
const N_RANKS: usize = 8;

fn blast(more: &str) -> Settings {
    settings(&words(&format!("{BLAST} {more}")), N_RANKS, N_RANKS).expect("a blast")
}

/// A run that follows a shock, without noise.
fn program<'a>(settings: &'a Settings, costs: &'a Costs, shock: &'a Shock) -> Program<'a> {
    let given = Given {
        settings,
        n_ranks: N_RANKS,
        costs,
        scale: 1.0,
        noise: None,
        history: History::Shock(shock),
        choose: None,
        timer: None,
        compat: None,
    };
    Program::new(given).expect("a program")
}

#[test]
fn the_mesh_is_finest_where_the_shock_wants_it_after_every_refinement() {
    let settings = blast("");
    let shock = Shock::new(&settings).expect("a shock");
    let costs = plain_costs(&settings);
    let mut program = program(&settings, &costs, &shock);
    // Touching leaves differ by one level at most, so there are more of the middle one than the shock wants.
    let finest = |leaves: &[Leaf]| {
        let of_finest = leaves.iter().copied().filter(|leaf| leaf.level == 2);
        let mut all: Vec<Leaf> = of_finest.collect();
        all.sort();
        all
    };
    let mut meshes = vec![finest(program.mesh().leaves())];
    assert_eq!(meshes[0], finest(&shock.leaves(1)));
    while program.next_step(&mut |_| {}).expect("a step") {
        if program.step().is_multiple_of(4) {
            let mesh = finest(program.mesh().leaves());
            assert_eq!(mesh, finest(&shock.leaves(program.step() + 1)));
            meshes.push(mesh);
        }
    }
    assert_eq!((program.step(), meshes.len()), (24, 7));
    assert!(meshes.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn blocks_in_the_shock_cost_more_where_the_costs_follow_it() {
    let machine = a_machine(2);
    let total_s = |more: &str| {
        let settings = blast(more);
        let shock = Shock::new(&settings).expect("a shock");
        let mut costs = plain_costs(&settings);
        for level in &mut costs.levels {
            level.iteration_ns = 1.0;
        }
        let scenario = Scenario {
            history: History::Shock(&shock),
            ..scenario(&settings, N_RANKS, &costs, &machine)
        };
        run(&scenario, Keep::SUMS).expect("a run").outcome.total_s
    };
    assert!(total_s("--cost shock") > total_s("--cost uniform"));
    let settings = blast("");
    let costs = plain_costs(&settings);
    let refused = run(&scenario(&settings, N_RANKS, &costs, &machine), Keep::SUMS);
    let error = refused.err().expect("no cells, no shock").to_string();
    assert!(error.contains("shell:DECK"), "{error}");
}
