//! Learning on synthetic machines whose truth is known.

use std::collections::BTreeMap;

use colltune_core::catalogue::{self, Facts};
use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model, Source};
use colltune_core::settings::Settings;
use colltune_db::test_support::{COLLECTIVES, LIBRARY, Run, is_drawn, time_ns};
use colltune_models::baseline::call::Row;
use colltune_models::baseline::learn;
use colltune_models::baseline::{Context, Learned};

const SIZES: [u64; 6] = [8, 128, 2048, 16_384, 131_072, 1 << 20];

/// Ranges that give every node count up to 4 a cell of its own; all that the synthetic runs draw may win.
fn settings() -> Settings {
    let spaces = COLLECTIVES.map(|collective| {
        format!("[[space]]\ncollective = \"{collective}\"\nnodes = [1, 2, 3, 4, 5, \"inf\"]\n")
    });
    let families = "families = [\"native\", \"p2p\"]\n";
    Settings::from_toml(&(families.to_owned() + &spaces.concat())).unwrap()
}

/// Ten runs on each of the node counts.
fn rows(seed: u64, node_counts: &[u32], ppn: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, nodes) in node_counts.iter().enumerate() {
        for number in 0..10 {
            let job = 10 * place as u32 + number;
            let seed = seed + u64::from(job);
            rows.extend(
                Run {
                    nodes: *nodes,
                    ppn,
                    calls: 6000,
                    sizes: SIZES.to_vec(),
                    ..Run::new("job", seed)
                }
                .rows(job),
            );
        }
    }
    rows
}

fn learned(rows: Vec<Row>, settings: &Settings) -> Learned {
    learn(
        rows,
        Context {
            settings,
            library: LIBRARY,
            machine: "testing",
            generation: 1,
            seed: 7,
        },
    )
    .unwrap()
}

fn cell(model: &Model, collective: Collective, bytes: u64, nodes: u32, ppn: u32) -> &CellModel {
    model
        .cells
        .iter()
        .find(|entry| {
            entry
                .cell
                .contains(collective, bytes, nodes.into(), ppn.into())
        })
        .unwrap()
}

/// The true times of the variants that apply, by name.
fn truth(collective: Collective, bytes: u64, nodes: u32, ppn: u32) -> BTreeMap<String, f64> {
    let variants = catalogue::variants(LIBRARY, collective)
        .into_iter()
        .filter(|variant| {
            is_drawn(
                variant,
                &Facts::usual(collective, bytes, nodes * ppn, nodes),
            )
        });
    variants
        .map(|variant| {
            (
                variant.name.to_string(),
                time_ns(&variant, bytes, nodes, ppn),
            )
        })
        .collect()
}

#[test]
fn the_pick_at_three_nodes_is_within_a_tenth_of_the_best_without_any_run_there() {
    let settings = settings();
    for ppn in [2, 4] {
        for seed in [100, 200, 300] {
            let learned = learned(rows(seed, &[1, 2, 4], ppn), &settings);
            for collective in COLLECTIVES {
                for bytes in SIZES {
                    let entry = cell(&learned.model, collective, bytes, 3, ppn);
                    assert_eq!(entry.source, Source::Predicted);
                    let truth = truth(collective, bytes, 3, ppn);
                    let best = truth.values().copied().fold(f64::INFINITY, f64::min);
                    // What does not apply runs the default.
                    let pick = truth.get(&entry.best).unwrap_or(&truth["default"]);
                    assert!(
                        *pick <= 1.10 * best,
                        "seed {seed}, {} picks {}: {pick} against {best} ns",
                        entry.cell,
                        entry.best
                    );
                }
            }
        }
    }
}

#[test]
fn measured_cells_pick_what_is_fast_and_never_what_is_slower_than_the_default() {
    let settings = settings();
    let learned = learned(rows(1, &[2, 4], 2), &settings);
    for collective in COLLECTIVES {
        for bytes in SIZES {
            for nodes in [2, 4] {
                let entry = cell(&learned.model, collective, bytes, nodes, 2);
                assert_eq!(entry.source, Source::Measured);
                let truth = truth(collective, bytes, nodes, 2);
                let best = truth.values().copied().fold(f64::INFINITY, f64::min);
                assert!(truth[&entry.best] <= truth["default"], "{}", entry.cell);
                assert!(
                    truth[&entry.best] <= 1.05 * best,
                    "{}: {}",
                    entry.cell,
                    entry.best
                );
            }
        }
    }
}

/// Whether a rival with few samples may still turn out to be the fastest; such cells are explored
/// beyond `explore_total`.
fn is_open(learned: &Learned, entry: &CellModel) -> bool {
    let known = learned
        .statistics
        .iter()
        .find(|known| known.cell == entry.cell)
        .unwrap();
    let most = known.variant(&entry.best).unwrap().time_ns.hi.unwrap();
    known.variants.iter().any(|rival| {
        rival.name != entry.best
            && (1..128).contains(&rival.samples)
            && rival.time_ns.lo.is_some_and(|least| 1.05 * least < most)
    })
}

#[test]
fn a_site_that_forbids_exploring_has_none_in_open_races_either() {
    let settings = Settings::from_toml("explore_total = 0.0").unwrap();
    let learned = learned(rows(5, &[4], 2), &settings);
    let measured = |entry: &&CellModel| entry.source == Source::Measured;
    for entry in learned.model.cells.iter().filter(measured) {
        assert_eq!(entry.variants.len(), 1, "{}", entry.cell);
        assert_eq!(entry.variants[0].name, entry.best);
    }
}

#[test]
fn the_model_is_valid_covers_everything_and_keeps_to_budget_floor_and_exclusions() {
    let text = "exclude = [\"native:recursive_doubling\"]\nexplore_total = 0.10";
    let settings = Settings::from_toml(text).unwrap();
    let learned = learned(rows(5, &[4], 2), &settings);
    assert_eq!(learned.model.check(LIBRARY), Ok(()));
    for (cell, _) in settings.space.cells() {
        let ends = [
            (cell.bytes.lo, cell.nodes.lo, cell.ppn.lo),
            (cell.bytes.last(), cell.nodes.last(), cell.ppn.last()),
        ];
        let holders = ends.map(|(bytes, nodes, ppn)| {
            let holds =
                |entry: &&CellModel| entry.cell.contains(cell.collective, bytes, nodes, ppn);
            let mut holders = learned
                .model
                .cells
                .iter()
                .filter(holds)
                .map(|entry| entry.cell);
            assert!(holders.clone().count() == 1, "{cell}");
            holders.next()
        });
        assert_eq!(holders[0], holders[1], "{cell} is in one piece");
    }
    assert!(
        learned.model.cells.len() < settings.space.cells().count() / 4,
        "what is unknown is joined"
    );
    let (mut measured, mut settled) = (0, 0);
    for entry in &learned.model.cells {
        assert!(entry.best != "native:recursive_doubling", "{}", entry.cell);
        assert!(
            entry
                .variants
                .iter()
                .all(|share| share.name != "native:recursive_doubling")
        );
        if entry.source == Source::Measured {
            measured += 1;
            if is_open(&learned, entry) {
                continue;
            }
            settled += 1;
            let best: f64 = entry
                .variants
                .iter()
                .filter(|share| share.name == entry.best)
                .map(|share| share.probability)
                .sum();
            assert!(best >= 0.90 - 1e-4, "{}: {:?}", entry.cell, entry.variants);
            let floor = 0.03f64.min(0.10 / (entry.variants.len() - 1) as f64);
            assert!(
                entry
                    .variants
                    .iter()
                    .all(|share| share.probability >= floor - 2e-6),
                "{:?}",
                entry.variants
            );
        }
    }
    assert_eq!(measured, COLLECTIVES.len() * SIZES.len());
    assert!(settled >= measured / 4, "{settled} of {measured}");
    let excluded = learned
        .statistics
        .iter()
        .filter_map(|cell| cell.variant("native:recursive_doubling"));
    assert!(
        excluded.clone().any(|variant| variant.samples > 0),
        "what was recorded is still shown"
    );
    assert!(
        excluded
            .into_iter()
            .all(|variant| variant.probability == 0.0)
    );
}

#[test]
fn one_data_set_and_seed_give_one_model_on_any_number_of_cores_and_in_any_order() {
    let settings = Settings::default();
    let rows = rows(9, &[2, 4], 2);
    let bytes = |learned: &Learned| {
        let folder = tempfile::tempdir().unwrap();
        let models = learned
            .regressions
            .iter()
            .map(|(collective, variant, regression)| {
                let path = folder.path().join("model.ubj");
                regression.save(&path).unwrap();
                (*collective, variant.clone(), std::fs::read(&path).unwrap())
            });
        (
            learned.model.to_json(),
            serde_json::to_string(&learned.statistics).unwrap(),
            models.collect::<Vec<_>>(),
        )
    };
    let everywhere = bytes(&learned(rows.clone(), &settings));
    let mut reversed = rows;
    reversed.reverse();
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let alone = one_thread
        .unwrap()
        .install(|| bytes(&learned(reversed, &settings)));
    assert_eq!(everywhere.0, alone.0);
    assert_eq!(everywhere.1, alone.1);
    assert!(everywhere.2 == alone.2, "the saved models differ");
    assert!(everywhere.2.len() > 40);
}

#[test]
fn without_records_there_is_a_valid_model_that_knows_nothing() {
    let learned = learned(Vec::new(), &Settings::default());
    assert_eq!(learned.model.check(LIBRARY), Ok(()));
    assert!(learned.statistics.is_empty() && learned.regressions.is_empty());
    assert!(
        learned
            .model
            .cells
            .iter()
            .all(|entry| entry.source == Source::Prior && entry.best == "default")
    );
}
