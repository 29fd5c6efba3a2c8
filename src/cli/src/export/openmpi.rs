//! Open MPI's rules file (the classic format, version 1: read by 4.1 and 5.0), and how it is switched on.
//!
//! The library takes the last block whose COMMSIZE is not above the communicator's size (and the first block below
//! it). In it the library takes the last line whose MSGSIZE is not above its own measure of the message; algorithm 0
//! means its own choice. The measure: bytes of the message, but for allgather and alltoall the bytes of one block
//! times the ranks. Source: Open MPI 4.1.4, `coll_tuned_dynamic_file.c`, `coll_tuned_decision_dynamic.c`.

use std::fmt::Write;

use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_models::statistics::CellStatistics;

use super::notes::{Notes, ReplacedNote};
use super::plan::{self, Column, ELEMENT_BYTES, JobShape, Ranks, Rule};
use super::shapes;
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

/// The blocks of one collective, ascending in ranks; the last one is open.
fn blocks(
    published: &Published,
    library: Library,
    collective: Collective,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> Vec<Block> {
    let columns = plan::columns(published, collective);
    let mut replaced = Vec::new();
    let beyond = !matches!(collective, Collective::Allgather | Collective::Alltoall);
    let parts = shapes::by_ranks(&columns, shape, beyond, notes, |column, ranks| {
        rules(published, column, library, ranks, &mut replaced)
    });
    let mut blocks: Vec<Block> = Vec::new();
    for (ranks, rules) in &parts {
        let block = match rules.is_empty() {
            true => default_block(ranks.first),
            false => block(collective, *ranks, rules),
        };
        if blocks.last().is_none_or(|last| last.lines != block.lines) {
            blocks.push(block);
        }
    }
    replaced.sort();
    replaced.dedup();
    notes.replaced.extend(replaced);
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

fn default_block(first: u64) -> Block {
    Block {
        ranks: Ranks { first, last: first },
        lines: vec![(0, 0, 0, 0)],
        names: vec!["default".to_owned()],
    }
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
    if exported(Need::PlainElements) {
        notes.warnings.push(
            "The rings of Open MPI's allreduce write outside of their memory where a program combines elements with \
             its own operation whose data do not begin at their address. The library's own choice takes them, too."
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

/// The variables that switch rules on, and name their file.
pub const SWITCH: &str = "OMPI_MCA_coll_tuned_use_dynamic_rules";
pub const RULES: &str = "OMPI_MCA_coll_tuned_dynamic_rules_filename";

/// The script that switches the table on, to be read with `.`.
pub fn activate() -> String {
    format!(
        "# Switches on the tables of this folder for Open MPI: . /path/to/activate.sh\n\
         # With bash and zsh the folder is found; in another shell set COLLTUNE_TABLES to it before.\n\
         COLLTUNE_TABLES=${{COLLTUNE_TABLES:-$(cd \"$(dirname \"${{BASH_SOURCE:-$0}}\")\" && pwd)}}\n\
         if [ -r \"$COLLTUNE_TABLES/rules.conf\" ]; then\n\
         \x20   export {SWITCH}=1\n\
         \x20   export {RULES}=\"$COLLTUNE_TABLES/rules.conf\"\n\
         else\n\
         \x20   echo \"colltune: no rules.conf in $COLLTUNE_TABLES; nothing switched on\" >&2\n\
         fi\n\
         unset COLLTUNE_TABLES\n"
    )
}

#[cfg(test)]
mod tests;
