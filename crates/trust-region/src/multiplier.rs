//! A positive scalar found by dual ascent.

use onpolicy::{Adam, AdamConfig, Bundle, BundleError, Persist};

/// A positive scalar kept as its logarithm, so that no projection is needed.
#[derive(Clone, Debug)]
pub struct Multiplier {
    log: f32,
    adam: Adam,
}

impl Multiplier {
    /// Starts at a positive value.
    pub fn new(value: f32) -> Self {
        Multiplier { log: value.ln(), adam: Adam::new(1, AdamConfig::default()) }
    }

    /// Its value.
    pub fn get(&self) -> f64 {
        f64::from(self.log).exp()
    }

    /// One Adam step of the logarithm against `scale · gradient`.
    pub fn descend(&mut self, gradient: f64, scale: f64, lr: f64) {
        self.adam.step(std::slice::from_mut(&mut self.log), &[gradient as f32], scale as f32, lr);
    }
}

impl Persist for Multiplier {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_f32(&format!("{prefix}.log"), &[1], &[self.log]);
        self.adam.save(prefix, to);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        self.log = from.f32s(&format!("{prefix}.log"), &[1])?[0];
        self.adam.load(prefix, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{multiplier_gradient, temperature_gradient};

    #[test]
    fn the_first_step_moves_the_logarithm_by_the_learning_rate() {
        let mut m = Multiplier::new(0.5);
        m.descend(3.0, 1.0, 0.1);
        assert!((m.get() - 0.5 * (-0.1f64).exp()).abs() < 1e-6);
    }

    #[test]
    fn temperature_rises_below_the_target_entropy_and_falls_above() {
        for (entropy, rises) in [(-5.0, true), (-3.0, false)] {
            let mut m = Multiplier::new(0.1);
            m.descend(temperature_gradient(m.get(), 4.0, entropy), 1.0, 0.01);
            assert_eq!(m.get() > 0.1, rises);
        }
    }

    #[test]
    fn multiplier_rises_outside_the_trust_region_and_falls_inside() {
        for (kl, rises) in [(0.2, true), (0.05, false)] {
            let mut m = Multiplier::new(0.1);
            m.descend(multiplier_gradient(m.get(), kl, 0.1), 1.0, 0.01);
            assert_eq!(m.get() > 0.1, rises);
        }
    }
}
