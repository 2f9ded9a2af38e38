//! Why an engine cannot be built or asked.
use crate::dispatch::Isa;

/// A model or request the engine cannot serve.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The instruction set asked for is not on this machine.
    #[error("this machine has no {isa} instructions; unset PHALANX_ISA or choose portable")]
    Instructions {
        /// What was asked for.
        isa: Isa,
    },
    /// `PHALANX_ISA` holds something else.
    #[error("unknown instruction set `{word}`; use avx512, avx2 or portable")]
    UnknownIsa {
        /// What was found.
        word: String,
    },
    /// The mass matrix is kept in 3×3 blocks whose pattern is a 64-bit word per row.
    #[error("model `{model}` needs {blocks} blocks of three degrees of freedom, more than {limit}; split the model")]
    TooManyBlocks {
        /// Model's name.
        model: String,
        /// Blocks it would need.
        blocks: usize,
        /// The most there can be.
        limit: usize,
    },
    /// Springs act on slide and hinge joints only.
    #[error("joint `{joint}` is free and has stiffness; remove the stiffness")]
    FreeSpring {
        /// Joint's name.
        joint: String,
    },
    /// Motors drive slide and hinge joints only, and limits bound these only.
    #[error("{what} acts on free joint `{joint}`; only slide and hinge joints are supported")]
    FreeJoint {
        /// Actuator or limit.
        what: String,
        /// Joint's name.
        joint: String,
    },
    /// What velocity-implicit integration would have to differentiate and does not.
    #[error("integrator implicitfast with {what} is not simulated; write integrator=\"Euler\"")]
    ImplicitFast {
        /// What stands in the way.
        what: String,
    },
    /// MuJoCo counts the tension of spatial tendons as an outside force on bodies in these sensors.
    #[error(
        "sensor `{sensor}` reads forces between bodies next to spatial tendons, whose tension it does not know; remove it"
    )]
    Tension {
        /// Sensor's name.
        sensor: String,
    },
    /// Contact dimensions other than 1, 3, 4 and 6.
    #[error("contact of geoms `{first}` and `{second}` has condim {condim}; write 1, 3, 4 or 6")]
    Condim {
        /// First geom.
        first: String,
        /// Second geom.
        second: String,
        /// The number asked for.
        condim: usize,
    },
    /// Shapes without a collision function.
    #[error(
        "geoms `{first}` and `{second}` may collide but their shapes cannot; use at most one plane, and primitive shapes in MuJoCo's order"
    )]
    Shapes {
        /// First geom.
        first: String,
        /// Second geom.
        second: String,
    },
    /// Indices or lengths that contradict one another.
    #[error("model `{model}` is inconsistent: {what}")]
    Inconsistent {
        /// Model's name.
        model: String,
        /// What does not fit.
        what: String,
    },
    /// A vector of the wrong length was given.
    #[error("{what} has {got} numbers, the model needs {expected}")]
    Length {
        /// Which vector.
        what: &'static str,
        /// Needed.
        expected: usize,
        /// Given.
        got: usize,
    },
}
