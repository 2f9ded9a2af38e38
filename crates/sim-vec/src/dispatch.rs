//! Which instruction set and precision to run with, chosen at run time.
use crate::engine_error::EngineError;
use crate::lane::Lane;
use std::fmt;

/// Element type of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Twice as many lanes; about 1e-5 from MuJoCo.
    F32,
    /// The parity mode: agrees with MuJoCo to rounding.
    F64,
}

/// Instruction sets the engine has lanes for, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit: 16 lanes of f32 or 8 of f64. Needs AVX-512 F, DQ, BW, VL.
    Avx512,
    /// 256-bit: 8 lanes of f32 or 4 of f64. Needs AVX2 and FMA.
    Avx2,
    /// One lane, any machine.
    Portable,
}

/// Environment variable that overrides the choice: `avx512`, `avx2` or `portable`.
pub const ISA_VARIABLE: &str = "PHALANX_ISA";

impl Isa {
    /// All, widest first.
    pub const ALL: [Isa; 3] = [Isa::Avx512, Isa::Avx2, Isa::Portable];

    /// This machine can run it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") && Isa::Avx2.available()
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The widest this machine has, or what `PHALANX_ISA` names if that can run here.
    pub fn detect() -> Isa {
        Isa::choose(None).unwrap_or_else(|_| Isa::widest())
    }

    /// `wanted`, else what `PHALANX_ISA` names, else the widest this machine has.
    ///
    /// Errors: [`EngineError::UnknownIsa`] if the variable holds another word, [`EngineError::Instructions`] if the
    /// machine lacks the set asked for.
    pub fn choose(wanted: Option<Isa>) -> Result<Isa, EngineError> {
        let wanted = match (wanted, std::env::var(ISA_VARIABLE)) {
            (Some(isa), _) => Some(isa),
            (None, Ok(word)) if !word.is_empty() => Some(word.parse()?),
            _ => None,
        };
        match wanted {
            Some(isa) if isa.available() => Ok(isa),
            Some(isa) => Err(EngineError::Instructions { isa }),
            None => Ok(Isa::widest()),
        }
    }

    fn widest() -> Isa {
        Isa::ALL.into_iter().find(|i| i.available()).unwrap_or(Isa::Portable)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        })
    }
}

impl std::str::FromStr for Isa {
    type Err = EngineError;

    fn from_str(word: &str) -> Result<Isa, EngineError> {
        Isa::ALL
            .into_iter()
            .find(|i| i.to_string().eq_ignore_ascii_case(word.trim()))
            .ok_or_else(|| EngineError::UnknownIsa { word: word.to_string() })
    }
}

/// Code to be instantiated for the lane type picked at run time.
pub trait LaneVisitor {
    /// What it returns.
    type Out;
    /// Called with the lane type.
    fn visit<L: Lane>(self) -> Self::Out;
}

/// Calls `v` with the lane type of an instruction set and precision. An instruction set of another architecture
/// falls back to the portable one.
pub fn with_lane<V: LaneVisitor>(isa: Isa, precision: Precision, v: V) -> V::Out {
    use crate::lane::*;
    match (isa, precision) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Precision::F32) => v.visit::<F32x16>(),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Precision::F64) => v.visit::<F64x8>(),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Precision::F32) => v.visit::<F32x8>(),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Precision::F64) => v.visit::<F64x4>(),
        (_, Precision::F32) => v.visit::<F32x1>(),
        (_, Precision::F64) => v.visit::<F64x1>(),
    }
}
