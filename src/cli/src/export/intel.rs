//! Intel MPI's conditions: `I_MPI_ADJUST_ALLREDUCE="2:2048-65535;8:65536-2147483647"`, variables of a job.
//!
//! A condition is an inclusive range of message sizes; the library chooses for all other sizes. One of ranks may
//! follow, but then 2021.19 runs the last algorithm at every size, and dies of longer lists. Sizes mean what
//! colltune's do where [`preset::knows_size`] says so; the other collectives have one choice for all sizes. Source:
//! Intel MPI Library Developer Reference for Linux, "I_MPI_ADJUST Family Environment Variables".

use std::fmt::Write;

use colltune_core::catalogue::{Need, Steering};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::preset::{self, BYTES_MAX};

use super::notes::{Notes, ReplacedNote};
use super::plan::{self, Column, JobShape, Ranks, Rule};
use crate::published::Published;

/// What the library looks at itself, at each call, before it runs a preset.
const CHECKED: [Need; 5] = [
    Need::Commutative,
    Need::NotInPlace,
    Need::CountAtLeastRanks,
    Need::CountAtLeastPowerOfTwo,
    Need::PowerOfTwoRanks,
];

/// Every communicator with something to do.
const ANY: Ranks = Ranks {
    first: 2,
    last: u64::MAX,
};

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
        let Some(column) = choose(&columns, shape) else {
            continue;
        };
        let mut replaced = Vec::new();
        let rules = rules(column, library, collective, ANY, &mut replaced);
        notes.replaced.extend(replaced);
        let conditions = conditions(&rules);
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
    notes.warnings.push(
        "The winners of one shape stand for communicators of every size: those of --nodes and --ppn, else of the \
         shape with the most samples. Intel MPI 2021.19 mistakes sizes in conditions that name ranks as well."
            .to_owned(),
    );
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

/// The shape whose winners stand.
fn choose<'a>(columns: &'a [Column<'a>], shape: Option<JobShape>) -> Option<&'a Column<'a>> {
    let is_of = |column: &&Column, shape: JobShape| {
        column.nodes.contains(shape.nodes) && column.ppn.contains(shape.ppn)
    };
    match shape {
        Some(shape) => columns.iter().find(|column| is_of(column, shape)),
        None => columns
            .iter()
            .max_by_key(|column| (column.departs_from_default(), column.samples())),
    }
}

/// `preset:first-last` for each rule that is not the library's own choice.
fn conditions(rules: &[Rule]) -> Vec<String> {
    let ends = rules.iter().skip(1).map(|next| next.from_bytes - 1);
    let ranges = rules.iter().zip(ends.chain([BYTES_MAX]));
    ranges
        .filter_map(|(rule, last)| {
            let Steering::Intel { preset } = rule.variant.as_ref()?.steering else {
                return None;
            };
            let (first, last) = (rule.from_bytes, last.min(BYTES_MAX));
            (first <= last).then(|| format!("{preset}:{first}-{last}"))
        })
        .collect()
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

    /// The presets whose conditions match a size, as the library documents them.
    fn matching(variables: &[(String, String)], name: &str, bytes: u64) -> Vec<u64> {
        let value = variables.iter().find(|(other, _)| other == name);
        let value = value.map_or("", |(_, value)| value.as_str());
        let parts = value.split(';').filter(|part| !part.is_empty());
        let matching = parts.filter_map(|part| {
            let (preset, sizes) = part.split_once(':').unwrap();
            let (first, last) = sizes.split_once('-').unwrap();
            let fits = (first.parse().unwrap()..=last.parse().unwrap()).contains(&bytes);
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
        let at = |bytes| matching(&variables, "I_MPI_ADJUST_ALLREDUCE", bytes);
        assert_eq!(at(0), [] as [u64; 0]);
        let found = [at(2048), at(65535), at(65536), at(BYTES_MAX)].concat();
        assert_eq!(found, [2, 2, 8, 8]);
        assert_eq!(notes.exported.len(), 2);
        let script = activate(&variables);
        assert!(
            script.contains("export I_MPI_ADJUST_BARRIER='1:0-2147483647'\n"),
            "{script}"
        );
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
        assert_eq!(matching(&variables, "I_MPI_ADJUST_GATHER", 1000), [1]);
    }

    #[test]
    fn a_jobs_shape_chooses_the_column() {
        let rows = [
            (
                Collective::Bcast,
                (0, None),
                (1, Some(2)),
                (1, None),
                "native:ring",
            ),
            (
                Collective::Bcast,
                (0, None),
                (2, None),
                (1, None),
                "native:knomial",
            ),
        ];
        for (nodes, preset) in [(1, 3), (4, 8)] {
            let (variables, _) = table(&rows, Some(JobShape { nodes, ppn: 4 }));
            assert_eq!(matching(&variables, "I_MPI_ADJUST_BCAST", 8), [preset]);
        }
    }
}
