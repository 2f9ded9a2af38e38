//! The soft indicator that most rewards are made of.

/// How a reward falls off outside its target interval.
///
/// `margin` is the distance from the interval at which the reward has fallen to `value`; distances below are
/// in units of it, `d = distance / margin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Falloff {
    /// 0 right outside.
    Cliff,
    /// `exp(d² ln value)`; needs `0 < value < 1`.
    Gaussian {
        /// Distance at which the reward is `value`.
        margin: f64,
        /// Reward at the margin.
        value: f64,
    },
    /// `max(0, 1 − d (1 − value))`; needs `0 ≤ value < 1`.
    Linear {
        /// Distance at which the reward is `value`.
        margin: f64,
        /// Reward at the margin.
        value: f64,
    },
    /// `max(0, 1 − d² (1 − value))`; needs `0 ≤ value < 1`.
    Quadratic {
        /// Distance at which the reward is `value`.
        margin: f64,
        /// Reward at the margin.
        value: f64,
    },
}

impl Falloff {
    /// Gaussian with the usual reward of 0.1 at the margin.
    pub const fn gaussian(margin: f64) -> Self {
        Falloff::Gaussian { margin, value: 0.1 }
    }
}

/// 1 inside the interval, between 0 and 1 outside.
///
/// ```text
/// tolerance(x) = 1               lower ≤ x ≤ upper
///                falloff(d)      otherwise, d = distance to the interval / margin
/// ```
///
/// `bounds` are `[lower, upper]`, either may be infinite. Tassa et al. 2018, DeepMind Control Suite, section 2.2.
///
/// ```
/// use sim_vec::reward::{tolerance, Falloff};
/// let run = Falloff::Linear { margin: 10.0, value: 0.0 };
/// assert_eq!(tolerance(4.0, [10.0, f64::INFINITY], run), 0.4);
/// ```
#[inline]
pub fn tolerance(x: f64, bounds: [f64; 2], falloff: Falloff) -> f64 {
    let [lower, upper] = bounds;
    if lower <= x && x <= upper {
        return 1.0;
    }
    let distance = if x < lower { lower - x } else { x - upper };
    match falloff {
        Falloff::Cliff => 0.0,
        Falloff::Gaussian { margin, value } => {
            let scaled = distance / margin * (-2.0 * value.ln()).sqrt();
            (-0.5 * scaled * scaled).exp()
        }
        Falloff::Linear { margin, value } => {
            let scaled = distance / margin * (1.0 - value);
            if scaled < 1.0 { 1.0 - scaled } else { 0.0 }
        }
        Falloff::Quadratic { margin, value } => {
            let scaled = distance / margin * (1.0 - value).sqrt();
            if scaled < 1.0 { 1.0 - scaled * scaled } else { 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: [f64; 2] = [1.0, f64::INFINITY];

    #[test]
    fn inside_and_on_the_bounds_it_is_one() {
        for falloff in [Falloff::Cliff, Falloff::gaussian(1.0), Falloff::Linear { margin: 1.0, value: 0.5 }] {
            for x in [-0.25, 0.0, 0.25] {
                assert_eq!(tolerance(x, [-0.25, 0.25], falloff), 1.0);
            }
        }
        assert_eq!(tolerance(1e9, UP, Falloff::Cliff), 1.0);
    }

    #[test]
    fn a_cliff_is_zero_right_outside() {
        assert_eq!(tolerance(0.25 + 1e-12, [-0.25, 0.25], Falloff::Cliff), 0.0);
        assert_eq!(tolerance(-0.26, [-0.25, 0.25], Falloff::Cliff), 0.0);
    }

    #[test]
    fn every_falloff_has_its_value_at_the_margin_on_both_sides() {
        for falloff in [
            Falloff::Gaussian { margin: 2.0, value: 0.3 },
            Falloff::Linear { margin: 2.0, value: 0.3 },
            Falloff::Quadratic { margin: 2.0, value: 0.3 },
        ] {
            for x in [-3.0, 4.0] {
                assert!((tolerance(x, [-1.0, 2.0], falloff) - 0.3).abs() < 1e-15, "{falloff:?}");
            }
        }
    }

    #[test]
    fn hand_computed_values() {
        // 0.1^(d²) at half the margin: 0.1^(1/4)
        assert!((tolerance(1.0, [0.0, 0.0], Falloff::gaussian(2.0)) - 0.562_341_325_190_349_1).abs() < 1e-15);
        // half the way down to 0.5
        assert!((tolerance(0.5, UP, Falloff::Linear { margin: 1.0, value: 0.5 }) - 0.75).abs() < 1e-15);
        // reaches zero at twice the margin and stays there
        assert_eq!(tolerance(-1.5, UP, Falloff::Linear { margin: 1.0, value: 0.5 }), 0.0);
        // 1 − 0.6²
        assert!((tolerance(0.6, [0.0, 0.0], Falloff::Quadratic { margin: 1.0, value: 0.0 }) - 0.64).abs() < 1e-15);
        assert_eq!(tolerance(1.0, [0.0, 0.0], Falloff::Quadratic { margin: 1.0, value: 0.0 }), 0.0);
    }
}
