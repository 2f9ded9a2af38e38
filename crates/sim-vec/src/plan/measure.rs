//! Sensors, with their frames and bodies resolved.
use super::blocks::Blocks;
use super::drive::Target;
use super::pairs::Pairs;
use crate::lane::Lane;
use crate::model::{Frame, JointKind, Model, SensorKind, Transmission};

/// A frame fixed to a body.
#[derive(Debug)]
pub(crate) struct Mount<L: Lane> {
    pub body: usize,
    pub pos: [L::S; 3],
    /// None for the identity.
    pub quat: Option<[L::S; 4]>,
}

/// What follows from poses and velocities.
#[derive(Debug)]
pub(crate) enum Measure<L: Lane> {
    Velocimeter(Mount<L>),
    Gyro(Mount<L>),
    JointPos(usize),
    /// Dof.
    JointVel(usize),
    TendonPos(usize),
    TendonVel(usize),
    ActuatorPos(Target, L::S),
    ActuatorVel(Target, L::S),
    FramePos(Mount<L>, Option<Mount<L>>),
    FrameQuat(Mount<L>, Option<Mount<L>>),
    FrameAxis(Mount<L>, usize, Option<Mount<L>>),
    FrameLinVel(Mount<L>),
    FrameAngVel(Mount<L>),
    SubtreeCom(Subtree<L>),
    SubtreeLinVel(Subtree<L>),
    SubtreeAngMom(Subtree<L>),
    /// Site: position and z axis in its body.
    Rangefinder {
        site: usize,
    },
}

/// Bodies of a subtree with mass, and their shares of it.
#[derive(Debug)]
pub(crate) struct Subtree<L: Lane>(pub Vec<(usize, L::S)>);

/// What follows from forces.
#[derive(Debug)]
pub(crate) enum Load<L: Lane> {
    /// Site, and the pairs that involve its body: whether it is the second body.
    Touch {
        site: usize,
        pairs: Vec<(usize, bool)>,
    },
    Accelerometer(Mount<L>),
    Force(Mount<L>),
    Torque(Mount<L>),
    Actuator(usize),
}

/// All sensors: where their values begin, and what they are.
#[derive(Debug)]
pub(crate) struct Measures<L: Lane> {
    pub state: Vec<(usize, Measure<L>)>,
    pub load: Vec<(usize, Load<L>)>,
    /// Some sensor reads body velocities.
    pub velocities: bool,
    /// Some sensor reads body accelerations or the forces between bodies.
    pub accelerations: bool,
}

impl<L: Lane> Measures<L> {
    pub fn new(model: &Model, blocks: &Blocks, pairs: &Pairs<L>) -> Self {
        let (mut state, mut load) = (Vec::new(), Vec::new());
        let site = |s: usize| mount::<L>(model, Frame::Site(s));
        let reference = |r: Option<Frame>| r.map(|f| mount::<L>(model, f));
        let target = |u: usize| {
            let a = &model.actuators[u];
            let target = match a.target {
                Transmission::Joint(j) => {
                    Target::Joint { qpos: model.joints[j].qpos, padded: blocks.padded[model.joints[j].dof] }
                }
                Transmission::Tendon(t) => Target::Tendon(t),
            };
            (target, L::scalar(a.gear))
        };
        for s in &model.sensors {
            let measure = match s.kind {
                SensorKind::Touch(site) => {
                    load.push((s.start, touch(model, site, pairs)));
                    continue;
                }
                SensorKind::Accelerometer(i) => {
                    load.push((s.start, Load::Accelerometer(site(i))));
                    continue;
                }
                SensorKind::Force(i) => {
                    load.push((s.start, Load::Force(site(i))));
                    continue;
                }
                SensorKind::Torque(i) => {
                    load.push((s.start, Load::Torque(site(i))));
                    continue;
                }
                SensorKind::ActuatorForce(u) => {
                    load.push((s.start, Load::Actuator(u)));
                    continue;
                }
                SensorKind::Velocimeter(i) => Measure::Velocimeter(site(i)),
                SensorKind::Gyro(i) => Measure::Gyro(site(i)),
                SensorKind::Rangefinder(i) => Measure::Rangefinder { site: i },
                SensorKind::JointPos(j) => Measure::JointPos(model.joints[j].qpos),
                SensorKind::JointVel(j) => Measure::JointVel(model.joints[j].dof),
                SensorKind::TendonPos(t) => Measure::TendonPos(t),
                SensorKind::TendonVel(t) => Measure::TendonVel(t),
                SensorKind::ActuatorPos(u) => {
                    let (t, gear) = target(u);
                    Measure::ActuatorPos(t, gear)
                }
                SensorKind::ActuatorVel(u) => {
                    let (t, gear) = target(u);
                    Measure::ActuatorVel(t, gear)
                }
                SensorKind::FramePos(f, r) => Measure::FramePos(mount(model, f), reference(r)),
                SensorKind::FrameQuat(f, r) => Measure::FrameQuat(mount(model, f), reference(r)),
                SensorKind::FrameAxis(f, k, r) => Measure::FrameAxis(mount(model, f), k, reference(r)),
                SensorKind::FrameLinVel(f) => Measure::FrameLinVel(mount(model, f)),
                SensorKind::FrameAngVel(f) => Measure::FrameAngVel(mount(model, f)),
                SensorKind::SubtreeCom(b) => Measure::SubtreeCom(subtree(model, b)),
                SensorKind::SubtreeLinVel(b) => Measure::SubtreeLinVel(subtree(model, b)),
                SensorKind::SubtreeAngMom(b) => Measure::SubtreeAngMom(subtree(model, b)),
            };
            state.push((s.start, measure));
        }
        let moving = |m: &Measure<L>| {
            !matches!(
                m,
                Measure::JointPos(_)
                    | Measure::TendonPos(_)
                    | Measure::ActuatorPos(..)
                    | Measure::FramePos(..)
                    | Measure::FrameQuat(..)
                    | Measure::FrameAxis(..)
                    | Measure::SubtreeCom(_)
                    | Measure::Rangefinder { .. }
            )
        };
        Measures {
            velocities: state.iter().any(|(_, m)| moving(m)),
            accelerations: load.iter().any(|(_, l)| !matches!(l, Load::Touch { .. } | Load::Actuator(_))),
            state,
            load,
        }
    }
}

fn mount<L: Lane>(model: &Model, frame: Frame) -> Mount<L> {
    let (body, pos, quat) = match frame {
        Frame::Inertial(b) => (b, model.bodies[b].ipos, model.bodies[b].iquat),
        Frame::Body(b) => (b, [0.0; 3], [1.0, 0.0, 0.0, 0.0]),
        Frame::Geom(g) => (model.geoms[g].body, model.geoms[g].pos, model.geoms[g].quat),
        Frame::Site(s) => (model.sites[s].body, model.sites[s].pos, model.sites[s].quat),
    };
    let turned = quat != [1.0, 0.0, 0.0, 0.0];
    Mount { body, pos: pos.map(L::scalar), quat: turned.then(|| quat.map(L::scalar)) }
}

fn touch<L: Lane>(model: &Model, site: usize, pairs: &Pairs<L>) -> Load<L> {
    let body = model.sites[site].body;
    let touching = pairs.list.iter().filter_map(|p| {
        let bodies = p.geoms.map(|g| model.geoms[g].body);
        bodies.contains(&body).then_some((p.id, bodies[1] == body))
    });
    Load::Touch { site, pairs: touching.collect() }
}

fn subtree<L: Lane>(model: &Model, body: usize) -> Subtree<L> {
    let mut inside = vec![false; model.bodies.len()];
    inside[body] = true;
    for b in body + 1..model.bodies.len() {
        inside[b] = inside[model.bodies[b].parent];
    }
    let mass = model.bodies[body].subtree_mass.max(1e-15);
    let bodies = (0..inside.len()).filter(|&b| inside[b] && model.bodies[b].mass != 0.0);
    Subtree(bodies.map(|b| (b, L::scalar(model.bodies[b].mass / mass))).collect())
}

/// Frames, joints, tendons and actuators that a sensor reads exist.
pub(super) fn exists(model: &Model, kind: SensorKind) -> bool {
    use SensorKind::*;
    let frame = |f: Frame| match f {
        Frame::Inertial(b) | Frame::Body(b) => b < model.bodies.len(),
        Frame::Geom(g) => g < model.geoms.len(),
        Frame::Site(s) => s < model.sites.len(),
    };
    let frames = |f: Frame, r: Option<Frame>| frame(f) && r.is_none_or(frame);
    match kind {
        Touch(s) | Accelerometer(s) | Velocimeter(s) | Gyro(s) | Force(s) | Torque(s) | Rangefinder(s) => {
            s < model.sites.len()
        }
        JointPos(j) | JointVel(j) => model.joints.get(j).is_some_and(|j| j.kind != JointKind::Free),
        TendonPos(t) | TendonVel(t) => t < model.tendons.len(),
        ActuatorPos(u) | ActuatorVel(u) | ActuatorForce(u) => u < model.actuators.len(),
        FramePos(f, r) | FrameQuat(f, r) => frames(f, r),
        FrameAxis(f, k, r) => k < 3 && frames(f, r),
        FrameLinVel(f) | FrameAngVel(f) => frame(f),
        SubtreeCom(b) | SubtreeLinVel(b) | SubtreeAngMom(b) => b < model.bodies.len(),
    }
}
