//! 256-bit lanes: AVX2 and FMA.
use super::{Lane, Mask, operators, vector_methods};
use crate::dispatch::Isa;
use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr, Not};

/// 8 environments in f32.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F32x8(__m256);

/// 4 environments in f64.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F64x4(__m256d);

operators!(F32x8, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_div_ps, _mm256_setzero_ps);
operators!(F64x4, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_div_pd, _mm256_setzero_pd);

/// Vector masks: all bits of an element are set where true.
macro_rules! vector_mask {
    ($(#[$doc:meta])* $m:ident, $v:ty, $and:path, $or:path, $xor:path, $movemask:path, $zero:path, $cast:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(transparent)]
        pub struct $m($v);
        impl BitAnd for $m {
            type Output = $m;
            #[inline(always)]
            fn bitand(self, o: $m) -> $m {
                // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
                $m(unsafe { $and(self.0, o.0) })
            }
        }
        impl BitOr for $m {
            type Output = $m;
            #[inline(always)]
            fn bitor(self, o: $m) -> $m {
                // SAFETY: as for `bitand`.
                $m(unsafe { $or(self.0, o.0) })
            }
        }
        impl Not for $m {
            type Output = $m;
            #[inline(always)]
            fn not(self) -> $m {
                // SAFETY: as for `bitand`.
                $m(unsafe { $xor(self.0, $cast(_mm256_set1_epi32(-1))) })
            }
        }
        impl Mask for $m {
            #[inline(always)]
            fn none() -> Self {
                // SAFETY: as for `bitand`.
                $m(unsafe { $zero() })
            }
            #[inline(always)]
            fn any(self) -> bool {
                self.bits() != 0
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                // SAFETY: as for `bitand`.
                unsafe { $movemask(self.0) as u32 }
            }
        }
    };
}
vector_mask!(
    /// Mask of [`F32x8`].
    M32x8, __m256, _mm256_and_ps, _mm256_or_ps, _mm256_xor_ps, _mm256_movemask_ps, _mm256_setzero_ps,
    _mm256_castsi256_ps
);
vector_mask!(
    /// Mask of [`F64x4`].
    M64x4, __m256d, _mm256_and_pd, _mm256_or_pd, _mm256_xor_pd, _mm256_movemask_pd, _mm256_setzero_pd,
    _mm256_castsi256_pd
);

impl Lane for F32x8 {
    const SINGLE: bool = true;
    const ISA: Isa = Isa::Avx2;
    type M = M32x8;
    vector_methods!(
        __m256,
        f32,
        8,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_fnmadd_ps,
        _mm256_sqrt_ps,
        _mm256_max_ps,
        _mm256_min_ps,
        "avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    );
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
        Self(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_round_ps::<8>(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_floor_ps(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> M32x8 {
        // SAFETY: as for `abs`.
        M32x8(unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> M32x8 {
        // SAFETY: as for `abs`.
        M32x8(unsafe { _mm256_cmp_ps::<_CMP_LE_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn sel(m: M32x8, a: Self, b: Self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_blendv_ps(b.0, a.0, m.0) })
    }
}

impl Lane for F64x4 {
    const SINGLE: bool = false;
    const ISA: Isa = Isa::Avx2;
    type M = M64x4;
    vector_methods!(
        __m256d,
        f64,
        4,
        _mm256_set1_pd,
        _mm256_fmadd_pd,
        _mm256_fnmadd_pd,
        _mm256_sqrt_pd,
        _mm256_max_pd,
        _mm256_min_pd,
        "avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    );
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
        Self(unsafe { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_round_pd::<8>(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_floor_pd(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> M64x4 {
        // SAFETY: as for `abs`.
        M64x4(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> M64x4 {
        // SAFETY: as for `abs`.
        M64x4(unsafe { _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn sel(m: M64x4, a: Self, b: Self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm256_blendv_pd(b.0, a.0, m.0) })
    }
}
