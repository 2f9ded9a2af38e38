//! Sensors.

use super::Id;

/// What kind of frame a sensor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A body's centre of mass and principal axes.
    Inertial(Id),
    /// A body's own frame.
    Body(Id),
    /// A geom.
    Geom(Id),
    /// A site.
    Site(Id),
}

/// What a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SensorKind {
    /// Sum of normal contact forces inside the site. 1 value.
    Touch(Id),
    /// Linear acceleration of a site without gravity, in its frame. 3 values.
    Accelerometer(Id),
    /// Linear velocity of a site, in its frame. 3 values.
    Velocimeter(Id),
    /// Angular velocity of a site, in its frame. 3 values.
    Gyro(Id),
    /// Force between the site's body and its parent, in the site's frame. 3 values.
    Force(Id),
    /// Torque between the site's body and its parent about the site, in its frame. 3 values.
    Torque(Id),
    /// Distance along the site's z axis to the nearest geom of another body; −1 if there is none. 1 value.
    Rangefinder(Id),
    /// Position of a slide or hinge joint. 1 value.
    JointPos(Id),
    /// Velocity of a slide or hinge joint. 1 value.
    JointVel(Id),
    /// Length of a tendon. 1 value.
    TendonPos(Id),
    /// Rate of a tendon's length. 1 value.
    TendonVel(Id),
    /// Length of an actuator's transmission. 1 value.
    ActuatorPos(Id),
    /// Rate of an actuator's transmission. 1 value.
    ActuatorVel(Id),
    /// Force of an actuator. 1 value.
    ActuatorForce(Id),
    /// Position of a frame, seen from another one. 3 values.
    FramePos(Frame, Option<Frame>),
    /// Orientation of a frame, seen from another one. 4 values.
    FrameQuat(Frame, Option<Frame>),
    /// An axis of a frame (0, 1, 2), seen from another one. 3 values.
    FrameAxis(Frame, usize, Option<Frame>),
    /// Linear velocity of a frame, global. 3 values.
    FrameLinVel(Frame),
    /// Angular velocity of a frame, global. 3 values.
    FrameAngVel(Frame),
    /// Centre of mass of a body's subtree. 3 values.
    SubtreeCom(Id),
    /// Linear velocity of the body's subtree's centre of mass, global. 3 values.
    SubtreeLinVel(Id),
    /// Angular momentum of the body's subtree about its centre of mass, global. 3 values.
    SubtreeAngMom(Id),
}

impl SensorKind {
    /// How many values it has.
    pub fn dim(self) -> usize {
        use SensorKind::*;
        match self {
            Touch(_) | Rangefinder(_) | JointPos(_) | JointVel(_) | TendonPos(_) | TendonVel(_) | ActuatorPos(_)
            | ActuatorVel(_) | ActuatorForce(_) => 1,
            FrameQuat(..) => 4,
            _ => 3,
        }
    }
}

/// A sensor. Kinds that are not simulated are skipped at loading and listed in [`Model::skipped`](super::Model::skipped).
#[derive(Clone, Debug, PartialEq)]
pub struct Sensor {
    /// Name, or empty.
    pub name: String,
    /// Quantity.
    pub kind: SensorKind,
    /// Where its values begin among all sensors' values.
    pub start: usize,
}
