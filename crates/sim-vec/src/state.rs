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
    /// `[na]` activations.
    pub act: Vec<L>,
    /// `[nu]` controls.
    pub ctrl: Vec<L>,
    /// `[nmocap · 7]` positions and orientations of mocap bodies.
    pub mocap: Vec<L>,
    /// `[nv]` acceleration the solver starts from: that of the last step.
    pub warm: Vec<L>,
    /// Factors on the model's numbers, or empty: see [`Vary`].
    pub vary: Vec<L>,
}

/// Factors by which a lane's mechanism differs from the model.
///
/// As in MuJoCo when numbers of a compiled model are changed, what was derived from them at compile time (inverse
/// weights, mean inertia) stays that of the model.
#[derive(Clone, Copy, Debug)]
pub struct Vary<'a, L> {
    /// `[nbody]` on mass and moments of inertia.
    pub mass: &'a [L],
    /// `[nv]` on damping.
    pub damping: &'a [L],
    /// `[nu]` on an actuator's force before it is clamped.
    pub strength: &'a [L],
    /// On friction coefficients of contacts.
    pub friction: L,
    /// On gravity.
    pub gravity: L,
}

impl<L: Lane> State<L> {
    /// How many factors there are: bodies, dofs, actuators, friction, gravity.
    pub fn factors(model: &Model) -> usize {
        model.bodies.len() + model.nv() + model.nu() + 2
    }

    /// The factors, if the lanes differ.
    #[inline(always)]
    pub fn variation(&self) -> Option<Vary<'_, L>> {
        let (nv, nu) = (self.qvel.len(), self.ctrl.len());
        let n = self.vary.len();
        if n < nv + nu + 2 {
            return None;
        }
        let (mass, rest) = self.vary.split_at(n - nv - nu - 2);
        let (damping, rest) = rest.split_at(nv);
        let (strength, rest) = rest.split_at(nu);
        Some(Vary { mass, damping, strength, friction: rest[0], gravity: rest[1] })
    }
}

/// Everything computed from a [`State`]; one per thread, reused by any number of states of the same engine.
#[derive(Clone, Debug)]
pub struct Scratch<L: Lane> {
    pub(crate) body: Bodies<L>,
    pub(crate) smooth: Smooth<L>,
    pub(crate) rows: Rows<L>,
    pub(crate) newton: Newton<L>,
    pub(crate) runge: Runge<L>,
    pub(crate) tendon: Tendons<L>,
    pub(crate) drive: Drives<L>,
    /// `[nsensordata]`
    pub(crate) sensor: Vec<L>,
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
    /// Orientation of the geoms that need more than an axis.
    pub gmat: Vec<Mat3<L>>,
    /// Forces on bodies that are not contacts: of the medium, and against gravity.
    pub wrench: Vec<V6<L>>,
}

/// Vectors over dofs, padded to blocks, and the mass matrix.
#[derive(Clone, Debug)]
pub(crate) struct Smooth<L> {
    /// Motion of each dof.
    pub cdof: Vec<[V6<L>; 3]>,
    pub qvel: Vec<V3<L>>,
    pub bias: Vec<V3<L>>,
    pub passive: Vec<V3<L>>,
    /// Of actuators.
    pub driven: Vec<V3<L>>,
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

/// Tendons.
#[derive(Clone, Debug)]
pub(crate) struct Tendons<L> {
    pub length: Vec<L>,
    pub rate: Vec<L>,
    /// Per tendon and block of its class: `∂length/∂q` of three dofs.
    pub jac: Vec<[L; 3]>,
}

/// Actuators.
#[derive(Clone, Debug)]
pub(crate) struct Drives<L> {
    /// `[nu]` length, rate and force of each.
    pub length: Vec<L>,
    pub rate: Vec<L>,
    pub force: Vec<L>,
    /// `[nu]` derivative of the force by the rate, for implicit integration.
    pub slope: Vec<L>,
    /// `[na]` rate of the activation.
    pub act_dot: Vec<L>,
}

/// A row whose Jacobian is `±1` at one dof.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single<L> {
    pub padded: usize,
    pub sign: L,
    pub row: usize,
}

/// A group of rows whose Jacobian covers the blocks of a class: a contact, a tendon, an equality.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multi {
    pub class: usize,
    /// Where its Jacobian begins in [`Rows::jac`].
    pub jac: usize,
    /// Its first row.
    pub row: usize,
}

/// What an elliptic contact has beyond its [`Multi`]. Its rows are the normal and the tangents times their friction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cone<L> {
    /// Which [`Multi`].
    pub multi: usize,
    /// Slope of the regularised cone, `μ₁ / √impratio`.
    pub mu: L,
    /// Lower triangle of the weight with which its rows stand in H.
    pub w: [L; 21],
    /// Along the search direction: squared length of the tangential residual and its first two coefficients, and the
    /// first two coefficients of the quadratic that holds at the bottom.
    pub along: [L; 5],
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
    pub mu: [L; 5],
    pub depth: [L; 2],
}

/// Constraint rows, in this order: equalities, dry friction, one-sided rows (limits and contacts; the edges of a
/// pyramid are rows), elliptic cones. A row with `d = 0` in a lane is not there for that lane.
#[derive(Clone, Debug)]
pub(crate) struct Rows<L> {
    /// Weight 1/R.
    pub d: Vec<L>,
    /// Reference acceleration.
    pub aref: Vec<L>,
    /// `J a − a_ref` and its change along the search direction.
    pub ja: Vec<L>,
    pub jv: Vec<L>,
    /// Force.
    pub f: Vec<L>,
    /// Weight with which it stands in H; not used by cones.
    pub w: Vec<L>,
    /// Ends of the equalities, of dry friction and of the one-sided rows.
    pub ends: [usize; 3],
    /// Largest force of each row of dry friction.
    pub loss: Vec<L>,
    pub singles: Vec<Single<L>>,
    pub multis: Vec<Multi>,
    pub cones: Vec<Cone<L>>,
    /// Where contacts begin in `multis`.
    pub first_contact: usize,
    /// Geometry of each contact.
    pub points: Vec<Point<L>>,
    /// Per multi and block of its class: three dofs of D rows.
    pub jac: Vec<L>,
    /// Contacts of the class at hand.
    pub slots: Vec<Slot<L>>,
}

impl<L: Lane> Rows<L> {
    /// Room for the worst case.
    fn with_room(plan: &Plan<L>) -> Self {
        let classes = || plan.classes.iter();
        let multis: usize = classes().map(|c| c.slots).sum();
        let singles = 2 * plan.limits.len() + plan.friction.len();
        let rows = singles + classes().map(|c| c.slots * c.rows).sum::<usize>();
        let v = || Vec::with_capacity(rows);
        Rows {
            d: v(),
            aref: v(),
            ja: v(),
            jv: v(),
            f: v(),
            w: v(),
            ends: [0; 3],
            loss: v(),
            singles: Vec::with_capacity(singles),
            multis: Vec::with_capacity(multis),
            cones: Vec::with_capacity(multis),
            first_contact: 0,
            points: Vec::with_capacity(multis),
            jac: Vec::with_capacity(classes().map(|c| c.slots * c.blocks.len() * 3 * c.condim).sum()),
            slots: Vec::with_capacity(classes().map(|c| c.slots).max().unwrap_or(0)),
        }
    }

    /// Removes all rows.
    #[inline(always)]
    pub fn clear(&mut self) {
        for v in [&mut self.d, &mut self.aref, &mut self.ja, &mut self.jv, &mut self.f, &mut self.w, &mut self.loss] {
            v.clear();
        }
        self.singles.clear();
        self.multis.clear();
        self.cones.clear();
        self.points.clear();
        self.jac.clear();
    }

    /// Adds a row; returns its index.
    #[inline(always)]
    pub fn push(&mut self, d: L, aref: L) -> usize {
        let z = L::zero();
        self.d.push(d);
        self.aref.push(aref);
        self.ja.push(z);
        self.jv.push(z);
        self.f.push(z);
        self.w.push(z);
        self.d.len() - 1
    }
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
    pub act: Vec<L>,
    pub sum_act: Vec<L>,
}

impl<L: Lane> State<L> {
    /// The reference configuration at rest.
    pub(crate) fn new(model: &Model) -> Self {
        let z = L::zero();
        State {
            qpos: model.qpos0.iter().map(|&q| L::splat(q)).collect(),
            qvel: vec![z; model.nv()],
            act: vec![z; model.na()],
            ctrl: vec![z; model.nu()],
            mocap: model.mocap0().map(L::splat).collect(),
            warm: vec![z; model.nv()],
            vary: Vec::new(),
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
        let tendons: Vec<[L; 3]> = (plan.tendons.iter().flat_map(|t| &t.jac0)).map(crate::lane::up3::<L>).collect();
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
                gmat: vec![identity; ng],
                wrench: vec![[z; 6]; nb],
            },
            smooth: Smooth {
                cdof: vec![[[z; 6]; 3]; n],
                qvel: v(),
                bias: v(),
                passive: v(),
                driven: v(),
                force: v(),
                qacc_smooth: v(),
                qacc: v(),
                total: v(),
                warm: v(),
                mass: triangle(),
                factor: triangle(),
                dinv: vec![[z; 6]; n],
            },
            rows: Rows::with_room(plan),
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
                act: vec![z; model.na()],
                sum_act: vec![z; model.na()],
            },
            tendon: Tendons { length: vec![z; model.tendons.len()], rate: vec![z; model.tendons.len()], jac: tendons },
            drive: Drives {
                length: vec![z; model.nu()],
                rate: vec![z; model.nu()],
                force: vec![z; model.nu()],
                slope: vec![z; model.nu()],
                act_dot: vec![z; model.na()],
            },
            sensor: vec![z; model.nsensordata()],
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
