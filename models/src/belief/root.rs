//! Bisection for variances.

/// Where a falling function of a variance meets `wanted`.
pub(super) fn root(function: impl Fn(f64) -> f64, wanted: f64, least: f64, most: f64) -> f64 {
    let (mut low, mut high) = (least.ln(), most.ln());
    for _ in 0..14 {
        let middle = (low + high) / 2.0;
        if function(middle.exp()) > wanted {
            low = middle
        } else {
            high = middle
        }
    }
    ((low + high) / 2.0).exp()
}
