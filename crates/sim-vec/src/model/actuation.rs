//! Tendons, equalities and actuators.

use super::{Id, Softness};

/// A length made of joints or sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Tendon {
    /// Name, or empty.
    pub name: String,
    /// What its length is.
    pub path: Path,
    /// Limits of the length, if limited: low, high.
    pub range: Option<[f64; 2]>,
    /// Distance from a limit at which it becomes active.
    pub margin: f64,
    /// Softness of the limit.
    pub limit: Softness,
    /// Spring stiffness.
    pub stiffness: f64,
    /// Damping coefficient.
    pub damping: f64,
    /// Lengths between which the spring is at rest.
    pub rest: [f64; 2],
    /// Dry friction; 0 for none.
    pub friction_loss: f64,
    /// Softness of dry friction.
    pub friction: Softness,
    /// Length at `qpos0`.
    pub length0: f64,
    /// Inverse inertia along it at `qpos0`: `J M⁻¹ Jᵀ`.
    pub invweight0: f64,
}

/// What a tendon's length is.
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// `Σ coef · qpos` over slide and hinge joints.
    Fixed(Vec<(Id, f64)>),
    /// `Σ |p_b − p_a| / divisor` over segments between two sites.
    Spatial(Vec<Segment>),
}

/// A straight part of a spatial tendon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Sites at its ends.
    pub sites: [Id; 2],
    /// Of the pulley before it; 1 without.
    pub divisor: f64,
}

/// A relation between joints or tendons that always holds, softly.
#[derive(Clone, Debug, PartialEq)]
pub struct Equality {
    /// Name, or empty.
    pub name: String,
    /// What is equal.
    pub kind: EqualityKind,
    /// Softness.
    pub softness: Softness,
}

/// What an equality relates, with x the difference of joint position or tendon length from that at `qpos0`:
/// `x₁ = c₀ + c₁ x₂ + c₂ x₂² + c₃ x₂³ + c₄ x₂⁴`, or `x₁ = c₀` without a second one.
#[derive(Clone, Debug, PartialEq)]
pub enum EqualityKind {
    /// Slide or hinge joints.
    Joint {
        /// x₁
        first: Id,
        /// x₂
        second: Option<Id>,
        /// c
        poly: [f64; 5],
    },
    /// Tendons.
    Tendon {
        /// x₁
        first: Id,
        /// x₂
        second: Option<Id>,
        /// c
        poly: [f64; 5],
    },
}

/// What an actuator acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// A slide or hinge joint.
    Joint(Id),
    /// A tendon.
    Tendon(Id),
}

/// How an activation follows the control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dynamics {
    /// There is none: the control acts at once.
    None,
    /// `ẇ = u`
    Integrator,
    /// `ẇ = (u − w) / τ`, integrated by Euler.
    Filter {
        /// τ, s
        time: f64,
    },
    /// `ẇ = (u − w) / τ`, integrated exactly.
    FilterExact {
        /// τ, s
        time: f64,
    },
}

/// Force on a joint or tendon.
///
/// ```text
/// l = gear · (qpos or length),  l̇ its rate,  w = activation, or control without dynamics
/// f = clamp((g₀ + g₁ l + g₂ l̇) w + b₀ + b₁ l + b₂ l̇),   generalised force gear · f
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Actuator {
    /// Name, or empty.
    pub name: String,
    /// What it acts on.
    pub target: Transmission,
    /// Scales length and force.
    pub gear: f64,
    /// g
    pub gain: [f64; 3],
    /// b
    pub bias: [f64; 3],
    /// How an activation follows the control.
    pub dynamics: Dynamics,
    /// Control limits, if limited.
    pub ctrl_range: Option<[f64; 2]>,
    /// Force limits, if limited.
    pub force_range: Option<[f64; 2]>,
    /// Activation limits, if limited.
    pub act_range: Option<[f64; 2]>,
    /// The force uses the activation at the end of the step.
    pub act_early: bool,
}
