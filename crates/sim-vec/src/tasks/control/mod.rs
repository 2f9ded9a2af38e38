//! Tasks of the DeepMind Control Suite (Tassa et al. 2018), number for number those of dm_control 1.0.50.

use std::sync::Arc;

use crate::SimError;
use crate::mjcf;
use crate::model::{Id, Model, Shape};
use crate::models;
use crate::reward::{Falloff, tolerance};
use crate::tasks::Task;
use crate::view::View;

mod acrobot;
mod ball_in_cup;
mod cartpole;
mod cheetah;
mod finger;
mod fish;
mod hopper;
mod humanoid;
mod pendulum;
mod randomize;
mod reacher;
mod walker;

pub use acrobot::Acrobot;
pub use ball_in_cup::BallInCup;
pub use cartpole::Cartpole;
pub use cheetah::Cheetah;
pub use finger::Finger;
pub use fish::Fish;
pub use hopper::Hopper;
pub use humanoid::Humanoid;
pub use pendulum::Pendulum;
pub use reacher::Reacher;
pub use walker::Walker;

/// Control steps in an episode of every task of the suite.
pub const EPISODE_STEPS: usize = 1000;

/// Builds a task of the suite; `None` if this file does not make it.
pub fn task(name: &str) -> Option<Result<Arc<dyn Task>, SimError>> {
    fn boxed<T: Task + 'static>(task: Result<T, SimError>) -> Option<Result<Arc<dyn Task>, SimError>> {
        Some(task.map(|t| Arc::new(t) as Arc<dyn Task>))
    }
    match name {
        "acrobot-swingup" => boxed(Acrobot::swingup(false)),
        "acrobot-swingup-sparse" => boxed(Acrobot::swingup(true)),
        "ball-in-cup-catch" => boxed(BallInCup::catch()),
        "finger-spin" => boxed(Finger::spin()),
        "finger-turn-easy" => boxed(Finger::turn_easy()),
        "finger-turn-hard" => boxed(Finger::turn_hard()),
        "fish-swim" => boxed(Fish::swim()),
        "reacher-easy" => boxed(Reacher::easy()),
        "reacher-hard" => boxed(Reacher::hard()),
        "pendulum-swingup" => boxed(Pendulum::swingup()),
        "cartpole-balance" => boxed(Cartpole::balance(false)),
        "cartpole-balance-sparse" => boxed(Cartpole::balance(true)),
        "cartpole-swingup" => boxed(Cartpole::swingup(false)),
        "cartpole-swingup-sparse" => boxed(Cartpole::swingup(true)),
        "cheetah-run" => boxed(Cheetah::run()),
        "hopper-stand" => boxed(Hopper::stand()),
        "hopper-hop" => boxed(Hopper::hop()),
        "walker-stand" => boxed(Walker::stand()),
        "walker-walk" => boxed(Walker::walk()),
        "walker-run" => boxed(Walker::run()),
        "humanoid-stand" => boxed(Humanoid::stand()),
        "humanoid-walk" => boxed(Humanoid::walk()),
        "humanoid-run" => boxed(Humanoid::run()),
        _ => None,
    }
}

/// One of the models that ship with the crate.
fn model(name: &str) -> Result<Arc<Model>, SimError> {
    let xml = models::builtin(name).expect("tasks name models that ship");
    Ok(Arc::new(mjcf::parse(xml, &format!("{name}.xml"))?))
}

/// Between 0.8 and 1: `(4 + mean over actuators of max(0, 1 − u²)) / 5`.
fn little_control(view: &View) -> f64 {
    let falloff = Falloff::Quadratic { margin: 1.0, value: 0.0 };
    let sum: f64 = view.ctrl.iter().map(|&u| tolerance(u, [0.0, 0.0], falloff)).sum();
    (4.0 + sum / view.ctrl.len() as f64) / 5.0
}

/// Euclidean distance.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

/// Radius of a sphere or capsule of one of the models that ship.
fn radius(model: &Model, geom: Id) -> f64 {
    match model.geoms[geom].shape {
        Shape::Sphere { radius } | Shape::Capsule { radius, .. } => radius,
        other => unreachable!("{other:?} has no radius"),
    }
}
