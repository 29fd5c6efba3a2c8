//! The ranks of one communicator, each with its decider, as the product has them.

use colltune_core::decide::agreed::{Agreed, Membership, Origin, Possible};
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::hopeless::{Hopeless, KnownHopeless};
use colltune_core::decide::rules::Rules;
use colltune_core::decide::{
    AfterSample, Chosen, Decider, Decision, GapPart, OwnState, Switch, Timing, Words,
};

/// One communicator.
pub struct Ranks {
    deciders: Vec<Decider>,
    agreed: (Agreed, Membership, Hopeless),
    known: KnownHopeless,
    /// Of the last sampled call, when each rank left it.
    open: Option<(SharedCall, Chosen, Vec<f64>)>,
    /// The sample before the present call, if that is the next one.
    before: Option<(SharedCall, Chosen)>,
}

impl Ranks {
    pub fn new(id: u64, (nodes, ppn): (u32, u32)) -> Ranks {
        let agreed = Agreed {
            id,
            native: Possible::Yes,
            own_families: Possible::Yes,
            spent_ppm: 0,
            pays: Possible::Yes,
        };
        let node_of = (0..nodes * ppn).map(|rank| rank / ppn);
        Ranks {
            deciders: node_of
                .clone()
                .map(|_| Decider::new(Origin::World))
                .collect(),
            // It is the first communicator that has cells of its layout.
            agreed: (agreed, Membership::of(node_of), Hopeless::NOTHING),
            known: KnownHopeless::default(),
            open: None,
            before: None,
        }
    }

    /// What all ranks run, as they come at these times; `None`: the default, and nothing more.
    pub fn decide(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        details: SharedDetails,
        come_ns: &[f64],
    ) -> Option<Chosen> {
        self.before = None;
        if let Some((last, chosen, left_ns)) = self.open.take() {
            self.before = Some((last, chosen));
            for (rank, decider) in self.deciders.iter_mut().enumerate() {
                let shift_ns = (come_ns[rank] - left_ns[rank]).max(0.0) as u64;
                decider.close_gap(last.collective, chosen.place, GapPart::Shift, shift_ns);
            }
        }
        let mut first = None;
        for (rank, decider) in self.deciders.iter_mut().enumerate() {
            let chosen = decided(decider, self.agreed, rules, call, details);
            if rank == 0 {
                first = chosen;
            }
            debug_assert_eq!(first, chosen, "all ranks decide alike");
        }
        first
    }

    /// The call has taken its ranks so long in the mean; whether all ranks keep that for the sample before it.
    pub fn end(&mut self, after_ns: f64) -> bool {
        let Some((last, chosen)) = self.before.take() else {
            return false;
        };
        let deciders = self.deciders.iter_mut();
        deciders.fold(true, |told, decider| {
            let (place, ns) = (chosen.place, after_ns as u64);
            decider.close_gap(last.collective, place, GapPart::After, ns) && told
        })
    }

    /// A sampled call has taken each rank from one time to another.
    pub fn observe(
        &mut self,
        rules: &Rules,
        call: SharedCall,
        chosen: Chosen,
        (come_ns, left_ns): (&[f64], &[f64]),
    ) {
        let mut review = false;
        for (rank, decider) in self.deciders.iter_mut().enumerate() {
            let timing = Timing {
                start_ns: come_ns[rank] as u64,
                end_ns: left_ns[rank] as u64,
                record: None,
            };
            decider.begin_sample(call.collective, chosen, timing.start_ns);
            let after = decider.observe(rules, call.collective, &chosen, timing);
            review |= after == AfterSample::Review;
        }
        if review {
            self.review(rules, call, chosen, left_ns);
        } else {
            self.open = Some((call, chosen, left_ns.to_vec()));
        }
    }

    fn review(&mut self, rules: &Rules, call: SharedCall, chosen: Chosen, left_ns: &[f64]) {
        let told = self
            .deciders
            .iter_mut()
            .zip(left_ns)
            .map(|(decider, now_ns)| {
                let own = OwnState {
                    now_ns: *now_ns as u64,
                    // Agreements take no time here.
                    spent_ppm: 0,
                    own_families: Possible::Yes,
                    switch: Switch::On,
                };
                decider.review(call.collective, &chosen, own, &self.known)
            });
        let told: Vec<Words> = told.collect();
        let Some(agreed) = told.into_iter().reduce(together) else {
            return;
        };
        for decider in &mut self.deciders {
            let words = agreed.clone();
            let known = &self.known;
            decider.conclude(rules, call.collective, &chosen, words, known, |_, _| {});
        }
    }
}

/// The largest of each, and the sums.
fn together(mut all: Words, one: Words) -> Words {
    let largest = all.largest.iter_mut().zip(one.largest);
    largest.for_each(|(all, one)| *all = (*all).max(one));
    let sums = all.sums.iter_mut().zip(one.sums);
    sums.for_each(|(all, one)| *all = all.saturating_add(one));
    all
}

fn decided(
    decider: &mut Decider,
    agreed: (Agreed, Membership, Hopeless),
    rules: &Rules,
    call: SharedCall,
    details: SharedDetails,
) -> Option<Chosen> {
    let mut decision = decider.decide(rules, call, &|| details);
    loop {
        decision = match decision {
            Decision::Chosen(chosen) => return Some(chosen),
            Decision::SetUp => decider.set_up(rules, Ok(agreed), call, &|| details),
            Decision::Prepare => decider.prepare(rules, call, &|| details),
            Decision::NextEpoch => {
                // The gain of this job is not asked for.
                let _pair = decider.next_epoch(0);
                decider.decide(rules, call, &|| details)
            }
            Decision::Default
            | Decision::NoMemory
            | Decision::Unobserved(_)
            | Decision::Measure(_) => return None,
        }
    }
}
