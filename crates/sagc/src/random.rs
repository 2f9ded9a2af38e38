//! A small seeded generator, for the sizers that draw.

use crate::math::{exp, ln, sqrt};

/// SplitMix64 (Steele, Lea and Flood 2014). Its state is one word, which is what a checkpoint keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Random(pub u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1), neither end included.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal, by Marsaglia's polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * sqrt(-2.0 * ln(s) / s);
            }
        }
    }

    /// Gamma with that shape and scale 1 (Marsaglia and Tsang 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = exp(ln(self.uniform()) / shape);
            return boost * self.gamma(shape + 1.0);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let v = v * v * v;
            if v > 0.0 && ln(self.uniform()) < 0.5 * x * x + d - d * v + d * ln(v) {
                return d * v;
            }
        }
    }

    /// Beta(a, b), for positive a and b.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        // both round to 0 only for tiny a and b
        if x + y > 0.0 { x / (x + y) } else { a / (a + b) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::beta_cdf;

    #[test]
    fn beta_draws_follow_the_beta_distribution() {
        const DRAWS: usize = 20_000;
        for (seed, a, b) in [(1, 0.5, 9.5), (2, 5.0, 15.0), (3, 60.0, 20.0)] {
            let mut random = Random(seed);
            let mean = a / (a + b);
            let draws: std::vec::Vec<f64> = (0..DRAWS).map(|_| random.beta(a, b)).collect();
            for x in [0.5 * mean, mean, 1.2 * mean] {
                let want = beta_cdf(a, b, x);
                let share = draws.iter().filter(|d| **d <= x).count() as f64 / DRAWS as f64;
                // four standard errors of a share of 20 000
                assert!((share - want).abs() < 0.0142, "Beta({a}, {b}) ≤ {x}: {share}, want {want}");
            }
        }
    }
}
