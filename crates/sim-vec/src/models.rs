//! The models that ship with the crate, as MJCF text. Their physical numbers are those of the DeepMind Control Suite.

/// Names that [`builtin`] knows.
pub const BUILTIN: [&str; 6] = ["pendulum", "cartpole", "cheetah", "hopper", "walker", "humanoid"];

/// The MJCF of a model that ships with the crate; `None` for names not in [`BUILTIN`].
pub fn builtin(name: &str) -> Option<&'static str> {
    Some(match name {
        "pendulum" => include_str!("../models/pendulum.xml"),
        "cartpole" => include_str!("../models/cartpole.xml"),
        "cheetah" => include_str!("../models/cheetah.xml"),
        "hopper" => include_str!("../models/hopper.xml"),
        "walker" => include_str!("../models/walker.xml"),
        "humanoid" => include_str!("../models/humanoid.xml"),
        _ => return None,
    })
}
