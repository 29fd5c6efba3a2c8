//! The paper's way: mean times, one XGBoost regression a variant over size and layout, probabilities by soft-min of the predictions.
//!
//! Simplified: the regression is this project's (log features, log time, 120 rounds) and not the paper's tuned one; its
//! regression trees see every mean once, whatever its samples; soft-min's temperature is a tenth of the least time, and
//! what is run outside sampled calls is the variant with the least prediction.
//!
//! Source: Hunold & Steiner, OMPICollTune, PMBS 2022, section III.

use colltune_core::model::Model;
use colltune_models::baseline::regress::{Place, Point, Regression};

use super::cells::{Means, drawn, set};
use crate::job::Sample;
use crate::policy::{Learner, Policy, Published};
use crate::site::Site;

const TEMPERATURE: f64 = 0.1;

pub struct Paper;

impl Policy for Paper {
    fn name(&self) -> &'static str {
        "paper"
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

impl Database<'_> {
    fn place(&self, cell: usize) -> Place {
        let shape = self.site.cells[cell].shape;
        Place::new(shape.message_bytes, shape.nodes.into(), shape.ppn.into())
    }

    /// By variant and cell of one collective.
    fn predictions(&self, cells: &[usize], n_variants: usize) -> Vec<Vec<Option<f64>>> {
        let places: Vec<Place> = cells.iter().map(|&cell| self.place(cell)).collect();
        (0..n_variants)
            .map(|variant| {
                let points: Vec<Point> = cells
                    .iter()
                    .filter_map(|&cell| {
                        Some(Point {
                            place: self.place(cell),
                            log_time: self.means.of(cell, variant)?.max(1.0).ln(),
                            weight: 1.0,
                        })
                    })
                    .collect();
                let fitted = Regression::fit(&points, self.site.seed).ok();
                let predicted = fitted.and_then(|fitted| fitted.predict(&places).ok());
                match predicted {
                    Some(predicted) => predicted.into_iter().map(Some).collect(),
                    None => vec![None; cells.len()],
                }
            })
            .collect()
    }
}

impl Learner for Database<'_> {
    fn train(&mut self, fresh: &[Sample], _: &Site) -> Published {
        let site = self.site;
        self.means.add(site, fresh);
        let mut model = Model::initial(&site.settings, site.library, "made");
        for &collective in &site.recipe.collectives {
            let cells: Vec<usize> = (0..site.cells.len())
                .filter(|&cell| site.cells[cell].shape.collective == collective)
                .collect();
            let n_variants = site.variants[collective.index()].len();
            let predictions = self.predictions(&cells, n_variants);
            for (at, &cell) in cells.iter().enumerate() {
                let drawn = drawn(site, &model, cell);
                let time =
                    |variant: usize| predictions[variant][at].map_or(f64::INFINITY, f64::exp);
                let best = drawn
                    .iter()
                    .copied()
                    .min_by(|&a, &b| time(a).total_cmp(&time(b)))
                    .unwrap_or(0);
                let weight =
                    |variant: usize| (-(time(variant) / time(best) - 1.0) / TEMPERATURE).exp();
                let total: f64 = drawn.iter().map(|&variant| weight(variant)).sum();
                if total.is_finite() && total > 0.0 {
                    let shares = drawn
                        .iter()
                        .map(|&variant| (variant, weight(variant) / total))
                        .collect();
                    set(site, &mut model, cell, best, shares);
                }
            }
        }
        Published {
            model,
            claims: Vec::new(),
            nothing_to_gain: false,
        }
    }
}
