//! A finger that turns a body on a hinge.

use std::f64::consts::PI;
use std::sync::Arc;

use super::{EPISODE_STEPS, distance, model, randomize};
use crate::SimError;
use crate::model::{Id, Model, Shape};
use crate::rng::Rng;
use crate::tasks::{Task, body, geom, joint, pack, sensor, site};
use crate::view::View;

/// Hinge velocity that counts as spinning, rad/s; the finger flicks the body downwards.
const SPIN_VELOCITY: f64 = -15.0;
/// Hinge damping while spinning, N·m·s/rad.
const SPIN_DAMPING: f64 = 0.03;
/// Radii of the turning tasks' targets, m.
const LARGE: f64 = 0.07;
const SMALL: f64 = 0.03;

/// Spin the body fast, or turn its tip into a target.
///
/// Observation, 9: finger angles (2), the tip of the body seen from its hinge (x, z), velocities (3), `ln(1 + force)` of
/// the finger's two sides. The turning tasks add the target seen from the hinge (x, z) and the tip's distance from the
/// target's surface, negative inside. Reward: 1 while spinning or inside, else 0.
/// Start: joints uniform (within their limits if they have any), drawn again until nothing touches.
///
/// Goal of the turning tasks, 1: the target's angle from the vertical, uniform. The target is on the circle that the
/// body's tip describes:
///
/// ```text
/// hinge + r (sin angle, cos angle) in the plane (x, z)
/// ```
pub struct Finger {
    name: &'static str,
    model: Arc<Model>,
    spinner: Id,
    tip: Id,
    touch: [Id; 2],
    hinge: Id,
    /// Distance of the target from the hinge.
    arm: f64,
    /// Radius of the target; `None` spins.
    target: Option<f64>,
}

impl Finger {
    /// `finger-spin`. Errors if the model does not carry the task.
    pub fn spin() -> Result<Self, SimError> {
        Self::new("finger-spin", None)
    }

    /// `finger-turn-easy`, a target of 7 cm. Errors if the model does not carry the task.
    pub fn turn_easy() -> Result<Self, SimError> {
        Self::new("finger-turn-easy", Some(LARGE))
    }

    /// `finger-turn-hard`, a target of 3 cm. Errors if the model does not carry the task.
    pub fn turn_hard() -> Result<Self, SimError> {
        Self::new("finger-turn-hard", Some(SMALL))
    }

    fn new(name: &'static str, target: Option<f64>) -> Result<Self, SimError> {
        let mut model = model("finger")?;
        let hinge = joint(&model, "hinge")?;
        debug_assert_eq!(hinge.pos, [0.0; 3], "what is seen from the hinge is seen from the spinner's origin");
        let hinge = hinge.dof;
        if target.is_none() {
            Arc::make_mut(&mut model).dofs[hinge].damping = SPIN_DAMPING;
        }
        let cap = geom(&model, "cap1")?;
        let Shape::Capsule { radius, half } = model.geoms[cap].shape else { unreachable!("the cap is a capsule") };
        Ok(Finger {
            name,
            spinner: body(&model, "spinner")?,
            tip: site(&model, "tip")?,
            touch: [sensor(&model, "touchtop")?, sensor(&model, "touchbottom")?],
            hinge,
            arm: radius + half,
            model,
            target,
        })
    }

    /// The body's tip seen from its hinge, x and z.
    fn tip(&self, view: &View) -> [f64; 2] {
        let (tip, origin) = (&self.model.sites[self.tip], &view.xpos[self.spinner]);
        let at = view.point(tip.body, tip.pos);
        [at[0] - origin[0], at[2] - origin[2]]
    }

    /// The target seen from the hinge, x and z.
    fn goal(&self, view: &View) -> [f64; 2] {
        let (sin, cos) = view.goal[0].sin_cos();
        [self.arm * sin, self.arm * cos]
    }
}

impl Task for Finger {
    fn name(&self) -> &str {
        self.name
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        2
    }
    fn episode_steps(&self) -> usize {
        EPISODE_STEPS
    }
    fn obs_dim(&self) -> usize {
        if self.target.is_some() { 12 } else { 9 }
    }
    fn goal_dim(&self) -> usize {
        usize::from(self.target.is_some())
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], goal: &mut [f64]) {
        goal.fill_with(|| rng.uniform(-PI, PI));
        randomize::joints(&self.model, rng, qpos);
    }
    fn accepts(&self, contacts: usize) -> bool {
        contacts == 0
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let (tip, touch) = (self.tip(view), self.touch.map(|t| view.sensor[t].ln_1p()));
        let common: [&[f64]; 4] = [&view.qpos[..2], &tip, &view.qvel, &touch];
        let Some(radius) = self.target else { return pack(obs, &common) };
        let (own, extra) = obs.split_at_mut(9);
        pack(own, &common);
        let goal = self.goal(view);
        pack(extra, &[&goal, &[distance(&goal, &tip) - radius]]);
    }
    fn reward(&self, view: &View) -> f64 {
        let done = match self.target {
            Some(radius) => distance(&self.goal(view), &self.tip(view)) - radius <= 0.0,
            None => view.qvel[self.hinge] <= SPIN_VELOCITY,
        };
        f64::from(u8::from(done))
    }
}
