//! Running observation statistics. They belong to the policy: without them its weights mean nothing.

use crate::bundle::{Bundle, BundleError, Persist};

/// Running mean and population variance over all observations seen (Chan et al. 1979), in f64.
///
/// ```text
/// y = (x − mean) / √(var + 1e-2)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Normaliser {
    count: u64,
    mean: Vec<f64>,
    var: Vec<f64>,
    /// Rounded once per update, so that applying is the same in training and evaluation.
    shift: Vec<f32>,
    factor: Vec<f32>,
}

const EPS: f64 = 1e-2;

impl Normaliser {
    /// For observations of that length; the identity up to ε until the first update.
    pub fn new(dim: usize) -> Self {
        let mut n = Normaliser {
            count: 0,
            mean: vec![0.0; dim],
            var: vec![1.0; dim],
            shift: vec![0.0; dim],
            factor: vec![1.0; dim],
        };
        n.refresh();
        n
    }

    fn refresh(&mut self) {
        for i in 0..self.mean.len() {
            self.shift[i] = self.mean[i] as f32;
            self.factor[i] = (1.0 / (self.var[i] + EPS).sqrt()) as f32;
        }
    }

    /// Observation length.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Running mean and population variance.
    pub fn moments(&self) -> (&[f64], &[f64]) {
        (&self.mean, &self.var)
    }

    /// Merges a batch `[B, O]`. Panics if the length is no multiple of O.
    pub fn update(&mut self, x: &[f32]) {
        let dim = self.dim();
        assert!(x.len().is_multiple_of(dim), "{} values are no batch of {dim}", x.len());
        let rows = x.len() / dim;
        if rows == 0 {
            return;
        }
        self.count += rows as u64;
        let rate = rows as f64 / self.count as f64;
        for i in 0..dim {
            let column = || x[i..].iter().step_by(dim).map(|&v| f64::from(v));
            let mean = column().sum::<f64>() / rows as f64;
            let var = column().map(|v| (v - mean) * (v - mean)).sum::<f64>() / rows as f64;
            let delta = mean - self.mean[i];
            self.mean[i] += rate * delta;
            self.var[i] += rate * (var - self.var[i] + delta * (mean - self.mean[i]));
        }
        self.refresh();
    }

    /// Normalises a batch `[B, O]` in place with the statistics as they stand.
    pub fn apply(&self, x: &mut [f32]) {
        for row in x.chunks_exact_mut(self.dim()) {
            for i in 0..row.len() {
                row[i] = (row[i] - self.shift[i]) * self.factor[i];
            }
        }
    }
}

impl Persist for Normaliser {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        to.put_u64(&format!("{prefix}.count"), &[self.count]);
        to.put_u64(&format!("{prefix}.mean_f64_bits"), &bits(&self.mean));
        to.put_u64(&format!("{prefix}.var_f64_bits"), &bits(&self.var));
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        let dim = self.dim();
        let floats = |v: &[u64]| v.iter().map(|&b| f64::from_bits(b)).collect::<Vec<_>>();
        self.count = from.u64s(&format!("{prefix}.count"), 1)?[0];
        self.mean = floats(from.u64s(&format!("{prefix}.mean_f64_bits"), dim)?);
        self.var = floats(from.u64s(&format!("{prefix}.var_f64_bits"), dim)?);
        self.refresh();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_batches_equals_the_moments_of_their_union() {
        let x: Vec<f32> = (0..60).map(|i| (i as f32 * 0.37).sin() * 3.0 + 1.0).collect();
        let mut n = Normaliser::new(2);
        n.update(&x[..10]);
        n.update(&x[10..48]);
        n.update(&x[48..]);
        for i in 0..2 {
            let c: Vec<f64> = x[i..].iter().step_by(2).map(|&v| f64::from(v)).collect();
            let mean = c.iter().sum::<f64>() / 30.0;
            let var = c.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 30.0;
            assert!((n.mean[i] - mean).abs() < 1e-12 && (n.var[i] - var).abs() < 1e-12);
        }
    }

    #[test]
    fn a_restored_normaliser_is_the_same_to_the_bit() {
        let mut n = Normaliser::new(3);
        n.update(&[0.1, 2.0, -3.0, 0.7, 1e5, 9.0]);
        let mut b = Bundle::default();
        n.save("obs", &mut b);
        let mut m = Normaliser::new(3);
        m.load("obs", &b).unwrap();
        assert_eq!(n, m);
        assert!(Normaliser::new(2).load("obs", &b).is_err());
    }
}
