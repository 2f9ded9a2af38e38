//! Tendons: lengths, their derivatives by the dofs, and rates.
use crate::lane::{Lane, up3};
use crate::math::*;
use crate::plan::Plan;
use crate::plan::wires::{PathPlan, SegmentPlan, TendonPlan};
use crate::state::{Bodies, Smooth, Tendons};

/// Lengths, and Jacobians of spatial tendons, from positions and poses.
///
/// ```text
/// fixed:    l = Σ c_j q_j,             J = c
/// spatial:  l = Σ |p_b − p_a| / d,     J = Σ uᵀ (J_b − J_a) / d,   u = (p_b − p_a) / |p_b − p_a|
/// ```
#[inline(always)]
pub(crate) fn lengths<L: Lane>(plan: &Plan<L>, qpos: &[L], x: &Bodies<L>, y: &Smooth<L>, out: &mut Tendons<L>) {
    for (t, tendon) in plan.tendons.iter().enumerate() {
        let mut length = L::zero();
        match &tendon.path {
            PathPlan::Fixed(terms) => {
                for (q, coef) in terms {
                    length = L::up(*coef).fma(qpos[*q], length);
                }
            }
            PathPlan::Spatial(segments) => {
                let n = plan.classes[tendon.class].blocks.len();
                let jac = &mut out.jac[tendon.jac..][..n];
                jac.fill([L::zero(); 3]);
                for segment in segments {
                    length += straight(plan, tendon, segment, x, y, jac);
                }
            }
        }
        out.length[t] = length;
    }
}

/// Adds a segment's part to the Jacobian and returns its length over its divisor.
#[inline(always)]
fn straight<L: Lane>(
    plan: &Plan<L>,
    tendon: &TendonPlan<L>,
    segment: &SegmentPlan<L>,
    x: &Bodies<L>,
    y: &Smooth<L>,
    jac: &mut [[L; 3]],
) -> L {
    let [a, b] = segment.bodies;
    let from = add3(mulmv(&x.xmat[a], up3(&segment.sites[0])), x.xpos[a]);
    let to = add3(mulmv(&x.xmat[b], up3(&segment.sites[1])), x.xpos[b]);
    let (unit, length) = normalize3(sub3(to, from));
    let scale = L::up(segment.scale);
    let unit = scale3(unit, scale);
    let blocks = &plan.classes[tendon.class].blocks;
    for i in 0..blocks.len() {
        let com = x.com[blocks[i].root as usize];
        let off = [sub3(from, com), sub3(to, com)];
        for k in 0..3 {
            let c = &y.cdof[blocks[i].block as usize][k];
            for side in 0..2 {
                if segment.moves[i][k][side] {
                    let v = add3([c[3], c[4], c[5]], cross([c[0], c[1], c[2]], off[side]));
                    let along = dot3(v, unit);
                    jac[i][k] = if side == 0 { jac[i][k] - along } else { jac[i][k] + along };
                }
            }
        }
    }
    length * scale
}

/// Rates `J q̇`, from the padded velocities.
#[inline(always)]
pub(crate) fn rates<L: Lane>(plan: &Plan<L>, qvel: &[V3<L>], x: &mut Tendons<L>) {
    for (t, tendon) in plan.tendons.iter().enumerate() {
        x.rate[t] = along(plan, tendon, &x.jac, qvel);
    }
}

/// A tendon's Jacobian times a padded vector.
#[inline(always)]
fn along<L: Lane>(plan: &Plan<L>, tendon: &TendonPlan<L>, jac: &[[L; 3]], v: &[V3<L>]) -> L {
    let blocks = &plan.classes[tendon.class].blocks;
    let mut sum = L::zero();
    for i in 0..blocks.len() {
        sum += dot3(jac[tendon.jac + i], v[blocks[i].block as usize]);
    }
    sum
}

/// Adds a force along a tendon to the padded forces.
#[inline(always)]
pub(crate) fn pull<L: Lane>(plan: &Plan<L>, t: usize, force: L, x: &Tendons<L>, to: &mut [V3<L>]) {
    let tendon = &plan.tendons[t];
    let blocks = &plan.classes[tendon.class].blocks;
    for i in 0..blocks.len() {
        let o = &mut to[blocks[i].block as usize];
        *o = axpy3(*o, x.jac[tendon.jac + i], force);
    }
}

/// Adds springs and dampers of tendons to the padded forces: `k (rest − l)` outside the interval of rest, `−b l̇`.
#[inline(always)]
pub(crate) fn passive<L: Lane>(plan: &Plan<L>, x: &Tendons<L>, to: &mut [V3<L>]) {
    for (t, tendon) in plan.tendons.iter().enumerate() {
        if tendon.passive {
            let length = x.length[t];
            let rest = length.max(L::up(tendon.rest[0])).min(L::up(tendon.rest[1]));
            let spring = L::up(tendon.stiffness) * (rest - length);
            pull(plan, t, L::up(tendon.damping).fnma(x.rate[t], spring), x, to);
        }
    }
}
