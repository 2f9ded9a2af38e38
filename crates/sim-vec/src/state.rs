//! What persists of a block of environments, and the working memory of a thread.
use crate::lane::Lane;
use crate::linalg::Pattern;
use crate::math::{Inertia, Mat3, Quat, V3, V6};
use crate::model::Model;
use crate::plan::Plan;
use crate::plan::blocks::tri;

/// One block of `L::W` environments.
#[derive(Clone, Debug)]
pub struct State<L> {
    /// `[nq]` positions.
    pub qpos: Vec<L>,
    /// `[nv]` velocities.
    pub qvel: Vec<L>,
    /// `[nu]` controls.
    pub ctrl: Vec<L>,
    /// `[nv]` acceleration the solver starts from: that of the last step.
    pub warm: Vec<L>,
}

/// Everything computed from a [`State`]; one per thread, reused by any number of states of the same engine.
#[derive(Clone, Debug)]
pub struct Scratch<L: Lane> {
    pub(crate) body: Bodies<L>,
    pub(crate) smooth: Smooth<L>,
    pub(crate) rows: Rows<L>,
    pub(crate) newton: Newton<L>,
    pub(crate) runge: Runge<L>,
    /// `[nsensor]`, scalars in the first component.
    pub(crate) sensor: Vec<V3<L>>,
}

/// Poses and velocities of bodies.
#[derive(Clone, Debug)]
pub(crate) struct Bodies<L> {
    pub xpos: Vec<V3<L>>,
    pub xquat: Vec<Quat<L>>,
    pub xmat: Vec<Mat3<L>>,
    pub xipos: Vec<V3<L>>,
    /// Centre of mass of the tree, at its root body.
    pub com: Vec<V3<L>>,
    pub inertia: Vec<Inertia<L>>,
    pub composite: Vec<Inertia<L>>,
    pub cvel: Vec<V6<L>>,
    pub cacc: Vec<V6<L>>,
    pub cfrc: Vec<V6<L>>,
    /// Anchor and axis of each joint, global.
    pub anchor: Vec<V3<L>>,
    pub axis: Vec<V3<L>>,
    /// Position and z axis of each geom, global.
    pub gpos: Vec<V3<L>>,
    pub gaxis: Vec<V3<L>>,
}

/// Vectors over dofs, padded to blocks, and the mass matrix.
#[derive(Clone, Debug)]
pub(crate) struct Smooth<L> {
    /// Motion of each dof.
    pub cdof: Vec<[V6<L>; 3]>,
    pub qvel: Vec<V3<L>>,
    pub bias: Vec<V3<L>>,
    pub passive: Vec<V3<L>>,
    /// Passive + actuation − bias.
    pub force: Vec<V3<L>>,
    pub qacc_smooth: Vec<V3<L>>,
    pub qacc: Vec<V3<L>>,
    /// `M qacc`, at convergence the sum of all forces.
    pub total: Vec<V3<L>>,
    pub warm: Vec<V3<L>>,
    pub mass: Vec<Mat3<L>>,
    pub factor: Vec<Mat3<L>>,
    pub dinv: Vec<[L; 6]>,
}

/// An active joint limit. A row with `d = 0` in a lane is not there for that lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitRow<L> {
    pub padded: usize,
    pub sign: L,
    pub d: L,
    pub aref: L,
    /// `J a − a_ref` and its change along the search direction.
    pub ja: L,
    pub jv: L,
    /// Weight with which it stands in H.
    pub w: L,
}

/// A contact in each lane: one row, or the four edges of a pyramid `n ± μ t₁, n ± μ t₂`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contact<L> {
    pub class: usize,
    /// Where its Jacobian begins in [`Rows::jac`].
    pub jac: usize,
    pub d: L,
    pub aref: [L; 4],
    pub ja: [L; 4],
    pub jv: [L; 4],
    pub w: [L; 4],
}

/// Geometry of a contact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<L> {
    /// Index in `Model::pairs`, as a number per lane.
    pub pair: L,
    pub dist: L,
    pub pos: V3<L>,
    pub normal: V3<L>,
    /// First tangent before it is made orthogonal to the normal; zero if the frame is free to choose.
    pub tangent: V3<L>,
}

/// A contact on its way into a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<L> {
    pub point: Point<L>,
    pub d: L,
    /// `k d r` of the reference acceleration.
    pub pull: L,
    pub b: L,
    pub mu: L,
    pub depth: [L; 2],
}

/// Constraint rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows<L> {
    pub limits: Vec<LimitRow<L>>,
    pub contacts: Vec<Contact<L>>,
    /// Geometry of each contact.
    pub points: Vec<Point<L>>,
    /// Per contact and block of its class: for condim 1 the normal row over three dofs; for condim 3 three entries,
    /// one for each dof, of normal and both tangents times μ.
    pub jac: Vec<[L; 3]>,
    /// Contacts of the class at hand.
    pub slots: Vec<Slot<L>>,
}

/// The solver's memory.
#[derive(Clone, Debug)]
pub(crate) struct Newton<L> {
    pub grad: Vec<V3<L>>,
    pub search: Vec<V3<L>>,
    pub m_search: Vec<V3<L>>,
    /// Constraint forces.
    pub force: Vec<V3<L>>,
    pub hessian: Vec<Mat3<L>>,
    pub factor: Vec<Mat3<L>>,
    pub dinv: Vec<[L; 6]>,
    pub pattern: Pattern,
    /// Iterations of the last solve; the worst lane decides.
    pub iterations: usize,
    /// Iterations each lane took part in.
    pub taken: L,
}

/// Runge–Kutta's memory, in the state's own layout.
#[derive(Clone, Debug)]
pub(crate) struct Runge<L> {
    pub qpos: Vec<L>,
    pub qvel: Vec<L>,
    pub last_qvel: Vec<L>,
    pub sum_vel: Vec<L>,
    pub sum_acc: Vec<L>,
}

impl<L: Lane> State<L> {
    /// The reference configuration at rest.
    pub(crate) fn new(model: &Model) -> Self {
        let z = L::zero();
        State {
            qpos: model.qpos0.iter().map(|&q| L::splat(q)).collect(),
            qvel: vec![z; model.nv()],
            ctrl: vec![z; model.nu()],
            warm: vec![z; model.nv()],
        }
    }
}

impl<L: Lane> Scratch<L> {
    /// Memory for the worst case of `plan`, so that steps never allocate.
    pub(crate) fn new(model: &Model, plan: &Plan<L>) -> Self {
        let z = L::zero();
        let (nb, nj, ng) = (model.bodies.len(), model.joints.len(), model.geoms.len());
        let n = plan.blocks.count;
        let v = || vec![[z; 3]; n];
        let identity = [L::one(), z, z, z, L::one(), z, z, z, L::one()];
        let triangle = || vec![[z; 9]; tri(n)];
        let classes = &plan.pairs.classes;
        let contacts: usize = classes.iter().map(|c| c.slots).sum();
        let jac = classes.iter().map(|c| c.slots * c.blocks.len() * c.condim).sum();
        Scratch {
            body: Bodies {
                xpos: vec![[z; 3]; nb],
                xquat: vec![[L::one(), z, z, z]; nb],
                xmat: vec![identity; nb],
                xipos: vec![[z; 3]; nb],
                com: vec![[z; 3]; nb],
                inertia: vec![[z; 10]; nb],
                composite: vec![[z; 10]; nb],
                cvel: vec![[z; 6]; nb],
                cacc: vec![[z; 6]; nb],
                cfrc: vec![[z; 6]; nb],
                anchor: vec![[z; 3]; nj],
                axis: vec![[z; 3]; nj],
                gpos: vec![[z; 3]; ng],
                gaxis: vec![[z; 3]; ng],
            },
            smooth: Smooth {
                cdof: vec![[[z; 6]; 3]; n],
                qvel: v(),
                bias: v(),
                passive: v(),
                force: v(),
                qacc_smooth: v(),
                qacc: v(),
                total: v(),
                warm: v(),
                mass: triangle(),
                factor: triangle(),
                dinv: vec![[z; 6]; n],
            },
            rows: Rows {
                limits: Vec::with_capacity(2 * plan.limits.len()),
                contacts: Vec::with_capacity(contacts),
                points: Vec::with_capacity(contacts),
                jac: Vec::with_capacity(jac),
                slots: Vec::with_capacity(classes.iter().map(|c| c.slots).max().unwrap_or(0)),
            },
            newton: Newton {
                grad: v(),
                search: v(),
                m_search: v(),
                force: v(),
                hessian: triangle(),
                factor: triangle(),
                dinv: vec![[z; 6]; n],
                pattern: Pattern::with_room(n),
                iterations: 0,
                taken: z,
            },
            runge: Runge {
                qpos: vec![z; model.nq],
                qvel: vec![z; model.nv()],
                last_qvel: vec![z; model.nv()],
                sum_vel: vec![z; model.nv()],
                sum_acc: vec![z; model.nv()],
            },
            sensor: vec![[z; 3]; model.sensors.len()],
        }
    }
}

/// Copies dofs in the model's order into padded blocks; padding stays as it is.
#[inline(always)]
pub(crate) fn pad<L: Lane>(plan: &Plan<L>, from: &[L], to: &mut [V3<L>]) {
    let to = to.as_flattened_mut();
    for (i, &p) in plan.blocks.padded.iter().enumerate() {
        to[p] = from[i];
    }
}

/// The inverse of [`pad`].
#[inline(always)]
pub(crate) fn unpad<L: Lane>(plan: &Plan<L>, from: &[V3<L>], to: &mut [L]) {
    let from = from.as_flattened();
    for (i, &p) in plan.blocks.padded.iter().enumerate() {
        to[i] = from[p];
    }
}
