//! The paper's way: mean times, one XGBoost regression a variant over size and layout, probabilities by soft-min of the predictions.
//!
//! Simplified: the regression is this project's, of the logarithm of a variant's mean time beside the default's, and not
//! the paper's tuned one; its regression trees see every mean once, whatever its samples; soft-min's temperature is a
//! tenth of the least time, and what is run outside sampled calls is the variant with the least prediction.
//!
//! Source: Hunold & Steiner, OMPICollTune, PMBS 2022, section III.

use colltune_core::model::Model;
use colltune_models::predict::{Place, Point, Prediction, Predictor, XgBoost};

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
            xgboost: XgBoost::loaded().expect("the policy is listed where XGBoost is"),
        })
    }
}

struct Database<'a> {
    site: &'a Site,
    means: Means,
    xgboost: &'static XgBoost,
}

impl Database<'_> {
    fn place(&self, cell: usize) -> Place {
        let shape = self.site.cells[cell].shape;
        Place {
            bytes: (shape.message_bytes as f64 + 1.0).log2(),
            nodes: f64::from(shape.nodes).log2(),
            ppn: f64::from(shape.ppn).log2(),
            simulated: 0.0,
        }
    }

    /// By variant and cell of one collective the logarithms of times beside the default's.
    fn predictions(&self, cells: &[usize], n_variants: usize) -> Vec<Vec<f64>> {
        let point = |variant: usize, cell: usize| {
            let beside = self.means.of(cell, variant)? / self.means.of(cell, 0)?;
            Some(Point {
                place: self.place(cell),
                mean: beside.ln(),
                variance: 0.0,
            })
        };
        let of = |variant| cells.iter().filter_map(move |&cell| point(variant, cell));
        let known: Vec<Vec<Point>> = (0..n_variants)
            .map(|variant| of(variant).collect())
            .collect();
        let places: Vec<Place> = cells.iter().map(|&cell| self.place(cell)).collect();
        let predicted = self.xgboost.predict(&known, &vec![places; n_variants]);
        let time = |(points, of): (&Vec<Point>, Vec<Prediction>)| {
            let known = !points.is_empty();
            of.iter()
                .map(|one| if known { one.mean } else { f64::INFINITY })
                .collect()
        };
        known.iter().zip(predicted).map(time).collect()
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
                let time = |variant: usize| predictions[variant][at].exp();
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
