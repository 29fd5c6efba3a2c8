//! Features, XGBoost regressions and selection probabilities.
