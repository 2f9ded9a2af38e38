//! Articulated rigid-body simulation of thousands of environments in SIMD lanes: MJCF in, MuJoCo's numbers out.
//!
//! ```
//! use rollouts::{Status, StepOut, VecEnv};
//! use sim_vec::{SimOptions, sim_vec};
//!
//! let mut env = sim_vec("cheetah-run", SimOptions::new(32))?;
//! let spec = env.spec();
//! let mut obs = vec![0.0; spec.lanes * spec.obs_dim];
//! let mut last_obs = obs.clone();
//! let (mut reward, mut status) = (vec![0.0; spec.lanes], vec![Status::Running; spec.lanes]);
//!
//! env.reset(&(0..spec.lanes as u64).collect::<Vec<_>>(), &mut obs);
//! let action = vec![0.5; spec.lanes * spec.act_dim];
//! env.step(&action, StepOut { obs: &mut obs, reward: &mut reward, status: &mut status, last_obs: &mut last_obs });
//! assert!(reward.iter().all(|r| (0.0..=1.0).contains(r)));
//! # Ok::<(), sim_vec::SimError>(())
//! ```
//!
//! In reading order. Tasks: [`registry`], [`tasks`], [`reward`], [`observe`]. Environments: [`sim_vec`], [`batch`].
//! Mechanisms: [`mjcf`], [`model`], [`models`]. The engine: [`engine`], [`lane`], [`dispatch`], [`physics`] for single
//! states, [`inspect`] for its stages, [`view`] for what a task sees.

pub mod batch;
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
mod sensor;
mod sim;
mod smooth;
mod solid;
mod solver;
mod state;
pub mod tasks;
mod tendon;
pub mod view;

pub use error::SimError;
pub use sim::{SimOptions, SimVec, sim_vec, sim_vec_of};
