//! What adapters promise.

use candle_core::Tensor;
use onpolicy::{Adam, AdamConfig, Noise, Policy};
use serde_json::{Value, json};
use token_policy::{Decoder, DecoderConfig, LORA_TARGETS, Lora, LoraConfig, LoraPolicy, Tokens};

fn config(targets: &[&str]) -> LoraConfig {
    LoraConfig { rank: 3, alpha: 7.0, targets: targets.iter().map(|t| t.to_string()).collect() }
}

fn base() -> Decoder {
    let shape = DecoderConfig { qkv_bias: true, ..DecoderConfig::new(11, 16, 2, 4, 2, 24) };
    let decoder = Decoder::new(shape, 3).unwrap();
    let noise = Noise::new(9).normal_vec(decoder.params().len());
    decoder.params().update(|p| p.iter_mut().zip(noise).for_each(|(p, n)| *p += 0.3 * n)).unwrap();
    decoder
}

fn batch() -> (Tokens, Tokens) {
    let prompts = Tokens::new([&[1, 2, 3][..], &[4], &[5, 6, 7, 8]]);
    (prompts, Tokens::new([&[4, 5, 0][..], &[1, 2, 3, 4, 0], &[3]]))
}

fn moved(targets: &[&str]) -> Lora {
    let lora = Lora::new(base(), config(targets), 5).unwrap();
    let noise = Noise::new(6).normal_vec(lora.params().len());
    lora.params().update(|p| p.iter_mut().zip(noise).for_each(|(p, n)| *p += 0.2 * n)).unwrap();
    lora
}

fn policy(lora: Lora) -> LoraPolicy {
    LoraPolicy { lora, temperature: 0.8, usable: 10, max_tokens: 6, ends: vec![0] }
}

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn fresh_adapters_leave_every_bit_of_the_base() {
    let base = base();
    base.params().update(|p| p[40] = -0.0).unwrap();
    let lora = Lora::new(base.clone(), config(&LORA_TARGETS), 5).unwrap();
    assert_eq!(bits(&values(&lora.weights().unwrap())), bits(&base.params().to_vec().unwrap()));
    let a = lora.params().part("model.layers.1.mlp.down_proj.lora_A.weight").unwrap();
    let drawn = &lora.params().to_vec().unwrap()[a.range()];
    let bound = 1.0 / 24f32.sqrt();
    assert!(drawn.iter().all(|x| x.abs() <= bound) && drawn.iter().any(|x| x.abs() > 0.5 * bound));
}

#[test]
fn gradients_match_finite_differences_and_reach_adapters_only() {
    let (prompts, completions) = batch();
    let policy = policy(moved(&LORA_TARGETS));
    let score = |p: &LoraPolicy| p.log_prob(&prompts, &completions).unwrap().sum().unwrap().sum_all().unwrap();
    let grads = score(&policy).backward().unwrap();
    assert!(grads.get(policy.lora.base().params().var().as_tensor()).is_none());
    let params = policy.lora.params();
    let grad = values(grads.get(params.var().as_tensor()).unwrap());
    for part in params.parts() {
        let g = &grad[part.range()];
        let norm = g.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!(norm > 1e-4, "{} has no gradient", part.name);
        let h = 2e-3 / norm;
        let shift = |by: f32| {
            params.update(|p| p[part.range()].iter_mut().zip(g).for_each(|(p, g)| *p += by * g)).unwrap();
            f64::from(score(&policy).to_scalar::<f32>().unwrap())
        };
        let high = shift(h);
        let low = shift(-2.0 * h);
        shift(h);
        let (slope, want) = ((high - low) / (2.0 * f64::from(h)), f64::from(norm * norm));
        assert!((slope / want - 1.0).abs() < 2e-2, "{}: slope {slope}, gradient says {want}", part.name);
    }
}

#[test]
fn training_moves_the_adapters_and_no_bit_of_the_base() {
    let (prompts, completions) = batch();
    let lora = Lora::new(base(), config(&LORA_TARGETS), 5).unwrap();
    let policy = policy(lora);
    let before = bits(&policy.lora.base().params().to_vec().unwrap());
    let params = policy.params();
    assert_eq!((params.len(), params[0].len()), (1, policy.lora.params().len()));
    let mut adam = Adam::new(params[0].len(), AdamConfig::default());
    let loss = || policy.log_prob(&prompts, &completions).unwrap().sum().unwrap().sum_all().unwrap().neg().unwrap();
    let first = loss().to_scalar::<f32>().unwrap();
    for _ in 0..60 {
        let grads = loss().backward().unwrap();
        let grad = values(grads.get(params[0].var().as_tensor()).unwrap());
        adam.step_params(params[0], &grad, 1.0, 1e-2).unwrap();
    }
    let last = loss().to_scalar::<f32>().unwrap();
    assert!(last < 0.2 * first, "{first} became {last}");
    assert_eq!(bits(&policy.lora.base().params().to_vec().unwrap()), before);
}

#[test]
fn merged_weights_score_alike_and_only_targets_differ_from_the_base() {
    let (prompts, completions) = batch();
    let policy = policy(moved(&["q_proj", "down_proj"]));
    let merged = policy.merged().unwrap();
    let alike = (policy.log_prob(&prompts, &completions).unwrap(), merged.log_prob(&prompts, &completions).unwrap());
    assert_eq!(values(&alike.0.value), values(&alike.1.value));
    let (old, new) = (policy.lora.base().params().to_vec().unwrap(), merged.decoder.params().to_vec().unwrap());
    for part in merged.decoder.params().parts() {
        let target = part.name.ends_with("q_proj.weight") || part.name.ends_with("down_proj.weight");
        assert_eq!(old[part.range()] != new[part.range()], target, "{}", part.name);
    }
    // one entry by hand: W + (7/3)·B·A
    let (q, lora) = (merged.decoder.params().part("model.layers.1.self_attn.q_proj.weight").unwrap(), &policy.lora);
    let of = |name: &str| lora.params().part(&format!("model.layers.1.self_attn.q_proj.{name}.weight")).unwrap();
    let (all, a, b) = (lora.params().to_vec().unwrap(), of("lora_A").offset, of("lora_B").offset);
    let (row, column) = (5, 7);
    let delta: f32 = (0..3).map(|k| all[b + row * 3 + k] * all[a + k * 16 + column]).sum();
    let at = q.offset + row * 16 + column;
    assert!((new[at] - old[at] - 7.0 / 3.0 * delta).abs() < 1e-5);
}

#[test]
fn it_keeps_the_promises_of_a_policy() {
    let (prompts, completions) = batch();
    let p = policy(moved(&LORA_TARGETS));
    let drawn = p.sample(&prompts, &mut Noise::new(1)).unwrap();
    let again = p.log_prob(&prompts, &drawn.trace).unwrap();
    for (a, b) in values(&drawn.log_prob.value).iter().zip(values(&again.value)) {
        assert!((a - b).abs() < 1e-4, "{a} and {b}");
    }
    let old = p.snapshot().unwrap();
    let before = values(&old.log_prob(&prompts, &completions).unwrap().value);
    let frozen = p.lora.base().params().to_vec().unwrap();
    for params in p.params() {
        params.update(|p| p.iter_mut().for_each(|x| *x *= 1.5)).unwrap();
    }
    assert_eq!(values(&old.log_prob(&prompts, &completions).unwrap().value), before);
    assert_eq!(p.lora.base().params().to_vec().unwrap(), frozen);
    let own = values(&LoraPolicy::kl(&old, &old, &prompts, &completions).unwrap().value);
    assert!(own.iter().all(|k| k.abs() < 1e-6));
    let other = values(&LoraPolicy::kl(&old, &p, &prompts, &completions).unwrap().value);
    assert!(other.iter().all(|k| *k > -1e-6) && other.iter().sum::<f32>() > 1e-4);
}

#[test]
fn adapters_survive_their_files_under_the_names_of_peft() {
    let dir = tempfile::tempdir().unwrap();
    let lora = moved(&["q_proj", "up_proj"]);
    lora.write(dir.path()).unwrap();
    let read = Lora::read(base(), dir.path()).unwrap();
    assert_eq!(read.config(), lora.config());
    assert_eq!(bits(&read.params().to_vec().unwrap()), bits(&lora.params().to_vec().unwrap()));
    let bytes = std::fs::read(dir.path().join("adapter_model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.len(), 8);
    let name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    assert_eq!(file.tensor(name).unwrap().shape(), [3, 16]);
    let path = dir.path().join("adapter_config.json");
    let good: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (key, value) in [
        ("peft_type", json!("IA3")),
        ("bias", json!("all")),
        ("use_dora", json!(true)),
        ("use_rslora", json!(true)),
        ("rank_pattern", json!({"q_proj": 2})),
        ("r", json!("three")),
        ("target_modules", json!("q_.*")),
    ] {
        let mut changed = good.clone();
        changed[key] = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        let error = Lora::read(base(), dir.path()).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("supported"), "{error}");
    }
    let mut changed = good.clone();
    changed["r"] = json!(2);
    std::fs::write(&path, changed.to_string()).unwrap();
    let error = Lora::read(base(), dir.path()).unwrap_err().to_string();
    assert!(error.contains("lora_") && error.contains("adapter_model.safetensors"), "{error}");
}

#[test]
fn settings_without_meaning_are_refused() {
    let refused = |config: LoraConfig| Lora::new(base(), config, 1).unwrap_err().to_string();
    let good = config(&["q_proj"]);
    assert!(refused(LoraConfig { rank: 0, ..good.clone() }).contains("rank is 0"));
    assert!(refused(LoraConfig { rank: 17, ..good.clone() }).contains("rank is 17"));
    assert!(refused(LoraConfig { alpha: f64::NAN, ..good.clone() }).contains("alpha"));
    assert!(refused(config(&[])).contains("q_proj"));
    let error = refused(config(&["q_proj", "lm_head"]));
    assert!(error.contains("\"lm_head\"") && error.contains("down_proj"), "{error}");
}
