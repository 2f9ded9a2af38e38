//! What the decoder promises, on shapes that exercise every branch.

use candle_core::Tensor;
use onpolicy::{Noise, Policy};
use token_policy::{Decoder, DecoderConfig, Decoding, Generator, TokenPolicy, Tokens};

/// Grouped queries; with biases (Qwen2.5) or norms per head (Qwen3), tied or not, a head size of its own.
fn shapes() -> Vec<DecoderConfig> {
    let plain = DecoderConfig::new(11, 16, 2, 4, 2, 24);
    let biased = DecoderConfig { qkv_bias: true, ..plain.clone() };
    let normed = DecoderConfig { qk_norm: true, tied: false, head_dim: 6, kv_heads: 4, ..plain.clone() };
    vec![plain, biased, normed]
}

/// Weights far from their start, so that nothing is accidentally 0 or 1.
fn decoder(config: &DecoderConfig) -> Decoder {
    let decoder = Decoder::new(config.clone(), 3).unwrap();
    let noise = Noise::new(9).normal_vec(decoder.params().len());
    decoder.params().update(|p| p.iter_mut().zip(noise).for_each(|(p, n)| *p += 0.3 * n)).unwrap();
    decoder
}

fn batch() -> (Tokens, Tokens) {
    let prompts = Tokens::new([&[1, 2, 3][..], &[4], &[5, 6, 7, 8, 9, 10, 1], &[2, 2]]);
    let completions = Tokens::new([&[4, 5, 0][..], &[1, 2, 3, 4, 5, 6, 0], &[3], &[]]);
    (prompts, completions)
}

/// A fixed linear functional of the scores.
fn functional(scores: &Tensor) -> Tensor {
    let weights = Noise::new(4).normal_vec(scores.elem_count());
    let weights = Tensor::from_vec(weights, scores.dims(), scores.device()).unwrap();
    (scores * weights).unwrap().sum_all().unwrap()
}

#[test]
fn gradients_match_finite_differences_in_every_part() {
    let (prompts, completions) = batch();
    for config in shapes() {
        let decoder = decoder(&config);
        let value = || {
            let scores = decoder.log_prob(&prompts, &completions, 0.7, 10).unwrap();
            f64::from(functional(&scores).to_scalar::<f32>().unwrap())
        };
        let scores = decoder.log_prob(&prompts, &completions, 0.7, 10).unwrap();
        let grads = functional(&scores).backward().unwrap();
        let grad = grads.get(decoder.params().var().as_tensor()).unwrap().to_vec1::<f32>().unwrap();
        for part in decoder.params().parts() {
            let g = &grad[part.range()];
            let norm = g.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!(norm > 1e-4, "{} has no gradient", part.name);
            // along the gradient, where the slope is largest
            let h = 2e-3 / norm;
            let shift = |by: f32| {
                decoder.params().update(|p| p[part.range()].iter_mut().zip(g).for_each(|(p, g)| *p += by * g)).unwrap();
            };
            shift(h);
            let high = value();
            shift(-2.0 * h);
            let low = value();
            shift(h);
            let slope = (high - low) / (2.0 * f64::from(h));
            let want = f64::from(norm * norm);
            assert!((slope / want - 1.0).abs() < 2e-2, "{}: slope {slope}, gradient says {want}", part.name);
        }
    }
}

#[test]
fn a_second_backward_gives_the_same_gradient_and_threads_change_no_bit() {
    let (prompts, completions) = batch();
    let decoder = decoder(&shapes()[0]);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let scores = decoder.log_prob(&prompts, &completions, 1.0, 11).unwrap();
            let loss = functional(&scores);
            let of =
                || loss.backward().unwrap().get(decoder.params().var().as_tensor()).unwrap().to_vec1::<f32>().unwrap();
            (of(), of())
        })
    };
    let (first, second) = run(1);
    assert_eq!(first, second);
    assert_eq!(run(3), (first, second));
}

/// Passes work in memory that earlier ones left.
#[test]
fn batches_before_leave_no_trace_in_scores_and_gradients() {
    let (prompts, completions) = batch();
    let long = Tokens::new([(0..200).map(|t| 1 + t * t % 10).collect::<Vec<u32>>(), vec![3; 70]]);
    for config in shapes() {
        let decoder = decoder(&config);
        let run = |p: &Tokens, c: &Tokens| {
            let scores = decoder.log_prob(p, c, 0.7, 10).unwrap();
            let grads = functional(&scores).backward().unwrap();
            let grad = grads.get(decoder.params().var().as_tensor()).unwrap().to_vec1::<f32>().unwrap();
            (scores.to_vec1::<f32>().unwrap(), grad)
        };
        let fresh = run(&prompts, &completions);
        run(&long, &Tokens::new([&[1, 2, 3][..], &[4]]));
        assert!(run(&prompts, &completions) == fresh);
    }
}

#[test]
fn a_row_scores_alike_alone_and_among_rows_of_other_lengths() {
    let (prompts, completions) = batch();
    for config in shapes() {
        let decoder = decoder(&config);
        let all = decoder.log_prob(&prompts, &completions, 1.0, 11).unwrap().to_vec1::<f32>().unwrap();
        let mut at = 0;
        for b in 0..3 {
            let (p, c) = (Tokens::new([prompts.row(b)]), Tokens::new([completions.row(b)]));
            for one in decoder.log_prob(&p, &c, 1.0, 11).unwrap().to_vec1::<f32>().unwrap() {
                assert!((one - all[at]).abs() < 1e-5, "row {b}: {one} {}", all[at]);
                at += 1;
            }
        }
    }
}

#[test]
fn decoding_with_a_cache_gives_the_logits_of_the_full_pass() {
    for config in shapes() {
        let decoder = decoder(&config);
        let (prompt, completion) = ([1u32, 2, 3], [4u32, 5, 6, 7]);
        let full = decoder.logits(&Tokens::new([prompt]), &Tokens::new([completion])).unwrap();
        let full = full.to_vec2::<f32>().unwrap();
        let mut decoding = Decoding::new(&decoder, 2, 8).unwrap();
        let mut logits = vec![0.0; decoding.vocab()];
        decoding.prefill(0, &prompt, &mut logits).unwrap();
        decoding.fork(0, 1).unwrap();
        for (t, id) in completion.iter().enumerate() {
            for (a, b) in logits.iter().zip(&full[t]) {
                assert!((a - b).abs() < 1e-5, "token {t}: {a} {b}");
            }
            decoding.step(&[1], &[*id], &mut logits).unwrap();
        }
        assert_eq!((decoding.len(0), decoding.len(1)), (3, 7));
    }
}

#[test]
fn a_slot_has_the_same_bits_alone_and_among_forty_others() {
    let decoder = decoder(&shapes()[1]);
    let prompts: Vec<Vec<u32>> = (0..40u32).map(|b| (0..1 + b % 5).map(|t| 1 + (b + 3 * t) % 10).collect()).collect();
    let v = decoder.config().vocab;
    let slots: Vec<usize> = (0..40).rev().collect();
    let mut all = Decoding::new(&decoder, 40, 12).unwrap();
    let mut scratch = vec![0.0; v];
    prompts.iter().enumerate().for_each(|(b, p)| all.prefill(b, p, &mut scratch).unwrap());
    let mut logits = vec![0.0; 40 * v];
    for t in 0..4 {
        all.step(&slots, &[1 + t; 40], &mut logits).unwrap();
    }
    for b in 0..40 {
        let mut one = Decoding::new(&decoder, 1, 12).unwrap();
        one.prefill(0, &prompts[b], &mut scratch).unwrap();
        for t in 0..4 {
            one.step(&[0], &[1 + t], &mut scratch).unwrap();
        }
        let at = (39 - b) * v;
        assert_eq!(scratch, logits[at..at + v], "slot {b}");
    }
}

/// A cache that outlived an update of the weights would mix two policies.
#[test]
fn an_update_of_the_weights_does_not_reach_a_cache_and_reaches_the_next_one() {
    let decoder = decoder(&shapes()[0]);
    let logits = |decoding: &mut Decoding| {
        let mut logits = vec![0.0; decoding.vocab()];
        decoding.prefill(0, &[1, 2, 3], &mut logits).unwrap();
        logits
    };
    let mut old = Decoding::new(&decoder, 1, 8).unwrap();
    let before = logits(&mut old);
    decoder.params().update(|p| p.iter_mut().for_each(|p| *p *= 1.1)).unwrap();
    assert_eq!(logits(&mut old), before);
    assert_ne!(logits(&mut Decoding::new(&decoder, 1, 8).unwrap()), before);
}

fn policy(temperature: f32) -> TokenPolicy {
    let decoder = decoder(&DecoderConfig::new(11, 16, 2, 4, 2, 24));
    TokenPolicy { decoder, temperature, usable: 9, max_tokens: 12, ends: vec![0, 5] }
}

/// The temperature is in both, and the support is the same: the ratio of a first step is 1.
#[test]
fn scoring_again_repeats_what_sampling_reported_at_any_temperature() {
    let (prompts, _) = batch();
    for temperature in [0.6, 1.0, 1.7] {
        let policy = policy(temperature);
        let drawn = policy.sample(&prompts, &mut Noise::new(1)).unwrap();
        let again = policy.log_prob(&prompts, &drawn.trace).unwrap();
        let (a, b) = (drawn.log_prob.value.to_vec2::<f32>().unwrap(), again.value.to_vec2::<f32>().unwrap());
        for (x, y) in a.iter().flatten().zip(b.iter().flatten()) {
            assert!((x - y).abs() < 1e-4, "{temperature}: {x} {y}");
        }
        assert!(drawn.action.ids().iter().all(|id| *id < 9), "an id that is not usable was drawn");
    }
}

#[test]
fn completions_end_with_the_first_of_all_end_tokens_or_at_the_longest_length() {
    let (prompts, _) = batch();
    let policy = policy(1.0);
    let drawn = policy.sample(&prompts, &mut Noise::new(2)).unwrap();
    for row in drawn.action.iter() {
        let end = row.iter().position(|id| [0, 5].contains(id));
        assert_eq!(row.len(), end.map_or(12, |at| at + 1), "{row:?}");
    }
}

#[test]
fn divergence_is_zero_at_itself_positive_elsewhere_and_a_snapshot_never_moves() {
    let (prompts, _) = batch();
    let policy = policy(0.8);
    let drawn = policy.sample(&prompts, &mut Noise::new(3)).unwrap();
    let old = policy.snapshot().unwrap();
    let of = |q: &TokenPolicy| TokenPolicy::kl(&old, q, &prompts, &drawn.trace).unwrap();
    assert!(of(&policy).sum().unwrap().to_vec1::<f32>().unwrap().iter().all(|k| k.abs() < 1e-6));
    policy.decoder.params().update(|p| p.iter_mut().for_each(|p| *p *= 1.05)).unwrap();
    let kl = of(&policy);
    let (value, mask) = (kl.value.flatten_all().unwrap(), kl.mask.flatten_all().unwrap());
    let pairs = value.to_vec1::<f32>().unwrap().into_iter().zip(mask.to_vec1::<f32>().unwrap());
    assert!(pairs.clone().all(|(k, m)| (m == 1.0 && k > 0.0) || (m == 0.0 && k == 0.0)));
    let grads = kl.sum().unwrap().sum_all().unwrap().backward().unwrap();
    assert!(grads.get(policy.decoder.params().var().as_tensor()).is_some());
    let again = old.log_prob(&prompts, &drawn.trace).unwrap().value.to_vec2::<f32>().unwrap();
    let stored = drawn.log_prob.value.to_vec2::<f32>().unwrap();
    assert!(again.iter().flatten().zip(stored.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn impossible_batches_and_shapes_are_refused_by_name() {
    let decoder = decoder(&shapes()[0]);
    let of =
        |p: &[u32], c: &[u32]| decoder.log_prob(&Tokens::new([p]), &Tokens::new([c]), 1.0, 10).unwrap_err().to_string();
    assert!(of(&[], &[1]).contains("prompt 0 is empty"));
    assert!(of(&[11], &[1]).contains("beyond the vocabulary of 11"));
    assert!(of(&[1], &[10]).contains("usable ids are below 10"));
    let wrong = |f: fn(&mut DecoderConfig)| {
        let mut c = DecoderConfig::new(11, 16, 2, 4, 2, 24);
        f(&mut c);
        c.check().unwrap_err().to_string()
    };
    assert!(wrong(|c| c.kv_heads = 3).contains("divisor of heads"));
    assert!(wrong(|c| c.head_dim = 5).contains("even"));
    assert!(wrong(|c| c.vocab = 0).contains("vocab is 0"));
    assert!(wrong(|c| c.norm_eps = f64::NAN).contains("norm_eps"));
}
