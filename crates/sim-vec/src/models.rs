//! The models that ship with the crate, as MJCF text. Their physical numbers are those of the DeepMind Control Suite.

/// Names that [`builtin`] knows.
pub const BUILTIN: [&str; 11] = [
    "pendulum",
    "cartpole",
    "acrobot",
    "reacher",
    "ball_in_cup",
    "finger",
    "fish",
    "cheetah",
    "hopper",
    "walker",
    "humanoid",
];

/// The MJCF of a model that ships with the crate; `None` for names not in [`BUILTIN`].
pub fn builtin(name: &str) -> Option<&'static str> {
    Some(match name {
        "pendulum" => include_str!("../models/pendulum.xml"),
        "cartpole" => include_str!("../models/cartpole.xml"),
        "acrobot" => include_str!("../models/acrobot.xml"),
        "reacher" => include_str!("../models/reacher.xml"),
        "ball_in_cup" => include_str!("../models/ball_in_cup.xml"),
        "finger" => include_str!("../models/finger.xml"),
        "fish" => include_str!("../models/fish.xml"),
        "cheetah" => include_str!("../models/cheetah.xml"),
        "hopper" => include_str!("../models/hopper.xml"),
        "walker" => include_str!("../models/walker.xml"),
        "humanoid" => include_str!("../models/humanoid.xml"),
        _ => return None,
    })
}
