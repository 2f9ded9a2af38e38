//! Articulated rigid-body simulation in SIMD lanes.
pub mod model;
pub mod view;

// the engine
mod collide;
mod constraint;
pub mod dispatch;
pub mod engine;
pub mod engine_error;
pub mod inspect;
mod integrate;
pub mod lane;
mod linalg;
mod math;
pub mod physics;
mod plan;
mod sensor;
mod smooth;
mod solver;
mod state;

pub mod reward;
pub mod rng;
