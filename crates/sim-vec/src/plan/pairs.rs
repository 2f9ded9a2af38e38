//! Geom pairs sorted into classes.
//!
//! A class is (segment of the first body, segment of the second, condim). All contacts of a class have Jacobians
//! over the same blocks, so lanes that touch with different pairs of one class share rows: a lane's k-th contact of
//! a class goes to the class's slot k. Within a class the bodies of a contact are told apart by depth, the number of
//! dofs on their path from the root: dof number i of the path moves the body if i < depth.
use super::Soft;
use super::blocks::{Blocks, path};
use crate::engine_error::EngineError;
use crate::lane::Lane;
use crate::model::{Cone, Model, Pair, Shape};
use crate::solid::{MOST, Solid};

/// Which narrow phase to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Plane and sphere.
    PlaneSphere,
    /// Plane and capsule: a contact at either end.
    PlaneCapsule,
    /// Two spheres.
    SphereSphere,
    /// Sphere and capsule.
    SphereCapsule,
    /// Two capsules; two contacts where they are parallel.
    CapsuleCapsule,
    /// Other shapes, one lane at a time.
    Solid([Solid; 2]),
}

impl Kind {
    /// The most contacts of one pair in one lane.
    pub fn contacts(self) -> usize {
        match self {
            Kind::PlaneCapsule | Kind::CapsuleCapsule => 2,
            Kind::Solid(_) => MOST,
            _ => 1,
        }
    }
}

/// A pair, ready for lanes.
#[derive(Debug)]
pub(crate) struct PairPlan<L: Lane> {
    /// Index in [`Model::pairs`].
    pub id: usize,
    pub kind: Kind,
    pub class: usize,
    pub geoms: [usize; 2],
    /// Radii.
    pub radius: [L::S; 2],
    /// Half lengths.
    pub half: [L::S; 2],
    /// Square of the distance of centres beyond which the bounding spheres are apart.
    pub reach2: L::S,
    /// Contacts exist up to this distance.
    pub margin: L::S,
    /// Contacts push below this distance: margin − gap.
    pub include: L::S,
    pub soft: Soft<L>,
    /// Friction in the order of a contact's rows, at least 1e-5.
    pub mu: [L::S; 5],
    /// Depths of the two bodies.
    pub depth: [L::S; 2],
}

/// One block of a class's Jacobian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassBlock<L: Lane> {
    pub block: u16,
    /// Root body of the tree, whose centre of mass the dofs refer to.
    pub root: u16,
    /// For each body of the contact: position on its path of the block's three dofs; 1e9 if not on it.
    pub place: [[L::S; 3]; 2],
}

/// Pairs whose contacts share rows.
#[derive(Debug)]
pub(crate) struct Class<L: Lane> {
    /// 1, 3, 4 or 6: rows of its Jacobian.
    pub condim: usize,
    /// Rows of a contact: 1, the edges of a pyramid, or the dimensions of an elliptic cone.
    pub rows: usize,
    /// Contacts are elliptic cones.
    pub elliptic: bool,
    /// One body is static, so that the blocks lie on one path and H gets no fill from it.
    pub fixed: bool,
    pub blocks: Vec<ClassBlock<L>>,
    /// The most contacts a lane can have in it.
    pub slots: usize,
}

/// All pairs, sorted by class.
#[derive(Debug)]
pub(crate) struct Pairs<L: Lane> {
    pub list: Vec<PairPlan<L>>,
}

impl<L: Lane> Pairs<L> {
    /// Sorts `model`'s pairs, frictionless ones first, and appends their classes; pairs that no dof affects are dropped,
    /// as MuJoCo does.
    pub fn new(model: &Model, blocks: &Blocks, classes: &mut Vec<Class<L>>) -> Result<Self, EngineError> {
        let mut list = Vec::new();
        let mut keys: Vec<(Option<usize>, Option<usize>, usize)> = Vec::new();
        for (id, pair) in model.pairs.iter().enumerate() {
            let body = pair.geoms.map(|g| model.geoms[g].body);
            let paths = body.map(|b| path(model, b));
            if paths[0] == paths[1] {
                continue;
            }
            let kind = kind(model, pair)?;
            let segment = [0, 1].map(|s| paths[s].last().map(|&d| blocks.segment[d]));
            let key = (segment[0], segment[1], pair.condim);
            let class = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
                keys.push(key);
                classes.push(class(model, blocks, segment, pair.condim));
                keys.len() - 1
            });
            classes[class].slots += kind.contacts();
            list.push(plan(model, id, kind, class, [paths[0].len(), paths[1].len()]));
        }
        list.sort_by_key(|p: &PairPlan<L>| (classes[p.class].condim > 1, p.class));
        Ok(Pairs { list })
    }
}

fn kind(model: &Model, pair: &Pair) -> Result<Kind, EngineError> {
    let name = |g: usize| model.geoms[g].name.clone();
    let [first, second] = pair.geoms;
    if ![1, 3, 4, 6].contains(&pair.condim) {
        return Err(EngineError::Condim { first: name(first), second: name(second), condim: pair.condim });
    }
    match (model.geoms[first].shape, model.geoms[second].shape) {
        (Shape::Plane, Shape::Sphere { .. }) => Ok(Kind::PlaneSphere),
        (Shape::Plane, Shape::Capsule { .. }) => Ok(Kind::PlaneCapsule),
        (Shape::Sphere { .. }, Shape::Sphere { .. }) => Ok(Kind::SphereSphere),
        (Shape::Sphere { .. }, Shape::Capsule { .. }) => Ok(Kind::SphereCapsule),
        (Shape::Capsule { .. }, Shape::Capsule { .. }) => Ok(Kind::CapsuleCapsule),
        (a, b) => match (solid(a), solid(b)) {
            (Some(a), Some(b)) if !matches!(b, Solid::Plane) => Ok(Kind::Solid([a, b])),
            _ => Err(EngineError::Shapes { first: name(first), second: name(second) }),
        },
    }
}

fn solid(shape: Shape) -> Option<Solid> {
    Some(match shape {
        Shape::Plane => Solid::Plane,
        Shape::Sphere { radius } => Solid::Sphere { radius },
        Shape::Capsule { radius, half } => Solid::Capsule { radius, half },
        Shape::Ellipsoid { size } => Solid::Ellipsoid { size },
        Shape::Cylinder { radius, half } => Solid::Cylinder { radius, half },
        Shape::Box { size } => Solid::Box { size },
        Shape::Visual { .. } => return None,
    })
}

fn plan<L: Lane>(model: &Model, id: usize, kind: Kind, class: usize, depth: [usize; 2]) -> PairPlan<L> {
    let pair = &model.pairs[id];
    let size = pair.geoms.map(|g| match model.geoms[g].shape {
        Shape::Sphere { radius } => [radius, 0.0],
        Shape::Capsule { radius, half } => [radius, half],
        _ => [0.0, 0.0],
    });
    let translational: f64 = pair.geoms.iter().map(|&g| model.bodies[model.geoms[g].body].invweight0[0]).sum();
    let mu = pair.friction.map(|f| f.max(1e-5));
    let cone = model.opt.cone == Cone::Elliptic;
    let (diagonal, r_scale) = match pair.condim {
        1 => (translational, 1.0),
        _ if cone => (translational, 1.0),
        _ => (translational * (1.0 + mu[0] * mu[0]), 2.0 * mu[0] * mu[0] / model.opt.impratio.max(1e-15)),
    };
    // a hair more than the bounding spheres, so that rounding never rejects a touching pair
    let bounds: f64 = pair.geoms.iter().map(|&g| model.geoms[g].rbound).sum();
    let reach = (bounds + pair.margin) * (1.0 + 1e-6);
    PairPlan {
        id,
        kind,
        class,
        geoms: pair.geoms,
        radius: size.map(|s| L::scalar(s[0])),
        half: size.map(|s| L::scalar(s[1])),
        reach2: L::scalar(reach * reach),
        margin: L::scalar(pair.margin),
        include: L::scalar(pair.margin - pair.gap),
        soft: Soft::new(&pair.softness, model.opt.timestep, diagonal, r_scale),
        mu: mu.map(L::scalar),
        depth: depth.map(|d| L::scalar(d as f64)),
    }
}

/// The blocks over which contacts between two segments have Jacobians: dofs on one path but not the other, and the
/// segments' own dofs, which a contact may have below one of its bodies. Dofs above both cancel.
fn class<L: Lane>(model: &Model, blocks: &Blocks, segment: [Option<usize>; 2], condim: usize) -> Class<L> {
    let end = |s: usize| (0..model.nv()).rev().find(|&d| blocks.segment[d] == s);
    let paths = segment.map(|s| match s.and_then(end) {
        Some(last) => path(model, model.dofs[last].body).into_iter().take_while(|&d| d <= last).collect(),
        None => Vec::new(),
    });
    let mut list = Vec::new();
    for block in 0..blocks.count {
        let mut place = [[L::scalar(1e9); 3]; 2];
        let mut used = false;
        for k in 0..3 {
            let Some(dof) = blocks.dof[3 * block + k] else { continue };
            let at = [0, 1].map(|s| paths[s].iter().position(|&d| d == dof));
            for s in 0..2 {
                if let Some(i) = at[s] {
                    place[s][k] = L::scalar(i as f64);
                }
            }
            let own = segment.contains(&Some(blocks.segment[dof]));
            used |= at[0].is_some() != at[1].is_some() || own;
        }
        if used {
            list.push(ClassBlock { block: block as u16, root: blocks.root[block] as u16, place });
        }
    }
    let elliptic = model.opt.cone == Cone::Elliptic && condim > 1;
    let rows = if condim == 1 || elliptic { condim } else { 2 * (condim - 1) };
    Class { condim, rows, elliptic, fixed: segment.contains(&None), blocks: list, slots: 0 }
}
