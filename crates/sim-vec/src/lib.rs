//! Articulated rigid-body simulation in SIMD lanes.
pub mod model;
pub mod view;
