//! Products with weights that stay the same for many calls, packed once. A row of the result has the same bits whatever
//! rows are computed with it.

use onpolicy::simd::{Level, level};

/// Columns of a panel.
const PANEL: usize = 32;

/// A weight matrix `[out, in]`, packed by panels of 32 outputs.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// `[panels, in, 32]`, zeros beyond the last output.
    panels: Vec<f32>,
    input: usize,
    output: usize,
}

impl Packed {
    /// `w`: `[out, in]`, row by row.
    pub fn new(w: &[f32], input: usize, output: usize) -> Self {
        assert_eq!(w.len(), input * output);
        let mut panels = vec![0.0; output.div_ceil(PANEL) * PANEL * input];
        for (o, row) in w.chunks_exact(input).enumerate() {
            let (panel, column) = (o / PANEL, o % PANEL);
            for (k, x) in row.iter().enumerate() {
                panels[(panel * input + k) * PANEL + column] = *x;
            }
        }
        Packed { panels, input, output }
    }

    /// `y = x·Wᵀ`, or `y += x·Wᵀ`. `x`: `[rows, in]`; `y`: `[rows, out]`.
    pub fn apply(&self, x: &[f32], y: &mut [f32], add: bool) {
        let rows = x.len() / self.input;
        assert_eq!((x.len(), y.len()), (rows * self.input, rows * self.output));
        let level = level();
        for (p, panel) in self.panels.chunks_exact(self.input * PANEL).enumerate() {
            let first = p * PANEL;
            let columns = PANEL.min(self.output - first);
            let mut r = 0;
            while r < rows {
                let height = if rows - r >= ROWS { ROWS } else { 1 };
                let x = &x[r * self.input..(r + height) * self.input];
                let mut tile = [[0.0f32; PANEL]; ROWS];
                match (level, height) {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `level` reports an instruction set only if this machine has it.
                    (Level::Avx512, ROWS) => unsafe { avx512::tile::<ROWS>(panel, x, self.input, &mut tile) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    (Level::Avx512, _) => unsafe { avx512::tile::<1>(panel, x, self.input, &mut tile) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    (Level::Avx2, ROWS) => unsafe { avx2::tile::<ROWS>(panel, x, self.input, &mut tile) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    (Level::Avx2, _) => unsafe { avx2::tile::<1>(panel, x, self.input, &mut tile) },
                    _ => plain(panel, x, self.input, &mut tile),
                }
                for (i, sums) in tile[..height].iter().enumerate() {
                    let at = (r + i) * self.output + first;
                    let y = &mut y[at..at + columns];
                    if add {
                        y.iter_mut().zip(sums).for_each(|(y, s)| *y += s);
                    } else {
                        y.copy_from_slice(&sums[..columns]);
                    }
                }
                r += height;
            }
        }
    }
}

/// Rows of a tile: with 32 columns, twelve vectors of sixteen sums.
const ROWS: usize = 6;

/// The definition: every sum in the order of the inputs.
fn plain(panel: &[f32], x: &[f32], input: usize, tile: &mut [[f32; PANEL]; ROWS]) {
    for (x, sums) in x.chunks_exact(input).zip(tile) {
        for (a, w) in x.iter().zip(panel.chunks_exact(PANEL)) {
            for j in 0..PANEL {
                sums[j] += a * w[j];
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{PANEL, ROWS};
    use std::arch::x86_64::*;

    /// R rows at once. `panel`: `[in, 32]`; `x`: `[R, in]`.
    #[target_feature(enable = "avx512f")]
    pub fn tile<const R: usize>(panel: &[f32], x: &[f32], input: usize, tile: &mut [[f32; PANEL]; ROWS]) {
        assert!(panel.len() >= input * PANEL && x.len() >= R * input);
        let mut sums = [[_mm512_setzero_ps(); 2]; R];
        for k in 0..input {
            // SAFETY: k < input, and the slices hold that many rows and columns.
            unsafe {
                let w = panel.as_ptr().add(k * PANEL);
                let (low, high) = (_mm512_loadu_ps(w), _mm512_loadu_ps(w.add(16)));
                for r in 0..R {
                    let a = _mm512_set1_ps(*x.as_ptr().add(r * input + k));
                    sums[r][0] = _mm512_fmadd_ps(a, low, sums[r][0]);
                    sums[r][1] = _mm512_fmadd_ps(a, high, sums[r][1]);
                }
            }
        }
        for r in 0..R {
            // SAFETY: a row of the tile holds 32 numbers.
            unsafe {
                _mm512_storeu_ps(tile[r].as_mut_ptr(), sums[r][0]);
                _mm512_storeu_ps(tile[r].as_mut_ptr().add(16), sums[r][1]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{PANEL, ROWS};
    use std::arch::x86_64::*;

    /// R rows at once, sixteen columns after the other. `panel`: `[in, 32]`; `x`: `[R, in]`.
    #[target_feature(enable = "avx2,fma")]
    pub fn tile<const R: usize>(panel: &[f32], x: &[f32], input: usize, tile: &mut [[f32; PANEL]; ROWS]) {
        assert!(panel.len() >= input * PANEL && x.len() >= R * input);
        for half in 0..2 {
            let mut sums = [[_mm256_setzero_ps(); 2]; R];
            for k in 0..input {
                // SAFETY: k < input, and the slices hold that many rows and columns.
                unsafe {
                    let w = panel.as_ptr().add(k * PANEL + half * 16);
                    let (low, high) = (_mm256_loadu_ps(w), _mm256_loadu_ps(w.add(8)));
                    for r in 0..R {
                        let a = _mm256_set1_ps(*x.as_ptr().add(r * input + k));
                        sums[r][0] = _mm256_fmadd_ps(a, low, sums[r][0]);
                        sums[r][1] = _mm256_fmadd_ps(a, high, sums[r][1]);
                    }
                }
            }
            for r in 0..R {
                // SAFETY: a row of the tile holds 32 numbers.
                unsafe {
                    let to = tile[r].as_mut_ptr().add(half * 16);
                    _mm256_storeu_ps(to, sums[r][0]);
                    _mm256_storeu_ps(to.add(8), sums[r][1]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, step: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * step).sin()).collect()
    }

    #[test]
    fn products_match_the_definition_for_every_remainder_of_rows_and_columns() {
        for (rows, input, output) in [(1, 5, 3), (6, 17, 32), (7, 8, 33), (13, 40, 70)] {
            let (x, w) = (numbers(rows * input, 0.7), numbers(output * input, 1.3));
            let mut y = vec![0.5; rows * output];
            Packed::new(&w, input, output).apply(&x, &mut y, true);
            for r in 0..rows {
                for o in 0..output {
                    let want = 0.5 + (0..input).map(|k| x[r * input + k] * w[o * input + k]).sum::<f32>();
                    assert!((y[r * output + o] - want).abs() < 1e-5, "{rows} {input} {output}: {r} {o}");
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_among_others() {
        let (input, output) = (64, 40);
        let (x, w) = (numbers(13 * input, 0.3), numbers(output * input, 0.9));
        let packed = Packed::new(&w, input, output);
        let mut all = vec![0.0; 13 * output];
        packed.apply(&x, &mut all, false);
        for r in 0..13 {
            let mut one = vec![0.0; output];
            packed.apply(&x[r * input..(r + 1) * input], &mut one, false);
            assert_eq!(one, all[r * output..(r + 1) * output], "row {r}");
        }
    }
}
