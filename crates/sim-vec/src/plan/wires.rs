//! Tendons, equalities and dry friction.
use super::blocks::{Blocks, path};
use super::pairs::{Class, ClassBlock};
use super::{Limit, Soft};
use crate::lane::Lane;
use crate::model::{EqualityKind, Joint, Model, Path, Tendon};

/// A tendon.
#[derive(Debug)]
pub(crate) struct TendonPlan<L: Lane> {
    pub class: usize,
    pub path: PathPlan<L>,
    /// Where its Jacobian begins, one entry per block of its class.
    pub jac: usize,
    /// Per block, of fixed tendons; zero otherwise.
    pub jac0: Vec<[L::S; 3]>,
    pub stiffness: L::S,
    pub damping: L::S,
    pub rest: [L::S; 2],
    /// Some of stiffness and damping is not zero.
    pub passive: bool,
    pub limit: Option<Limit<L>>,
    pub friction: Option<Dry<L>>,
}

/// What makes a tendon's length.
#[derive(Debug)]
pub(crate) enum PathPlan<L: Lane> {
    /// Positions and their coefficients.
    Fixed(Vec<(usize, L::S)>),
    Spatial(Vec<SegmentPlan<L>>),
}

/// A straight part of a spatial tendon.
#[derive(Debug)]
pub(crate) struct SegmentPlan<L: Lane> {
    pub bodies: [usize; 2],
    /// Sites in their bodies' frames.
    pub sites: [[L::S; 3]; 2],
    /// 1 / divisor.
    pub scale: L::S,
    /// Per block of the tendon's class and dof: 1 where it moves the second site, −1 where it moves the first alone.
    pub moves: Vec<[[bool; 2]; 3]>,
}

/// Dry friction.
#[derive(Debug)]
pub(crate) struct Dry<L: Lane> {
    pub loss: L::S,
    /// Its weight does not change.
    pub weight: L::S,
    pub b: L::S,
}

/// Dry friction of a dof.
#[derive(Debug)]
pub(crate) struct DofFriction<L: Lane> {
    pub padded: usize,
    pub dry: Dry<L>,
}

/// An equality between joints or tendons, `x₁ − p(x₂)`.
#[derive(Debug)]
pub(crate) struct EqualityPlan<L: Lane> {
    pub class: usize,
    pub first: Side<L>,
    pub second: Option<Side<L>>,
    pub poly: [L::S; 5],
    pub soft: Soft<L>,
}

/// One side of an equality.
#[derive(Debug)]
pub(crate) struct Side<L: Lane> {
    pub object: Object,
    /// Value at the reference configuration.
    pub at0: L::S,
    /// First block of the object.
    pub block: usize,
    /// Per block of the object: which block of the equality's class it is.
    pub places: Vec<usize>,
}

/// What an equality relates.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    Joint { qpos: usize, row: usize },
    Tendon(usize),
}

/// A class of blocks for rows that are no contacts.
fn class<L: Lane>(blocks: &Blocks, mut used: Vec<usize>, slots: usize) -> Class<L> {
    used.sort_unstable();
    used.dedup();
    let related = |a: usize, b: usize| a == b || blocks.mask[a.max(b)] >> a.min(b) & 1 == 1;
    let fixed = used.iter().all(|&a| used.iter().all(|&b| related(a, b)));
    let place = [[L::scalar(1e9); 3]; 2];
    let list = used.iter().map(|&b| ClassBlock { block: b as u16, root: blocks.root[b] as u16, place }).collect();
    Class { condim: 1, rows: 1, elliptic: false, fixed, blocks: list, slots }
}

/// Plans of all tendons; their classes are appended to `classes`.
pub(super) fn tendons<L: Lane>(model: &Model, blocks: &Blocks, classes: &mut Vec<Class<L>>) -> Vec<TendonPlan<L>> {
    let mut jac = 0;
    let mut list = Vec::new();
    for t in &model.tendons {
        let used: Vec<usize> = dofs(model, t).into_iter().map(|d| blocks.padded[d] / 3).collect();
        let class = class::<L>(blocks, used, 3);
        let mut jac0 = vec![[L::scalar(0.0); 3]; class.blocks.len()];
        let s = L::scalar;
        let path = match &t.path {
            Path::Fixed(terms) => {
                let mut sum = vec![[0.0; 3]; class.blocks.len()];
                for &(j, coef) in terms {
                    let p = blocks.padded[model.joints[j].dof];
                    if let Some(at) = class.blocks.iter().position(|b| b.block as usize == p / 3) {
                        sum[at][p % 3] += coef;
                    }
                }
                jac0 = sum.iter().map(|row| row.map(s)).collect();
                PathPlan::Fixed(terms.iter().map(|&(j, coef)| (model.joints[j].qpos, s(coef))).collect())
            }
            Path::Spatial(segments) => {
                let plan = |seg: &crate::model::Segment| {
                    let bodies = seg.sites.map(|i| model.sites[i].body);
                    let paths = bodies.map(|b| path(model, b));
                    let moves = class.blocks.iter().map(|b| {
                        [0, 1, 2].map(|k| {
                            let dof = blocks.dof[3 * b.block as usize + k];
                            [0, 1].map(|side| dof.is_some_and(|d| paths[side].contains(&d)))
                        })
                    });
                    SegmentPlan {
                        bodies,
                        sites: seg.sites.map(|i| model.sites[i].pos.map(s)),
                        scale: s(1.0 / seg.divisor),
                        moves: moves.collect(),
                    }
                };
                PathPlan::Spatial(segments.iter().map(plan).collect())
            }
        };
        let constrained = model.opt.constraint;
        let limit = t
            .range
            .filter(|_| constrained && model.opt.limit)
            .map(|range| Limit::new(range, t.margin, Soft::new(&t.limit, model.opt.timestep, t.invweight0, 1.0)));
        let friction = (constrained && t.friction_loss > 0.0)
            .then(|| Dry::new(t.friction_loss, &Soft::new(&t.friction, model.opt.timestep, t.invweight0, 1.0)));
        list.push(TendonPlan {
            class: classes.len(),
            path,
            jac,
            stiffness: s(t.stiffness),
            damping: s(t.damping),
            rest: t.rest.map(s),
            passive: t.stiffness != 0.0 || t.damping != 0.0,
            limit,
            friction,
            jac0,
        });
        jac += class.blocks.len();
        classes.push(class);
    }
    list
}

/// Dofs a tendon's length depends on.
fn dofs(model: &Model, t: &Tendon) -> Vec<usize> {
    match &t.path {
        Path::Fixed(terms) => terms.iter().map(|&(j, _)| model.joints[j].dof).collect(),
        Path::Spatial(segments) => {
            let bodies = segments.iter().flat_map(|s| s.sites.map(|i| model.sites[i].body));
            bodies.flat_map(|b| path(model, b)).collect()
        }
    }
}

/// Plans of all equalities; their classes are appended to `classes`.
pub(super) fn equalities<L: Lane>(
    model: &Model,
    blocks: &Blocks,
    tendons: &[TendonPlan<L>],
    classes: &mut Vec<Class<L>>,
) -> Vec<EqualityPlan<L>> {
    if !model.opt.constraint {
        return Vec::new();
    }
    let mut list = Vec::new();
    for e in &model.equalities {
        let joint = |j: usize| {
            let j: &Joint = &model.joints[j];
            let object = Object::Joint { qpos: j.qpos, row: blocks.padded[j.dof] % 3 };
            (object, vec![blocks.padded[j.dof] / 3], model.qpos0[j.qpos], model.dofs[j.dof].invweight0)
        };
        let tendon = |t: usize| {
            let used = classes[tendons[t].class].blocks.iter().map(|b| b.block as usize).collect();
            (Object::Tendon(t), used, model.tendons[t].length0, model.tendons[t].invweight0)
        };
        let (first, second, poly) = match e.kind {
            EqualityKind::Joint { first, second, poly } => (joint(first), second.map(joint), poly),
            EqualityKind::Tendon { first, second, poly } => (tendon(first), second.map(tendon), poly),
        };
        let used = first.1.iter().chain(second.iter().flat_map(|s| &s.1)).copied().collect();
        let class = class::<L>(blocks, used, 1);
        let side = |(object, used, at0, _): &(Object, Vec<usize>, f64, f64)| Side {
            object: *object,
            at0: L::scalar(*at0),
            block: used.first().copied().unwrap_or_default(),
            places: (used.iter())
                .map(|u| class.blocks.iter().position(|b| b.block as usize == *u).unwrap_or_default())
                .collect(),
        };
        let weight = first.3 + second.as_ref().map_or(0.0, |s| s.3);
        list.push(EqualityPlan {
            class: classes.len(),
            first: side(&first),
            second: second.as_ref().map(side),
            poly: poly.map(L::scalar),
            soft: Soft::new(&e.softness, model.opt.timestep, weight, 1.0),
        });
        classes.push(class);
    }
    list
}

/// Dry friction of dofs.
pub(super) fn friction<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<DofFriction<L>> {
    let rough = model.dofs.iter().enumerate().filter(|(_, d)| model.opt.constraint && d.friction_loss > 0.0);
    rough
        .map(|(i, d)| DofFriction {
            padded: blocks.padded[i],
            dry: Dry::new(d.friction_loss, &Soft::new(&d.friction, model.opt.timestep, d.invweight0, 1.0)),
        })
        .collect()
}

impl<L: Lane> Dry<L> {
    fn new(loss: f64, soft: &Soft<L>) -> Self {
        Dry { loss: L::scalar(loss), weight: soft.rest, b: soft.b }
    }
}
