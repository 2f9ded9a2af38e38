//! Symmetric positive definite matrices in 3×3 blocks: factorisation, solves, products.
//!
//! The lower triangle is stored dense by blocks (block (i, j) at `i(i+1)/2 + j`, row-major), but only blocks of a
//! [`Pattern`] are touched. Elimination runs from the last row to the first, so a matrix with the pattern of a
//! kinematic tree factors without fill (Featherstone 2005):
//!
//! ```text
//! A = Lᵀ D L,   D block diagonal,   L unit lower triangular in blocks
//! ```
use crate::lane::{Kernel, Lane};
use crate::math::{Mat3, V3, inv3, sym3_mul};
use crate::plan::blocks::tri;

/// Columns left of the diagonal that each block row occupies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    /// Columns of all rows, ascending within a row.
    pub columns: Vec<u16>,
    /// Where each row's columns begin and end.
    pub rows: Vec<(u32, u32)>,
}

impl Pattern {
    /// From lists of columns by row.
    pub fn of(lists: &[Vec<u16>]) -> Self {
        let mut p = Pattern::default();
        for list in lists {
            let start = p.columns.len() as u32;
            p.columns.extend_from_slice(list);
            p.rows.push((start, p.columns.len() as u32));
        }
        p
    }

    /// Room for a full lower triangle of `n` block rows.
    pub fn with_room(n: usize) -> Self {
        Pattern { columns: Vec::with_capacity(tri(n)), rows: vec![(0, 0); n] }
    }

    /// Columns of row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[u16] {
        let (a, b) = self.rows[i];
        &self.columns[a as usize..b as usize]
    }
}

/// Factors `a` in place: afterwards its off-diagonal blocks hold `L`, and `dinv` the inverses of the blocks of `D`
/// (lower triangles, see [`inv3`]). The diagonal blocks of `a` are spent.
pub(crate) struct Factor<'a, L: Lane> {
    pub a: &'a mut [Mat3<L>],
    pub dinv: &'a mut [[L; 6]],
    pub pattern: &'a Pattern,
}

impl<L: Lane> Kernel for Factor<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        for i in (0..self.dinv.len()).rev() {
            let (above, row) = self.a.split_at_mut(tri(i));
            let di = inv3(&row[i]);
            self.dinv[i] = di;
            let columns = self.pattern.row(i);
            for x in (0..columns.len()).rev() {
                let c = columns[x] as usize;
                // T = D⁻¹ A[i][c]
                let o = row[c];
                let mut t = [L::zero(); 9];
                for k in 0..3 {
                    let r = sym3_mul(&di, [o[k], o[3 + k], o[6 + k]]);
                    t[k] = r[0];
                    t[3 + k] = r[1];
                    t[6 + k] = r[2];
                }
                // A[c][b] −= Tᵀ A[i][b]
                let target = &mut above[tri(c)..][..c + 1];
                for &b in &columns[..x + 1] {
                    let (p, q) = (&mut target[b as usize], &row[b as usize]);
                    for r in 0..3 {
                        for s in 0..3 {
                            let e = t[r].fnma(q[s], p[3 * r + s]);
                            p[3 * r + s] = t[6 + r].fnma(q[6 + s], t[3 + r].fnma(q[3 + s], e));
                        }
                    }
                }
                row[c] = t;
            }
        }
    }
}

/// Solves `A x = b` in place, given the factors.
#[inline(always)]
pub(crate) fn solve<L: Lane>(l: &[Mat3<L>], dinv: &[[L; 6]], pattern: &Pattern, x: &mut [V3<L>]) {
    for i in (0..x.len()).rev() {
        let xi = x[i];
        let row = &l[tri(i)..][..i + 1];
        for &c in pattern.row(i) {
            let (t, y) = (&row[c as usize], &mut x[c as usize]);
            for s in 0..3 {
                y[s] = t[6 + s].fnma(xi[2], t[3 + s].fnma(xi[1], t[s].fnma(xi[0], y[s])));
            }
        }
        x[i] = sym3_mul(&dinv[i], xi);
    }
    for i in 0..x.len() {
        let mut v = x[i];
        let row = &l[tri(i)..][..i + 1];
        for &c in pattern.row(i) {
            let (t, y) = (&row[c as usize], &x[c as usize]);
            for r in 0..3 {
                v[r] = t[3 * r + 2].fnma(y[2], t[3 * r + 1].fnma(y[1], t[3 * r].fnma(y[0], v[r])));
            }
        }
        x[i] = v;
    }
}

/// `out = A x` for a symmetric matrix of which the lower triangle is stored.
#[inline(always)]
pub(crate) fn multiply<L: Lane>(a: &[Mat3<L>], pattern: &Pattern, x: &[V3<L>], out: &mut [V3<L>]) {
    for i in 0..x.len() {
        let xi = x[i];
        let row = &a[tri(i)..][..i + 1];
        let t = &row[i];
        let mut v = [
            t[6].fma(xi[2], t[3].fma(xi[1], t[0] * xi[0])),
            t[7].fma(xi[2], t[4].fma(xi[1], t[3] * xi[0])),
            t[8].fma(xi[2], t[7].fma(xi[1], t[6] * xi[0])),
        ];
        for &c in pattern.row(i) {
            let (t, y, o) = (&row[c as usize], &x[c as usize], &mut out[c as usize]);
            for k in 0..3 {
                v[k] = t[3 * k + 2].fma(y[2], t[3 * k + 1].fma(y[1], t[3 * k].fma(y[0], v[k])));
                o[k] = t[6 + k].fma(xi[2], t[3 + k].fma(xi[1], t[k].fma(xi[0], o[k])));
            }
        }
        out[i] = v;
    }
}

/// Sets `out` to `A` with `d[i] · h` added to the diagonal, on the pattern's blocks only.
#[inline(always)]
pub(crate) fn copy_with_diagonal<L: Lane>(
    a: &[Mat3<L>],
    pattern: &Pattern,
    d: &[[L::S; 3]],
    h: L,
    out: &mut [Mat3<L>],
) {
    for i in 0..d.len() {
        let r = tri(i);
        for &c in pattern.row(i) {
            out[r + c as usize] = a[r + c as usize];
        }
        let mut b = a[r + i];
        for k in 0..3 {
            b[4 * k] = L::up(d[i][k]).fma(h, b[4 * k]);
        }
        out[r + i] = b;
    }
}
