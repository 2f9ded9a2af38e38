//! 512-bit lanes: AVX-512 F, DQ, BW and VL.
use super::{Lane, Mask, operators, vector_methods};
use crate::dispatch::Isa;
use std::arch::x86_64::*;

/// 16 environments in f32.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F32x16(__m512);

/// 8 environments in f64.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F64x8(__m512d);

operators!(F32x16, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps, _mm512_setzero_ps);
operators!(F64x8, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd, _mm512_setzero_pd);

macro_rules! bit_mask {
    ($m:ident) => {
        impl Mask for $m {
            #[inline(always)]
            fn none() -> Self {
                0
            }
            #[inline(always)]
            fn any(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                self as u32
            }
        }
    };
}
bit_mask!(u16);
bit_mask!(u8);

impl Lane for F32x16 {
    const SINGLE: bool = true;
    const ISA: Isa = Isa::Avx512;
    type M = u16;
    vector_methods!(
        __m512,
        f32,
        16,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_fnmadd_ps,
        _mm512_sqrt_ps,
        _mm512_max_ps,
        _mm512_min_ps,
        "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    );
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
        Self(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_roundscale_ps::<8>(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_roundscale_ps::<9>(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> u16 {
        // SAFETY: as for `abs`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, o.0) }
    }
    #[inline(always)]
    fn le(self, o: Self) -> u16 {
        // SAFETY: as for `abs`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, o.0) }
    }
    #[inline(always)]
    fn sel(m: u16, a: Self, b: Self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_mask_blend_ps(m, b.0, a.0) })
    }
    /// PERF: estimate and one Newton step instead of a division.
    #[inline(always)]
    fn recip(self) -> Self {
        // SAFETY: as for `abs`.
        unsafe {
            let r = _mm512_rcp14_ps(self.0);
            let e = _mm512_fnmadd_ps(self.0, r, _mm512_set1_ps(1.0));
            Self(_mm512_fmadd_ps(r, e, r))
        }
    }
}

impl Lane for F64x8 {
    const SINGLE: bool = false;
    const ISA: Isa = Isa::Avx512;
    type M = u8;
    vector_methods!(
        __m512d,
        f64,
        8,
        _mm512_set1_pd,
        _mm512_fmadd_pd,
        _mm512_fnmadd_pd,
        _mm512_sqrt_pd,
        _mm512_max_pd,
        _mm512_min_pd,
        "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt"
    );
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: lanes are used only where the instruction set exists (module doc of `lane`); so below.
        Self(unsafe { _mm512_abs_pd(self.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_roundscale_pd::<8>(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_roundscale_pd::<9>(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> u8 {
        // SAFETY: as for `abs`.
        unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, o.0) }
    }
    #[inline(always)]
    fn le(self, o: Self) -> u8 {
        // SAFETY: as for `abs`.
        unsafe { _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, o.0) }
    }
    #[inline(always)]
    fn sel(m: u8, a: Self, b: Self) -> Self {
        // SAFETY: as for `abs`.
        Self(unsafe { _mm512_mask_blend_pd(m, b.0, a.0) })
    }
}
