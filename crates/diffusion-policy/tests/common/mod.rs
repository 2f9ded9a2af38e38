//! Golden values of `trudi_reference.py --golden trudi.json` (PyTorch, f64) and the fixed inputs they were made from.

use candle_core::{Device, Tensor};
use diffusion_policy::{DiffusionConfig, DiffusionPolicy};
use serde_json::Value;

pub fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/trudi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// All numbers of a nested array, in order.
pub fn flat(v: &Value) -> Vec<f64> {
    match v {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

/// amp · sin(shift + 7i + 13j + 17l + 19n)
pub fn wave(shape: &[usize], amp: f64, shift: f64) -> Vec<f32> {
    let n: usize = shape.iter().product();
    (0..n)
        .map(|mut at| {
            let mut angle = shift;
            for (dim, &len) in shape.iter().enumerate().rev() {
                angle += [7.0, 13.0, 17.0, 19.0][dim] * (at % len) as f64;
                at /= len;
            }
            (amp * angle.sin()) as f32
        })
        .collect()
}

pub fn tensor(v: Vec<f32>, rows: usize) -> Tensor {
    let columns = v.len() / rows;
    Tensor::from_vec(v, (rows, columns), &Device::Cpu).unwrap()
}

/// `[A, B, C]` → `[B, A, C]`
pub fn swap(v: &[f32], a: usize, b: usize, c: usize) -> Vec<f32> {
    (0..a * b * c).map(|e| v[(e / c % a) * b * c + (e / (a * c)) * c + e % c]).collect()
}

/// The reference's actor: parameter number i is a wave of its own, scales plus 1.
pub fn actor(golden: &Value, shift: f64, friction_key: &str) -> DiffusionPolicy {
    let config = DiffusionConfig { steps: 4, width: 8, ..DiffusionConfig::new(5, 3) };
    let policy = DiffusionPolicy::new(config, 0).unwrap();
    let mut values = policy.parameters().to_vec().unwrap();
    for (i, part) in policy.parameters().parts().iter().enumerate() {
        let fill = if i == 0 {
            flat(&golden["inputs"][friction_key]).iter().map(|x| *x as f32).collect()
        } else {
            let one = if part.name.ends_with("norm.weight") { 1.0 } else { 0.0 };
            wave(&part.shape, 0.3, shift + (i + 2) as f64).iter().map(|x| x + one).collect::<Vec<_>>()
        };
        values[part.range()].copy_from_slice(&fill);
    }
    policy.parameters().write(&values).unwrap();
    policy
}

/// |got − want| ≤ tol · max(1, largest |want|) for every element.
pub fn close(got: &[f32], want: &[f64], tol: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(*g) - w).abs() <= tol * scale, "{what}[{i}]: {g}, PyTorch has {w}");
    }
}

/// Gradients against the reference's norm and first three elements of every part.
pub fn close_gradient(policy: &DiffusionPolicy, grad: &Tensor, want: &Value, tol: f64, what: &str) {
    let grad = grad.to_vec1::<f32>().unwrap();
    let names = [
        "f_raw",
        "net.phase",
        "net.t1.weight",
        "net.t1.bias",
        "net.t2.weight",
        "net.t2.bias",
        "net.inp.weight",
        "net.inp.bias",
        "net.hid.0.weight",
        "net.hid.0.bias",
        "net.ln.0.weight",
        "net.ln.0.bias",
        "net.out.weight",
        "net.out.bias",
    ];
    for (part, name) in policy.parameters().parts().iter().zip(names) {
        let want = &want["per_param"][name];
        let g = &grad[part.range()];
        let norm = g.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let expected = want["norm"].as_f64().unwrap();
        assert!(
            (norm - expected).abs() <= tol * expected.max(1e-3),
            "{what} {name}: norm {norm}, PyTorch has {expected}"
        );
        for (a, b) in g.iter().zip(flat(&want["first3"])) {
            assert!((f64::from(*a) - b).abs() <= tol * expected.max(1e-3), "{what} {name}: {a}, PyTorch has {b}");
        }
    }
}
