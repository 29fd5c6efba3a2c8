//! A regression: rows with labels and weights in, predictions of other rows out.

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::ptr;

use crate::library::{Length, Object, XgBoost};

/// Rows of features, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    values: Vec<f32>,
    n_columns: usize,
}

/// What XGBoost says of a call that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct XgBoostError(String);

impl fmt::Display for XgBoostError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.0.lines().find(|line| !line.trim().is_empty());
        write!(to, "{}", first.unwrap_or("XGBoost gave no reason"))
    }
}

impl std::error::Error for XgBoostError {}

impl Rows {
    pub fn new<const N: usize>(rows: impl Iterator<Item = [f32; N]>) -> Rows {
        Rows {
            values: rows.flatten().collect(),
            n_columns: N,
        }
    }

    fn n_rows(&self) -> usize {
        self.values.len() / self.n_columns.max(1)
    }
}

impl XgBoost {
    /// Teaches a model with `rounds` trees and asks it.
    ///
    /// Shape:  `labels` and `weights` are as long as `known` has rows; the result is as long as `asked` has.
    /// Errors: whatever XGBoost reports, as of a parameter that it does not know the value of.
    pub fn regress(
        self,
        known: &Rows,
        labels: &[f32],
        weights: &[f32],
        parameters: &[(&str, String)],
        rounds: i32,
        asked: &Rows,
    ) -> Result<Vec<f32>, XgBoostError> {
        assert_eq!(labels.len(), known.n_rows());
        assert_eq!(weights.len(), known.n_rows());
        assert_eq!(known.n_columns, asked.n_columns);
        let known = Matrix::new(self, known)?;
        known.set(c"label", labels)?;
        known.set(c"weight", weights)?;
        let mut booster = Booster::new(&known)?;
        for (name, value) in parameters {
            booster.set(name, value)?;
        }
        for round in 0..rounds {
            booster.update(round, &known)?;
        }
        booster.predict(&Matrix::new(self, asked)?)
    }

    fn check(self, code: c_int) -> Result<(), XgBoostError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the text is of this thread's last call and ends with a zero byte.
        let text = unsafe { CStr::from_ptr((self.functions.last_error)()) };
        Err(XgBoostError(text.to_string_lossy().into_owned()))
    }
}

/// A data set of XGBoost's, freed with this value.
struct Matrix {
    xgboost: XgBoost,
    object: Object,
    n_rows: usize,
}

impl Matrix {
    fn new(xgboost: XgBoost, rows: &Rows) -> Result<Matrix, XgBoostError> {
        let mut object = ptr::null_mut();
        let (n_rows, n_columns) = (rows.n_rows() as Length, rows.n_columns as Length);
        assert_eq!(rows.values.len(), rows.n_rows() * rows.n_columns);
        // SAFETY: there are as many values as rows times columns; XGBoost copies them.
        let code = unsafe {
            let values = rows.values.as_ptr();
            (xgboost.functions.matrix_create)(values, n_rows, n_columns, f32::NAN, &mut object)
        };
        xgboost.check(code)?;
        Ok(Matrix {
            xgboost,
            object,
            n_rows: rows.n_rows(),
        })
    }

    fn set(&self, field: &CStr, values: &[f32]) -> Result<(), XgBoostError> {
        let (start, length) = (values.as_ptr(), values.len() as Length);
        // SAFETY: the object is alive, and `length` values are read from `start`.
        let code = unsafe {
            (self.xgboost.functions.matrix_set)(self.object, field.as_ptr(), start, length)
        };
        self.xgboost.check(code)
    }
}

impl Drop for Matrix {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { (self.xgboost.functions.matrix_free)(self.object) };
    }
}

/// A model of XGBoost's, freed with this value.
struct Booster {
    xgboost: XgBoost,
    object: Object,
}

impl Booster {
    fn new(known: &Matrix) -> Result<Booster, XgBoostError> {
        let xgboost = known.xgboost;
        let mut object = ptr::null_mut();
        // SAFETY: one object, which is alive.
        let code = unsafe { (xgboost.functions.booster_create)(&known.object, 1, &mut object) };
        xgboost.check(code)?;
        Ok(Booster { xgboost, object })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), XgBoostError> {
        let text = |text: &str| CString::new(text).expect("no parameter has a zero byte");
        let (name, value) = (text(name), text(value));
        // SAFETY: the object is alive, and both texts end with a zero byte.
        let code = unsafe {
            (self.xgboost.functions.booster_set)(self.object, name.as_ptr(), value.as_ptr())
        };
        self.xgboost.check(code)
    }

    fn update(&mut self, round: c_int, known: &Matrix) -> Result<(), XgBoostError> {
        // SAFETY: both objects are alive.
        let code =
            unsafe { (self.xgboost.functions.booster_update)(self.object, round, known.object) };
        self.xgboost.check(code)
    }

    fn predict(&mut self, asked: &Matrix) -> Result<Vec<f32>, XgBoostError> {
        // The value of all trees, of each row one number.
        let how = c"{\"type\": 0, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, \"strict_shape\": false}";
        let (mut shape, mut n_axes, mut result) = (ptr::null(), 0, ptr::null());
        // SAFETY: both objects are alive, the text ends with a zero byte, all results are valid for writing.
        let code = unsafe {
            (self.xgboost.functions.booster_predict)(
                self.object,
                asked.object,
                how.as_ptr(),
                &mut shape,
                &mut n_axes,
                &mut result,
            )
        };
        self.xgboost.check(code)?;
        // SAFETY: the shape has as many numbers as axes.
        let shape = unsafe { std::slice::from_raw_parts(shape, n_axes as usize) };
        let n = shape.iter().product::<Length>() as usize;
        assert_eq!(n, asked.n_rows);
        if n == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: as many numbers as the shape says, which live until the next call on this model.
        Ok(unsafe { std::slice::from_raw_parts(result, n) }.to_vec())
    }
}

impl Drop for Booster {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { (self.xgboost.functions.booster_free)(self.object) };
    }
}

#[cfg(test)]
mod tests {
    use colltune_tests::skip;

    use super::*;

    fn parameters(objective: &str) -> Vec<(&'static str, String)> {
        vec![
            ("nthread", "1".to_owned()),
            ("verbosity", "0".to_owned()),
            ("objective", objective.to_owned()),
            ("tree_method", "exact".to_owned()),
            ("eta", "0.5".to_owned()),
        ]
    }

    /// A step from 1 to 3 where the second feature passes 4; the first says nothing.
    fn step() -> (Rows, Vec<f32>) {
        let rows = (0..64u8).map(|n| [f32::from(n % 3), f32::from(n % 8)]);
        let labels = (0..64).map(|n| if n % 8 > 4 { 3.0 } else { 1.0 });
        (Rows::new(rows), labels.collect())
    }

    fn asked() -> Rows {
        Rows::new([[1.0, 0.0], [2.0, 7.0], [0.0, 4.0]].into_iter())
    }

    #[test]
    fn a_step_is_learned_row_by_row() {
        let Ok(xgboost) = XgBoost::load().map_err(|reason| skip::<()>(&reason)) else {
            return;
        };
        let (rows, labels) = step();
        let how = parameters("reg:squarederror");
        let said = xgboost
            .regress(&rows, &labels, &[1.0; 64], &how, 40, &asked())
            .expect("it is taught");
        for (said, true_label) in said.iter().zip([1.0, 3.0, 1.0]) {
            assert!((said - true_label).abs() < 0.05, "{said}, not {true_label}");
        }
        let again = xgboost.regress(&rows, &labels, &[1.0; 64], &how, 40, &asked());
        assert_eq!(
            again.expect("it is taught"),
            said,
            "one model of one data set"
        );
    }

    #[test]
    fn what_xgboost_refuses_is_an_error_with_its_reason() {
        let Ok(xgboost) = XgBoost::load().map_err(|reason| skip::<()>(&reason)) else {
            return;
        };
        let (rows, labels) = step();
        let how = parameters("no:such");
        let error = xgboost
            .regress(&rows, &labels, &[1.0; 64], &how, 1, &asked())
            .expect_err("no such objective");
        assert!(error.to_string().contains("no:such"), "{error}");
    }
}
