//! What measured cells say of contrasts elsewhere: of cells and variants without data a mean and an honest interval,
//! of those with data a prior that their own data had no part in.

mod gaussian;
mod predictor;
mod simulator;
mod spread;
#[cfg(feature = "xgboost")]
mod xgboost;

use colltune_core::settings::Predicting;

pub use gaussian::Gaussian;
pub use predictor::{Place, Point, Prediction, Predictor};
pub use simulator::Simulator;
#[cfg(feature = "xgboost")]
pub use xgboost::XgBoost;

/// The predictor that the settings name; `None` where this build has it not.
pub fn chosen(predicting: Predicting) -> Option<&'static dyn Predictor> {
    match predicting {
        #[cfg(feature = "xgboost")]
        Predicting::Xgboost => Some(&XgBoost),
        #[cfg(not(feature = "xgboost"))]
        Predicting::Xgboost => None,
        Predicting::GaussianProcess => Some(&Gaussian),
        Predicting::Simulator => Some(&Simulator),
    }
}
