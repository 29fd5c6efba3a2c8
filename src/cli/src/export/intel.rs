//! Intel MPI's conditions: `I_MPI_ADJUST_ALLREDUCE="2:2048-65535@2-7;8:65536-2147483647@2-7"`, variables of a job.
//!
//! A condition is an inclusive range of message sizes and one of ranks; what matches none is left to the
//! library. Sizes mean what colltune's do where [`preset::knows_size`] says so; the other collectives have
//! one choice for all sizes.
//! Source: Intel MPI Library Developer Reference for Linux, "I_MPI_ADJUST Family Environment Variables".

use std::collections::BTreeSet;
use std::fmt::Write;

use colltune_core::catalogue::{Need, Steering};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::preset::{self, BYTES_MAX};

use super::notes::{Notes, ReplacedNote};
use super::plan::{self, Column, JobShape, Ranks, Rule};
use super::shapes;
use crate::published::Published;

/// What the library looks at itself, at each call, before it runs a preset.
const CHECKED: [Need; 5] = [
    Need::Commutative,
    Need::NotInPlace,
    Need::CountAtLeastRanks,
    Need::CountAtLeastPowerOfTwo,
    Need::PowerOfTwoRanks,
];

/// The variables of every collective that departs from the default, with their values.
pub fn variables(
    published: &Published,
    library: Library,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for collective in Collective::ALL {
        let columns = plan::columns(published, collective);
        let mut replaced = Vec::new();
        let parts = shapes::by_ranks(&columns, shape, true, notes, |column, ranks| {
            rules(column, library, collective, ranks, &mut replaced)
        });
        replaced.sort();
        replaced.dedup();
        notes.replaced.extend(replaced);
        let conditions = conditions(&parts);
        if !conditions.is_empty() {
            notes.exported.insert(collective.name().to_owned());
            variables.push((preset::variable(collective), conditions.join(";")));
        }
    }
    notes.warnings.push(
        "The library's conditions know neither operations nor MPI_IN_PLACE: where an algorithm does not fit a call, \
         the library runs another one by itself. Messages above 2 GiB are left to it."
            .to_owned(),
    );
    if !notes.shapes.is_empty() {
        notes.warnings.push(
            "Conditions have no axis for nodes: `shapes` names, for each number of ranks, the shape whose winners \
             stand. --nodes and --ppn choose another."
                .to_owned(),
        );
    }
    variables
}

fn rules(
    column: &Column,
    library: Library,
    collective: Collective,
    ranks: Ranks,
    replaced: &mut Vec<ReplacedNote>,
) -> Vec<Rule> {
    let rules = plan::rules(column, library, ranks, &CHECKED, &mut |note| {
        replaced.push(note)
    });
    if rules.len() < 2 || preset::knows_size(collective) {
        return rules;
    }
    replaced.extend(column.cells.iter().map(|status| ReplacedNote {
        cell: status.cell.to_string(),
        winner: status.best.clone(),
        instead: "default".to_owned(),
        reason: "what Intel MPI's conditions call the size of such a call is not known, and the sizes' winners differ"
            .to_owned(),
    }));
    Vec::new()
}

/// `preset:first-last@ranks-ranks` for each size and number of ranks with a rule.
///
/// The library reads all ranges of ranks of one range of sizes, then those of the next: in any other order, or
/// with ranges of sizes that overlap, 2021.19 ignores the value or dies of it. So the sizes are cut wherever
/// some number of ranks changes its algorithm.
fn conditions(parts: &[(Ranks, Vec<Rule>)]) -> Vec<String> {
    let rules = parts.iter().flat_map(|(_, rules)| rules);
    let cuts: BTreeSet<u64> = rules.map(|rule| rule.from_bytes).collect();
    let cuts: Vec<u64> = cuts.into_iter().filter(|cut| *cut <= BYTES_MAX).collect();
    let ends = cuts.iter().skip(1).map(|next| next - 1).chain([BYTES_MAX]);
    let mut conditions = Vec::new();
    for (&first, last) in cuts.iter().zip(ends) {
        let mut of_ranks: Vec<(u16, Ranks)> = Vec::new();
        for (ranks, rules) in parts {
            let Some(preset) = preset_at(rules, first) else {
                continue;
            };
            match of_ranks.last_mut() {
                Some((same, before)) if *same == preset && before.last + 1 == ranks.first => {
                    before.last = ranks.last;
                }
                _ => of_ranks.push((preset, *ranks)),
            }
        }
        conditions.extend(of_ranks.into_iter().map(|(preset, ranks)| {
            let (from, to) = (ranks.first, ranks.last.min(BYTES_MAX));
            format!("{preset}:{first}-{last}@{from}-{to}")
        }));
    }
    conditions
}

/// The number of the algorithm that the rules name for messages of so many bytes.
fn preset_at(rules: &[Rule], bytes: u64) -> Option<u16> {
    let rule = rules.iter().rev().find(|rule| rule.from_bytes <= bytes)?;
    match rule.variant.as_ref()?.steering {
        Steering::Intel { preset } => Some(preset),
        _ => None,
    }
}

/// The script that switches the table on, to be read with `.`.
pub fn activate(variables: &[(String, String)]) -> String {
    let mut text =
        "# Switches on these algorithms for Intel MPI: . /path/to/activate.sh\n".to_owned();
    for (name, value) in variables {
        let _ = writeln!(text, "export {name}='{value}'");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::plan::tests::{Row, published};

    const LIBRARY: &str = "intel-2021.19.0";

    fn table(rows: &[Row], shape: Option<JobShape>) -> (Vec<(String, String)>, Notes) {
        let mut notes = Notes::default();
        let library = LIBRARY.parse().unwrap();
        let variables = variables(&published(LIBRARY, rows), library, shape, &mut notes);
        (variables, notes)
    }

    /// The presets whose conditions match a call, as the library documents them.
    fn matching(variables: &[(String, String)], name: &str, ranks: u64, bytes: u64) -> Vec<u64> {
        let value = variables.iter().find(|(other, _)| other == name);
        let value = value.map_or("", |(_, value)| value.as_str());
        let range = |text: &str, value: u64| {
            let (first, last) = text.split_once('-').unwrap();
            (first.parse().unwrap()..=last.parse().unwrap()).contains(&value)
        };
        let parts = value.split(';').filter(|part| !part.is_empty());
        let matching = parts.filter_map(|part| {
            let (preset, condition) = part.split_once(':').unwrap();
            let (sizes, processes) = condition.split_once('@').unwrap();
            let fits = range(sizes, bytes) && range(processes, ranks);
            fits.then(|| preset.parse().unwrap())
        });
        matching.collect()
    }

    #[test]
    fn every_call_matches_one_condition_or_none_and_boundaries_are_kept() {
        let any = (1, None);
        let (variables, notes) = table(
            &[
                (Collective::Allreduce, (0, Some(2048)), any, any, "default"),
                (
                    Collective::Allreduce,
                    (2048, Some(65536)),
                    any,
                    any,
                    "native:rabenseifner",
                ),
                (
                    Collective::Allreduce,
                    (65536, None),
                    any,
                    any,
                    "native:ring",
                ),
                (
                    Collective::Barrier,
                    (0, None),
                    any,
                    any,
                    "native:dissemination",
                ),
            ],
            None,
        );
        for ranks in [2, 3, 7, 8, 100, 512] {
            let at = |bytes| matching(&variables, "I_MPI_ADJUST_ALLREDUCE", ranks, bytes);
            assert_eq!(at(0), [] as [u64; 0]);
            assert_eq!(
                [at(4096), at(65535), at(65536), at(BYTES_MAX)].concat(),
                [2, 2, 8, 8]
            );
        }
        let barrier = |ranks| matching(&variables, "I_MPI_ADJUST_BARRIER", ranks, 0);
        assert_eq!([barrier(2), barrier(100_000)].concat(), [1, 1]);
        assert_eq!(barrier(1), [] as [u64; 0]);
        assert_eq!(notes.exported.len(), 2);
        let script = activate(&variables);
        assert!(
            script.contains("export I_MPI_ADJUST_BARRIER='1:0-2147483647@2-2147483647'\n"),
            "{script}"
        );
    }

    #[test]
    fn sizes_are_cut_alike_for_all_ranks_and_come_in_order() {
        let (one, more) = ((1, Some(2)), (2, None));
        let any = (1, None);
        let (variables, _) = table(
            &[
                (Collective::Bcast, (0, Some(100)), one, any, "native:ring"),
                (Collective::Bcast, (100, None), one, any, "native:binomial"),
                (
                    Collective::Bcast,
                    (0, Some(70)),
                    more,
                    any,
                    "native:knomial",
                ),
                (Collective::Bcast, (70, None), more, any, "native:ring"),
            ],
            Some(JobShape { nodes: 4, ppn: 4 }),
        );
        let expected =
            "3:0-69@2-4;8:0-69@5-16;3:70-99@2-16;1:100-2147483647@2-4;3:100-2147483647@5-16";
        assert_eq!(variables[0].1, expected);
    }

    #[test]
    fn a_size_that_is_not_known_keeps_the_default_where_winners_differ() {
        let any = (1, None);
        let gather = |best| {
            [
                (
                    Collective::Gather,
                    (0, Some(64)),
                    any,
                    any,
                    "native:binomial",
                ),
                (Collective::Gather, (64, None), any, any, best),
            ]
        };
        let (variables, notes) = table(&gather("default"), None);
        assert!(
            variables.is_empty() && notes.replaced.len() == 2,
            "{variables:?}"
        );
        let (variables, _) = table(&gather("native:binomial"), None);
        assert_eq!(matching(&variables, "I_MPI_ADJUST_GATHER", 8, 1000), [1]);
    }

    #[test]
    fn a_jobs_shape_bounds_the_ranks() {
        let row = (
            Collective::Bcast,
            (0, None),
            (1, None),
            (1, None),
            "native:ring",
        );
        let (variables, _) = table(&[row], Some(JobShape { nodes: 2, ppn: 4 }));
        let at = |ranks| matching(&variables, "I_MPI_ADJUST_BCAST", ranks, 8);
        assert_eq!([at(8), at(9), at(2)].concat(), [3, 3]);
    }
}
