//! Articulated rigid-body simulation of thousands of environments in SIMD lanes: MJCF in, MuJoCo's numbers out.
//!
//! ```
//! use sim_vec::{SimVec, VecEnv};
//!
//! let mut env = SimVec::builder("cheetah-run").lanes(32).build()?;
//! let mut now = env.buffers(); // observations, rewards, statuses
//! let seeds: Vec<u64> = (0..32).collect();
//! env.reset(&seeds, &mut now.obs);
//! for _ in 0..10 {
//!     env.step(&[0.5; 32 * 6], now.out()); // 6 actions a lane, between -1 and 1
//! }
//! assert!(now.reward.iter().all(|r| (0.0..=1.0).contains(r)));
//! # Ok::<(), sim_vec::SimError>(())
//! ```
//!
//! A robot of your own is an MJCF file and a few closures: [`tasks::custom`], `examples/own_robot.rs`. Control that
//! plans with the model simulates thousands of futures at once: [`rollout`], `examples/mpc.rs`.
//!
//! In reading order. Environments: [`SimVec`], [`SimBuilder`], [`LaneState`], [`batch`], [`threads`]. Tasks:
//! [`registry`], [`tasks`], [`reward`], [`observe`]. Planning: [`rollout`]. Mechanisms: [`mjcf`], [`model`],
//! [`models`]. The engine: [`engine`], [`lane`], [`dispatch`], [`physics`] for single states, [`inspect`] for its
//! stages, [`view`] for what a task sees.

pub mod batch;
mod builder;
mod collide;
mod constraint;
pub mod dispatch;
mod drive;
pub mod engine;
pub mod engine_error;
mod error;
mod fluid;
pub mod inspect;
mod integrate;
pub mod lane;
mod lane_state;
mod linalg;
mod load;
mod math;
pub mod mjcf;
pub mod model;
pub mod models;
pub mod observe;
pub mod physics;
mod plan;
mod ray;
pub mod registry;
pub mod reward;
pub mod rng;
pub mod rollout;
mod sensor;
mod sim;
mod smooth;
mod solid;
mod solver;
mod state;
pub mod tasks;
mod tendon;
pub mod threads;
pub mod view;

pub use batch::Ranges;
pub use builder::SimBuilder;
pub use dispatch::{Isa, Precision};
pub use error::SimError;
pub use lane_state::{Field, LaneState};
pub use rollouts::{EnvSpec, SnapshotError, Status, StepBuffers, StepOut, VecEnv};
pub use sim::{SimOptions, SimVec, sim_vec};
