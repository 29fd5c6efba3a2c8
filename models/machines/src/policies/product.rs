//! The product's learner: evidence, belief, choice, allocation, watching.

use colltune_core::model::Model;
use colltune_models::evidence::{Call, Evidence, reduce};
use colltune_models::statistics::CellStatistics;
use colltune_models::{Context, learn};

use crate::job::Sample;
use crate::policy::{Claim, Learner, Policy, Published};
use crate::site::Site;

pub struct Product;

impl Policy for Product {
    fn name(&self) -> &'static str {
        "learner"
    }

    fn begin<'a>(&self, site: &'a Site) -> Box<dyn Learner + 'a> {
        Box::new(Database {
            site,
            evidence: Vec::new(),
            previous: None,
            runs: 0,
        })
    }
}

struct Database<'a> {
    site: &'a Site,
    evidence: Vec<Evidence>,
    previous: Option<Model>,
    /// What the trainings so far have seen.
    runs: u32,
}

impl Learner for Database<'_> {
    fn train(&mut self, fresh: &[Sample], _: &Site) -> Published {
        let site = self.site;
        let calls: Vec<Call> = fresh.iter().map(|sample| sample.call).collect();
        let runs = calls.iter().map(|call| call.run + 1).max();
        self.evidence.extend(reduce(calls));
        let initial = || Model::initial(&site.settings, site.library, "made");
        let context = Context {
            settings: &site.settings,
            library: site.library,
            machine: "made",
            generation: self
                .previous
                .as_ref()
                .map_or(1, |model| model.generation + 1),
            seed: site.seed,
            previous: self.previous.as_ref(),
            runs_before: self.runs,
            copies: &[],
            spent: None,
            vetoes: &[],
        };
        let (model, claims, nothing_to_gain) = match learn(&self.evidence, context) {
            Ok(learned) => {
                let claims = claims(site, &learned.statistics);
                (learned.model, claims, !learned.nothing_to_gain.is_empty())
            }
            Err(error) => {
                eprintln!("the learner: failed to {error}");
                (
                    self.previous.clone().unwrap_or_else(initial),
                    Vec::new(),
                    false,
                )
            }
        };
        self.previous = Some(model.clone());
        self.runs = runs.unwrap_or(self.runs).max(self.runs);
        Published {
            model,
            claims,
            nothing_to_gain,
        }
    }
}

fn claims(site: &Site, statistics: &[CellStatistics]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (cell, truth) in site.cells.iter().enumerate() {
        let shape = truth.shape;
        let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
        let own = statistics.iter().filter(|of| {
            of.cell
                .contains(shape.collective, shape.message_bytes, nodes, ppn)
        });
        let variants = own.flat_map(|of| &of.variants);
        for variant in variants.filter(|variant| variant.samples > 0) {
            let place = site.place(cell, &variant.name).filter(|&place| place > 0);
            if let (Some(place), Some(contrast)) = (place, variant.contrast) {
                claims.push(Claim {
                    cell,
                    variant: place,
                    samples: variant.samples,
                    gain: contrast.gain,
                    lo: contrast.lo,
                    hi: contrast.hi,
                });
            }
        }
    }
    claims
}
