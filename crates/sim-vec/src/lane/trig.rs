//! Elementary functions in lanes.
use super::Lane;

/// Sine and cosine.
///
/// The argument is reduced by multiples of π/2 in three parts (Cody and Waite), then evaluated by the minimax
/// polynomials of the Cephes library on [−π/4, π/4]. Error within 2 ulp of the element type for |x| up to 10⁴
/// (f32) and 10⁶ (f64) except near zeros of the result, where it is absolute.
#[inline(always)]
pub fn sincos<L: Lane>(x: L) -> (L, L) {
    let q = (x * L::splat(std::f64::consts::FRAC_2_PI)).round();
    let (s, c) = if L::SINGLE { core_single(reduce_single(q, x)) } else { core_double(reduce_double(q, x)) };
    // quadrant 0..3 as a number
    let m = q - L::splat(4.0) * (q * L::splat(0.25)).floor();
    let (half, onehalf, twohalf) = (L::splat(0.5), L::splat(1.5), L::splat(2.5));
    let odd = (half.lt(m) & m.lt(onehalf)) | twohalf.lt(m);
    let (sq, cq) = (L::sel(odd, c, s), L::sel(odd, s, c));
    let s_negative = onehalf.lt(m);
    let c_negative = half.lt(m) & m.lt(twohalf);
    (L::sel(s_negative, -sq, sq), L::sel(c_negative, -cq, cq))
}

/// `x^p` for x ≥ 0, element by element through the standard library: rare parameters only.
#[inline(always)]
pub(crate) fn pow_slow<L: Lane>(x: L, p: f64) -> L {
    let mut y = x;
    for i in 0..L::W {
        y.set(i, x.get(i).powf(p));
    }
    y
}

#[inline(always)]
fn reduce_single<L: Lane>(q: L, x: L) -> L {
    let r = q.fnma(L::splat(1.5703125), x);
    let r = q.fnma(L::splat(4.837512969970703125e-4), r);
    q.fnma(L::splat(7.549789948768648e-8), r)
}

#[inline(always)]
fn reduce_double<L: Lane>(q: L, x: L) -> L {
    let r = q.fnma(L::splat(2.0 * 7.85398125648498535156e-1), x);
    let r = q.fnma(L::splat(2.0 * 3.77489470793079817668e-8), r);
    q.fnma(L::splat(2.0 * 2.69515142907905952645e-15), r)
}

#[inline(always)]
fn core_single<L: Lane>(r: L) -> (L, L) {
    let z = r * r;
    let s = horner(z, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]);
    let c = horner(z, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]);
    finish(r, z, s, c)
}

#[inline(always)]
fn core_double<L: Lane>(r: L) -> (L, L) {
    let z = r * r;
    let s = horner(
        z,
        [
            1.58962301576546568060e-10,
            -2.50507477628578072866e-8,
            2.75573136213857245213e-6,
            -1.98412698295895385996e-4,
            8.33333333332211858878e-3,
            -1.66666666666666307295e-1,
        ],
    );
    let c = horner(
        z,
        [
            -1.13585365213876817300e-11,
            2.08757008419747316778e-9,
            -2.75573141792967388112e-7,
            2.48015872888517045348e-5,
            -1.38888888888730564116e-3,
            4.16666666666665929218e-2,
        ],
    );
    finish(r, z, s, c)
}

/// sin = r + r z s, cos = 1 − z/2 + z² c.
#[inline(always)]
fn finish<L: Lane>(r: L, z: L, s: L, c: L) -> (L, L) {
    ((s * z).fma(r, r), (c * z).fma(z, z.fnma(L::splat(0.5), L::one())))
}

#[inline(always)]
fn horner<L: Lane, const N: usize>(z: L, k: [f64; N]) -> L {
    let mut y = L::splat(k[0]);
    for i in 1..N {
        y = y.fma(z, L::splat(k[i]));
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::{F32x1, F64x1};

    #[test]
    fn sine_and_cosine_match_the_standard_library() {
        let mut worst = [0.0f64; 2];
        for i in -20_000..20_000 {
            let x = i as f64 * 0.0173 + 1e-3;
            let (s, c) = sincos(F64x1::splat(x));
            worst[0] = worst[0].max((s.get(0) - x.sin()).abs()).max((c.get(0) - x.cos()).abs());
            let x = x as f32 as f64;
            let (s, c) = sincos(F32x1::splat(x));
            worst[1] = worst[1].max((s.get(0) - x.sin()).abs()).max((c.get(0) - x.cos()).abs());
        }
        assert!(worst[0] < 3e-16, "f64: {:e}", worst[0]);
        assert!(worst[1] < 2e-7, "f32: {:e}", worst[1]);
    }
}
