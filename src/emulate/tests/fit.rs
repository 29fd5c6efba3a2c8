//! Costs are found again in times that were made with them, and what cannot be fitted is refused by name.

mod common;

use colltune_amr::telemetry::Phase;
use colltune_emulate::cost::{BlockRow, Costs, LevelCosts, Observed, PhaseRow, Work, fit};
use colltune_emulate::mesh::{Recording, VERSION, settings};
use colltune_emulate::traffic::finer_faces;
use common::{GAS, Recorded, SPHERE, recorded};

/// The recording with times that these costs make of its blocks.
fn with_times(recorded: &Recorded, levels: &[LevelCosts]) -> (Recording, Vec<PhaseRow>) {
    let mut mesh = recorded.mesh.clone();
    let settings = settings(&mesh.words, mesh.n_ranks, mesh.n_ranks).unwrap();
    for step in &mut mesh.steps {
        let finer = finer_faces(&step.mesh(&settings));
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
    let found = fit(&[observed(&mesh, &phases, &recorded)], |_| true).unwrap();
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
        let found = fit(&[observed(&mesh, &phases, &recorded)], |_| true).unwrap();
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
    let found = fit(&runs, |_| true).unwrap();
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
    let error = fit(&mixed, |_| true).unwrap_err().to_string();
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
    let found = fit(&[observed(&mesh, &phases, &recorded)], |step| step <= 15).unwrap();
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
