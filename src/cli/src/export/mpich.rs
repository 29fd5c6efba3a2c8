//! MPICH's selection files, and how they are switched on.
//!
//! Two levels decide. The device level (`ch4.json`) composes a collective from parts inside and
//! between nodes; the `mpir` level (`mpir.json`) chooses the algorithm on one communicator. Where
//! a variant won, the device level is told to hand the whole communicator to the `mpir` level, as
//! the shim's steering does; everywhere else both levels keep MPICH's own tree, which a file
//! replaces as a whole and which therefore is reproduced (`mpich-4.0.rows`).
//!
//! Sizes: `avg_msg_size` is the bytes of the message (allreduce, bcast, reduce) or of one block
//! (alltoall); allgather(v) have only `total_msg_size`, one block times the ranks, and so have
//! reduce_scatter(_block), the message. Of a scan the tree knows no size and no operation, so that its
//! winners have no place. Nodes are told by
//! `comm_avg_ppn` and `comm_size`. Source: MPICH 4.0.2, `csel.c`, `ch4_coll_impl.h`.

use anyhow::bail;
use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;

use super::csel::{Row, Tree};
use super::notes::{Notes, ReplacedNote};
use super::plan::{self, JobShape, Ranks, Rule};
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

const ROWS: &str = include_str!("mpich-4.0.rows");
/// What the tree asks at each call, so that it need not be sure beforehand.
const TESTABLE: [Need; 6] = [
    Need::Commutative,
    Need::BuiltinOp,
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
    if (library.version.0, library.version.1) != (4, 0) {
        bail!(
            "export for {library}: a selection file replaces the library's own tree, and only that of MPICH 4.0 is \
             known to this colltune (csv and json work for every version)"
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
    for (name, _, _) in rows_of(level) {
        if collectives.last() != Some(&name) {
            collectives.push(name);
        }
    }
    let trees = collectives.into_iter().map(|name| {
        let own = built_in(level, name);
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

/// Collective, conditions and leaf of each row of a level.
fn rows_of(level: Level) -> impl Iterator<Item = (&'static str, Vec<&'static str>, String)> {
    let (wanted, prefix) = match level {
        Level::Mpir => ("mpir", "algorithm=MPIR_"),
        Level::Ch4 => ("ch4", "composition=MPIDI_"),
    };
    ROWS.lines()
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
fn built_in(level: Level, collective: &str) -> Tree {
    let rows: Vec<Row> = rows_of(level)
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
        // Parts that the library's own compositions run inside and between nodes stay as they are.
        let parts = ["comm_hierarchy=node_roots", "comm_hierarchy=node"]
            .map(|part| (part.to_owned(), tree.clone()));
        let mut keys = parts.to_vec();
        keys.push(("comm_hierarchy=any".to_owned(), by_size));
        (key.clone(), Tree::Keys(keys))
    });
    Tree::Keys(keys.collect())
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
                let rules = plan::rules(column, self.library, ranks, &TESTABLE, &mut |note| {
                    replaced.push(note)
                });
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
                Need::BuiltinOp => {
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
                let Steering::Mpich { algorithm } = variant.steering else {
                    unreachable!("a variant of MPICH")
                };
                format!("algorithm=MPIR_{name}_intra_{algorithm}")
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

/// The script that switches the tables on, to be read with `.`.
pub fn activate() -> String {
    "# Switches on the tables of this folder for MPICH: . /path/to/activate.sh\n\
     # With bash and zsh the folder is found; in another shell set COLLTUNE_TABLES to it before.\n\
     COLLTUNE_TABLES=${COLLTUNE_TABLES:-$(cd \"$(dirname \"${BASH_SOURCE:-$0}\")\" && pwd)}\n\
     if [ -r \"$COLLTUNE_TABLES/mpir.json\" ] && [ -r \"$COLLTUNE_TABLES/ch4.json\" ]; then\n\
     \x20   export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=\"$COLLTUNE_TABLES/mpir.json\"\n\
     \x20   export MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE=\"$COLLTUNE_TABLES/ch4.json\"\n\
     else\n\
     \x20   echo \"colltune: no mpir.json and ch4.json in $COLLTUNE_TABLES; nothing switched on\" >&2\n\
     fi\n\
     unset COLLTUNE_TABLES\n"
        .to_owned()
}

#[cfg(test)]
mod tests;
