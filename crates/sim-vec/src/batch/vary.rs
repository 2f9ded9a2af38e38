//! Lanes that differ: factors on the model's numbers, drawn anew for every episode.

use super::Record;
use crate::SimError;
use crate::engine::State;
use crate::lane::Lane;
use crate::model::Model;
use crate::rng::Rng;

/// Intervals of the factors on the model's numbers. An episode's factors are drawn uniformly at its start and stay.
///
/// What was derived from the numbers at loading stays that of the model, as in MuJoCo when a compiled model is changed:
/// see [`crate::engine::Vary`].
///
/// ```
/// use sim_vec::{Ranges, SimVec};
/// let env = SimVec::builder("walker-walk").lanes(16).vary(Ranges { mass: [0.8, 1.2], ..Ranges::NONE }).build()?;
/// # Ok::<(), sim_vec::SimError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// On mass and moments of inertia, for each body.
    pub mass: [f64; 2],
    /// On damping, for each degree of freedom.
    pub damping: [f64; 2],
    /// On force, for each actuator.
    pub strength: [f64; 2],
    /// On the friction coefficients of all contacts.
    pub friction: [f64; 2],
    /// On gravity.
    pub gravity: [f64; 2],
}

/// Added to an episode's number to get the random stream of its factors.
const FACTOR_STREAM: u64 = 1 << 62;

impl Ranges {
    /// All lanes are as the model says.
    pub const NONE: Ranges =
        Ranges { mass: [1.0; 2], damping: [1.0; 2], strength: [1.0; 2], friction: [1.0; 2], gravity: [1.0; 2] };

    /// Errors: [`SimError::Range`] names the interval that is empty, not finite, or reaches what has no meaning.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let all = [
            ("mass", self.mass, f64::MIN_POSITIVE),
            ("damping", self.damping, 0.0),
            ("strength", self.strength, 0.0),
            ("friction", self.friction, f64::MIN_POSITIVE),
            ("gravity", self.gravity, f64::MIN),
        ];
        for (what, [low, high], least) in all {
            if !(low.is_finite() && high.is_finite() && low <= high && low >= least) {
                return Err(SimError::Range { what, low, high });
            }
        }
        Ok(())
    }

    /// Draws the factors of an episode, in the order of [`State::vary`].
    pub(super) fn draw(&self, model: &Model, record: Record, mut put: impl FnMut(usize, f64)) {
        let mut rng = Rng::episode(record.seed, record.episode.wrapping_add(FACTOR_STREAM));
        let groups = [
            (model.bodies.len(), self.mass),
            (model.nv(), self.damping),
            (model.nu(), self.strength),
            (1, self.friction),
            (1, self.gravity),
        ];
        let mut at = 0;
        for (n, [low, high]) in groups {
            for _ in 0..n {
                put(at, rng.uniform(low, high));
                at += 1;
            }
        }
    }
}

/// Gives a state room for factors.
pub(super) fn varied<L: Lane>(mut state: State<L>, model: &Model, ranges: Option<Ranges>) -> State<L> {
    if ranges.is_some() {
        state.vary = vec![L::one(); State::<L>::factors(model)];
    }
    state
}
