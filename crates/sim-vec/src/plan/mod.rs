//! The plan: a [`Model`] turned into tables that kernels walk without decisions that depend on data.
//!
//! Built once per engine. Numbers are rounded to the lanes' element type, indices are resolved, defaults and mixtures
//! applied. Vectors over dofs are padded to whole blocks, see [`blocks`].
pub(crate) mod blocks;
mod check;
pub(crate) mod drive;
pub(crate) mod measure;
pub(crate) mod medium;
pub(crate) mod pairs;
mod softness;
pub(crate) mod wires;

use crate::engine_error::EngineError;
use crate::lane::Lane;
use crate::linalg::Pattern;
use crate::model::{JointKind, Model};
use blocks::{Blocks, MAX_BLOCKS};
use drive::DrivePlan;
use measure::Measures;
use medium::{Buoy, Drag};
use pairs::{Class, Pairs};
pub(crate) use softness::Soft;
use wires::{DofFriction, EqualityPlan, TendonPlan};

/// A body.
#[derive(Debug)]
pub(crate) struct BodyPlan<L: Lane> {
    pub parent: usize,
    pub root: usize,
    pub joints: std::ops::Range<usize>,
    pub pos: [L::S; 3],
    /// None for the identity.
    pub quat: Option<[L::S; 4]>,
    pub ipos: [L::S; 3],
    /// None for the identity.
    pub iquat: Option<[L::S; 4]>,
    pub mass: L::S,
    pub inertia: [L::S; 3],
    /// Mass over its tree's mass.
    pub share: L::S,
    /// Number among the mocap bodies.
    pub mocap: Option<usize>,
}

/// A joint.
#[derive(Debug)]
pub(crate) struct JointPlan<L: Lane> {
    pub kind: JointKind,
    pub qpos: usize,
    /// Dof in the model's order.
    pub dof: usize,
    /// Padded index of each of its dofs.
    pub padded: [usize; 6],
    /// None for the body's origin.
    pub pos: Option<[L::S; 3]>,
    pub axis: [L::S; 3],
    /// Reference position.
    pub qpos0: L::S,
}

/// A joint spring: force `−stiffness (q − rest)`.
#[derive(Debug)]
pub(crate) struct Spring<L: Lane> {
    pub qpos: usize,
    pub padded: usize,
    pub stiffness: L::S,
    pub rest: L::S,
}

/// A geom that may collide.
#[derive(Debug)]
pub(crate) struct GeomPlan<L: Lane> {
    pub id: usize,
    pub body: usize,
    pub pos: [L::S; 3],
    /// The geom's z axis in the body's frame.
    pub axis: [L::S; 3],
    /// Its whole frame, if a narrow phase reads it.
    pub quat: Option<[L::S; 4]>,
}

/// Bounds of a position or length.
#[derive(Debug)]
pub(crate) struct Limit<L: Lane> {
    pub range: [L::S; 2],
    pub margin: L::S,
    /// Both sides can be active at once.
    pub narrow: bool,
    pub soft: Soft<L>,
}

impl<L: Lane> Limit<L> {
    fn new([low, high]: [f64; 2], margin: f64, soft: Soft<L>) -> Self {
        Limit {
            range: [L::scalar(low), L::scalar(high)],
            margin: L::scalar(margin),
            narrow: high - low <= 2.0 * margin * (1.0 + 1e-6),
            soft,
        }
    }
}

/// A joint limit.
#[derive(Debug)]
pub(crate) struct LimitPlan<L: Lane> {
    pub qpos: usize,
    pub padded: usize,
    pub limit: Limit<L>,
}

/// Solver settings, see [`crate::solver`].
#[derive(Debug)]
pub(crate) struct SolverPlan<L: Lane> {
    pub iterations: usize,
    pub ls_iterations: usize,
    /// Square of the gradient norm below which a lane is done.
    pub gradient2: L::S,
    /// Twice the cost decrease below which a lane is done.
    pub decrement: L::S,
    /// Line search: derivative relative to the norm of the step.
    pub ls_step: L::S,
    /// Line search: derivative relative to the derivative at zero.
    pub ls_slope: L::S,
}

/// Everything a step reads that is not state.
#[derive(Debug)]
pub(crate) struct Plan<L: Lane> {
    pub blocks: Blocks,
    /// Pattern of the mass matrix.
    pub tree: Pattern,
    pub bodies: Vec<BodyPlan<L>>,
    pub joints: Vec<JointPlan<L>>,
    /// `[blocks][3]` body that each row moves.
    pub row_body: Vec<[usize; 3]>,
    /// `[blocks][3]` armature; 1 on padding.
    pub armature: Vec<[L::S; 3]>,
    /// `[blocks][3]` damping.
    pub damping: Vec<[L::S; 3]>,
    /// Some dof is damped.
    pub damped: bool,
    pub springs: Vec<Spring<L>>,
    pub drives: Vec<DrivePlan<L>>,
    /// Bounds of the sum of actuator forces: padded index, low and high.
    pub force_ranges: Vec<(usize, [L::S; 2])>,
    /// Padded indices whose gravity compensation counts as actuator force.
    pub gravcomp_actuated: Vec<usize>,
    pub gravity: [L::S; 3],
    pub buoys: Vec<Buoy<L>>,
    pub drags: Vec<Drag<L>>,
    pub wind: [L::S; 3],
    pub geoms: Vec<GeomPlan<L>>,
    pub pairs: Pairs<L>,
    /// Of contacts first, then of tendons and equalities.
    pub classes: Vec<Class<L>>,
    /// `1 / √impratio`.
    pub cone: L::S,
    pub limits: Vec<LimitPlan<L>>,
    pub friction: Vec<DofFriction<L>>,
    pub tendons: Vec<TendonPlan<L>>,
    pub equalities: Vec<EqualityPlan<L>>,
    pub measures: Measures<L>,
    pub solver: SolverPlan<L>,
}

impl<L: Lane> Plan<L> {
    /// Builds the tables. Errors say what the engine does not support or what contradicts itself in the model.
    pub fn new(model: &Model) -> Result<Self, EngineError> {
        check::check(model)?;
        let blocks = Blocks::new(model).map_err(|blocks| EngineError::TooManyBlocks {
            model: model.name.clone(),
            blocks,
            limit: MAX_BLOCKS,
        })?;
        let s = L::scalar;
        let s3 = |a: [f64; 3]| a.map(L::scalar);
        let rows = |f: &dyn Fn(Option<usize>) -> f64| -> Vec<[L::S; 3]> {
            (0..blocks.count).map(|b| [0, 1, 2].map(|k| s(f(blocks.dof[3 * b + k])))).collect()
        };
        let constrained = model.opt.constraint;
        let mut classes = Vec::new();
        let pairs = if constrained && model.opt.contact {
            Pairs::new(model, &blocks, &mut classes)?
        } else {
            Pairs { list: Vec::new() }
        };
        let tendons = wires::tendons(model, &blocks, &mut classes);
        let equalities = wires::equalities(model, &blocks, &tendons, &mut classes);
        Ok(Plan {
            bodies: bodies(model),
            joints: joints(model, &blocks),
            row_body: (0..blocks.count)
                .map(|b| [0, 1, 2].map(|k| blocks.dof[3 * b + k].map_or(0, |d| model.dofs[d].body)))
                .collect(),
            armature: rows(&|d| d.map_or(1.0, |d| model.dofs[d].armature)),
            damping: rows(&|d| d.map_or(0.0, |d| model.dofs[d].damping)),
            damped: model.dofs.iter().any(|d| d.damping > 0.0),
            springs: springs(model, &blocks),
            drives: drive::drives(model, &blocks),
            force_ranges: drive::force_ranges::<L>(model, &blocks),
            gravcomp_actuated: (model.joints.iter().filter(|j| j.gravcomp_actuated))
                .map(|j| blocks.padded[j.dof])
                .collect(),
            buoys: medium::buoys(model),
            drags: medium::drags(model),
            wind: s3(model.opt.wind),
            gravity: s3(model.opt.gravity),
            geoms: geoms(model, &pairs),
            cone: s(model.opt.impratio.max(1e-15).sqrt().recip()),
            friction: wires::friction(model, &blocks),
            tendons,
            equalities,
            classes,
            limits: if constrained && model.opt.limit { limits(model, &blocks) } else { Vec::new() },
            measures: Measures::new(model, &blocks, &pairs),
            solver: solver(model),
            tree: Pattern::of(&blocks.ancestors),
            pairs,
            blocks,
        })
    }
}

fn is_identity(q: &[f64; 4]) -> bool {
    q[0] == 1.0 && q[1] == 0.0 && q[2] == 0.0 && q[3] == 0.0
}

fn bodies<L: Lane>(model: &Model) -> Vec<BodyPlan<L>> {
    let mut total = vec![0.0; model.bodies.len()];
    for b in model.bodies.iter().skip(1) {
        total[b.root] += b.mass;
    }
    let quat = |q: &[f64; 4]| (!is_identity(q)).then(|| q.map(L::scalar));
    model
        .bodies
        .iter()
        .map(|b| BodyPlan {
            parent: b.parent,
            root: b.root,
            joints: b.joints.clone(),
            pos: b.pos.map(L::scalar),
            quat: quat(&b.quat),
            ipos: b.ipos.map(L::scalar),
            iquat: quat(&b.iquat),
            mass: L::scalar(b.mass),
            inertia: b.inertia.map(L::scalar),
            share: L::scalar(b.mass / total[b.root].max(1e-15)),
            mocap: b.mocap,
        })
        .collect()
}

fn joints<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<JointPlan<L>> {
    model
        .joints
        .iter()
        .map(|j| {
            let dofs = if j.kind == JointKind::Free { 6 } else { 1 };
            let mut padded = [0; 6];
            for k in 0..dofs {
                padded[k] = blocks.padded[j.dof + k];
            }
            JointPlan {
                kind: j.kind,
                qpos: j.qpos,
                dof: j.dof,
                padded,
                pos: (j.pos != [0.0; 3]).then(|| j.pos.map(L::scalar)),
                axis: j.axis.map(L::scalar),
                qpos0: L::scalar(model.qpos0[j.qpos]),
            }
        })
        .collect()
}

fn springs<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<Spring<L>> {
    let moved = model.joints.iter().filter(|j| j.stiffness != 0.0);
    moved
        .map(|j| Spring {
            qpos: j.qpos,
            padded: blocks.padded[j.dof],
            stiffness: L::scalar(j.stiffness),
            rest: L::scalar(model.qpos_spring[j.qpos]),
        })
        .collect()
}

fn geoms<L: Lane>(model: &Model, pairs: &Pairs<L>) -> Vec<GeomPlan<L>> {
    let mut list = Vec::new();
    for (id, g) in model.geoms.iter().enumerate() {
        let mut uses = pairs.list.iter().filter(|p| p.geoms.contains(&id)).peekable();
        if uses.peek().is_none() {
            continue;
        }
        let whole = uses.any(|p| matches!(p.kind, pairs::Kind::Solid(_)));
        let [w, x, y, z] = g.quat;
        let axis = [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z];
        list.push(GeomPlan {
            id,
            body: g.body,
            pos: g.pos.map(L::scalar),
            axis: axis.map(L::scalar),
            quat: whole.then(|| g.quat.map(L::scalar)),
        });
    }
    list
}

fn limits<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<LimitPlan<L>> {
    let limited = model.joints.iter().filter_map(|j| Some((j, j.range?)));
    limited
        .map(|(j, range)| LimitPlan {
            qpos: j.qpos,
            padded: blocks.padded[j.dof],
            limit: Limit::new(
                range,
                j.margin,
                Soft::new(&j.limit, model.opt.timestep, model.dofs[j.dof].invweight0, 1.0),
            ),
        })
        .collect()
}

/// f32 cannot reach tolerances below 1e-6; its line search stops at a thousandth of the initial slope.
fn solver<L: Lane>(model: &Model) -> SolverPlan<L> {
    let scale = model.mean_inertia.max(1e-15) * model.nv().max(1) as f64;
    let tolerance = if L::SINGLE { model.opt.tolerance.max(1e-6) } else { model.opt.tolerance };
    SolverPlan {
        iterations: model.opt.iterations,
        ls_iterations: model.opt.ls_iterations,
        gradient2: L::scalar((tolerance * scale).powi(2)),
        decrement: L::scalar(2.0 * tolerance * scale),
        ls_step: L::scalar(tolerance * model.opt.ls_tolerance * scale),
        ls_slope: L::scalar(if L::SINGLE { 1e-3 } else { 1e-6 }),
    }
}
