//! The learner as it was: robust effects of log times, three standard errors, soft-min.

use colltune_core::model::Model;
use colltune_models::baseline::call::Row;
use colltune_models::baseline::{Context, learn};

use crate::job::Sample;
use crate::policy::{Claim, Learner, Policy, Published};
use crate::site::Site;

pub struct Baseline;

impl Policy for Baseline {
    fn name(&self) -> &'static str {
        "baseline"
    }

    fn begin<'a>(&self, site: &'a Site) -> Box<dyn Learner + 'a> {
        Box::new(Database {
            site,
            rows: Vec::new(),
            generation: 0,
        })
    }
}

struct Database<'a> {
    site: &'a Site,
    rows: Vec<Row>,
    generation: u64,
}

impl Learner for Database<'_> {
    fn train(&mut self, fresh: &[Sample], _: &Site) -> Published {
        self.rows.extend(fresh.iter().map(row));
        self.generation += 1;
        let context = Context {
            settings: &self.site.settings,
            library: self.site.library,
            machine: "made",
            generation: self.generation,
            seed: self.site.seed,
        };
        match learn(self.rows.clone(), context) {
            Ok(learned) => {
                let claims = claims(self.site, &learned.statistics);
                Published {
                    model: learned.model,
                    claims,
                    nothing_to_gain: false,
                }
            }
            Err(error) => {
                eprintln!("baseline: failed to {error}");
                Published {
                    model: Model::initial(&self.site.settings, self.site.library, "made"),
                    claims: Vec::new(),
                    nothing_to_gain: false,
                }
            }
        }
    }
}

fn row(sample: &Sample) -> Row {
    let call = sample.call;
    Row {
        job: call.run,
        comm: call.comm,
        call: call.index,
        duration_ns: sample.slowest_ns as u64,
        bytes: call.shape.message_bytes,
        nodes: call.shape.nodes,
        ppn: call.shape.ppn,
        n_ranks: call.shape.n_ranks,
        variant: call.variant,
        collective: call.shape.collective,
    }
}

/// From the intervals of both times: it states none of their ratio.
fn claims(site: &Site, statistics: &[colltune_models::statistics::CellStatistics]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (cell, truth) in site.cells.iter().enumerate() {
        let shape = truth.shape;
        let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
        let own = statistics.iter().find(|of| {
            of.cell
                .contains(shape.collective, shape.message_bytes, nodes, ppn)
        });
        let Some(own) = own else { continue };
        let Some(default) = own.variant("default").map(|default| default.time_ns) else {
            continue;
        };
        for variant in own.variants.iter().filter(|variant| variant.samples > 0) {
            let place = site.place(cell, &variant.name);
            let (Some(place), [Some(m), Some(lo), Some(hi)], [Some(dm), Some(dlo), Some(dhi)]) = (
                place.filter(|place| *place > 0),
                [
                    variant.time_ns.median,
                    variant.time_ns.lo,
                    variant.time_ns.hi,
                ],
                [default.median, default.lo, default.hi],
            ) else {
                continue;
            };
            let gain = (dm / m).ln();
            let below = (hi / m).ln().hypot((dm / dlo).ln());
            let above = (m / lo).ln().hypot((dhi / dm).ln());
            claims.push(Claim {
                cell,
                variant: place,
                samples: variant.samples,
                gain: gain.exp(),
                lo: (gain - below).exp(),
                hi: (gain + above).exp(),
            });
        }
    }
    claims
}
