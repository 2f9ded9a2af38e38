//! The compiled model: what MJCF says once defaults, frames and inertias are resolved. Plain f64, no lanes.
//!
//! Field meanings follow MuJoCo's `mjModel`, grouped by element. Body 0 is the world. Bodies, joints and dofs are
//! in depth-first order, so that parents precede children and a body's joints and dofs are contiguous.

use std::ops::Range;

mod actuation;
mod sensor;

pub use actuation::{Actuator, Dynamics, Equality, EqualityKind, Path, Segment, Tendon, Transmission};
pub use sensor::{Frame, Sensor, SensorKind};

/// Index into [`Model::bodies`], [`Model::geoms`] and so on; 0 is the world for bodies.
pub type Id = usize;

/// How a step advances the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrator {
    /// Semi-implicit Euler; joint damping implicit unless [`Options::euler_damp`] is off.
    Euler,
    /// Classic fourth-order Runge–Kutta: four forward evaluations.
    Rk4,
    /// Velocity-implicit Euler without Coriolis terms: damping of joints, tendons and actuators is implicit.
    ImplicitFast,
}

/// Model of friction in contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cone {
    /// The cone is approximated by edges.
    Pyramidal,
    /// Coulomb's cone itself.
    Elliptic,
}

/// Simulation options, MJCF's `<option>` and `<flag>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Physics time step in seconds.
    pub timestep: f64,
    /// m/s²; zero where the gravity flag is off.
    pub gravity: [f64; 3],
    /// Time integration.
    pub integrator: Integrator,
    /// Newton iterations at most.
    pub iterations: usize,
    /// Newton's relative tolerance.
    pub tolerance: f64,
    /// Line-search iterations at most.
    pub ls_iterations: usize,
    /// Line-search relative tolerance.
    pub ls_tolerance: f64,
    /// Implicit joint damping in Euler.
    pub euler_damp: bool,
    /// Contacts are computed.
    pub contact: bool,
    /// Joint limits are computed.
    pub limit: bool,
    /// Any constraint is computed.
    pub constraint: bool,
    /// Model of friction in contacts.
    pub cone: Cone,
    /// Frictional over normal impedance, elliptic cones only.
    pub impratio: f64,
    /// Density of the medium, kg/m³; 0 for none.
    pub density: f64,
    /// Viscosity of the medium, Pa·s; 0 for none.
    pub viscosity: f64,
    /// Velocity of the medium, m/s.
    pub wind: [f64; 3],
    /// Relative accuracy of the general convex collision.
    pub ccd_tolerance: f64,
    /// Iterations of the general convex collision at most.
    pub ccd_iterations: usize,
}

/// A rigid body.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Name, or empty.
    pub name: String,
    /// Parent body.
    pub parent: Id,
    /// First body of this kinematic tree (child of the world); 0 for the world.
    pub root: Id,
    /// The body this one is welded to (itself if it has joints).
    pub weld: Id,
    /// Frame in the parent's: position, m.
    pub pos: [f64; 3],
    /// Frame in the parent's: unit quaternion, w first.
    pub quat: [f64; 4],
    /// Centre of mass in the body's frame.
    pub ipos: [f64; 3],
    /// Principal axes of inertia in the body's frame.
    pub iquat: [f64; 4],
    /// kg.
    pub mass: f64,
    /// Principal moments, kg·m².
    pub inertia: [f64; 3],
    /// Mass of the body and its descendants.
    pub subtree_mass: f64,
    /// Mean inverse weight at `qpos0`: translational, rotational.
    pub invweight0: [f64; 2],
    /// Its joints.
    pub joints: Range<Id>,
    /// Its dofs.
    pub dofs: Range<Id>,
    /// Share of its weight that is compensated: 1 floats.
    pub gravcomp: f64,
    /// Number among the mocap bodies, if its pose is an input.
    pub mocap: Option<Id>,
}

/// Kind of joint, with the number of positions and velocities it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointKind {
    /// 7 positions (xyz, quaternion w first), 6 velocities (linear global, angular local).
    Free,
    /// Translation along the axis.
    Slide,
    /// Rotation about the axis.
    Hinge,
}

/// Constraint parameters: MJCF's `solref` and `solimp`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softness {
    /// Time constant and damping ratio, or −stiffness and −damping.
    pub solref: [f64; 2],
    /// d0, dmax, width, midpoint, power.
    pub solimp: [f64; 5],
}

/// A joint.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// Name, or empty.
    pub name: String,
    /// Kind.
    pub kind: JointKind,
    /// Body it moves.
    pub body: Id,
    /// First position.
    pub qpos: Id,
    /// First dof.
    pub dof: Id,
    /// Anchor in the body's frame.
    pub pos: [f64; 3],
    /// Unit axis in the body's frame.
    pub axis: [f64; 3],
    /// Spring stiffness (N/m or N·m/rad).
    pub stiffness: f64,
    /// Limits, if limited: low, high (m or rad).
    pub range: Option<[f64; 2]>,
    /// Distance from a limit at which it becomes active.
    pub margin: f64,
    /// Softness of the limit.
    pub limit: Softness,
    /// Limits of the sum of actuator forces on it, if limited.
    pub force_range: Option<[f64; 2]>,
    /// Gravity compensation counts as actuator force, and so under [`Joint::force_range`].
    pub gravcomp_actuated: bool,
}

/// A degree of freedom.
#[derive(Clone, Debug, PartialEq)]
pub struct Dof {
    /// Body it moves.
    pub body: Id,
    /// Joint it belongs to.
    pub joint: Id,
    /// The dof before it on the path to the root.
    pub parent: Option<Id>,
    /// Added to the diagonal of the mass matrix.
    pub armature: f64,
    /// Damping coefficient.
    pub damping: f64,
    /// Diagonal inverse inertia at `qpos0`.
    pub invweight0: f64,
    /// Dry friction: the force that resists motion, N or N·m; 0 for none.
    pub friction_loss: f64,
    /// Softness of dry friction.
    pub friction: Softness,
}

/// Shape of a geom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Infinite plane, normal z.
    Plane,
    /// Radius.
    Sphere {
        /// m
        radius: f64,
    },
    /// Along z.
    Capsule {
        /// m
        radius: f64,
        /// Half length of the cylinder part, m.
        half: f64,
    },
    /// Semi-axes.
    Ellipsoid {
        /// m
        size: [f64; 3],
    },
    /// Along z.
    Cylinder {
        /// m
        radius: f64,
        /// Half length, m.
        half: f64,
    },
    /// Half sizes.
    Box {
        /// m
        size: [f64; 3],
    },
    /// Anything whose collisions are not simulated; loading refuses it where it could collide.
    Visual {
        /// As written in MJCF.
        size: [f64; 3],
    },
}

/// A geometric shape attached to a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Geom {
    /// Name, or empty.
    pub name: String,
    /// Body it is attached to.
    pub body: Id,
    /// Shape and size.
    pub shape: Shape,
    /// Frame in the body's.
    pub pos: [f64; 3],
    /// Frame in the body's.
    pub quat: [f64; 4],
    /// Radius of a bounding sphere; 0 for planes.
    pub rbound: f64,
    /// `rgba`, for viewers.
    pub rgba: [f64; 4],
    /// Forces of the medium on it as an ellipsoid: coefficients of blunt drag, slender drag, angular drag, Kutta lift
    /// and Magnus lift. `None` leaves its body to the box model.
    pub fluid: Option<[f64; 5]>,
}

/// A pair of geoms that may touch, parameters mixed. `geoms` are ordered by shape: plane, sphere, capsule, ellipsoid,
/// cylinder, box.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// First and second geom; the contact normal points from the first to the second.
    pub geoms: [Id; 2],
    /// 1 (frictionless), 3 (sliding), 4 (and torsion) or 6 (and rolling).
    pub condim: usize,
    /// Sliding (two directions), torsional (m), rolling (two directions, m).
    pub friction: [f64; 5],
    /// Softness of the contact.
    pub softness: Softness,
    /// Distance below which the contact exists.
    pub margin: f64,
    /// Subtracted from the margin to get the distance below which it pushes.
    pub gap: f64,
}

/// A massless frame for sensors and tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Name, or empty.
    pub name: String,
    /// Body it is attached to.
    pub body: Id,
    /// Frame in the body's.
    pub pos: [f64; 3],
    /// Frame in the body's.
    pub quat: [f64; 4],
    /// Size as MJCF gives it; touch sensors use the volume.
    pub size: [f64; 3],
    /// Volume of the site.
    pub shape: SiteShape,
}

/// Volume of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteShape {
    /// `size[0]` is the radius.
    Sphere,
    /// Radius and half length along z.
    Capsule,
    /// Semi-axes.
    Ellipsoid,
    /// Radius and half length along z.
    Cylinder,
    /// Half sizes.
    Box,
}

/// A state that the file names; what it leaves out is that of the reference configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyframe {
    /// Name, or empty.
    pub name: String,
    /// `[nq]`
    pub qpos: Vec<f64>,
    /// `[nv]`
    pub qvel: Vec<f64>,
    /// `[na]`
    pub act: Vec<f64>,
    /// `[nu]`
    pub ctrl: Vec<f64>,
}

/// Everything a simulator needs to know about a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// MJCF's `model` attribute.
    pub name: String,
    /// Options.
    pub opt: Options,
    /// Positions.
    pub nq: usize,
    /// Bodies; 0 is the world.
    pub bodies: Vec<Body>,
    /// Joints.
    pub joints: Vec<Joint>,
    /// Dofs; their number is `nv`.
    pub dofs: Vec<Dof>,
    /// Geoms.
    pub geoms: Vec<Geom>,
    /// Sites.
    pub sites: Vec<Site>,
    /// Geom pairs left after contype/conaffinity, weld, parent and `exclude` filters, in MuJoCo's geom order.
    pub pairs: Vec<Pair>,
    /// Tendons.
    pub tendons: Vec<Tendon>,
    /// Equalities that are active.
    pub equalities: Vec<Equality>,
    /// Actuators; their number is `nu`.
    pub actuators: Vec<Actuator>,
    /// Sensors.
    pub sensors: Vec<Sensor>,
    /// `[nq]` reference configuration.
    pub qpos0: Vec<f64>,
    /// `[nq]` configuration in which springs are at rest.
    pub qpos_spring: Vec<f64>,
    /// `[nkey]` named states.
    pub keyframes: Vec<Keyframe>,
    /// Mean diagonal of the mass matrix at `qpos0`; scales the solver's tolerance.
    pub mean_inertia: f64,
    /// What was read and has no effect on the dynamics, as `element name`.
    pub skipped: Vec<String>,
}

impl Model {
    /// Velocities.
    pub fn nv(&self) -> usize {
        self.dofs.len()
    }

    /// Controls.
    pub fn nu(&self) -> usize {
        self.actuators.len()
    }

    /// Activations: actuators that have one, in their order.
    pub fn na(&self) -> usize {
        self.actuators.iter().filter(|a| a.dynamics != Dynamics::None).count()
    }

    /// Bodies whose pose is an input.
    pub fn nmocap(&self) -> usize {
        self.bodies.iter().filter(|b| b.mocap.is_some()).count()
    }

    /// `[nmocap · 7]` where mocap bodies are in the file: position and orientation of each.
    pub fn mocap0(&self) -> impl Iterator<Item = f64> {
        self.bodies.iter().filter(|b| b.mocap.is_some()).flat_map(|b| b.pos.into_iter().chain(b.quat))
    }

    /// Values of all sensors.
    pub fn nsensordata(&self) -> usize {
        self.sensors.iter().map(|s| s.kind.dim()).sum()
    }

    /// The body of that name.
    pub fn body(&self, name: &str) -> Option<Id> {
        self.bodies.iter().position(|b| b.name == name)
    }

    /// The joint of that name.
    pub fn joint(&self, name: &str) -> Option<&Joint> {
        self.joints.iter().find(|j| j.name == name)
    }

    /// The geom of that name.
    pub fn geom(&self, name: &str) -> Option<Id> {
        self.geoms.iter().position(|g| g.name == name)
    }

    /// The site of that name.
    pub fn site(&self, name: &str) -> Option<Id> {
        self.sites.iter().position(|s| s.name == name)
    }
}
