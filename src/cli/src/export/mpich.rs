//! MPICH's selection files, and how they are switched on.
//!
//! Two levels decide. The device level (`ch4.json`) composes a collective from parts inside and
//! between nodes; the `mpir` level (`mpir.json`) chooses the algorithm on one communicator. Where a variant won, the
//! file makes the device level hand the whole communicator to the `mpir` level, as the shim's steering does.
//! Everywhere else both levels keep MPICH's own tree. A file replaces that as a whole, so it is reproduced
//! (`mpich-4.0.rows`, `mpich-4.1.rows`). An algorithm's radices and trees, which the files must spell out, are the
//! library's usual ones.
//!
//! Sizes: `avg_msg_size` is the bytes of the message (allreduce, bcast, reduce) or of one block
//! (alltoall); allgather(v) have only `total_msg_size`, one block times the ranks, and so have
//! reduce_scatter(_block), the message. Of a scan the tree knows no size and no operation, so that its
//! winners have no place. Nodes follow from `comm_avg_ppn` and `comm_size`. Source: MPICH 4.0.2 to 5.0.1, `csel.c`,
//! `csel_container.c`, `ch4_coll_impl.h`.

use anyhow::bail;
use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_models::statistics::CellStatistics;

use super::csel::{Row, Tree};
use super::notes::{Notes, ReplacedNote};
use super::plan::{self, Column, JobShape, Ranks, Rule};
use crate::published::Published;

/// The device's and the `mpir` level's file.
pub struct Files {
    pub mpir: String,
    pub ch4: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Mpir,
    Ch4,
}

/// The first and the last version whose own tree is known here.
const KNOWN: ((u16, u16), (u16, u16)) = ((4, 0), (5, 0));
const ROWS: &str = include_str!("mpich-4.0.rows");
const ROWS_SINCE_4_1: &str = include_str!("mpich-4.1.rows");
/// More ranks than a node has; that times a machine's nodes is within C's int.
const ANY_PPN: u64 = 1 << 14;
/// What the tree asks at each call, so that it need not be sure beforehand.
const TESTABLE: [Need; 7] = [
    Need::Commutative,
    Need::BuiltinOp,
    Need::PlainElements,
    Need::CountAtLeastPowerOfTwo,
    Need::NotInPlace,
    Need::InPlace,
    Need::Hierarchy,
];
/// Sizes in a tree are C ints.
const LARGEST: u64 = i32::MAX as u64;

/// Makes both files.
///
/// Errors: a version whose own tree is not known here.
pub fn files(
    published: &Published,
    library: Library,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> anyhow::Result<Files> {
    let (first, last) = KNOWN;
    if !library.is_at_least(first) || library.is_at_least((last.0, last.1 + 1)) {
        bail!(
            "export for {library}: a selection file replaces the library's own tree, and only those of MPICH {}.{} to \
             {}.{} are known to this colltune; `colltune query` reads what was learned",
            first.0,
            first.1,
            last.0,
            last.1
        );
    }
    let mpir = level(published, library, shape, Level::Mpir, notes).to_file();
    let ch4 = level(published, library, shape, Level::Ch4, notes).to_file();
    notes.replaced.sort();
    notes.replaced.dedup();
    notes.warnings.push(
        "Communicators with different numbers of ranks on their nodes count as if they filled nodes one after the \
         other: MPICH's files know the ranks and their average per node only."
            .to_owned(),
    );
    if library.is_at_least((4, 1)) {
        notes.warnings.push(
            "Radices and trees of algorithms are the library's usual ones, whatever MPIR_CVAR_* said in the runs."
                .to_owned(),
        );
    }
    notes.warnings.push(
        "Every node must be able to read the files: MPICH does not survive a missing one."
            .to_owned(),
    );
    Ok(Files { mpir, ch4 })
}

fn level(
    published: &Published,
    library: Library,
    shape: Option<JobShape>,
    level: Level,
    notes: &mut Notes,
) -> Tree {
    let mut collectives: Vec<&str> = Vec::new();
    for (name, _, _) in rows_of(library, level) {
        if collectives.last() != Some(&name) {
            collectives.push(name);
        }
    }
    let trees = collectives.into_iter().map(|name| {
        let own = built_in(library, level, name);
        let tree = match Collective::from_name(name) {
            Some(Collective::Scan) => {
                if level == Level::Mpir {
                    notes.replaced.extend(scans_left_out(published));
                }
                own
            }
            Some(collective) => tuned(published, library, collective, shape, level, &own, notes),
            None => own,
        };
        (format!("collective={name}"), tree)
    });
    Tree::Keys(trees.collect())
}

/// The winners of scans, for which the default stands.
fn scans_left_out(published: &Published) -> impl Iterator<Item = ReplacedNote> {
    let scans = published
        .cells
        .iter()
        .filter(|status| status.cell.collective == Collective::Scan);
    scans
        .filter(|status| !catalogue::is_default(&status.best))
        .map(|status| ReplacedNote {
            cell: status.cell.to_string(),
            winner: status.best.clone(),
            instead: "default".to_owned(),
            reason: "MPICH's files know neither sizes nor operations of a scan".to_owned(),
        })
}

/// Whether a rule's size is one block, and the tree's all ranks' blocks.
const fn counts_all_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Allgatherv)
}

/// What the tree calls the size of a message.
const fn size_key(collective: Collective) -> &'static str {
    match collective {
        Collective::Allgather
        | Collective::Allgatherv
        | Collective::ReduceScatter
        | Collective::ReduceScatterBlock => "total_msg_size",
        _ => "avg_msg_size",
    }
}

/// Collective, conditions and leaf of a row.
type OwnRow = (&'static str, Vec<&'static str>, String);

/// The rows of a level of the library's own tree; those of a collective stand together.
fn rows_of(library: Library, level: Level) -> Vec<OwnRow> {
    let newer: Vec<OwnRow> = match library.is_at_least((4, 1)) {
        true => rows_in(ROWS_SINCE_4_1, level).collect(),
        false => Vec::new(),
    };
    let is_older = |(name, _, _): &OwnRow| newer.iter().all(|(newer, _, _)| newer != name);
    let mut rows: Vec<OwnRow> = rows_in(ROWS, level).filter(is_older).collect();
    rows.extend(newer);
    rows
}

fn rows_in(text: &'static str, level: Level) -> impl Iterator<Item = OwnRow> {
    let (wanted, prefix) = match level {
        Level::Mpir => ("mpir", "algorithm=MPIR_"),
        Level::Ch4 => ("ch4", "composition=MPIDI_"),
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(move |line| {
            let (left, name) = line.split_once(" -> ")?;
            let mut words = left.split(' ');
            (words.next() == Some(wanted)).then_some(())?;
            let collective = words.next()?;
            Some((
                collective,
                words.collect(),
                format!("{prefix}{}_{name}", capitalised(collective)),
            ))
        })
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// MPICH's own tree of one collective.
fn built_in(library: Library, level: Level, collective: &str) -> Tree {
    let rows: Vec<Row> = rows_of(library, level)
        .into_iter()
        .filter(|(name, _, _)| *name == collective)
        .map(|(_, conditions, leaf)| Row { conditions, leaf })
        .collect();
    Tree::from_rows(&rows)
}

/// The tree of one collective with the winners in it.
fn tuned(
    published: &Published,
    library: Library,
    collective: Collective,
    shape: Option<JobShape>,
    level: Level,
    own: &Tree,
    notes: &mut Notes,
) -> Tree {
    let Tree::Keys(by_type) = own else {
        return own.clone();
    };
    let keys = by_type.iter().map(|(key, tree)| {
        // The device hands these over as they are.
        let whole = level == Level::Ch4
            && matches!(
                collective,
                Collective::Allgather
                    | Collective::Allgatherv
                    | Collective::Alltoall
                    | Collective::ReduceScatter
                    | Collective::ReduceScatterBlock
            );
        if key != "comm_type=intra" || whole {
            return (key.clone(), tree.clone());
        }
        let context = Context {
            published,
            library,
            collective,
            shape,
            level,
            own: tree,
        };
        let by_size = context.by_size(notes);
        if by_size == *tree {
            return (key.clone(), by_size);
        }
        notes.exported.insert(collective.name().to_owned());
        (key.clone(), beside_parts(library, by_size, tree))
    });
    Tree::Keys(keys.collect())
}

/// `whole` for the program's communicators. The parts of them on which the library's own compositions run, inside
/// and between nodes, keep `own`.
fn beside_parts(library: Library, whole: Tree, own: &Tree) -> Tree {
    if library.is_at_least((5, 0)) {
        // Of parts nodes are not known there, and no condition on them holds.
        let program = format!("comm_avg_ppn<={ANY_PPN}");
        return Tree::either(&program, whole, "comm_avg_ppn=any", own.clone());
    }
    let mut keys = ["comm_hierarchy=node_roots", "comm_hierarchy=node"]
        .map(|part| (part.to_owned(), own.clone()))
        .to_vec();
    keys.push(("comm_hierarchy=any".to_owned(), whole));
    Tree::Keys(keys)
}

/// What MPICH calls the algorithm of a native variant.
fn algorithm(variant: &Variant) -> &'static str {
    match variant.steering {
        Steering::Mpich { algorithm } => algorithm,
        _ => unreachable!("a variant of MPICH"),
    }
}

/// The library's usual settings of an algorithm, as they stand behind a leaf; where a file does not name one, it is
/// what the memory held before. `None` for one whose settings no file can name.
fn settings(library: Library, collective: Collective, algorithm: &str) -> Option<String> {
    // Before 4.3 a tree is read as the number that it is inside.
    let [kary, knomial] = match library.is_at_least((4, 3)) {
        true => ["kary", "knomial_1"],
        false => ["0", "1"],
    };
    Some(match (collective, algorithm) {
        (Collective::Allreduce, "tree") => {
            format!(" tree_type={knomial} k=2 chunk_size=0 buffer_per_child=0")
        }
        (Collective::Bcast, "tree") => format!(" tree_type={kary} k=2 is_non_blocking=1"),
        (Collective::Bcast, "pipelined_tree") => {
            format!(" tree_type={kary} k=2 is_non_blocking=1 chunk_size=8192 recv_pre_posted=0")
        }
        // Its `single_phase_recv` is not read.
        (Collective::Barrier, "recexch") => return None,
        (_, "recexch" | "k_reduce_scatter_allgather") => " k=2 single_phase_recv=0".to_owned(),
        (_, "recursive_multiplying" | "k_dissemination") => " k=2".to_owned(),
        _ => String::new(),
    })
}

/// What the tree of one collective is made from.
struct Context<'a> {
    published: &'a Published,
    library: Library,
    collective: Collective,
    shape: Option<JobShape>,
    level: Level,
    /// The library's own tree for intracommunicators.
    own: &'a Tree,
}

impl Context<'_> {
    fn by_size(&self, notes: &mut Notes) -> Tree {
        let columns = plan::columns(self.published, self.collective);
        let open = plan::is_open(&columns, self.shape) && !counts_all_blocks(self.collective);
        let limit = plan::most_ranks(&columns, self.shape).min(LARGEST);
        let mut replaced = Vec::new();
        let mut by_ppn = |ranks: Ranks| {
            let mut parts: Vec<(u64, Tree)> = Vec::new();
            for column in &columns {
                let Some((_, last)) = column.ppn_of(ranks.first) else {
                    continue;
                };
                let mut rules = plan::rules(column, self.library, ranks, &TESTABLE, &mut |note| {
                    replaced.push(note)
                });
                replaced.extend(
                    rules
                        .iter_mut()
                        .filter_map(|rule| self.left_out(rule, column)),
                );
                let tree = if column.within(self.shape) {
                    self.by_bytes(&rules, ranks)
                } else {
                    self.own.clone()
                };
                parts.push((last, tree));
            }
            parts.sort_by_key(|(last, _)| *last);
            let rest = parts.pop().map_or(self.own.clone(), |(_, tree)| tree);
            Tree::chain(
                parts,
                |ppn| format!("comm_avg_ppn<={}", ppn.min(LARGEST)),
                "comm_size=any",
                rest,
            )
        };
        let mut parts = vec![(1, self.own.clone())];
        parts.extend(
            plan::rank_ranges(limit)
                .into_iter()
                .map(|ranks| (ranks.last, by_ppn(ranks))),
        );
        let rest = match open {
            true => by_ppn(Ranks {
                first: limit + 1,
                last: u64::MAX,
            }),
            false => self.own.clone(),
        };
        self.tell(replaced, notes);
        Tree::chain(
            parts,
            |ranks| format!("comm_size<={ranks}"),
            "comm_size=any",
            rest,
        )
    }

    /// Takes a variant that no file can name out of a rule.
    fn left_out(&self, rule: &mut Rule, column: &Column) -> Option<ReplacedNote> {
        let nameless = |variant: &mut Variant| {
            settings(self.library, self.collective, algorithm(variant)).is_none()
        };
        let variant = rule.variant.take_if(nameless)?;
        let of_rule = |status: &&&CellStatistics| status.cell.bytes.contains(rule.from_bytes);
        Some(ReplacedNote {
            cell: column.cells.iter().find(of_rule)?.cell.to_string(),
            winner: variant.name.to_string(),
            instead: "default".to_owned(),
            reason: "MPICH's files cannot name all of its settings".to_owned(),
        })
    }

    fn tell(&self, replaced: Vec<ReplacedNote>, notes: &mut Notes) {
        if self.level == Level::Mpir {
            notes.replaced.extend(replaced);
        }
    }

    fn by_bytes(&self, rules: &[Rule], ranks: Ranks) -> Tree {
        let mut parts: Vec<(u64, Tree)> = Vec::new();
        let mut rest = self.leaf(&rules[0]);
        for rule in &rules[1..] {
            // One block below `from_bytes` on the exact number of ranks; a range keeps its first.
            let bound = if counts_all_blocks(self.collective) {
                rule.from_bytes
                    .saturating_mul(ranks.first)
                    .saturating_sub(1)
            } else {
                rule.from_bytes - 1
            };
            if bound > LARGEST {
                break;
            }
            let previous = std::mem::replace(&mut rest, self.leaf(rule));
            parts.push((bound, previous));
        }
        let size = size_key(self.collective);
        let tree = Tree::chain(
            parts,
            |bound| format!("{size}<={bound}"),
            &format!("{size}=any"),
            rest,
        );
        if self.collective == Collective::Alltoall && tree != *self.own {
            // The send arguments of a call in place say nothing, so its size is not asked for.
            return Tree::either(
                "is_sendbuf_inplace=yes",
                self.own.clone(),
                "is_sendbuf_inplace=no",
                tree,
            );
        }
        tree
    }

    /// The variant with every test that its needs ask for; where one fails, the library's own tree.
    fn leaf(&self, rule: &Rule) -> Tree {
        let Some(variant) = &rule.variant else {
            return self.own.clone();
        };
        let mut tree = Tree::Leaf(self.leaf_name(variant));
        for need in &variant.needs {
            let own = self.own.clone();
            tree = match need {
                Need::Commutative => {
                    Tree::either("is_commutative=yes", tree, "is_commutative=no", own)
                }
                // Predefined operations take predefined types alone.
                Need::BuiltinOp | Need::PlainElements => {
                    Tree::either("is_op_built_in=yes", tree, "is_op_built_in=no", own)
                }
                Need::CountAtLeastPowerOfTwo => Tree::either("count<pow2", own, "count=any", tree),
                Need::Hierarchy => Tree::either(
                    "comm_size=node_comm_size",
                    own.clone(),
                    "comm_size=any",
                    Tree::either("comm_hierarchy=parent", tree, "comm_hierarchy=any", own),
                ),
                Need::InPlace => own, // asked for outside; no other algorithm runs in place
                _ => tree,
            };
        }
        tree
    }

    fn leaf_name(&self, variant: &Variant) -> String {
        let name = capitalised(self.collective.name());
        match self.level {
            Level::Mpir => {
                let algorithm = algorithm(variant);
                let settings =
                    settings(self.library, self.collective, algorithm).unwrap_or_default();
                format!("algorithm=MPIR_{name}_intra_{algorithm}{settings}")
            }
            // The composition that hands the whole communicator on, without parts.
            Level::Ch4 => {
                let whole = match self.collective {
                    Collective::Allreduce | Collective::Barrier => "beta",
                    _ => "gamma",
                };
                format!("composition=MPIDI_{name}_intra_composition_{whole}")
            }
        }
    }
}

/// The files, and the variables that name them.
pub const SELECTION: [(&str, &str); 2] = [
    ("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "mpir.json"),
    ("MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE", "ch4.json"),
];

/// The script that switches the tables on, to be read with `.`.
pub fn activate() -> String {
    let [(mpir, mpir_file), (ch4, ch4_file)] = SELECTION;
    format!(
        "# Switches on the tables of this folder for MPICH: . /path/to/activate.sh\n\
         # With bash and zsh the folder is found; in another shell set COLLTUNE_TABLES to it before.\n\
         COLLTUNE_TABLES=${{COLLTUNE_TABLES:-$(cd \"$(dirname \"${{BASH_SOURCE:-$0}}\")\" && pwd)}}\n\
         if [ -r \"$COLLTUNE_TABLES/{mpir_file}\" ] && [ -r \"$COLLTUNE_TABLES/{ch4_file}\" ]; then\n\
         \x20   export {mpir}=\"$COLLTUNE_TABLES/{mpir_file}\"\n\
         \x20   export {ch4}=\"$COLLTUNE_TABLES/{ch4_file}\"\n\
         else\n\
         \x20   echo \"colltune: no {mpir_file} and {ch4_file} in $COLLTUNE_TABLES; nothing switched on\" >&2\n\
         fi\n\
         unset COLLTUNE_TABLES\n"
    )
}

#[cfg(test)]
mod tests;
