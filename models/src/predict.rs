//! What measured cells say of contrasts elsewhere: of cells and variants without data a mean and an honest interval,
//! of those with data a prior that their own data had no part in.

mod gaussian;
mod predictor;
mod spread;
mod xgboost;

use colltune_core::settings::Predicting;

pub use gaussian::Gaussian;
pub use predictor::{Place, Point, Prediction, Predictor};
pub use xgboost::{Timed, XgBoost};

/// The predictor that the settings name.
///
/// Errors: why XGBoost cannot be had here.
pub fn chosen(predicting: Predicting) -> Result<&'static dyn Predictor, String> {
    Ok(match predicting {
        Predicting::Xgboost => XgBoost::loaded()?,
        Predicting::GaussianProcess => &Gaussian,
    })
}
