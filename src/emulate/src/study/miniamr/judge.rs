//! What the paper says, what came out, and what may be called a reproduction of it.

use super::figures::named;
use super::matrix::{DISTANCES, Matrix};
use super::results::{DECKS, LAST_RANKS, OnNetwork, Results, SPHERE_BLOCK, Scaled};
use super::script::Script;
use crate::study::finding::{Finding, Verdict, within};
use crate::study::variation::names;

/// Four spheres in table I: calculation, communication, refinement, percent.
const FOUR_SPHERES: [f64; 3] = [30.1, 69.6, 0.3];
/// Blocks a rank on [`LAST_RANKS`].
const LAST_BLOCKS: f64 = 30.0;
/// From here on the paper's times grow faster.
const KNEE: usize = 32_768;

type Number = fn(&OnNetwork) -> f64;

/// Numbers that depend on the network, each with the paper's where it has one.
const NUMBERS: [(&str, Option<f64>, Number); 6] = [
    (
        "table I, sphere-hits-block: % in communication, which is set",
        Some(SPHERE_BLOCK[1]),
        |on| on.spent[0].shares()[1],
    ),
    (
        "table I, four-spheres: % in calculation",
        Some(FOUR_SPHERES[0]),
        |on| on.spent[1].shares()[0],
    ),
    (
        "table I, four-spheres: % in communication",
        Some(FOUR_SPHERES[1]),
        |on| on.spent[1].shares()[1],
    ),
    (
        "fig. 5 (a): all the rest a block on the most ranks over that on 16",
        None,
        |on| rest(&on.scaled[0]).pop().unwrap_or(1.0),
    ),
    (
        "four-spheres, communication with the modified bisection over that without",
        Some(1.14),
        |on| on.modified.comm / on.spent[1].comm,
    ),
    (
        "four-spheres, refinement with the modified bisection over that without",
        Some(3.0),
        |on| on.modified.refine / on.spent[1].refine,
    ),
];

pub fn findings(results: &Results) -> Vec<Finding> {
    let mut all = table_1(&results.own);
    all.extend(fig_5(&results.own.scaled));
    all.push(blocks(results));
    all.extend(bisection(&results.scripts[1], &results.own));
    all.extend(matrices(results));
    all.extend(on_other_networks(results));
    all
}

/// What other networks make of it: numbers, and how many rows are judged otherwise.
fn on_other_networks(results: &Results) -> Vec<Finding> {
    let row = |what: &str, paper: Option<f64>, ours: Vec<f64>| Finding {
        paper: vec![paper; ours.len()],
        note: "network varied, both scales set anew".to_owned(),
        ..finding("M*", format!("{what}: {}", names()), &[], &ours, "shown")
    };
    let others = &results.others;
    let mut all = Vec::new();
    for (what, paper, number) in NUMBERS {
        all.push(row(what, paper, others.iter().map(number).collect()));
    }
    let verdicts = |on: &OnNetwork| -> Vec<Verdict> {
        let judged = [
            table_1(on),
            fig_5(&on.scaled),
            bisection(&results.scripts[1], on),
        ];
        judged.iter().flatten().map(|row| row.verdict).collect()
    };
    let of_own = verdicts(&results.own);
    let n_others = |other: &OnNetwork| {
        let pairs = verdicts(other).into_iter().zip(&of_own);
        pairs.filter(|(verdict, own)| verdict != *own).count() as f64
    };
    let what = "table I, fig. 5 and the modified bisection: rows that are judged otherwise";
    all.push(row(what, None, others.iter().map(n_others).collect()));
    all
}

fn finding(
    id: &'static str,
    what: String,
    paper: &[f64],
    ours: &[f64],
    tolerance: &str,
) -> Finding {
    Finding {
        id,
        what,
        paper: paper.iter().map(|&x| Some(x)).collect(),
        ours: ours.to_vec(),
        tolerance: tolerance.to_owned(),
        verdict: Verdict::NotJudged,
        note: String::new(),
    }
}

fn table_1(on: &OnNetwork) -> Vec<Finding> {
    let what = |i: usize| {
        format!(
            "table I, {}: calculation, communication, refinement, %",
            DECKS[i].name
        )
    };
    let first = on.spent[0].shares();
    let is_met = within(&SPHERE_BLOCK.map(Some), &first, 0.1);
    let set = Finding {
        verdict: match is_met {
            true => Verdict::NotJudged,
            false => Verdict::NotReproduced,
        },
        note: match is_met {
            true => "set",
            false => "could not be set on this network",
        }
        .to_owned(),
        ..finding("M1", what(0), &SPHERE_BLOCK, &first, "")
    };
    let shares = on.spent[1].shares();
    let near = within(&FOUR_SPHERES.map(Some), &shares, 3.0);
    let order = shares[1] > shares[0] && shares[0] > shares[2];
    let predicted = Finding {
        verdict: Verdict::of_both(near, order),
        note: "objects and blocks are ours".to_owned(),
        ..finding("M1", what(1), &FOUR_SPHERES, &shares, "3 points")
    };
    vec![set, predicted]
}

/// Times a block: of the first number of ranks one.
fn over_first(scaled: &[Scaled], part: impl Fn(&Scaled) -> f64) -> Vec<f64> {
    let of = |scaled: &Scaled| part(scaled) / scaled.blocks_per_rank;
    scaled.iter().map(|s| of(s) / of(&scaled[0])).collect()
}

/// All but calculation.
fn rest(scaled: &[Scaled]) -> Vec<f64> {
    over_first(scaled, |s| s.spent.comm + s.spent.sums + s.spent.refine)
}

fn fig_5(scaled: &[Vec<Scaled>; 2]) -> Vec<Finding> {
    let ranks: Vec<String> = scaled[0].iter().map(|s| s.ranks.to_string()).collect();
    let ranks = ranks.join(", ");
    let compute = over_first(&scaled[0], |s| s.spent.compute);
    let calculation = Finding {
        paper: vec![Some(1.0); compute.len()],
        note: "a block costs the same everywhere here: it could not be otherwise".to_owned(),
        ..finding(
            "M2",
            format!("fig. 5 (a): calculation a block over that on 16 ({ranks})"),
            &[],
            &compute,
            "shown",
        )
    };
    let comm = rest(&scaled[0]);
    let rises = comm.is_sorted();
    let knee = scaled[0].iter().position(|s| s.ranks == KNEE);
    let knee = knee.filter(|&i| i > 0 && i + 1 < comm.len());
    // Growth for each doubling of the ranks, before and behind.
    let per_doubling = |i: usize, j: usize| {
        let doublings = (scaled[0][j].ranks as f64 / scaled[0][i].ranks as f64).log2();
        (comm[j] / comm[i]).ln() / doublings
    };
    let faster = knee.map(|i| per_doubling(i, comm.len() - 1) > per_doubling(0, i));
    let growth = Finding {
        paper: vec![None; comm.len()],
        verdict: match faster {
            Some(faster) => Verdict::of_both(faster && rises, rises),
            None if rises => Verdict::ShapeOnly,
            None => Verdict::NotReproduced,
        },
        note: match faster {
            Some(_) => String::new(),
            None => "ends before the paper's knee at 32 K".to_owned(),
        },
        ..finding(
            "M2",
            format!("fig. 5 (a): all the rest a block over that on 16 ({ranks})"),
            &[],
            &comm,
            "rises, faster behind 32 K",
        )
    };
    let total = |scaled: &[Scaled]| over_first(scaled, |s| s.spent.total());
    // The last number of ranks that both have.
    let last = scaled[0].len().min(scaled[1].len()) - 1;
    let ends = scaled.each_ref().map(|scaled| total(scaled)[last]);
    let flatter = Finding {
        paper: vec![None; 2],
        note: "four spheres for the paper's shaped charge, which is no deck of ours".to_owned(),
        ..finding(
            "M2",
            format!(
                "fig. 5: time a block on {} over that on 16, (a) and another deck",
                scaled[0][last].ranks
            ),
            &[],
            &ends,
            "shown",
        )
    };
    vec![calculation, growth, flatter]
}

/// How thin the mesh gets as root blocks and ranks grow together.
fn blocks(results: &Results) -> Finding {
    let (ranks, last) = results.last_mesh;
    let paper = (ranks == LAST_RANKS).then_some(LAST_BLOCKS);
    let first = results.own.scaled[0][0].blocks_per_rank;
    Finding {
        paper: vec![Some(DECKS[0].blocks_per_rank), paper],
        verdict: match paper {
            Some(paper) => Verdict::of_both((last / paper - 1.0).abs() <= 0.25, last < first),
            None => Verdict::NotJudged,
        },
        note: "the first set by the depth of refinement; objects are ours".to_owned(),
        ..finding(
            "M2",
            format!("fig. 5 (a): blocks a rank on 16 and on {ranks}"),
            &[],
            &[first, last],
            "25 %",
        )
    }
}

fn bisection([before, after]: &[Script; 2], on: &OnNetwork) -> Vec<Finding> {
    let row =
        |what: &str, paper: [f64; 2], ours: [f64; 2], tolerance: &str, holds: [bool; 2]| Finding {
            verdict: Verdict::of_both(holds[0], holds[1]),
            note: "size of objects and blocks ours".to_owned(),
            ..finding(
                "M3",
                format!("four-spheres, {what}"),
                &paper,
                &ours,
                tolerance,
            )
        };
    let messages = [before.messages_per_rank, after.messages_per_rank];
    let growth = messages[1] / messages[0] - 1.0;
    let bytes = [before.message_bytes, after.message_bytes].map(|bytes| bytes / 1000.0);
    let moved = [before.moved_blocks, after.moved_blocks].map(|n| n as f64);
    let times = moved[1] / moved[0].max(1.0);
    let (spent, modified) = (&on.spent[1], &on.modified);
    let comm = modified.comm / spent.comm;
    let refine = modified.refine / spent.refine;
    vec![
        row(
            "messages a rank and stage, and with the modified bisection",
            [17.3, 20.4],
            messages,
            "+5 to +35 %",
            [(0.05..=0.35).contains(&growth), growth > 0.0],
        ),
        row(
            "KB a message",
            [593.0, 622.0],
            bytes,
            "more",
            [bytes[1] > bytes[0]; 2],
        ),
        row(
            "moved blocks, and how many times as many",
            [1.0, 8.0],
            [1.0, times],
            "4 or more",
            [times >= 4.0, times > 1.0],
        ),
        row(
            "communication",
            [1.0, 1.14],
            [1.0, comm],
            "more",
            [comm > 1.0; 2],
        ),
        row(
            "refinement",
            [1.0, 3.0],
            [1.0, refine],
            "more",
            [refine > 1.0; 2],
        ),
    ]
}

fn matrices(results: &Results) -> Vec<Finding> {
    let distances: Vec<String> = DISTANCES.iter().map(u32::to_string).collect();
    let all = named(results);
    let of = |(name, title, matrix): &(String, String, &Matrix)| Finding {
        paper: vec![None; DISTANCES.len()],
        note: match name.contains("refinement") {
            true => "without the bisection's own messages".to_owned(),
            false => String::new(),
        },
        ..finding(
            "M4",
            format!(
                "{title}: % of messages to ranks no further than {}",
                distances.join(", ")
            ),
            &[],
            &matrix.within(),
            "shown",
        )
    };
    all.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::miniamr::script::Spent;

    fn scaled(of: &[(usize, f64)]) -> Vec<Scaled> {
        let one = |&(ranks, comm): &(usize, f64)| Scaled {
            ranks,
            blocks_per_rank: 10.0,
            spent: Spent {
                compute: 50.0,
                sums: 1.0,
                comm,
                refine: 1.0,
            },
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn growth_is_reproduced_if_it_is_faster_behind_the_knee_and_a_fall_is_none() {
        let verdict = |of: &[(usize, f64)]| fig_5(&[scaled(of), scaled(of)])[1].verdict;
        let knee = [
            (16, 100.0),
            (1024, 110.0),
            (32_768, 120.0),
            (131_072, 200.0),
        ];
        assert_eq!(verdict(&knee), Verdict::Reproduced);
        let even = [
            (16, 100.0),
            (1024, 200.0),
            (32_768, 400.0),
            (131_072, 410.0),
        ];
        assert_eq!(verdict(&even), Verdict::ShapeOnly);
        assert_eq!(
            verdict(&even[..2]),
            Verdict::ShapeOnly,
            "it ended too early"
        );
        let falls = [(16, 100.0), (1024, 90.0), (32_768, 80.0), (131_072, 200.0)];
        assert_eq!(verdict(&falls), Verdict::NotReproduced);
    }
}
