//! Open MPI's rules file (the classic format, version 1: read by 4.1 and 5.0), and how it is switched on.
//!
//! The library takes the last block whose COMMSIZE is not above the communicator's size (and the
//! first block below it), in it the last line whose MSGSIZE is not above its own measure of the
//! message; algorithm 0 means its own choice. The measure: bytes of the message, but for
//! allgather and alltoall the bytes of one block times the ranks.
//! Source: Open MPI 4.1.4, `coll_tuned_dynamic_file.c`, `coll_tuned_decision_dynamic.c`.

use std::fmt::Write;

use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_models::statistics::CellStatistics;

use super::notes::{Notes, ReplacedNote, ShapeNote};
use super::plan::{self, Column, ELEMENT_BYTES, JobShape, Ranks, Rule};
use crate::published::Published;

/// The numbers of the collectives in a rules file.
const fn number(collective: Collective) -> u32 {
    match collective {
        Collective::Allgather => 0,
        Collective::Allgatherv => 1,
        Collective::Allreduce => 2,
        Collective::Alltoall => 3,
        Collective::Alltoallv => 4,
        Collective::Alltoallw => 5,
        Collective::Barrier => 6,
        Collective::Bcast => 7,
        Collective::Exscan => 8,
        Collective::Gather => 9,
        Collective::Gatherv => 10,
        Collective::Reduce => 11,
        Collective::ReduceScatter => 12,
        Collective::ReduceScatterBlock => 13,
        Collective::Scan => 14,
        Collective::Scatter => 15,
        Collective::Scatterv => 16,
    }
}

/// The fan-out that the steered chain algorithms have, as `coll_tuned_init_chain_fanout` sets it.
const CHAIN_FANOUT: u32 = 4;

/// A block of a rules file.
struct Block {
    ranks: Ranks,
    /// (MSGSIZE, algorithm, fan-out, segment size)
    lines: Vec<(u64, i32, u32, u64)>,
    names: Vec<String>,
}

/// Writes the rules of every collective that departs from the default.
pub fn rules_file(
    published: &Published,
    library: Library,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> String {
    let mut sections = Vec::new();
    for collective in Collective::ALL {
        let blocks = blocks(published, library, collective, shape, notes);
        if blocks
            .iter()
            .any(|block| block.lines.iter().any(|line| line.1 != 0))
        {
            notes.exported.insert(collective.name().to_owned());
            sections.push((collective, blocks));
        }
    }
    warn(published, library, notes);
    let mut text = format!(
        "# Collective algorithms for {library} on {}, generation {}, by colltune.\n\
         # Switched on by activate.sh. Algorithm 0: the library's own choice.\n{} # collectives\n",
        published.machine,
        published.generation,
        sections.len()
    );
    for (collective, blocks) in sections {
        write_section(&mut text, collective, &blocks);
    }
    text
}

fn write_section(text: &mut String, collective: Collective, blocks: &[Block]) {
    let _ = writeln!(
        text,
        "{} # {collective}\n{} # sizes of communicators",
        number(collective),
        blocks.len()
    );
    for block in blocks {
        let _ = writeln!(
            text,
            "{} # ranks and more\n{} # message sizes",
            block.ranks.first,
            block.lines.len()
        );
        for ((size, algorithm, fanout, segsize), name) in block.lines.iter().zip(&block.names) {
            let _ = writeln!(text, "{size} {algorithm} {fanout} {segsize} # {name}");
        }
    }
}

fn blocks(
    published: &Published,
    library: Library,
    collective: Collective,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> Vec<Block> {
    let columns = plan::columns(published, collective);
    let limit = plan::most_ranks(&columns, shape);
    let mut blocks = vec![default_block(0)];
    let mut shapes: Vec<ShapeNote> = Vec::new();
    let mut replaced = Vec::new();
    let mut last = 1;
    for ranks in plan::rank_ranges(limit) {
        let (winner, others) = choose_column(&columns, ranks.first, shape);
        let Some(winner) = winner else {
            push(&mut blocks, default_block(ranks.first));
            continue;
        };
        let rules = rules(published, winner, library, ranks, &mut replaced);
        push(&mut blocks, block(collective, ranks, &rules));
        note_shape(&mut shapes, collective, ranks, winner, &others);
        last = ranks.last;
    }
    let open = plan::is_open(&columns, shape);
    if !open || matches!(collective, Collective::Allgather | Collective::Alltoall) {
        push(&mut blocks, default_block(last + 1));
    } else {
        let beyond = Ranks {
            first: last + 1,
            last: u64::MAX,
        };
        if let (Some(winner), _) = choose_column(&columns, beyond.first, shape) {
            let rules = rules(published, winner, library, beyond, &mut replaced);
            push(&mut blocks, block(collective, beyond, &rules));
        }
    }
    replaced.sort();
    replaced.dedup();
    notes.replaced.extend(replaced);
    notes.shapes.extend(shapes);
    blocks
}

/// The rules of a column without those that would not run what was measured.
///
/// Some algorithms run other collectives of the same communicator inside. Under the shim these run
/// their default; here they would follow the table's own rules for them.
fn rules(
    published: &Published,
    column: &Column,
    library: Library,
    ranks: Ranks,
    replaced: &mut Vec<ReplacedNote>,
) -> Vec<Rule> {
    let mut rules = plan::rules(column, library, ranks, &[], &mut |note| replaced.push(note));
    for rule in &mut rules {
        let Some(variant) = &rule.variant else {
            continue;
        };
        let ruled = |inner: &&Collective| {
            let other = |status: &&CellStatistics| status.cell.collective == **inner;
            published
                .cells
                .iter()
                .filter(other)
                .any(|status| !catalogue::is_default(&status.best))
        };
        if let Some(inner) = inside(variant).iter().find(ruled) {
            let cell = column
                .cells
                .iter()
                .rev()
                .find(|status| status.cell.bytes.lo <= rule.from_bytes);
            replaced.push(ReplacedNote {
                cell: cell.map_or_else(String::new, |status| status.cell.to_string()),
                winner: variant.name.to_string(),
                instead: "default".to_owned(),
                reason: format!(
                    "it runs {inner} inside, for which this table has rules of its own"
                ),
            });
            rule.variant = None;
        }
    }
    rules.dedup_by(|next, previous| next.variant == previous.variant);
    let collective = column.cells.first().map(|status| status.cell.collective);
    if rules.len() > 1 && collective.is_some_and(|collective| !ranks_see_one_size(collective)) {
        replaced.extend(column.cells.iter().map(|status| ReplacedNote {
            cell: status.cell.to_string(),
            winner: status.best.clone(),
            instead: "default".to_owned(),
            reason: "Open MPI's rules see no size there that all ranks share, and the sizes' winners differ"
                .to_owned(),
        }));
        rules.truncate(1);
        rules[0].variant = None;
    }
    rules
}

/// Whether the size by which a rule is found is the message's, and alike on all ranks. Gather and
/// scatter take each rank's own send arguments, of which some have no meaning; scan and exscan leave the
/// count out; alltoallv adds up what the rank sends.
const fn ranks_see_one_size(collective: Collective) -> bool {
    !matches!(
        collective,
        Collective::Gather
            | Collective::Scatter
            | Collective::Scan
            | Collective::Exscan
            | Collective::Alltoallv
    )
}

/// The collectives of the same communicator that an algorithm runs inside.
fn inside(variant: &Variant) -> &'static [Collective] {
    match (variant.collective, variant.name.algorithm.as_str()) {
        (Collective::Allreduce, "nonoverlapping") => &[Collective::Reduce, Collective::Bcast],
        (Collective::Allgather, "linear") => &[Collective::Bcast],
        (Collective::Allgatherv, "default") => &[Collective::Gatherv, Collective::Bcast],
        (Collective::ReduceScatter, "non-overlapping") => {
            &[Collective::Reduce, Collective::Scatterv]
        }
        (Collective::ReduceScatterBlock, "basic_linear") => {
            &[Collective::Reduce, Collective::Scatter]
        }
        _ => &[],
    }
}

fn push(blocks: &mut Vec<Block>, block: Block) {
    if blocks.last().is_none_or(|last| last.lines != block.lines) {
        blocks.push(block);
    }
}

fn default_block(first: u64) -> Block {
    Block {
        ranks: Ranks { first, last: first },
        lines: vec![(0, 0, 0, 0)],
        names: vec!["default".to_owned()],
    }
}

/// The column whose winners stand for a number of ranks, and those that give way.
///
/// With a job's shape: ranks fill its nodes one after the other. Without: the shape with the most
/// samples, then with the most measured cells, then on the fewest nodes.
fn choose_column<'a>(
    columns: &'a [Column<'a>],
    ranks: u64,
    shape: Option<JobShape>,
) -> (Option<&'a Column<'a>>, Vec<&'a Column<'a>>) {
    let candidates = columns
        .iter()
        .filter(|column| column.ppn_of(ranks).is_some() && column.within(shape));
    let winner = match shape {
        Some(shape) => {
            let (ppn, nodes) = (ranks.min(shape.ppn), ranks.div_ceil(shape.ppn));
            candidates
                .clone()
                .find(|column| column.nodes.contains(nodes) && column.ppn.contains(ppn))
        }
        None => candidates.clone().max_by_key(|column| {
            (
                column.samples(),
                column.measured_cells(),
                std::cmp::Reverse(column.nodes.lo),
            )
        }),
    };
    let others = candidates
        .filter(|column| winner.is_none_or(|winner| !std::ptr::eq(*column, winner)))
        .collect();
    (winner, others)
}

fn block(collective: Collective, ranks: Ranks, rules: &[Rule]) -> Block {
    let per_block = matches!(collective, Collective::Allgather | Collective::Alltoall);
    let scale = if per_block { ranks.first } else { 1 };
    let mut block = Block {
        ranks,
        lines: Vec::new(),
        names: Vec::new(),
    };
    for rule in rules {
        // The reader takes sizes as signed 64-bit numbers.
        let Some(size) = rule
            .from_bytes
            .checked_mul(scale)
            .filter(|size| *size <= i64::MAX as u64)
        else {
            break;
        };
        let (algorithm, fanout, segsize) = match &rule.variant {
            None => (0, 0, 0),
            Some(variant) => {
                let Steering::OpenMpi { algorithm, .. } = variant.steering else {
                    unreachable!("a variant of Open MPI")
                };
                let fanout = if variant.name.algorithm == "chain" {
                    CHAIN_FANOUT
                } else {
                    0
                };
                (algorithm, fanout, variant.name.segsize.unwrap_or(0))
            }
        };
        block.lines.push((size, algorithm, fanout, segsize));
        block.names.push(
            rule.variant
                .as_ref()
                .map_or("default".to_owned(), |variant| variant.name.to_string()),
        );
    }
    block
}

fn note_shape(
    notes: &mut Vec<ShapeNote>,
    collective: Collective,
    ranks: Ranks,
    winner: &Column,
    others: &[&Column],
) {
    let bests = |column: &Column| -> Vec<_> {
        column
            .cells
            .iter()
            .map(|status| (status.cell.bytes, status.best.clone()))
            .collect()
    };
    let own = bests(winner);
    let instead_of: Vec<_> = others
        .iter()
        .filter(|other| bests(other) != own)
        .map(|other| other.shape())
        .collect();
    if instead_of.is_empty() {
        return;
    }
    if let Some(last) = notes.last_mut() {
        let same = last.nodes == winner.nodes.into()
            && last.ppn == winner.ppn.into()
            && last.instead_of == instead_of;
        if same && last.ranks.1 == Some(ranks.first - 1) {
            last.ranks.1 = Some(ranks.last);
            return;
        }
    }
    notes.push(ShapeNote {
        collective: collective.name(),
        ranks: (ranks.first, Some(ranks.last)),
        nodes: winner.nodes.into(),
        ppn: winner.ppn.into(),
        instead_of,
    });
}

fn warn(published: &Published, library: Library, notes: &mut Notes) {
    let exported = |need: Need| {
        published.cells.iter().any(|status| {
            let variant =
                colltune_core::catalogue::find(library, status.cell.collective, &status.best);
            variant.is_some_and(|variant| variant.needs.contains(&need))
        })
    };
    if exported(Need::Commutative) {
        notes.warnings.push(
            "Open MPI does not check for non-commutative operations where a rules file names the algorithm \
             (open-mpi/ompi issue 7765). Programs that reduce with such operations can get wrong results from \
             this table; run them without it."
                .to_owned(),
        );
    }
    if exported(Need::CountAtLeastRanks) || exported(Need::CountAtLeastPowerOfTwo) {
        notes.warnings.push(format!(
            "Rules know bytes, not elements: where an algorithm needs at least so many elements, its rule begins \
             as if elements had {ELEMENT_BYTES} bytes. With larger elements the library falls back by itself."
        ));
    }
    if !notes.shapes.is_empty() {
        notes.warnings.push(
            "Rules files have no axis for nodes: `shapes` names, for each number of ranks, the shape whose winners \
             the rules hold. --nodes and --ppn choose another."
                .to_owned(),
        );
    }
    if notes.exported.contains("allgather") || notes.exported.contains("alltoall") {
        notes.warnings.push(
            "For allgather and alltoall the library measures what the send arguments say; a call with MPI_IN_PLACE \
             whose send count is 0 is treated as one of 0 bytes."
                .to_owned(),
        );
    }
    if library.version.0 >= 5 {
        notes.warnings.push(
            "From Open MPI 5 on, coll/han (priority 35) takes communicators over several nodes away from coll/tuned, \
             which reads these rules; OMPI_MCA_coll_han_priority=0 gives them back, and changes the default too. \
             Forced algorithms (OMPI_MCA_coll_tuned_*_algorithm) stand above the rules there."
                .to_owned(),
        );
    }
}

/// The script that switches the table on, to be read with `.`.
pub fn activate() -> String {
    "# Switches on the tables of this folder for Open MPI: . /path/to/activate.sh\n\
     # With bash and zsh the folder is found; in another shell set COLLTUNE_TABLES to it before.\n\
     COLLTUNE_TABLES=${COLLTUNE_TABLES:-$(cd \"$(dirname \"${BASH_SOURCE:-$0}\")\" && pwd)}\n\
     if [ -r \"$COLLTUNE_TABLES/rules.conf\" ]; then\n\
     \x20   export OMPI_MCA_coll_tuned_use_dynamic_rules=1\n\
     \x20   export OMPI_MCA_coll_tuned_dynamic_rules_filename=\"$COLLTUNE_TABLES/rules.conf\"\n\
     else\n\
     \x20   echo \"colltune: no rules.conf in $COLLTUNE_TABLES; nothing switched on\" >&2\n\
     fi\n\
     unset COLLTUNE_TABLES\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::plan::tests::{Row, published};

    const LIBRARY: &str = "openmpi-4.1.4";

    /// MSGSIZE, then algorithm, fan-out and segment size.
    type Lines = Vec<(u64, (u64, u64, u64))>;

    /// Reads a rules file and looks a call up as the library documents it, independent of the writer.
    fn lookup(text: &str, collective: u32, ranks: u64, measure: u64) -> (u64, u64, u64) {
        let plain: Vec<&str> = text
            .lines()
            .map(|line| line.split('#').next().unwrap())
            .collect();
        let mut numbers = plain
            .iter()
            .flat_map(|line| line.split_whitespace())
            .map(|word| word.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        let mut found = (0, 0, 0);
        for _ in 0..next() {
            let id = next();
            let mut best: Option<Lines> = None;
            let mut passed = false;
            for _ in 0..next() {
                let (size, count) = (next(), next());
                let lines: Lines = (0..count)
                    .map(|_| (next(), (next(), next(), next())))
                    .collect();
                assert_eq!(lines[0].0, 0, "the first line of each block is for 0 bytes");
                assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
                passed |= size > ranks;
                if best.is_none() || !passed {
                    best = Some(lines);
                }
            }
            if id == u64::from(collective) {
                found = best
                    .unwrap()
                    .iter()
                    .rev()
                    .find(|(size, _)| *size <= measure)
                    .unwrap()
                    .1;
            }
        }
        assert_eq!(numbers.next(), None);
        found
    }

    fn table(rows: &[Row], shape: Option<JobShape>) -> (String, Notes) {
        let mut notes = Notes::default();
        let text = rules_file(
            &published(LIBRARY, rows),
            LIBRARY.parse().unwrap(),
            shape,
            &mut notes,
        );
        (text, notes)
    }

    #[test]
    fn every_boundary_is_kept_at_both_sides_in_the_librarys_own_measure() {
        let any = (1, None);
        let (text, _) = table(
            &[
                (
                    Collective::Allgather,
                    (0, Some(1024)),
                    any,
                    any,
                    "native:ring",
                ),
                (
                    Collective::Allgather,
                    (1024, Some(4096)),
                    any,
                    any,
                    "default",
                ),
                (
                    Collective::Allgather,
                    (4096, None),
                    any,
                    any,
                    "native:bruck",
                ),
                (
                    Collective::Bcast,
                    (0, Some(32769)),
                    any,
                    any,
                    "native:chain",
                ),
                (
                    Collective::Bcast,
                    (32769, None),
                    any,
                    any,
                    "native:chain:segsize=32KiB",
                ),
            ],
            None,
        );
        for ranks in [2, 3, 8, 100, 512] {
            let at = |bytes: u64| lookup(&text, 0, ranks, bytes * ranks).0;
            assert_eq!(
                [at(0), at(1023), at(1024), at(4095), at(4096), at(1 << 30)],
                [4, 4, 0, 0, 2, 2],
                "{ranks}"
            );
        }
        for ranks in [3, 8, 100, 513, 1 << 20] {
            let at = |bytes: u64| lookup(&text, 7, ranks, bytes);
            assert_eq!(at(32768), (2, 4, 0));
            assert_eq!(at(32769), (2, 4, 32768));
        }
        assert_eq!(
            lookup(&text, 7, 2, 0),
            (0, 0, 0),
            "chain needs more than two ranks"
        );
        assert_eq!(lookup(&text, 2, 8, 0), (0, 0, 0), "no rule for allreduce");
        assert_eq!(lookup(&text, 0, 1, 0), (0, 0, 0));
    }

    #[test]
    fn variants_stand_only_for_ranks_that_meet_their_needs() {
        let any = (1, None);
        let (text, notes) = table(
            &[
                (
                    Collective::Allgather,
                    (0, Some(64)),
                    any,
                    any,
                    "native:two_proc",
                ),
                (
                    Collective::Allgather,
                    (64, Some(128)),
                    any,
                    any,
                    "native:recursive_doubling",
                ),
                (
                    Collective::Allgather,
                    (128, None),
                    any,
                    any,
                    "native:neighbor",
                ),
                (
                    Collective::Allreduce,
                    (0, None),
                    any,
                    any,
                    "native:segmented_ring:segsize=64KiB",
                ),
            ],
            None,
        );
        for ranks in 2..40u64 {
            let at = |bytes: u64| lookup(&text, 0, ranks, bytes * ranks).0;
            assert_eq!(at(0), if ranks == 2 { 6 } else { 0 });
            assert_eq!(at(64), if ranks.is_power_of_two() { 3 } else { 0 });
            assert_eq!(at(128), if ranks.is_multiple_of(2) { 5 } else { 0 });
            assert_eq!(lookup(&text, 2, ranks, 65536 * ranks - 1), (0, 0, 0));
            assert_eq!(lookup(&text, 2, ranks, 65536 * ranks), (5, 0, 65536));
        }
        assert!(notes.warnings.iter().any(|text| text.contains("7765")));
        assert!(
            notes
                .replaced
                .iter()
                .any(|note| note.reason.contains("power-of-two"))
        );
    }

    #[test]
    fn a_jobs_shape_chooses_the_column_and_bounds_the_table() {
        let rows = [
            (
                Collective::Bcast,
                (0, None),
                (1, Some(2)),
                (1, None),
                "native:knomial",
            ),
            (
                Collective::Bcast,
                (0, None),
                (2, None),
                (1, None),
                "native:pipeline",
            ),
        ];
        let (text, notes) = table(&rows, Some(JobShape { nodes: 4, ppn: 2 }));
        assert_eq!(lookup(&text, 7, 2, 8).0, 0);
        assert_eq!(
            [3, 8, 9].map(|ranks| lookup(&text, 7, ranks, 8).0),
            [3, 3, 0]
        );
        assert!(!notes.shapes.is_empty());
        let (text, notes) = table(&rows, None);
        assert_eq!(
            [3, 8, 512].map(|ranks| lookup(&text, 7, ranks, 8).0),
            [7, 7, 7],
            "fewest nodes"
        );
        assert_eq!(notes.shapes[0].instead_of[0].nodes, (2, None));
    }

    #[test]
    fn algorithms_that_run_a_ruled_collective_inside_keep_the_default() {
        let any = (1, None);
        let alone = (
            Collective::Allreduce,
            (0, None),
            any,
            any,
            "native:nonoverlapping",
        );
        let inner = (Collective::Bcast, (4096, None), any, any, "native:binomial");
        let (text, _) = table(&[alone], None);
        assert_eq!(lookup(&text, 2, 8, 64).0, 2);
        let (text, notes) = table(&[alone, inner], None);
        assert_eq!(lookup(&text, 2, 8, 64).0, 0);
        assert!(
            notes
                .replaced
                .iter()
                .any(|note| note.reason.contains("runs bcast inside"))
        );
        for row in super::super::plan::tests::alone() {
            assert!(!inside(&row).is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn a_table_without_winners_is_readable_and_says_nothing() {
        let (text, notes) = table(
            &[(
                Collective::Bcast,
                (0, None),
                (1, None),
                (1, None),
                "default",
            )],
            None,
        );
        assert_eq!(lookup(&text, 7, 8, 100), (0, 0, 0));
        assert!(notes.exported.is_empty());
    }

    #[test]
    fn the_file_stays_as_its_golden_copy() {
        let (text, _) = table(
            &[
                (
                    Collective::Allreduce,
                    (0, Some(4096)),
                    (1, None),
                    (1, Some(9)),
                    "default",
                ),
                (
                    Collective::Allreduce,
                    (4096, None),
                    (1, None),
                    (1, Some(9)),
                    "native:ring",
                ),
                (
                    Collective::Allreduce,
                    (0, None),
                    (1, None),
                    (9, None),
                    "default",
                ),
                (
                    Collective::Alltoall,
                    (0, Some(512)),
                    (1, None),
                    (1, None),
                    "native:modified_bruck",
                ),
                (
                    Collective::Alltoall,
                    (512, None),
                    (1, None),
                    (1, None),
                    "default",
                ),
            ],
            Some(JobShape { nodes: 1, ppn: 3 }),
        );
        crate::golden::check("export/openmpi-rules.conf", &text);
    }
}
