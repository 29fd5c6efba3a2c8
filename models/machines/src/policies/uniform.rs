//! Every variant alike for ever; the best is the one with the least mean.

use colltune_core::model::Model;

use super::cells::{Means, drawn, set};
use crate::job::Sample;
use crate::policy::{Learner, Policy, Published};
use crate::site::Site;

pub struct Uniform;

impl Policy for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn begin<'a>(&self, site: &'a Site) -> Box<dyn Learner + 'a> {
        Box::new(Database {
            site,
            means: Means::default(),
        })
    }
}

struct Database<'a> {
    site: &'a Site,
    means: Means,
}

impl Learner for Database<'_> {
    fn train(&mut self, fresh: &[Sample], _: &Site) -> Published {
        let site = self.site;
        self.means.add(site, fresh);
        let mut model = Model::initial(&site.settings, site.library, "made");
        for cell in 0..site.cells.len() {
            let drawn = drawn(site, &model, cell);
            let time = |variant: &usize| self.means.of(cell, *variant).unwrap_or(f64::INFINITY);
            let best = drawn
                .iter()
                .copied()
                .min_by(|a, b| time(a).total_cmp(&time(b)));
            let share = 1.0 / drawn.len().max(1) as f64;
            let shares = drawn.iter().map(|&variant| (variant, share)).collect();
            set(site, &mut model, cell, best.unwrap_or(0), shares);
        }
        Published {
            model,
            claims: Vec::new(),
            nothing_to_gain: false,
        }
    }
}
