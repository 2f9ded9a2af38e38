//! Single-threaded matrix products on slices. Parallelism belongs to the caller, who splits rows.

/// A matrix inside a slice: element (r, c) is at `offset + r * row + c * col`.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// First element.
    pub offset: usize,
    /// Distance between rows.
    pub row: usize,
    /// Distance between columns.
    pub col: usize,
}

impl View {
    /// Row-major with that many columns.
    pub fn rows(columns: usize) -> Self {
        View { offset: 0, row: columns, col: 1 }
    }

    /// The transpose of a row-major matrix with that many columns.
    pub fn transposed(columns: usize) -> Self {
        View { offset: 0, row: 1, col: columns }
    }

    /// The same matrix starting `offset` elements later.
    pub fn at(self, offset: usize) -> Self {
        View { offset: self.offset + offset, ..self }
    }

    fn fits(&self, rows: usize, columns: usize, len: usize) -> bool {
        rows == 0 || columns == 0 || self.offset + (rows - 1) * self.row + (columns - 1) * self.col < len
    }
}

/// `C = A·B`, or `C += A·B` with `add`; A is `m×k`, B `k×n`, C `m×n`.
///
/// Panics if a view leaves its slice.
pub fn matmul(
    m: usize,
    n: usize,
    k: usize,
    c: &mut [f32],
    cv: View,
    add: bool,
    a: &[f32],
    av: View,
    b: &[f32],
    bv: View,
) {
    assert!(cv.fits(m, n, c.len()) && av.fits(m, k, a.len()) && bv.fits(k, n, b.len()), "matrix view leaves its slice");
    if m == 0 || n == 0 {
        return;
    }
    // SAFETY: the views were checked against the slices; C is exclusively borrowed.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr().add(cv.offset),
            cv.col as isize,
            cv.row as isize,
            add,
            a.as_ptr().add(av.offset.min(a.len())),
            av.col as isize,
            av.row as isize,
            b.as_ptr().add(bv.offset.min(b.len())),
            bv.col as isize,
            bv.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_transposed_and_offset_views_match_the_definition() {
        let (m, n, k) = (5, 7, 3);
        let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.7).sin()).collect();
        let b: Vec<f32> = (0..n * k + 4).map(|i| (i as f32 * 1.3).cos()).collect(); // [n, k] after 4 elements
        let mut c = vec![0.5; m * n];
        matmul(m, n, k, &mut c, View::rows(n), true, &a, View::rows(k), &b, View::transposed(k).at(4));
        for i in 0..m {
            for j in 0..n {
                let want = 0.5 + (0..k).map(|l| a[i * k + l] * b[4 + j * k + l]).sum::<f32>();
                assert!((c[i * n + j] - want).abs() < 1e-6);
            }
        }
    }

    #[test]
    #[should_panic(expected = "leaves its slice")]
    fn a_short_slice_is_refused() {
        matmul(2, 2, 2, &mut [0.0; 4], View::rows(2), false, &[0.0; 3], View::rows(2), &[0.0; 4], View::rows(2));
    }
}
