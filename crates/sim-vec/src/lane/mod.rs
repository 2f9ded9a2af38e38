//! Lanes: one value holds the same quantity of `W` environments, one per SIMD element.
//!
//! All kernels of the engine are generic over [`Lane`]. Each implementation wraps one vector register and its
//! intrinsics; plain arrays left to the optimiser were measured 5 to 14 times slower.
//!
//! The instruction set is chosen at run time in one binary. Everything a kernel calls is `#[inline(always)]`, and
//! [`Lane::enter`] is the one function per type that carries `#[target_feature]`: code inlined into it may use the
//! instruction set. Closures, iterator adaptors and anything else that is not guaranteed to be inlined must not
//! touch lane values inside kernels, or each operation becomes a function call.
//!
//! Arithmetic on a lane type is only defined on machines that have its instruction set; [`Lane::available`] tells,
//! and [`crate::engine::Engine::new`] refuses lanes that are not.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod trig;

use crate::dispatch::Isa;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, Mul, MulAssign, Neg, Not, Sub, SubAssign};

#[cfg(target_arch = "x86_64")]
pub use avx2::{F32x8, F64x4};
#[cfg(target_arch = "x86_64")]
pub use avx512::{F32x16, F64x8};
pub use portable::{F32x1, F64x1};
pub(crate) use trig::pow_slow;
pub use trig::sincos;

/// One truth value per lane.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// False everywhere.
    fn none() -> Self;
    /// True in some lane.
    fn any(self) -> bool;
    /// The lanes as bits, lane 0 lowest.
    fn bits(self) -> u32;
}

/// Work to be compiled for a lane type's instruction set, see [`Lane::enter`].
pub trait Kernel {
    /// What it returns.
    type Out;
    /// The work. Implementations must be `#[inline(always)]`.
    fn run(self) -> Self::Out;
}

mod sealed {
    /// Only this module's types are lanes: kernels rely on their exact semantics.
    pub trait Sealed {}
}
use sealed::Sealed;

/// `W` numbers that are added, multiplied and compared together, element by element.
pub trait Lane:
    Sealed
    + Copy
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// Number of lanes.
    const W: usize;
    /// Elements are f32 (otherwise f64).
    const SINGLE: bool;
    /// The instruction set the operations are made of.
    const ISA: Isa;
    /// Comparison results.
    type M: Mask;
    /// One element.
    type S: Copy + Debug + Default + Send + Sync + 'static;

    /// Rounds to the element type.
    fn scalar(x: f64) -> Self::S;
    /// The same element in all lanes; a broadcast load is free on AVX-512.
    fn up(x: Self::S) -> Self;
    /// The same number in all lanes.
    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self::up(Self::scalar(x))
    }
    /// Zero in all lanes.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    /// One in all lanes.
    #[inline(always)]
    fn one() -> Self {
        Self::splat(1.0)
    }
    /// `self·b + c`, rounded once where the instruction set has it.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `c − self·b`, rounded once where the instruction set has it.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The larger; `o` where either is NaN.
    fn max(self, o: Self) -> Self;
    /// The smaller; `o` where either is NaN.
    fn min(self, o: Self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// `self < o`; false for NaN.
    fn lt(self, o: Self) -> Self::M;
    /// `self ≤ o`; false for NaN.
    fn le(self, o: Self) -> Self::M;
    /// `a` where `m`, else `b`. Never mixes lanes, so a NaN in the side not chosen vanishes.
    fn sel(m: Self::M, a: Self, b: Self) -> Self;
    /// `1/self` for finite non-zero values, within one unit in the last place.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::one() / self
    }
    /// One lane's value.
    fn get(&self, lane: usize) -> f64;
    /// Replaces one lane's value, rounded to the element type.
    fn set(&mut self, lane: usize, value: f64);
    /// Runs `k` compiled with this type's instruction set.
    fn enter<K: Kernel>(k: K) -> K::Out;
    /// This machine has the instruction set.
    fn available() -> bool {
        Self::ISA.available()
    }
}

/// Lifts each element of an array into all lanes.
#[inline(always)]
pub(crate) fn up3<L: Lane>(a: &[L::S; 3]) -> [L; 3] {
    [L::up(a[0]), L::up(a[1]), L::up(a[2])]
}

/// Lifts each element of an array into all lanes.
#[inline(always)]
pub(crate) fn up4<L: Lane>(a: &[L::S; 4]) -> [L; 4] {
    [L::up(a[0]), L::up(a[1]), L::up(a[2]), L::up(a[3])]
}

/// Implements the operator traits by way of a type's own `fn`s.
macro_rules! operators {
    ($t:ident, $add:expr, $sub:expr, $mul:expr, $div:expr, $zero:expr) => {
        impl std::ops::Add for $t {
            type Output = $t;
            #[inline(always)]
            fn add(self, o: $t) -> $t {
                // SAFETY: lane arithmetic runs only where the instruction set exists (module doc of `lane`).
                #[allow(unused_unsafe)]
                $t(unsafe { $add(self.0, o.0) })
            }
        }
        impl std::ops::Sub for $t {
            type Output = $t;
            #[inline(always)]
            fn sub(self, o: $t) -> $t {
                // SAFETY: as for `add`.
                #[allow(unused_unsafe)]
                $t(unsafe { $sub(self.0, o.0) })
            }
        }
        impl std::ops::Mul for $t {
            type Output = $t;
            #[inline(always)]
            fn mul(self, o: $t) -> $t {
                // SAFETY: as for `add`.
                #[allow(unused_unsafe)]
                $t(unsafe { $mul(self.0, o.0) })
            }
        }
        impl std::ops::Div for $t {
            type Output = $t;
            #[inline(always)]
            fn div(self, o: $t) -> $t {
                // SAFETY: as for `add`.
                #[allow(unused_unsafe)]
                $t(unsafe { $div(self.0, o.0) })
            }
        }
        impl std::ops::Neg for $t {
            type Output = $t;
            #[inline(always)]
            fn neg(self) -> $t {
                // SAFETY: as for `add`.
                #[allow(unused_unsafe)]
                $t(unsafe { $sub($zero(), self.0) })
            }
        }
        impl std::ops::AddAssign for $t {
            #[inline(always)]
            fn add_assign(&mut self, o: $t) {
                *self = *self + o;
            }
        }
        impl std::ops::SubAssign for $t {
            #[inline(always)]
            fn sub_assign(&mut self, o: $t) {
                *self = *self - o;
            }
        }
        impl std::ops::MulAssign for $t {
            #[inline(always)]
            fn mul_assign(&mut self, o: $t) {
                *self = *self * o;
            }
        }
        impl $crate::lane::Sealed for $t {}
    };
}
use operators;

/// The [`Lane`] methods that are one intrinsic each, for vector types.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_methods {
    ($v:ty, $s:ty, $w:literal, $set1:path, $fma:path, $fnma:path, $sqrt:path, $max:path, $min:path, $features:literal) => {
        const W: usize = $w;
        type S = $s;
        #[inline(always)]
        fn scalar(x: f64) -> $s {
            x as $s
        }
        #[inline(always)]
        fn up(x: $s) -> Self {
            // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
            Self(unsafe { $set1(x) })
        }
        #[inline(always)]
        fn fma(self, b: Self, c: Self) -> Self {
            // SAFETY: as for `up`.
            Self(unsafe { $fma(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn fnma(self, b: Self, c: Self) -> Self {
            // SAFETY: as for `up`.
            Self(unsafe { $fnma(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: as for `up`.
            Self(unsafe { $sqrt(self.0) })
        }
        #[inline(always)]
        fn max(self, o: Self) -> Self {
            // SAFETY: as for `up`.
            Self(unsafe { $max(self.0, o.0) })
        }
        #[inline(always)]
        fn min(self, o: Self) -> Self {
            // SAFETY: as for `up`.
            Self(unsafe { $min(self.0, o.0) })
        }
        /// PERF: through a pointer, so that only the element is read and not the register spilt first.
        #[inline(always)]
        fn get(&self, lane: usize) -> f64 {
            assert!(lane < $w);
            // SAFETY: the register type is laid out like an array of $w elements, and `lane` is one of them.
            unsafe { *(&raw const self.0).cast::<$s>().add(lane) as f64 }
        }
        #[inline(always)]
        fn set(&mut self, lane: usize, value: f64) {
            assert!(lane < $w);
            // SAFETY: as for `get`; any bits are a valid register.
            unsafe { *(&raw mut self.0).cast::<$s>().add(lane) = value as $s }
        }
        #[inline(always)]
        fn enter<K: $crate::lane::Kernel>(k: K) -> K::Out {
            #[target_feature(enable = $features)]
            fn inner<K: $crate::lane::Kernel>(k: K) -> K::Out {
                k.run()
            }
            // SAFETY: `Engine::new` has checked that the machine has these features.
            unsafe { inner(k) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
use vector_methods;
