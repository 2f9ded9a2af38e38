//! Actuators: lengths and rates of their transmissions, activations, forces.
use crate::lane::Lane;
use crate::plan::Plan;
use crate::plan::drive::{Activation, Target};
use crate::state::{Drives, Smooth, State, Tendons};
use crate::tendon;

/// Sets the forces of all actuators and the rates of all activations.
///
/// ```text
/// f = clamp((g₀ + g₁ l + g₂ l̇) w + b₀ + b₁ l + b₂ l̇),   w = activation, or the clamped control
/// ```
#[inline(always)]
pub(crate) fn act<L: Lane>(plan: &Plan<L>, s: &State<L>, t: &Tendons<L>, y: &mut Smooth<L>, x: &mut Drives<L>) {
    y.driven.fill([L::zero(); 3]);
    let vary = s.variation();
    for (u, drive) in plan.drives.iter().enumerate() {
        let mut w = s.ctrl[u];
        if let Some([low, high]) = drive.ctrl_range {
            w = clamp(w, low, high);
        }
        if let Some(a) = &drive.act {
            let now = s.act[a.index];
            let dot = match a.rate {
                Some(rate) => (w - now) * L::up(rate),
                None => w,
            };
            x.act_dot[a.index] = dot;
            w = if a.early { advance(a, now, dot) } else { now };
        }
        let gear = L::up(drive.gear);
        let mut force = L::up(drive.gain[0]) * w;
        let mut slope = L::zero();
        if drive.affine {
            let (length, rate) = transmission(drive.target, gear, s, t, y);
            (x.length[u], x.rate[u]) = (length, rate);
            let gain = L::up(drive.gain[2]).fma(rate, L::up(drive.gain[1]).fma(length, L::up(drive.gain[0])));
            let bias = L::up(drive.bias[2]).fma(rate, L::up(drive.bias[1]).fma(length, L::up(drive.bias[0])));
            force = gain.fma(w, bias);
            slope = L::up(drive.gain[2]).fma(w, L::up(drive.bias[2]));
        }
        if let Some(v) = &vary {
            force *= v.strength[u];
            slope *= v.strength[u];
        }
        if let Some([low, high]) = drive.force_range {
            let free = L::up(low).lt(force) & force.lt(L::up(high));
            slope = L::sel(free, slope, L::zero());
            force = clamp(force, low, high);
        }
        x.force[u] = force;
        x.slope[u] = slope;
        match drive.target {
            Target::Joint { padded, .. } => {
                let f = &mut y.driven.as_flattened_mut()[padded];
                *f = force.fma(gear, *f);
            }
            Target::Tendon(i) => tendon::pull(plan, i, force * gear, t, &mut y.driven),
        }
    }
}

/// Length and rate of an actuator's transmission.
#[inline(always)]
pub(crate) fn transmission<L: Lane>(target: Target, gear: L, s: &State<L>, t: &Tendons<L>, y: &Smooth<L>) -> (L, L) {
    match target {
        Target::Joint { qpos, padded } => (gear * s.qpos[qpos], gear * y.qvel.as_flattened()[padded]),
        Target::Tendon(i) => (gear * t.length[i], gear * t.rate[i]),
    }
}

/// Bounds the sums of actuator forces on joints.
#[inline(always)]
pub(crate) fn bound<L: Lane>(plan: &Plan<L>, y: &mut Smooth<L>) {
    let driven = y.driven.as_flattened_mut();
    for (padded, [low, high]) in &plan.force_ranges {
        driven[*padded] = clamp(driven[*padded], *low, *high);
    }
}

/// An activation one step later.
#[inline(always)]
pub(crate) fn advance<L: Lane>(a: &Activation<L>, now: L, dot: L) -> L {
    let next = dot.fma(L::up(a.step), now);
    match a.range {
        Some([low, high]) => clamp(next, low, high),
        None => next,
    }
}

/// In this order a NaN stays one.
#[inline(always)]
fn clamp<L: Lane>(x: L, low: L::S, high: L::S) -> L {
    L::up(high).min(L::up(low).max(x))
}
