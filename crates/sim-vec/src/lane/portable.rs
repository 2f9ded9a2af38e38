//! One environment per value: the fallback for every machine, and the plainest form of the kernels.
use super::{Kernel, Lane, Mask, operators};
use crate::dispatch::Isa;
use std::ops;

/// One environment in f32.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F32x1(f32);

/// One environment in f64.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F64x1(f64);

operators!(F32x1, ops::Add::add, ops::Sub::sub, ops::Mul::mul, ops::Div::div, f32::default);
operators!(F64x1, ops::Add::add, ops::Sub::sub, ops::Mul::mul, ops::Div::div, f64::default);

impl Mask for bool {
    #[inline(always)]
    fn none() -> Self {
        false
    }
    #[inline(always)]
    fn any(self) -> bool {
        self
    }
    #[inline(always)]
    fn bits(self) -> u32 {
        self as u32
    }
}

/// `mul_add` is a library call where the target has no such instruction.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

macro_rules! scalar_lane {
    ($t:ident, $s:ty, $single:literal) => {
        impl Lane for $t {
            const W: usize = 1;
            const SINGLE: bool = $single;
            const ISA: Isa = Isa::Portable;
            type M = bool;
            type S = $s;
            #[inline(always)]
            fn scalar(x: f64) -> $s {
                x as $s
            }
            #[inline(always)]
            fn up(x: $s) -> Self {
                Self(x)
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                Self(if FUSED { self.0.mul_add(b.0, c.0) } else { self.0 * b.0 + c.0 })
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                Self(if FUSED { (-self.0).mul_add(b.0, c.0) } else { c.0 - self.0 * b.0 })
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(self.0.sqrt())
            }
            #[inline(always)]
            fn max(self, o: Self) -> Self {
                Self(if self.0 > o.0 { self.0 } else { o.0 })
            }
            #[inline(always)]
            fn min(self, o: Self) -> Self {
                Self(if self.0 < o.0 { self.0 } else { o.0 })
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self(self.0.abs())
            }
            #[inline(always)]
            fn round(self) -> Self {
                Self(self.0.round_ties_even())
            }
            #[inline(always)]
            fn floor(self) -> Self {
                Self(self.0.floor())
            }
            #[inline(always)]
            fn lt(self, o: Self) -> bool {
                self.0 < o.0
            }
            #[inline(always)]
            fn le(self, o: Self) -> bool {
                self.0 <= o.0
            }
            #[inline(always)]
            fn sel(m: bool, a: Self, b: Self) -> Self {
                if m { a } else { b }
            }
            #[inline(always)]
            fn get(&self, _: usize) -> f64 {
                self.0 as f64
            }
            #[inline(always)]
            fn set(&mut self, _: usize, value: f64) {
                self.0 = value as $s;
            }
            #[inline(always)]
            fn enter<K: Kernel>(k: K) -> K::Out {
                #[inline(never)]
                fn inner<K: Kernel>(k: K) -> K::Out {
                    k.run()
                }
                inner(k)
            }
        }
    };
}
scalar_lane!(F32x1, f32, true);
scalar_lane!(F64x1, f64, false);
