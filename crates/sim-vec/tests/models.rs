//! The models that ship compile to MuJoCo's numbers for dm_control's own model files, field by field.
#[path = "golden/load.rs"]
#[allow(dead_code)]
mod load;

use sim_vec::mjcf;
use sim_vec::model::*;
use sim_vec::models::builtin;

struct Compare {
    at: String,
}

impl Compare {
    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, ours: T, theirs: T) {
        assert_eq!(ours, theirs, "{} {what}", self.at);
    }

    /// To rounding: both compile the same numbers in f64.
    fn close(&self, what: &str, ours: &[f64], theirs: &[f64]) {
        assert_eq!(ours.len(), theirs.len(), "{} {what}", self.at);
        let scale = theirs.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() <= 1e-12 * scale, "{} {what}: {ours:?}, MuJoCo has {theirs:?}", self.at);
        }
    }
}

/// Row-major rotation matrix.
fn matrix([w, x, y, z]: [f64; 4]) -> [f64; 9] {
    let t = |a: f64, b: f64| 2.0 * (a + b);
    [
        1.0 - t(y * y, z * z),
        t(x * y, -w * z),
        t(x * z, w * y),
        t(x * y, w * z),
        1.0 - t(x * x, z * z),
        t(y * z, -w * x),
        t(x * z, -w * y),
        t(y * z, w * x),
        1.0 - t(x * x, y * y),
    ]
}

/// Inertia in the body's frame: principal axes may come in another order or sign.
fn tensor(b: &Body) -> Vec<f64> {
    let r = matrix(b.iquat);
    (0..9).map(|i| (0..3).map(|k| r[i / 3 * 3 + k] * b.inertia[k] * r[i % 3 * 3 + k]).sum()).collect()
}

fn softness(s: &Softness) -> Vec<f64> {
    s.solref.iter().chain(&s.solimp).copied().collect()
}

fn compare(name: &str, ours: &Model, theirs: &Model) {
    let check = |at: String| Compare { at: format!("{name} {at}") };
    let c = check("model".into());
    // the golden file tightens the tolerance
    c.same("options", Options { tolerance: 1e-14, ..ours.opt.clone() }, theirs.opt.clone());
    c.close("qpos0", &ours.qpos0, &theirs.qpos0);
    c.close("qpos_spring", &ours.qpos_spring, &theirs.qpos_spring);
    c.close("mean inertia", &[ours.mean_inertia], &[theirs.mean_inertia]);
    c.same("bodies", ours.bodies.len(), theirs.bodies.len());
    for (a, b) in ours.bodies.iter().zip(&theirs.bodies) {
        let c = check(format!("body {}", b.name));
        let ids = |b: &Body| (b.name.clone(), b.parent, b.root, b.weld, b.joints.len(), b.dofs.len());
        c.same("ids", ids(a), ids(b));
        c.close("pos", &a.pos, &b.pos);
        c.close("frame", &matrix(a.quat), &matrix(b.quat));
        c.close("centre", &a.ipos, &b.ipos);
        c.close("mass", &[a.mass, a.subtree_mass], &[b.mass, b.subtree_mass]);
        c.close("inertia", &tensor(a), &tensor(b));
        c.close("invweight0", &a.invweight0, &b.invweight0);
    }
    c.same("joints", ours.joints.len(), theirs.joints.len());
    for (a, b) in ours.joints.iter().zip(&theirs.joints) {
        let c = check(format!("joint {}", b.name));
        let ids = |j: &Joint| (j.name.clone(), j.kind, j.body, j.qpos, j.dof, j.range.is_some());
        c.same("ids", ids(a), ids(b));
        c.close("pos", &a.pos, &b.pos);
        if a.kind != JointKind::Free {
            c.close("axis", &a.axis, &b.axis);
        }
        c.close("numbers", &[a.stiffness, a.margin], &[b.stiffness, b.margin]);
        c.close("range", &a.range.unwrap_or_default(), &b.range.unwrap_or_default());
        if a.range.is_some() {
            c.close("softness", &softness(&a.limit), &softness(&b.limit));
        }
    }
    for (i, (a, b)) in ours.dofs.iter().zip(&theirs.dofs).enumerate() {
        let c = check(format!("dof {i}"));
        c.same("ids", (a.body, a.joint, a.parent), (b.body, b.joint, b.parent));
        c.close("numbers", &[a.armature, a.damping, a.invweight0], &[b.armature, b.damping, b.invweight0]);
    }
    c.same("geoms", ours.geoms.len(), theirs.geoms.len());
    for (i, (a, b)) in ours.geoms.iter().zip(&theirs.geoms).enumerate() {
        let c = check(format!("geom {i} {}", a.name));
        let sizes = |s: Shape| match s {
            Shape::Plane => vec![],
            Shape::Sphere { radius } => vec![radius],
            Shape::Capsule { radius, half } => vec![radius, half],
            Shape::Cylinder { radius, half } => vec![radius, half],
            Shape::Ellipsoid { size } | Shape::Box { size } | Shape::Visual { size } => size.to_vec(),
        };
        c.same("body", a.body, b.body);
        // the golden files tell planes, spheres and capsules apart from others
        if let Shape::Visual { size } = b.shape {
            c.close("size", &sizes(a.shape), &size[..sizes(a.shape).len()]);
        } else {
            c.same("shape", std::mem::discriminant(&a.shape), std::mem::discriminant(&b.shape));
            c.close("size", &sizes(a.shape), &sizes(b.shape));
        }
        if a.shape == Shape::Plane {
            // an infinite plane is its normal and its height; where its visible part lies is a matter of looks
            let height = |g: &Geom| (0..3).map(|k| matrix(g.quat)[3 * k + 2] * g.pos[k]).sum::<f64>();
            c.close("height", &[height(a)], &[height(b)]);
        } else {
            c.close("pos", &a.pos, &b.pos);
        }
        c.close("frame", &matrix(a.quat), &matrix(b.quat));
        c.close("rbound", &[a.rbound], &[b.rbound]);
    }
    let pair = |p: &Pair| {
        let numbers: Vec<f64> = p.friction.into_iter().chain(softness(&p.softness)).chain([p.margin, p.gap]).collect();
        (p.geoms, p.condim, numbers)
    };
    c.same("pairs", ours.pairs.len(), theirs.pairs.len());
    for (a, b) in ours.pairs.iter().zip(&theirs.pairs) {
        let ((ga, da, na), (gb, db, nb)) = (pair(a), pair(b));
        let c = check(format!("pair {gb:?}"));
        c.same("geoms", (ga, da), (gb, db));
        c.close("numbers", &na, &nb);
    }
    c.same("actuators", ours.actuators.len(), theirs.actuators.len());
    for (a, b) in ours.actuators.iter().zip(&theirs.actuators) {
        let c = check(format!("actuator {}", b.name));
        c.same("joint", a.target, b.target);
        c.close("gear", &[a.gear * a.gain[0]], &[b.gear * b.gain[0]]);
        c.same("range", a.ctrl_range, b.ctrl_range);
    }
    for sensor in &ours.sensors {
        let object = |m: &Model, s: &Sensor| match s.kind {
            SensorKind::Touch(site) => m.sites[site].pos.to_vec(),
            SensorKind::SubtreeLinVel(body) => vec![body as f64],
            other => panic!("{other:?} is not in the golden files"),
        };
        let other = theirs.sensors.iter().find(|s| s.name == sensor.name);
        let other = other.unwrap_or_else(|| panic!("{name}: MuJoCo has no sensor {}", sensor.name));
        c.close(&sensor.name, &object(ours, sensor), &object(theirs, other));
    }
}

#[test]
fn shipped_models_compile_to_mujoco_s_numbers() {
    for name in load::NAMES {
        let ours = mjcf::parse(builtin(name).unwrap(), name).unwrap();
        compare(name, &ours, &load::load(name).model);
    }
}

/// Values of MuJoCo 3.17.0.
#[test]
fn bodies_on_slides_alone_weigh_their_mass_whatever_armature_and_direction() {
    let weights = |body: &str| {
        let m = mjcf::parse(&format!("<mujoco><worldbody>{body}</worldbody></mujoco>"), "m.xml").unwrap();
        (m.bodies[1].invweight0, m.dofs[0].invweight0)
    };
    let geom = "<geom size='0.1' mass='2'/>";
    for (body, translation, dof) in [
        (format!("<body><joint type='slide' axis='0 0 1' armature='1'/>{geom}</body>"), 0.5, 0.5),
        (format!("<body quat='1 1 0 0'><joint type='slide' axis='0 0 -2'/>{geom}</body>"), 0.5, 0.5),
        // a slanted axis, an anchor, or a passenger, and the general rule holds
        (format!("<body><joint type='slide' axis='1 1 0'/>{geom}</body>"), 0.5 / 3.0, 0.5),
        (format!("<body><joint type='slide' axis='0 0 1' pos='1 0 0'/>{geom}</body>"), 0.5 / 3.0, 0.5),
        (format!("<body><joint type='slide' axis='0 0 1'/>{geom}<body>{geom}</body></body>"), 0.25 / 3.0, 0.25),
    ] {
        let ([t, r], d) = weights(&body);
        assert!((t - translation).abs() < 1e-15 && r == 0.0 && (d - dof).abs() < 1e-15, "{body}: {t} {r} {d}");
    }
}
