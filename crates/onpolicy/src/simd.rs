//! Elementwise f32 kernels compiled once per instruction set and chosen at run time.
//!
//! The functions here are written as plain loops; [`multiversion!`](crate::multiversion) compiles their bodies under
//! AVX-512 and AVX2+FMA so that LLVM vectorises them, and the portable build remains for other machines.

/// Compiles a function once per instruction set and dispatches at run time.
///
/// The body must call only `#[inline(always)]` functions to be vectorised.
#[macro_export]
#[doc(hidden)]
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match $crate::simd::level() {
                    // SAFETY: `level` reports an instruction set only if this machine has it.
                    $crate::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Level::Portable => {}
                }
            }
            body($($arg),*)
        }
    };
}

/// Instruction sets the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// AVX-512 F, VL, BW, DQ.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// The target's baseline.
    Portable,
}

/// What this machine has.
#[inline]
pub fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            return Level::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Level::Avx2;
        }
    }
    Level::Portable
}

const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;

/// eˣ within 2 ulp, clamped to `[-87, 88]`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + 12_582_912.0; // 1.5·2²³: rounds to nearest integer
    let n = shifted - 12_582_912.0;
    let r = x - n * LN2_HI - n * LN2_LO;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let y = p * (r * r) + r + 1.0;
    // the low bits of `shifted` hold n; 2ⁿ by building its exponent
    let bits = (shifted.to_bits() << 23).wrapping_add(127 << 23);
    y * f32::from_bits(bits)
}

/// ln x for normal positive x, within 2 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    // mantissa in [√½, √2)
    let e = ((bits.wrapping_sub(0x3f35_04f3)) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((e as u32) << 23));
    let f = m - 1.0;
    let z = f * f;
    let mut p = 7.037_683_6e-2;
    p = p * f - 1.151_461e-1;
    p = p * f + 1.167_699_9e-1;
    p = p * f - 1.242_014_1e-1;
    p = p * f + 1.424_932_3e-1;
    p = p * f - 1.666_805_7e-1;
    p = p * f + 2.000_071_5e-1;
    p = p * f - 2.499_999_4e-1;
    p = p * f + 3.333_333e-1;
    let e = e as f32;
    f + (f * z * p + e * LN2_LO - 0.5 * z) + e * LN2_HI
}

/// sin 2πt and cos 2πt for t in [0, 1], within 1e-6.
#[inline(always)]
pub fn sincos_turns(t: f32) -> (f32, f32) {
    let q = (t * 4.0 + 12_582_912.0) - 12_582_912.0; // nearest quarter turn
    let x = (t - q * 0.25) * std::f32::consts::TAU; // |x| ≤ π/4
    let z = x * x;
    let s = x + x * z * (-1.666_665_5e-1 + z * (8.332_161e-3 - z * 1.951_529_6e-4));
    let c = 1.0 - 0.5 * z + z * z * (4.166_664_6e-2 + z * (-1.388_731_6e-3 + z * 2.443_315_7e-5));
    let quadrant = (t * 4.0 + 12_582_912.0).to_bits() & 3;
    let (a, b) = if quadrant & 1 == 1 { (c, s) } else { (s, c) };
    let sign = |x: f32, flip: u32| f32::from_bits(x.to_bits() ^ (flip << 31));
    (sign(a, quadrant >> 1), sign(b, (quadrant ^ (quadrant >> 1)) & 1))
}

/// tanh x, within 2e-7 absolutely.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let e = exp(-2.0 * a);
    let big = (1.0 - e) / (1.0 + e);
    // near 0 the quotient cancels: x − x³/3 + 2x⁵/15 − 17x⁷/315
    let z = x * x;
    let small = a * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0 - z * (17.0 / 315.0))));
    (if a < 0.15 { small } else { big }).copysign(x)
}

/// softplus x = ln(1 + eˣ), within 3e-7 relative to max(1, |x|).
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    x.max(0.0) + ln(1.0 + exp(-x.abs()))
}

/// Logistic function.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Standard normal distribution function Φ and density φ; Φ within 1e-7 (Abramowitz & Stegun 7.1.26).
#[inline(always)]
pub fn normal_cdf_pdf(x: f32) -> (f32, f32) {
    let a = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let e = exp(-0.5 * x * x);
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    let tail = 0.5 * p * e; // 1 − Φ(|x|)
    let cdf = if x >= 0.0 { 1.0 - tail } else { tail };
    (cdf, e * 0.398_942_3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(lo: f64, hi: f64, n: usize) -> impl Iterator<Item = f32> {
        (0..=n).map(move |i| (lo + (hi - lo) * i as f64 / n as f64) as f32)
    }

    #[test]
    fn exp_and_ln_are_accurate_to_a_few_ulp() {
        for x in grid(-86.0, 87.0, 20_000) {
            let want = f64::from(x).exp();
            assert!((f64::from(exp(x)) / want - 1.0).abs() < 3e-7, "exp({x})");
        }
        for x in grid(1e-7, 50.0, 20_000) {
            let want = f64::from(x).ln();
            assert!((f64::from(ln(x)) - want).abs() < 3e-7 * want.abs().max(1.0), "ln({x}) = {} not {want}", ln(x));
        }
    }

    #[test]
    fn circle_functions_cover_all_quadrants() {
        for t in grid(0.0, 1.0, 10_000) {
            let (s, c) = sincos_turns(t);
            let a = f64::from(t) * std::f64::consts::TAU;
            assert!((f64::from(s) - a.sin()).abs() < 1e-6 && (f64::from(c) - a.cos()).abs() < 1e-6, "{t}: {s} {c}");
        }
    }

    #[test]
    fn squashing_functions_match_f64() {
        for x in grid(-12.0, 12.0, 20_000) {
            let y = f64::from(x);
            assert!((f64::from(tanh(x)) - y.tanh()).abs() < 2e-7, "tanh({x})");
            let sp = y.max(0.0) + (-y.abs()).exp().ln_1p();
            assert!((f64::from(softplus(x)) - sp).abs() < 3e-7 * sp.max(1.0), "softplus({x})");
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + (-y).exp())).abs() < 2e-7, "sigmoid({x})");
        }
        assert_eq!(tanh(0.0), 0.0);
        assert!(tanh(-40.0) == -1.0 && tanh(40.0) == 1.0);
    }

    #[test]
    fn normal_distribution_function_has_its_table_values() {
        for (x, want) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (-1.0, 0.158_655_254), (2.5, 0.993_790_335), (-4.0, 3.167e-5)]
        {
            assert!((f64::from(normal_cdf_pdf(x).0) - want).abs() < 2e-7, "{x}: {}", normal_cdf_pdf(x).0);
        }
        assert!((normal_cdf_pdf(1.0).1 - 0.241_970_72).abs() < 1e-7);
    }
}
