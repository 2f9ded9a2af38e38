//! The few functions that `core` lacks.

use core::f64::consts::{LN_2, SQRT_2};

/// Natural logarithm of a positive normal number, to a few units in the last place.
///
/// ```text
/// x = m·2^e, m ∈ [1/√2, √2):  ln x = e·ln 2 + 2·artanh((m−1)/(m+1))
/// ```
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut e = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if m >= SQRT_2 {
        (m, e) = (m / 2.0, e + 1);
    }
    let s = (m - 1.0) / (m + 1.0);
    // s² < 0.03, so that the eleventh term is below the last place
    let series = (0..12).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    e as f64 * LN_2 + 2.0 * s * series
}

/// Exponential function, to a few units in the last place; 0 below −700, ∞ above 700.
pub(crate) fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    if x > 700.0 {
        return f64::INFINITY;
    }
    let k = (x / LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    // ln 2 in two parts, so that k·ln 2 keeps its last places
    let r = (x - k as f64 * 6.931_471_803_691_238_2e-1) - k as f64 * 1.908_214_929_270_587_7e-10;
    let series = (1..=14).rev().fold(1.0, |sum, n| 1.0 + sum * r / f64::from(n));
    series * f64::from_bits(((1023 + k) as u64) << 52)
}

/// Square root of a number that is not negative.
pub(crate) fn sqrt(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut y = exp(0.5 * ln(x));
    y = 0.5 * (y + x / y);
    0.5 * (y + x / y)
}

/// ln Γ(x) for x > 0: Stirling's series above 10, shifted there below.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 1.0;
    while x < 10.0 {
        (shift, x) = (shift * x, x + 1.0);
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    (x - 0.5) * ln(x) - x + 0.918_938_533_204_672_7 + series - ln(shift)
}

/// Probability that a variable with the distribution Beta(a, b) is at most x, I_x(a, b), for positive a and b.
///
/// The continued fraction of Numerical Recipes (Press et al. 2007), section 6.4, evaluated by Lentz's method.
pub(crate) fn beta_cdf(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_cdf_below_the_mean(b, a, 1.0 - x);
    }
    beta_cdf_below_the_mean(a, b, x)
}

fn beta_cdf_below_the_mean(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * ln(x) + b * ln(1.0 - x);
    exp(front) * fraction / a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementary_functions_agree_with_those_of_the_standard_library() {
        for k in 1..2000 {
            let x = f64::from(k) * 0.037;
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "ln {x}");
            assert!((sqrt(x) - x.sqrt()).abs() <= 3e-16 * x.sqrt(), "sqrt {x}");
            for x in [x, -x] {
                assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15, "exp {x}: {} {}", exp(x), x.exp());
            }
        }
        assert!((ln(1e-300) - 1e-300f64.ln()).abs() < 1e-12);
        assert_eq!((ln(1.0), exp(0.0), sqrt(0.0), exp(-1e9), exp(1e9)), (0.0, 1.0, 0.0, 0.0, f64::INFINITY));
    }

    #[test]
    fn ln_gamma_is_that_of_factorials_and_of_one_half() {
        assert!((ln_gamma(0.5) - core::f64::consts::PI.ln() / 2.0).abs() < 1e-13);
        let mut factorial = 1.0f64;
        for n in 1..30 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-13 * factorial.ln().max(1.0), "Γ({n})");
            factorial *= f64::from(n);
        }
    }

    #[test]
    fn beta_cdf_has_its_closed_forms() {
        for k in 1..20 {
            let x = f64::from(k) / 20.0;
            assert!((beta_cdf(1.0, 1.0, x) - x).abs() < 1e-13);
            assert!((beta_cdf(3.0, 1.0, x) - x.powi(3)).abs() < 1e-13);
            assert!((beta_cdf(1.0, 4.0, x) - (1.0 - (1.0 - x).powi(4))).abs() < 1e-13);
            // the arcsine law
            let arcsine = x.sqrt().asin() / core::f64::consts::FRAC_PI_2;
            assert!((beta_cdf(0.5, 0.5, x) - arcsine).abs() < 1e-12, "{x}");
        }
        // of a sharp posterior, half lies near its mean, and nearly all within five standard deviations
        assert!((beta_cdf(5000.0, 15000.0, 0.25) - 0.5).abs() < 0.01);
        assert!(beta_cdf(5000.0, 15000.0, 0.266) > 1.0 - 1e-6 && beta_cdf(5000.0, 15000.0, 0.234) < 1e-6);
    }
}
