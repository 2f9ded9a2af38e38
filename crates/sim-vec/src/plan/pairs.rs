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
use crate::model::{Model, Pair, Shape};

/// Which narrow phase to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl Kind {
    /// The most contacts of one pair in one lane.
    pub fn contacts(self) -> usize {
        match self {
            Kind::PlaneCapsule | Kind::CapsuleCapsule => 2,
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
    /// Sliding friction, at least 1e-5.
    pub mu: L::S,
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
    /// 1 or 3.
    pub condim: usize,
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
    pub classes: Vec<Class<L>>,
}

impl<L: Lane> Pairs<L> {
    /// Sorts `model`'s pairs; those that no dof affects are dropped, as MuJoCo does.
    pub fn new(model: &Model, blocks: &Blocks) -> Result<Self, EngineError> {
        let mut list = Vec::new();
        let mut classes = Vec::new();
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
        list.sort_by_key(|p| p.class);
        Ok(Pairs { list, classes })
    }
}

fn kind(model: &Model, pair: &Pair) -> Result<Kind, EngineError> {
    let name = |g: usize| model.geoms[g].name.clone();
    let [first, second] = pair.geoms;
    if pair.condim != 1 && pair.condim != 3 {
        return Err(EngineError::Condim { first: name(first), second: name(second), condim: pair.condim });
    }
    match (model.geoms[first].shape, model.geoms[second].shape) {
        (Shape::Plane, Shape::Sphere { .. }) => Ok(Kind::PlaneSphere),
        (Shape::Plane, Shape::Capsule { .. }) => Ok(Kind::PlaneCapsule),
        (Shape::Sphere { .. }, Shape::Sphere { .. }) => Ok(Kind::SphereSphere),
        (Shape::Sphere { .. }, Shape::Capsule { .. }) => Ok(Kind::SphereCapsule),
        (Shape::Capsule { .. }, Shape::Capsule { .. }) => Ok(Kind::CapsuleCapsule),
        _ => Err(EngineError::Shapes { first: name(first), second: name(second) }),
    }
}

fn plan<L: Lane>(model: &Model, id: usize, kind: Kind, class: usize, depth: [usize; 2]) -> PairPlan<L> {
    let pair = &model.pairs[id];
    let size = pair.geoms.map(|g| match model.geoms[g].shape {
        Shape::Sphere { radius } => [radius, 0.0],
        Shape::Capsule { radius, half } => [radius, half],
        _ => [0.0, 0.0],
    });
    let translational: f64 = pair.geoms.iter().map(|&g| model.bodies[model.geoms[g].body].invweight0[0]).sum();
    let mu = pair.friction[0].max(1e-5);
    let (diagonal, r_scale) =
        if pair.condim == 1 { (translational, 1.0) } else { (translational * (1.0 + mu * mu), 2.0 * mu * mu) };
    // a hair more than the bounding spheres, so that rounding never rejects a touching pair
    let reach = (size[0][0] + size[0][1] + size[1][0] + size[1][1] + pair.margin) * (1.0 + 1e-6);
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
        mu: L::scalar(mu),
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
            let root = blocks.dof[3 * block].map_or(0, |d| model.bodies[model.dofs[d].body].root);
            list.push(ClassBlock { block: block as u16, root: root as u16, place });
        }
    }
    Class { condim, fixed: segment.contains(&None), blocks: list, slots: 0 }
}
