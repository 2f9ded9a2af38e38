//! Reads the golden physics files into models and states.
use serde_json::Value;
use sim_vec::model::*;

/// One golden state with MuJoCo's results.
pub struct Golden {
    pub name: String,
    pub model: Model,
    pub states: Vec<Value>,
}

/// The models with golden files.
pub const NAMES: [&str; 6] = ["pendulum", "cartpole", "cheetah", "hopper", "walker", "humanoid"];

/// Reads `golden/physics_NAME.json`.
pub fn load(name: &str) -> Golden {
    let path = format!("{}/tests/golden/physics_{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let v: Value = serde_json::from_str(&text).unwrap();
    Golden { name: name.into(), model: model(&v["model"]), states: v["states"].as_array().unwrap().clone() }
}

/// All numbers of a (nested) array.
pub fn numbers(v: &Value) -> Vec<f64> {
    match v {
        Value::Array(a) => a.iter().flat_map(numbers).collect(),
        Value::Number(n) => vec![n.as_f64().unwrap()],
        Value::Bool(b) => vec![*b as u8 as f64],
        _ => panic!("not a number: {v}"),
    }
}

fn array<const N: usize>(v: &Value) -> [f64; N] {
    numbers(v).try_into().unwrap()
}

fn float(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("not a number: {v}"))
}

fn index(v: &Value) -> usize {
    v.as_u64().unwrap_or_else(|| panic!("not an index: {v}")) as usize
}

fn list<T>(v: &Value, f: impl Fn(&Value) -> T) -> Vec<T> {
    v.as_array().unwrap().iter().map(f).collect()
}

fn text(v: &Value) -> String {
    v.as_str().unwrap().into()
}

fn softness(v: &Value) -> Softness {
    Softness { solref: array(&v["solref"]), solimp: array(&v["solimp"]) }
}

fn model(v: &Value) -> Model {
    let o = &v["opt"];
    let flag = |k: &str| o[k].as_bool().unwrap();
    let range = |v: &Value| index(&v[0])..index(&v[0]) + index(&v[1]);
    let mut start = 0;
    let sensors = list(&v["sensors"], |s| {
        let object = index(&s["object"]);
        let touch = s["kind"] == "touch";
        Sensor {
            name: text(&s["name"]),
            kind: if touch { SensorKind::Touch(object) } else { SensorKind::SubtreeLinVel(object) },
            start: 0,
        }
    });
    let sensors = sensors
        .into_iter()
        .map(|s| {
            start += s.kind.dim();
            Sensor { start: start - s.kind.dim(), ..s }
        })
        .collect();
    Model {
        name: text(&v["name"]),
        opt: Options {
            timestep: float(&o["timestep"]),
            gravity: array(&o["gravity"]),
            integrator: if o["integrator"] == "rk4" { Integrator::Rk4 } else { Integrator::Euler },
            iterations: index(&o["iterations"]),
            tolerance: float(&o["tolerance"]),
            ls_iterations: index(&o["ls_iterations"]),
            ls_tolerance: float(&o["ls_tolerance"]),
            euler_damp: flag("euler_damp"),
            contact: flag("contact"),
            limit: flag("limit"),
            constraint: flag("constraint"),
            cone: Cone::Pyramidal,
            impratio: 1.0,
            density: 0.0,
            viscosity: 0.0,
            wind: [0.0; 3],
            ccd_tolerance: 1e-6,
            ccd_iterations: 35,
        },
        nq: index(&v["nq"]),
        bodies: list(&v["bodies"], |b| Body {
            name: text(&b["name"]),
            parent: index(&b["parent"]),
            root: index(&b["root"]),
            weld: index(&b["weld"]),
            pos: array(&b["pos"]),
            quat: array(&b["quat"]),
            ipos: array(&b["ipos"]),
            iquat: array(&b["iquat"]),
            mass: float(&b["mass"]),
            inertia: array(&b["inertia"]),
            subtree_mass: float(&b["subtree_mass"]),
            invweight0: array(&b["invweight0"]),
            joints: range(&b["joints"]),
            dofs: range(&b["dofs"]),
            gravcomp: 0.0,
            mocap: None,
        }),
        joints: list(&v["joints"], |j| Joint {
            name: text(&j["name"]),
            kind: match j["kind"].as_str().unwrap() {
                "free" => JointKind::Free,
                "slide" => JointKind::Slide,
                _ => JointKind::Hinge,
            },
            body: index(&j["body"]),
            qpos: index(&j["qpos"]),
            dof: index(&j["dof"]),
            pos: array(&j["pos"]),
            axis: array(&j["axis"]),
            stiffness: float(&j["stiffness"]),
            range: (!j["range"].is_null()).then(|| array(&j["range"])),
            margin: float(&j["margin"]),
            limit: softness(j),
            force_range: None,
            gravcomp_actuated: false,
        }),
        dofs: list(&v["dofs"], |d| Dof {
            body: index(&d["body"]),
            joint: index(&d["joint"]),
            parent: d["parent"].as_u64().map(|p| p as usize),
            armature: float(&d["armature"]),
            damping: float(&d["damping"]),
            invweight0: float(&d["invweight0"]),
            friction_loss: 0.0,
            friction: Softness { solref: [0.02, 1.0], solimp: [0.9, 0.95, 0.001, 0.5, 2.0] },
        }),
        geoms: list(&v["geoms"], |g| Geom {
            name: text(&g["name"]),
            body: index(&g["body"]),
            shape: match (g["shape"][0].as_str().unwrap(), &g["shape"]) {
                ("plane", _) => Shape::Plane,
                ("sphere", s) => Shape::Sphere { radius: float(&s[1]) },
                ("capsule", s) => Shape::Capsule { radius: float(&s[1]), half: float(&s[2]) },
                (_, s) => Shape::Visual { size: [float(&s[1]), float(&s[2]), float(&s[3])] },
            },
            pos: array(&g["pos"]),
            quat: array(&g["quat"]),
            rbound: float(&g["rbound"]),
            rgba: [0.5, 0.5, 0.5, 1.0],
            fluid: None,
        }),
        sites: list(&v["sites"], |s| Site {
            name: text(&s["name"]),
            body: index(&s["body"]),
            pos: array(&s["pos"]),
            quat: array(&s["quat"]),
            size: array(&s["size"]),
            shape: match s["shape"].as_str().unwrap() {
                "sphere" => SiteShape::Sphere,
                "capsule" => SiteShape::Capsule,
                "ellipsoid" => SiteShape::Ellipsoid,
                "cylinder" => SiteShape::Cylinder,
                _ => SiteShape::Box,
            },
        }),
        pairs: list(&v["pairs"], |p| {
            let n = numbers(p);
            Pair {
                geoms: [n[0] as usize, n[1] as usize],
                condim: n[2] as usize,
                friction: [n[3], n[3], n[4], n[5], n[5]],
                softness: Softness { solref: [n[6], n[7]], solimp: [n[8], n[9], n[10], n[11], n[12]] },
                margin: n[13],
                gap: n[14],
            }
        }),
        tendons: vec![],
        equalities: vec![],
        actuators: list(&v["actuators"], |a| Actuator {
            name: text(&a["name"]),
            target: Transmission::Joint(index(&a["joint"])),
            gear: float(&a["gear"]),
            gain: [1.0, 0.0, 0.0],
            bias: [0.0; 3],
            dynamics: Dynamics::None,
            ctrl_range: (!a["ctrl_range"].is_null()).then(|| array(&a["ctrl_range"])),
            force_range: None,
            act_range: None,
            act_early: false,
        }),
        sensors,
        qpos0: numbers(&v["qpos0"]),
        qpos_spring: numbers(&v["qpos_spring"]),
        keyframes: vec![],
        mean_inertia: float(&v["mean_inertia"]),
        skipped: vec![],
    }
}
