//! MuJoCo's constraint softness: `solref` and `solimp` reduced to what a step needs.
//!
//! ```text
//! x = |r| / width,  d(r) = d0 + y(x) (dmax − d0)
//! y(x) = x^p / mid^(p−1)              up to mid
//!      = 1 − (1−x)^p / (1−mid)^(p−1)  beyond
//! R = (1−d)/d · A,   a_ref = −b v − k d r
//! solref positive:  k = 1/(dmax tc ζ)²,  b = 2/(dmax tc),  tc at least two time steps
//! solref negative:  k = −solref₀/dmax²,  b = −solref₁/dmax
//! ```
use crate::lane::{Lane, pow_slow as pow};
use crate::model::Softness;

const MIN: f64 = 1e-15;

/// The shape of `d(r)`.
#[derive(Clone, Copy, Debug)]
enum Curve {
    /// Constant.
    Flat,
    /// Power 1.
    Linear,
    /// Power 2, the default.
    Square,
    /// Any other power.
    Power(f64),
}

/// Softness of one limit or contact pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Soft<L: Lane> {
    curve: Curve,
    low: L::S,
    rise: L::S,
    inv_width: L::S,
    mid: L::S,
    /// `1/mid^(p−1)` and `1/(1−mid)^(p−1)`.
    gain: [L::S; 2],
    /// Stiffness `k`.
    pub k: L::S,
    /// Damping `b`.
    pub b: L::S,
    /// `A · scale`, and `1/(1e-15 · scale)`.
    weight: L::S,
    cap: L::S,
    /// Weight `D` of a row without violation.
    pub rest: L::S,
}

impl<L: Lane> Soft<L> {
    /// Reduces `s` for a time step, with MuJoCo's clamps. `diagonal` is the approximate inverse inertia `A` of the
    /// row; `scale` multiplies `R` (`2 μ²` for the edges of a pyramid, else 1).
    pub fn new(s: &Softness, timestep: f64, diagonal: f64, scale: f64) -> Self {
        let clamp = |x: f64| x.clamp(1e-4, 0.9999);
        let (d0, dmax) = (clamp(s.solimp[0]), clamp(s.solimp[1]));
        let (width, mid, power) = (s.solimp[2].max(0.0), clamp(s.solimp[3]), s.solimp[4].max(1.0));
        // one sign only makes no sense: MuJoCo falls back to its default
        let mut r = if (s.solref[0] > 0.0) == (s.solref[1] > 0.0) { s.solref } else { [0.02, 1.0] };
        let (k, b) = if r[0] > 0.0 {
            r[0] = r[0].max(2.0 * timestep);
            (1.0 / (dmax * dmax * r[0] * r[0] * r[1] * r[1]).max(MIN), 2.0 / (dmax * r[0]).max(MIN))
        } else {
            (-r[0] / (dmax * dmax), -r[1] / dmax)
        };
        let flat = d0 == dmax || width <= MIN;
        let curve = match power {
            _ if flat => Curve::Flat,
            1.0 => Curve::Linear,
            2.0 => Curve::Square,
            p => Curve::Power(p),
        };
        let low = if flat { 0.5 * (d0 + dmax) } else { d0 };
        Soft {
            curve,
            low: L::scalar(low),
            rise: L::scalar(dmax - d0),
            inv_width: L::scalar(1.0 / width.max(MIN)),
            mid: L::scalar(mid),
            gain: [L::scalar(mid.powf(1.0 - power)), L::scalar((1.0 - mid).powf(1.0 - power))],
            k: L::scalar(k),
            b: L::scalar(b),
            weight: L::scalar(diagonal * scale),
            cap: L::scalar(1.0 / (MIN * scale)),
            rest: L::scalar((low / ((1.0 - low) * diagonal * scale)).min(1.0 / (MIN * scale))),
        }
    }

    /// Impedance `d(r)` at a violation `r`, in (0, 1).
    #[inline(always)]
    pub fn impedance(&self, r: L) -> L {
        if let Curve::Flat = self.curve {
            return L::up(self.low);
        }
        let one = L::one();
        let x = (r * L::up(self.inv_width)).abs().min(one);
        let y = match self.curve {
            Curve::Linear | Curve::Flat => x,
            Curve::Square => {
                let o = one - x;
                let above = (L::up(self.gain[1]) * o).fnma(o, one);
                L::sel(x.le(L::up(self.mid)), L::up(self.gain[0]) * x * x, above)
            }
            Curve::Power(p) => {
                let above = L::up(self.gain[1]).fnma(pow(one - x, p), one);
                L::sel(x.le(L::up(self.mid)), L::up(self.gain[0]) * pow(x, p), above)
            }
        };
        y.fma(L::up(self.rise), L::up(self.low))
    }

    /// Weight `D = 1/R` of a row at impedance `d`, `R = max(1e-15, (1−d)/d · A) · scale`.
    #[inline(always)]
    pub fn weight(&self, d: L) -> L {
        (d / ((L::one() - d) * L::up(self.weight))).min(L::up(self.cap))
    }
}
