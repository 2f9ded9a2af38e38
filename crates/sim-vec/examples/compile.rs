//! Prints the compiled model of each MJCF file named as one line of JSON, or why it is refused:
//!
//! ```text
//! cargo run --release -p sim-vec --example compile -- model.xml …
//! ```
//!
//! Lines are `{"file": …, "model": {…}}` or `{"file": …, "error": "…"}`. benches/peers/model_parity.py compares them
//! with MuJoCo's.

use serde_json::{Value, json};
use sim_vec::mjcf;
use sim_vec::model::*;

fn main() {
    for file in std::env::args().skip(1) {
        println!(
            "{}",
            match mjcf::load(&file) {
                Ok(m) => json!({ "file": file, "model": model(&m) }),
                Err(e) => json!({ "file": file, "error": e.to_string() }),
            }
        );
    }
}

fn list<T>(all: &[T], f: impl Fn(&T) -> Value) -> Value {
    all.iter().map(f).collect()
}

fn softness(s: &Softness) -> Value {
    json!([s.solref, s.solimp])
}

fn model(m: &Model) -> Value {
    json!({
        "name": m.name,
        "opt": options(&m.opt),
        "nq": m.nq,
        "bodies": list(&m.bodies, body),
        "joints": list(&m.joints, joint),
        "dofs": list(&m.dofs, |d| json!({
            "body": d.body, "joint": d.joint, "parent": d.parent, "armature": d.armature, "damping": d.damping,
            "invweight0": d.invweight0, "friction_loss": d.friction_loss, "friction": softness(&d.friction),
        })),
        "geoms": list(&m.geoms, geom),
        "sites": list(&m.sites, |s| json!({
            "name": s.name, "body": s.body, "pos": s.pos, "quat": s.quat, "size": s.size,
            "shape": format!("{:?}", s.shape),
        })),
        "pairs": list(&m.pairs, |p| json!({
            "geoms": p.geoms, "condim": p.condim, "friction": p.friction, "softness": softness(&p.softness),
            "margin": p.margin, "gap": p.gap,
        })),
        "tendons": list(&m.tendons, tendon),
        "equalities": list(&m.equalities, equality),
        "actuators": list(&m.actuators, actuator),
        "sensors": list(&m.sensors, |s| {
            let (kind, of) = sensor(s.kind);
            json!({ "name": s.name, "kind": kind, "of": of, "start": s.start })
        }),
        "qpos0": m.qpos0,
        "qpos_spring": m.qpos_spring,
        "keyframes": list(&m.keyframes, |k| json!({
            "name": k.name, "qpos": k.qpos, "qvel": k.qvel, "act": k.act, "ctrl": k.ctrl,
        })),
        "mean_inertia": m.mean_inertia,
        "skipped": m.skipped,
    })
}

fn options(o: &Options) -> Value {
    json!({
        "timestep": o.timestep, "gravity": o.gravity, "integrator": format!("{:?}", o.integrator),
        "iterations": o.iterations, "tolerance": o.tolerance, "ls_iterations": o.ls_iterations,
        "ls_tolerance": o.ls_tolerance, "euler_damp": o.euler_damp, "contact": o.contact, "limit": o.limit,
        "constraint": o.constraint, "cone": format!("{:?}", o.cone), "impratio": o.impratio, "density": o.density,
        "viscosity": o.viscosity, "wind": o.wind, "ccd_tolerance": o.ccd_tolerance,
        "ccd_iterations": o.ccd_iterations,
    })
}

fn body(b: &Body) -> Value {
    json!({
        "name": b.name, "parent": b.parent, "root": b.root, "weld": b.weld, "pos": b.pos, "quat": b.quat,
        "ipos": b.ipos, "iquat": b.iquat, "mass": b.mass, "inertia": b.inertia, "subtree_mass": b.subtree_mass,
        "invweight0": b.invweight0, "joints": [b.joints.start, b.joints.len()], "dofs": [b.dofs.start, b.dofs.len()],
        "gravcomp": b.gravcomp, "mocap": b.mocap,
    })
}

fn joint(j: &Joint) -> Value {
    json!({
        "name": j.name, "kind": format!("{:?}", j.kind), "body": j.body, "qpos": j.qpos, "dof": j.dof, "pos": j.pos,
        "axis": j.axis, "stiffness": j.stiffness, "range": j.range, "margin": j.margin, "limit": softness(&j.limit),
        "force_range": j.force_range, "gravcomp_actuated": j.gravcomp_actuated,
    })
}

fn geom(g: &Geom) -> Value {
    let (shape, size) = match g.shape {
        Shape::Plane => ("plane", vec![]),
        Shape::Sphere { radius } => ("sphere", vec![radius]),
        Shape::Capsule { radius, half } => ("capsule", vec![radius, half]),
        Shape::Ellipsoid { size } => ("ellipsoid", size.to_vec()),
        Shape::Cylinder { radius, half } => ("cylinder", vec![radius, half]),
        Shape::Box { size } => ("box", size.to_vec()),
        Shape::Visual { .. } => ("visual", vec![]),
    };
    json!({
        "name": g.name, "body": g.body, "shape": shape, "size": size, "pos": g.pos, "quat": g.quat,
        "rbound": g.rbound, "fluid": g.fluid,
    })
}

fn tendon(t: &Tendon) -> Value {
    let path = match &t.path {
        Path::Fixed(terms) => json!({ "joints": terms }),
        Path::Spatial(segments) => json!({ "segments": list(segments, |s| json!([s.sites, s.divisor])) }),
    };
    json!({
        "name": t.name, "path": path, "range": t.range, "margin": t.margin, "limit": softness(&t.limit),
        "stiffness": t.stiffness, "damping": t.damping, "rest": t.rest, "friction_loss": t.friction_loss,
        "friction": softness(&t.friction), "length0": t.length0, "invweight0": t.invweight0,
    })
}

fn equality(e: &Equality) -> Value {
    let (kind, first, second, poly) = match e.kind {
        EqualityKind::Joint { first, second, poly } => ("joint", first, second, poly),
        EqualityKind::Tendon { first, second, poly } => ("tendon", first, second, poly),
    };
    json!({
        "name": e.name, "kind": kind, "first": first, "second": second, "poly": poly, "softness": softness(&e.softness),
    })
}

fn actuator(a: &Actuator) -> Value {
    let (on, id) = match a.target {
        Transmission::Joint(id) => ("joint", id),
        Transmission::Tendon(id) => ("tendon", id),
    };
    let (dynamics, time) = match a.dynamics {
        Dynamics::None => ("none", None),
        Dynamics::Integrator => ("integrator", None),
        Dynamics::Filter { time } => ("filter", Some(time)),
        Dynamics::FilterExact { time } => ("filterexact", Some(time)),
    };
    json!({
        "name": a.name, "on": on, "target": id, "gear": a.gear, "gain": a.gain, "bias": a.bias, "dynamics": dynamics,
        "time": time, "ctrl_range": a.ctrl_range, "force_range": a.force_range, "act_range": a.act_range,
        "act_early": a.act_early,
    })
}

/// MJCF's tag, and the objects: `[kind, id]` for frames, an id for others.
fn sensor(kind: SensorKind) -> (&'static str, Value) {
    use SensorKind::*;
    let frame = |f: Frame| match f {
        Frame::Inertial(id) => json!(["body", id]),
        Frame::Body(id) => json!(["xbody", id]),
        Frame::Geom(id) => json!(["geom", id]),
        Frame::Site(id) => json!(["site", id]),
    };
    let seen = |f: Frame, from: Option<Frame>| json!([frame(f), from.map(frame)]);
    match kind {
        Touch(id) => ("touch", json!(id)),
        Accelerometer(id) => ("accelerometer", json!(id)),
        Velocimeter(id) => ("velocimeter", json!(id)),
        Gyro(id) => ("gyro", json!(id)),
        Force(id) => ("force", json!(id)),
        Torque(id) => ("torque", json!(id)),
        Rangefinder(id) => ("rangefinder", json!(id)),
        JointPos(id) => ("jointpos", json!(id)),
        JointVel(id) => ("jointvel", json!(id)),
        TendonPos(id) => ("tendonpos", json!(id)),
        TendonVel(id) => ("tendonvel", json!(id)),
        ActuatorPos(id) => ("actuatorpos", json!(id)),
        ActuatorVel(id) => ("actuatorvel", json!(id)),
        ActuatorForce(id) => ("actuatorfrc", json!(id)),
        FramePos(f, from) => ("framepos", seen(f, from)),
        FrameQuat(f, from) => ("framequat", seen(f, from)),
        FrameAxis(f, axis, from) => (["framexaxis", "frameyaxis", "framezaxis"][axis], seen(f, from)),
        FrameLinVel(f) => ("framelinvel", seen(f, None)),
        FrameAngVel(f) => ("frameangvel", seen(f, None)),
        SubtreeCom(id) => ("subtreecom", json!(id)),
        SubtreeLinVel(id) => ("subtreelinvel", json!(id)),
        SubtreeAngMom(id) => ("subtreeangmom", json!(id)),
    }
}
