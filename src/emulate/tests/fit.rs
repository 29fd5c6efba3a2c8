//! Costs are found again in times that were made with them, and what cannot be fitted is refused by name.

mod common;

use colltune_amr::telemetry::{Kind, Phase};
use colltune_emulate::cost::{
    BlockRow, Costs, LevelCosts, Observed, PhaseRow, Work, fit, memory_costs,
};
use colltune_emulate::mesh::{Recording, VERSION, settings};
use colltune_emulate::traffic::finer_faces;
use common::{GAS, Recorded, SPHERE, recorded};

/// The recording with times that these costs make of its blocks.
fn with_times(recorded: &Recorded, levels: &[LevelCosts]) -> (Recording, Vec<PhaseRow>) {
    let mut mesh = recorded.mesh.clone();
    let settings = settings(&mesh.words, mesh.n_ranks, mesh.n_ranks).unwrap();
    for step in &mut mesh.steps {
        let finer = finer_faces(&settings, &step.mesh(&settings));
        for (i, &finer) in finer.iter().enumerate() {
            let level = step.leaves[i].level;
            let work = Work::of(&settings, level, step.iterations[i], finer);
            step.time_ns[i] = levels[usize::from(level)].time_ns(&work);
        }
    }
    let mut phases = recorded.phases.clone();
    // Checksums took nothing: they would be taken off the blocks' times.
    phases.retain(|row| row.phase != Phase::Sum);
    (mesh, phases)
}

fn observed<'a>(
    mesh: &'a Recording,
    phases: &'a [PhaseRow],
    recorded: &'a Recorded,
) -> Observed<'a> {
    Observed {
        mesh,
        phases,
        messages: &recorded.messages,
        work: &[],
    }
}

fn level(cell_ns: f64, iteration_ns: f64, finer_ns: f64) -> LevelCosts {
    LevelCosts {
        cell_ns,
        iteration_ns,
        finer_ns,
    }
}

#[test]
fn costs_by_level_are_found_again_in_times_that_they_made() {
    let levels = [
        level(2.0, 0.0, 3.0),
        level(2.5, 0.0, 1.0),
        level(4.0, 0.0, 0.0),
    ];
    let recorded = recorded(4, &format!("{SPHERE} --num_tsteps 20"));
    let (mesh, phases) = with_times(&recorded, &levels);
    let found = fit(&[observed(&mesh, &phases, &recorded)], &[], |_| true).unwrap();
    for (quality, (found, made)) in found
        .levels
        .iter()
        .zip(found.costs.levels.iter().zip(&levels))
    {
        assert!(!quality.borrowed && quality.rows >= 30, "{quality:?}");
        assert!(
            (found.cell_ns - made.cell_ns).abs() < 1e-6,
            "{found:?} {made:?}"
        );
        assert!(
            (found.finer_ns - made.finer_ns).abs() < 1e-6,
            "{found:?} {made:?}"
        );
        assert!(
            quality.r2 > 0.999_999 && quality.residual_cv < 1e-6,
            "{quality:?}"
        );
    }
    assert!(found.costs.noise.step_cv < 1e-6);
    let text = found.costs.to_toml();
    assert_eq!(Costs::from_toml(&text).unwrap(), found.costs);
}

#[test]
fn a_level_with_too_few_rows_takes_its_neighbours_numbers() {
    let levels = [
        level(2.0, 0.0, 3.0),
        level(2.5, 0.0, 1.0),
        level(4.0, 0.0, 0.0),
    ];
    let recorded = recorded(4, &format!("{SPHERE} --num_tsteps 20"));
    for (few, neighbour, other) in [(0, 1, 2), (2, 1, 0)] {
        let (mut mesh, phases) = with_times(&recorded, &levels);
        // Seven steps of four ranks are 28 rows at most.
        for step in mesh.steps.iter_mut().filter(|step| step.step > 7) {
            for (time, leaf) in step.time_ns.iter_mut().zip(&step.leaves) {
                if usize::from(leaf.level) == few {
                    *time = 0.0;
                }
            }
        }
        let found = fit(&[observed(&mesh, &phases, &recorded)], &[], |_| true).unwrap();
        let costs = &found.costs.levels;
        assert_eq!(costs[few], costs[neighbour], "level {few}");
        for level in [neighbour, other] {
            let (found, made) = (costs[level], levels[level]);
            assert!(
                (found.cell_ns - made.cell_ns).abs() < 1e-6,
                "{found:?} {made:?}"
            );
        }
        let borrowed: Vec<bool> = found.levels.iter().map(|level| level.borrowed).collect();
        assert_eq!(borrowed, [0, 1, 2].map(|level| level == few));
        let rows = found.levels[few].rows;
        assert!((1..30).contains(&rows), "level {few}: {rows} rows");
    }
}

#[test]
fn a_level_that_leaves_nothing_for_its_cells_takes_its_neighbours_numbers() {
    let levels = [
        level(2.0, 0.0, 3.0),
        level(0.0, 0.0, 90.0),
        level(4.0, 0.0, 0.0),
    ];
    let recorded = recorded(4, &format!("{SPHERE} --num_tsteps 20"));
    let (mesh, phases) = with_times(&recorded, &levels);
    let found = fit(&[observed(&mesh, &phases, &recorded)], &[], |_| true).unwrap();
    let costs = &found.costs.levels;
    assert!(found.levels[1].borrowed && found.levels[1].rows >= 30);
    assert_eq!(costs[1], costs[0]);
    assert!((costs[0].cell_ns - 2.0).abs() < 1e-6, "{costs:?}");
}

#[test]
fn runs_count_alike_and_chance_does_not_make_costs_smaller() {
    let levels = [level(2.0, 0.0, 0.0); 3];
    let recorded = recorded(4, &format!("{SPHERE} --num_tsteps 20"));
    let (mut slow, phases) = with_times(&recorded, &levels);
    let mut fast = slow.clone();
    for (slow, fast) in slow.steps.iter_mut().zip(&mut fast.steps) {
        slow.time_ns.iter_mut().for_each(|time| *time *= 1.5);
        fast.time_ns.iter_mut().for_each(|time| *time *= 0.5);
    }
    let runs = [&slow, &fast].map(|mesh| observed(mesh, &phases, &recorded));
    let found = fit(&runs, &[], |_| true).unwrap();
    for level in &found.costs.levels {
        assert!((level.cell_ns - 2.0).abs() < 1e-6, "{level:?}");
    }
    assert!(
        found.costs.source.contains("40 steps of 2 runs"),
        "{}",
        found.costs.source
    );
    let gas = common::recorded(4, &format!("{GAS} --num_tsteps 2"));
    let mixed = [
        observed(&slow, &phases, &recorded),
        observed(&gas.mesh, &gas.phases, &gas),
    ];
    let error = fit(&mixed, &[], |_| true).unwrap_err().to_string();
    assert!(error.contains("fit each by itself"), "{error}");
}

#[test]
fn iterations_have_their_own_cost_and_other_steps_are_not_looked_at() {
    let levels = [
        level(2.0, 0.25, 0.0),
        level(2.5, 0.5, 0.0),
        level(4.0, 0.125, 0.0),
    ];
    let recorded = recorded(4, &format!("{GAS} --num_tsteps 20 --cost random:7"));
    let (mut mesh, phases) = with_times(&recorded, &levels);
    for step in mesh.steps.iter_mut().filter(|step| step.step > 15) {
        step.time_ns.fill(1e9);
    }
    let found = fit(&[observed(&mesh, &phases, &recorded)], &[], |step| {
        step <= 15
    })
    .unwrap();
    let own = found.levels.iter().filter(|quality| !quality.borrowed);
    let own: Vec<usize> = own.map(|quality| usize::from(quality.level)).collect();
    assert!(own.len() >= 2, "{:?}", found.levels);
    for level in own {
        let (found, made) = (&found.costs.levels[level], &levels[level]);
        assert!(
            (found.iteration_ns - made.iteration_ns).abs() < 1e-6,
            "{found:?} {made:?}"
        );
    }
    assert_eq!(found.components.names.len(), 3);
}

#[test]
fn too_few_rows_another_version_and_holes_are_refused_by_name() {
    let recorded = recorded(2, &format!("{SPHERE} --num_tsteps 4"));
    let few = fit(
        &[observed(&recorded.mesh, &recorded.phases, &recorded)],
        &[],
        |step| step == 1,
    );
    let error = few.unwrap_err().to_string();
    assert!(error.contains("rows") && error.contains("30"), "{error}");
    let step = &recorded.mesh.steps[0];
    let rows: Vec<BlockRow> = step
        .leaves
        .iter()
        .map(|&leaf| BlockRow {
            step: 1,
            rank: 0,
            leaf,
            time_ns: 1.0,
            iterations: 0,
        })
        .collect();
    let new = |version, rows: &[BlockRow]| {
        let made = Recording::new(version, recorded.mesh.words.clone(), 2, rows);
        made.err().map(|error| error.to_string())
    };
    assert_eq!(new(Some(VERSION), &rows), None);
    let error = new(Some("9"), &rows).expect("another version");
    assert!(
        error.contains("version 9") && error.contains("version 1"),
        "{error}"
    );
    let error = new(None, &rows).expect("no version");
    assert!(error.contains("record it anew"), "{error}");
    let error = new(Some(VERSION), &rows[1..]).expect("a hole");
    assert!(
        error.contains("step 1") && error.contains("tile"),
        "{error}"
    );
    let error = new(Some(VERSION), &[]).expect("nothing");
    assert!(error.contains("--telemetry_blocks"), "{error}");
}

#[test]
fn small_ranks_are_as_fast_as_uniform_meshes_say_and_costs_are_those_of_great_ones() {
    // A rank of a uniform mesh has 4 blocks of 6^3 cells, or 64.
    let uniform = |side: usize, cell_ns: f64| {
        let words = format!(
            "--num_refine 0 --npx 4 --npy {side} --npz {side} --nx 6 --ny 6 --nz 6 --num_vars 2 \
             --num_tsteps 4 --stages_per_ts 2"
        );
        let recorded = recorded(4, &words);
        let (mut mesh, phases) = with_times(&recorded, &[level(cell_ns, 0.0, 0.0)]);
        // Memory that is touched for the first time does not count; a rank that is stopped now and then does.
        for (step, factor) in mesh.steps.iter_mut().zip([9.0, 0.5, 0.5, 2.0]) {
            step.time_ns.iter_mut().for_each(|time| *time *= factor);
        }
        (mesh, phases, recorded)
    };
    let runs = [uniform(2, 1.0), uniform(8, 4.0)];
    let observed_of = |(mesh, phases, recorded)| observed(mesh, phases, recorded);
    let all: Vec<Observed> = runs
        .iter()
        .map(|(a, b, c)| observed_of((a, b, c)))
        .collect();
    let found = memory_costs(&all, &[], &|_| true).unwrap();
    let [small, great] = found.updates[..] else {
        panic!("{found:?}")
    };
    assert_eq!((small.update_ns, great.update_ns), (1.0, 4.0));
    assert!((great.working_set_mib / small.working_set_mib - 16.0).abs() < 1e-9);

    // Costs are found again where each rank is as fast as its memory lets it be.
    let levels = [
        level(2.0, 0.0, 0.0),
        level(2.5, 0.0, 0.0),
        level(4.0, 0.0, 0.0),
    ];
    let recorded = recorded(4, &format!("{SPHERE} --num_tsteps 20"));
    let (mut mesh, phases) = with_times(&recorded, &levels);
    let settings = settings(&mesh.words, 4, 4).unwrap();
    let mut slowest = 0.0f64;
    for step in &mut mesh.steps {
        let n_own = |owner: u32| step.owners.iter().filter(|&&other| other == owner).count();
        let factors: Vec<f64> = step
            .owners
            .iter()
            .map(|&owner| found.slowness(&settings, n_own(owner)).updates)
            .collect();
        slowest = factors.iter().copied().fold(slowest, f64::max);
        step.time_ns
            .iter_mut()
            .zip(factors)
            .for_each(|(time, factor)| *time *= factor);
    }
    assert!((0.25..1.0).contains(&slowest), "{slowest}");
    let fitted = fit(&[observed(&mesh, &phases, &recorded)], &all, |_| true).unwrap();
    for (found, made) in fitted.costs.levels.iter().zip(&levels) {
        assert!(
            (found.cell_ns - made.cell_ns).abs() < 1e-6,
            "{found:?} {made:?}"
        );
    }
    let text = fitted.costs.to_toml();
    assert_eq!(Costs::from_toml(&text).unwrap().memory, found);

    let gas = with_gas();
    let uniform: Vec<Observed> = vec![observed(&gas.0, &gas.1, &gas.2)];
    let other = fit(&[observed(&mesh, &phases, &recorded)], &uniform, |_| true);
    let other = other.unwrap_err().to_string();
    assert!(
        other.contains("seven") && other.contains("euler"),
        "{other}"
    );
}

#[test]
fn refined_runs_say_what_updates_beside_finer_neighbours_cost_by_the_memory_of_what_is_exchanged() {
    let run = |together: &str, finer_ns: f64| {
        let words = format!("{SPHERE} --num_vars 4 --num_tsteps 20 --comm_vars {together}");
        let recorded = recorded(4, &words);
        let (mesh, phases) = with_times(&recorded, &[level(2.0, 0.0, finer_ns); 3]);
        (mesh, phases, recorded)
    };
    let [one, two, all] = [run("1", 3.0), run("2", 7.5), run("4", 12.0)];
    let sizes = [&one, &two].map(|(mesh, phases, recorded)| observed(mesh, phases, recorded));
    let runs = [observed(&all.0, &all.1, &all.2)];
    let memory = memory_costs(&sizes, &runs, &|_| true).unwrap();
    assert!(memory.updates.is_empty());
    let found: Vec<f64> = memory
        .beside_finer
        .iter()
        .map(|one| one.update_ns)
        .collect();
    for (found, made) in found.iter().zip([3.0, 7.5, 12.0]) {
        assert!((found - made).abs() < 1e-6, "{found} {made}");
    }
    let resident = |nth: usize| memory.beside_finer[nth].working_set_mib;
    assert_eq!(
        [resident(1), resident(2)],
        [2.0, 4.0].map(|n| n * resident(0))
    );

    // What was fitted to the run that exchanges all together says what the others take.
    let costs = fit(&runs, &sizes, |_| true).unwrap().costs;
    assert_eq!(costs.memory, memory);
    for (mesh, ..) in [&one, &two, &all] {
        let settings = settings(&mesh.words, 4, 4).unwrap();
        let (mut emulated, mut made) = (0.0, 0.0);
        for step in &mesh.steps {
            let finer = finer_faces(&settings, &step.mesh(&settings));
            let slowness = costs.memory.slowness(&settings, step.leaves.len() / 4);
            for (i, leaf) in step.leaves.iter().enumerate() {
                let work = Work::of(&settings, leaf.level, 0, finer[i]).on(slowness);
                emulated += costs.block_ns(&work);
                made += step.time_ns[i];
            }
        }
        assert!((emulated / made - 1.0).abs() < 0.05, "{emulated} {made}");
    }
}

/// A gas on a mesh of one level.
fn with_gas() -> (Recording, Vec<PhaseRow>, Recorded) {
    let recorded = recorded(4, &format!("{GAS} --num_tsteps 3 --num_refine 0"));
    let (mesh, phases) = with_times(&recorded, &[level(2.0, 0.0, 0.0)]);
    (mesh, phases, recorded)
}

#[test]
fn uniform_runs_say_what_messages_cost_as_much_as_all_others_together() {
    let of_steps = |steps: u32| {
        let words = format!(
            "--num_refine 0 --npx 4 --npy 2 --npz 2 --nx 6 --ny 6 --nz 6 --num_vars 2 --num_tsteps {steps} \
             --stages_per_ts 2"
        );
        let recorded = recorded(4, &words);
        let (mesh, _) = with_times(&recorded, &[level(2.0, 0.0, 0.0)]);
        (recorded, mesh)
    };
    let (few, many) = (of_steps(20), of_steps(90));
    let is_ghost = |kind: Kind| kind.name().starts_with("ghost");
    let packing = |run: &Recorded, byte_ns: f64| -> Vec<PhaseRow> {
        let sent = run.messages.iter().filter(|row| is_ghost(row.kind));
        let packed = sent.map(|row| PhaseRow {
            step: row.step,
            rank: row.rank,
            phase: Phase::Pack,
            time_ns: byte_ns * row.bytes as f64,
        });
        packed.collect()
    };
    let own = packing(&few.0, 1.0);
    let byte_ns = |of_uniform: f64| {
        let other = packing(&many.0, of_uniform);
        let runs = [observed(&few.1, &own, &few.0)];
        let uniform = [observed(&many.1, &other, &many.0)];
        let found = fit(&runs, &uniform, |_| true).unwrap().costs.phases;
        let sent = few.0.messages.iter().filter(|row| is_ghost(row.kind));
        let [n, bytes] = sent.fold([0.0, 0.0], |[n, bytes], row| {
            [n + row.messages as f64, bytes + row.bytes as f64]
        });
        (found.pack_message_ns * n + found.pack_byte_ns * bytes) / bytes
    };
    assert!((byte_ns(1.0) - 1.0).abs() < 1e-6);
    // By least squares weighed by one over the times: 2 / (1 / 1 + 1 / 3). By numbers of steps it would be 2.2.
    let between = byte_ns(3.0);
    assert!((between - 1.5).abs() < 0.01, "{between}");
}
