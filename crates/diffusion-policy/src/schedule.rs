//! Step sizes of the denoising chain. All are positive: every step has a density.

/// Standard deviation of the chain's prior, σ₀.
pub const PRIOR_STD: f32 = 2.5;

/// Time steps of an N-step chain, k = 0 at the noisy end.
///
/// ```text
/// dt_k = c(k)/N,   c(k) = 0.999·cos²(π/2 · (1.008 − t)/1.008) + 0.001,   t = (N − k)/N
/// ```
///
/// Nichol & Dhariwal 2021's cosine, as TruDi uses it (`facts`: steps sum to 0.559 for N = 8 at friction 1).
/// Panics if `steps` is 0.
pub fn cosine(steps: usize) -> Vec<f32> {
    assert!(steps > 0, "a chain has at least one step");
    (0..steps)
        .map(|k| {
            let t = (steps - k) as f64 / steps as f64;
            let c = (std::f64::consts::FRAC_PI_2 * (1.008 - t) / 1.008).cos();
            ((0.999 * c * c + 0.001) / steps as f64) as f32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_steps_have_the_published_sizes() {
        let want = [0.99984, 0.9577, 0.84703, 0.68444, 0.49427, 0.30504, 0.14511, 0.03843];
        for (got, want) in cosine(8).iter().zip(want) {
            assert!((got * 8.0 - want).abs() < 6e-6, "{got} {want}");
        }
        assert!((cosine(8).iter().sum::<f32>() - 0.559).abs() < 5e-4);
    }

    #[test]
    fn every_step_of_any_chain_is_positive_and_smaller_than_the_one_before() {
        for n in [1, 2, 4, 16, 100] {
            let dt = cosine(n);
            assert!(dt.iter().all(|x| *x > 0.0) && dt.windows(2).all(|w| w[0] > w[1]));
        }
    }
}
