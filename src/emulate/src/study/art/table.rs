//! Table I, and what may be called a reproduction of it.

use crate::study::finding::{Finding, Verdict, within};

/// Processors in the paper, of which each process has eight.
pub const PROCESSORS: [u32; 4] = [192, 256, 512, 1024];
pub const THREADS: u32 = 8;

/// Table I: SFCLB, GraphLB and GroupLB, percent.
pub const SCHEMES: [&str; 3] = ["sfclb", "graphlb", "grouplb"];
pub const COARSE: [[f64; 4]; 3] = [
    [92.83, 91.16, 82.51, 70.49],
    [64.89, 73.54, 53.76, 42.74],
    [96.63, 96.43, 95.84, 92.21],
];
pub const FINE: [[f64; 4]; 3] = [
    [90.21, 71.35, 53.74, 26.98],
    [85.48, 78.81, 54.02, 27.01],
    [91.17, 88.51, 51.73, 26.75],
];

/// GraphLB as METIS alone has it.
pub const RAW: &str = "graphlb:raw";

/// One case of the table by ours.
#[derive(Clone, Debug)]
pub struct Table {
    pub schemes: Vec<Vec<f64>>,
    /// What METIS alone does.
    pub raw: Vec<f64>,
}

/// Holds ours, scheme by scheme, against the paper's.
pub fn judge(coarse: &Table, fine: &Table) -> Vec<Finding> {
    let (raw, raw_fine) = (&coarse.raw, &fine.raw);
    let (coarse, fine) = (&coarse.schemes, &fine.schemes);
    let some = |row: &[f64]| row.iter().map(|&x| Some(x)).collect::<Vec<_>>();
    let finding =
        |id, what: String, paper: &[f64], ours: &[f64], tolerance: &str, verdict, note: &str| {
            Finding {
                id,
                what,
                paper: some(paper),
                ours: ours.to_vec(),
                tolerance: tolerance.to_owned(),
                verdict,
                note: note.to_owned(),
            }
        };
    let yes = |holds: bool| match holds {
        true => Verdict::Reproduced,
        false => Verdict::NotReproduced,
    };
    let mut all = Vec::new();
    for (scheme, (paper, ours)) in SCHEMES.iter().zip(FINE.iter().zip(fine)) {
        let (paper, ours) = (&paper[2..], &ours[2..]);
        let holds = within(&some(paper), ours, 1.5);
        let what = format!("fine, {scheme}, 512 and 1024");
        all.push(finding(
            "A2",
            what,
            paper,
            ours,
            "1.5 points",
            yes(holds),
            "granularity set",
        ));
    }
    // The last value is the one that the slope was set by.
    let holds = within(&some(&COARSE[0][..3]), &coarse[0][..3], 3.0);
    let shape = coarse[0].is_sorted_by(|a, b| a >= b);
    let verdict = match (holds, shape) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::ShapeOnly,
        (false, false) => Verdict::NotReproduced,
    };
    let note = "the value at 1024 was set";
    all.push(finding(
        "A3",
        "coarse, sfclb".into(),
        &COARSE[0],
        &coarse[0],
        "3 points",
        verdict,
        note,
    ));
    let above = coarse[2]
        .iter()
        .zip(&coarse[0])
        .all(|(group, sfc)| group >= sfc);
    let verdict = match (within(&some(&COARSE[2]), &coarse[2], 4.0), above) {
        (true, true) => Verdict::Reproduced,
        (false, true) => Verdict::ShapeOnly,
        _ => Verdict::NotReproduced,
    };
    let tolerance = ">= sfclb, 4 points";
    all.push(finding(
        "A4",
        "coarse, grouplb".into(),
        &COARSE[2],
        &coarse[2],
        tolerance,
        verdict,
        "",
    ));
    let lowest = (0..PROCESSORS.len()).all(|i| raw[i] <= coarse[0][i].min(coarse[2][i]));
    all.push(finding(
        "A5",
        format!("coarse, {RAW}"),
        &COARSE[1],
        raw,
        "lowest of the three",
        yes(lowest),
        "",
    ));
    all.push(finding(
        "A5",
        format!("fine, {RAW}, 192 and 256"),
        &FINE[1][..2],
        &raw_fine[..2],
        "",
        Verdict::NotJudged,
        "shown, no tolerance",
    ));
    for scheme in [0, 2] {
        let (paper, ours) = (&FINE[scheme][..2], &fine[scheme][..2]);
        let order = (0..2).all(|i| fine[2][i] >= fine[0][i]);
        let verdict = match (within(&some(paper), ours, 8.0), order) {
            (true, true) => Verdict::Reproduced,
            (false, true) => Verdict::ShapeOnly,
            _ => Verdict::NotReproduced,
        };
        let what = format!("fine, {}, 192 and 256", SCHEMES[scheme]);
        all.push(finding(
            "A6",
            what,
            paper,
            ours,
            "order, 8 points",
            verdict,
            "mesh is synthetic",
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_off_is_not_called_reproduced() {
        let table = |rows: [[f64; 4]; 3]| Table {
            schemes: rows.map(|row| row.to_vec()).to_vec(),
            raw: rows[1].to_vec(),
        };
        let good = [table(COARSE), table(FINE)];
        let verdicts: Vec<Verdict> = judge(&good[0], &good[1])
            .iter()
            .map(|f| f.verdict)
            .collect();
        assert!(
            verdicts
                .iter()
                .all(|&v| matches!(v, Verdict::Reproduced | Verdict::NotJudged)),
            "the paper's own table: {verdicts:?}"
        );
        let mut off = good.clone();
        off[0].schemes[0][1] -= 10.0;
        off[0].raw[0] = 99.0;
        off[1].schemes[2][3] += 2.0;
        let found = judge(&off[0], &off[1]);
        let of = |id: &str| -> Vec<Verdict> {
            found
                .iter()
                .filter(|f| f.id == id)
                .map(|f| f.verdict)
                .collect()
        };
        assert!(of("A2").contains(&Verdict::NotReproduced));
        assert_eq!(
            of("A3"),
            [Verdict::NotReproduced],
            "81.16 above 82.51 is no order either"
        );
        assert_eq!(of("A5"), [Verdict::NotReproduced, Verdict::NotJudged]);
    }
}
