//! Regression by XGBoost, whose library is loaded when it is asked for: a build needs neither its sources nor a C++
//! compiler, and any version from 1.4 on does, Debian's (`libxgboost0`), a site's or the one in Python's `xgboost-cpu`.
//!
//! The file is `COLLTUNE_XGBOOST`'s, or what the dynamic linker finds by its name. No file of a database can name it: code
//! that is loaded runs with the rights of whoever trains.

mod library;
mod regression;

pub use library::XgBoost;
pub use regression::{Rows, XgBoostError};
