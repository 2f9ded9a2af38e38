//! Actuators and bounds of their joint forces.
use super::blocks::Blocks;
use crate::lane::Lane;
use crate::model::{Dynamics, JointKind, Model, Transmission};

/// An actuator.
#[derive(Debug)]
pub(crate) struct DrivePlan<L: Lane> {
    pub target: Target,
    pub gear: L::S,
    pub gain: [L::S; 3],
    pub bias: [L::S; 3],
    /// Gain or bias depend on length or rate.
    pub affine: bool,
    pub act: Option<Activation<L>>,
    pub ctrl_range: Option<[L::S; 2]>,
    pub force_range: Option<[L::S; 2]>,
}

/// What an actuator acts on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Joint { qpos: usize, padded: usize },
    Tendon(usize),
}

/// An activation.
#[derive(Debug)]
pub(crate) struct Activation<L: Lane> {
    pub index: usize,
    /// 1/τ of a filter; `None` integrates the control.
    pub rate: Option<L::S>,
    /// The step that stands for `h ẇ`: `h`, or `τ (1 − exp(−h/τ))` where the filter is integrated exactly.
    pub step: L::S,
    pub range: Option<[L::S; 2]>,
    pub early: bool,
}

/// Plans of all actuators.
pub(super) fn drives<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<DrivePlan<L>> {
    let s = L::scalar;
    let h = model.opt.timestep;
    let mut index = 0;
    let mut list = Vec::new();
    for a in &model.actuators {
        let (rate, step) = match a.dynamics {
            Dynamics::None | Dynamics::Integrator => (None, h),
            Dynamics::Filter { time } => (Some(s(1.0 / time.max(1e-15))), h),
            Dynamics::FilterExact { time } => {
                let time = time.max(1e-15);
                (Some(s(1.0 / time)), time * (1.0 - (-h / time).exp()))
            }
        };
        let act = (a.dynamics != Dynamics::None).then(|| {
            index += 1;
            Activation {
                index: index - 1,
                rate,
                step: s(step),
                range: a.act_range.map(|r| r.map(s)),
                early: a.act_early,
            }
        });
        list.push(DrivePlan {
            target: match a.target {
                Transmission::Joint(j) => {
                    let j = &model.joints[j];
                    Target::Joint { qpos: j.qpos, padded: blocks.padded[j.dof] }
                }
                Transmission::Tendon(t) => Target::Tendon(t),
            },
            gear: s(a.gear),
            gain: a.gain.map(s),
            bias: a.bias.map(s),
            affine: a.gain[1..] != [0.0; 2] || a.bias != [0.0; 3],
            act,
            ctrl_range: a.ctrl_range.map(|r| r.map(s)),
            force_range: a.force_range.map(|r| r.map(s)),
        });
    }
    list
}

/// Bounds of the sum of actuator forces on a dof: padded index, low, high.
pub(super) fn force_ranges<L: Lane>(model: &Model, blocks: &Blocks) -> Vec<(usize, [L::S; 2])> {
    let limited = model.joints.iter().filter(|j| j.kind != JointKind::Free);
    limited.filter_map(|j| Some((blocks.padded[j.dof], j.force_range?.map(L::scalar)))).collect()
}
