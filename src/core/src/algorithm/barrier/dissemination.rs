//! Dissemination barrier with any radix: in each round every rank tells `radix - 1` ranks that
//! all it has heard of have come.
//!
//! Cost: ceil(log_radix n) rounds of at most radix - 1 messages each way, which overlap.
//! Source: Hensgen, Finkel & Manber, IJPP 17(1), 1988.

use crate::algorithm::schedule::{Case, Parts, Schedule, Step};

pub fn schedule(case: Case) -> Schedule {
    let (n, radix) = (case.n_ranks, case.radix);
    let reaches = std::iter::successors(Some(1), move |reach| Some(reach * radix));
    let rounds = reaches
        .take_while(move |&reach| reach < n)
        .flat_map(move |reach| {
            let distances = move || {
                (1..radix)
                    .map(move |d| d * reach)
                    .take_while(move |&d| d < n)
            };
            let send =
                distances().map(move |distance| Step::send(case.above(distance), Parts::None));
            let receive =
                distances().map(move |distance| Step::receive(case.below(distance), Parts::None));
            send.chain(receive)
        });
    Schedule::new(1, rounds).window(2 * radix)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn no_rank_ends_before_every_rank_has_begun() {
        let row = proved(Pattern::Barrier, "dissemination");
        for n in 1..=64 {
            for radix in [2, 3, 4, 8] {
                let cost = cost(row, Case::new(0, n).radix(radix), 0);
                assert!(cost.messages <= log_ceil(n, radix) * (radix - 1));
                if radix == 2 {
                    assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
                }
            }
        }
    }
}
