//! All randomness of the learner: a seeded counter generator (ChaCha8), independent of threads and platforms.

use candle_core::{Device, Result, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::bundle::{Bundle, BundleError, Persist};
use crate::multiversion;
use crate::simd::{ln, sincos_turns};

const CHUNK: usize = 4096;

/// A uniform number in (0, 1), never 0 or 1, from 24 of the bits and a half. The largest would round to 1.
pub fn unit(bits: u32) -> f32 {
    (((bits >> 8) as f32 + 0.5) * (1.0 / 16_777_216.0)).min(1.0 - f32::EPSILON / 2.0)
}

/// A stream of noise. Draw number n of a seed is the same in any run, whatever was drawn in parallel: every draw
/// opens ChaCha stream n, and element i of it is at word i.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    seed: u64,
    draws: u64,
}

impl Noise {
    /// A stream of that seed.
    pub fn new(seed: u64) -> Self {
        Noise { seed, draws: 0 }
    }

    /// A stream of its own for a named purpose, so that two users of one seed never share numbers.
    pub fn named(seed: u64, purpose: &str) -> Self {
        // FNV-1a over the name, mixed with the seed by splitmix64's finaliser
        let mut h = 0xcbf2_9ce4_8422_2325u64;
        for b in purpose.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut z = seed.wrapping_add(h);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Noise::new(z ^ (z >> 31))
    }

    fn words(&mut self, out: &mut [f32], transform: impl Fn(&mut [f32]) + Sync) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.draws);
        self.draws += 1;
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(c, out)| {
            let mut rng = rng.clone();
            rng.set_word_pos((c * CHUNK) as u128);
            for x in out.iter_mut() {
                *x = unit(rng.next_u32());
            }
            transform(out);
        });
    }

    /// n numbers uniform in (0, 1); see [`unit()`].
    pub fn uniform(&mut self, n: usize) -> Vec<f32> {
        let mut out = vec![0.0; n];
        self.words(&mut out, |_| {});
        out
    }

    /// n standard normal numbers, by Box–Muller on pairs of uniforms.
    pub fn normal_vec(&mut self, n: usize) -> Vec<f32> {
        let mut out = vec![0.0; n.next_multiple_of(2)];
        self.words(&mut out, box_muller);
        out.truncate(n);
        out
    }

    /// Standard normal tensor on the CPU.
    pub fn normal(&mut self, shape: impl Into<candle_core::Shape>) -> Result<Tensor> {
        let shape = shape.into();
        Tensor::from_vec(self.normal_vec(shape.elem_count()), shape, &Device::Cpu)
    }

    /// A uniformly random order of 0..n (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.draws);
        self.draws += 1;
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            // multiply-shift of 64 bits: bias below 2⁻³² for any n here
            let j = ((u128::from(rng.next_u64()) * (i as u128 + 1)) >> 64) as usize;
            order.swap(i, j);
        }
        order
    }
}

multiversion! {
    /// Turns uniforms into normals: the first half of the slice are radii, the second half angles.
    fn box_muller(u: &mut [f32]) {
        let (radius, angle) = u.split_at_mut(u.len() / 2);
        for (a, b) in radius.iter_mut().zip(angle.iter_mut()) {
            let r = (-2.0 * ln(*a)).sqrt();
            let (s, c) = sincos_turns(*b);
            *a = r * c;
            *b = r * s;
        }
    }
}

impl Persist for Noise {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_u64(&format!("{prefix}.noise"), &[self.seed, self.draws]);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        let v = from.u64s(&format!("{prefix}.noise"), 2)?;
        (self.seed, self.draws) = (v[0], v[1]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_equal_bits_for_any_thread_count() {
        let draw = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Noise::new(7).normal_vec(3 * CHUNK + 11))
        };
        assert_eq!(draw(1), draw(3));
        assert_ne!(Noise::new(7).uniform(4), Noise::new(8).uniform(4));
        assert_ne!(Noise::named(7, "a").uniform(4), Noise::named(7, "b").uniform(4));
    }

    #[test]
    fn no_bits_make_a_uniform_number_of_0_or_1() {
        assert!(unit(0) > 0.0 && unit(u32::MAX) < 1.0);
        assert_eq!(unit(1 << 31), 0.5 + 0.5 / 16_777_216.0);
    }

    #[test]
    fn consecutive_draws_differ_and_a_restored_stream_goes_on() {
        let mut noise = Noise::new(3);
        let first = noise.normal_vec(8);
        let mut bundle = Bundle::default();
        noise.save("x", &mut bundle);
        let second = noise.normal_vec(8);
        assert_ne!(first, second);
        let mut restored = Noise::new(0);
        restored.load("x", &bundle).unwrap();
        assert_eq!(restored.normal_vec(8), second);
    }

    #[test]
    fn normal_moments_are_those_of_a_standard_normal() {
        let x = Noise::new(1).normal_vec(400_000);
        let n = x.len() as f64;
        let moment = |k: i32| x.iter().map(|&v| f64::from(v).powi(k)).sum::<f64>() / n;
        // standard errors: 1/√n, √2/√n, √15/√n, √96/√n; bounds at 4 of them
        let bound = |v: f64| 4.0 * (v / n).sqrt();
        assert!(moment(1).abs() < bound(1.0));
        assert!((moment(2) - 1.0).abs() < bound(2.0));
        assert!(moment(3).abs() < bound(15.0));
        assert!((moment(4) - 3.0).abs() < bound(96.0));
        let tail = x.iter().filter(|v| v.abs() > 3.0).count() as f64 / n;
        assert!((tail - 0.0027).abs() < bound(0.0027));
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut p = Noise::new(5).permutation(1000);
        assert_ne!(p[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        p.sort_unstable();
        assert!(p.iter().enumerate().all(|(i, &x)| i == x as usize));
    }
}
