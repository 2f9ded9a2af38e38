//! Degrees of freedom in 3×3 blocks.
//!
//! A segment is a maximal unbranched chain of dofs. Each segment is cut into blocks of three; its last block is
//! padded with rows that carry a unit inertia and never move. Then the mass matrix has dense 3×3 blocks, one for each
//! pair (block, ancestor block), and eliminating from the leaves creates no others.
use crate::model::Model;

/// The most blocks there can be: patterns are bit sets in a `u64`.
pub(crate) const MAX_BLOCKS: usize = 64;

/// Where block row `i` of a lower triangle of blocks begins.
#[inline(always)]
pub(crate) fn tri(i: usize) -> usize {
    i * (i + 1) / 2
}

/// The block structure of a kinematic tree.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Number of blocks.
    pub count: usize,
    /// `[nv]` padded index of each dof: `3 block + row`.
    pub padded: Vec<usize>,
    /// `[3 count]` dof at each padded index; none for padding.
    pub dof: Vec<Option<usize>>,
    /// `[count]` blocks that hold ancestors, ascending, without itself.
    pub ancestors: Vec<Vec<u16>>,
    /// `[count]` the same as a bit set.
    pub mask: Vec<u64>,
    /// `[nv]` segment of each dof, named by its first dof.
    pub segment: Vec<usize>,
    /// `[count]` root body of each block's tree.
    pub root: Vec<usize>,
}

impl Blocks {
    /// Cuts the tree of `model`'s dofs. `None` if there are more than [`MAX_BLOCKS`]; then the number needed.
    pub fn new(model: &Model) -> Result<Blocks, usize> {
        let nv = model.nv();
        let parent: Vec<Option<usize>> = model.dofs.iter().map(|d| d.parent).collect();
        let mut children = vec![0; nv];
        for p in parent.iter().flatten() {
            children[*p] += 1;
        }
        let mut segment = vec![0; nv];
        let mut padded: Vec<usize> = vec![0; nv];
        let mut count = 0;
        for i in 0..nv {
            match parent[i] {
                Some(p) if children[p] == 1 => {
                    segment[i] = segment[p];
                    padded[i] = padded[p] + 1;
                    if padded[i].is_multiple_of(3) {
                        padded[i] = 3 * count;
                    }
                }
                _ => {
                    segment[i] = i;
                    padded[i] = 3 * count;
                }
            }
            if padded[i] == 3 * count {
                count += 1;
            }
        }
        if count > MAX_BLOCKS {
            return Err(count);
        }
        let mut dof = vec![None; 3 * count];
        for (i, &p) in padded.iter().enumerate() {
            dof[p] = Some(i);
        }
        let mut mask = vec![0u64; count];
        for b in 0..count {
            let mut up = dof[3 * b].and_then(|d| parent[d]);
            while let Some(d) = up {
                mask[b] |= 1 << (padded[d] / 3);
                up = parent[d];
            }
        }
        let ancestors = mask.iter().map(|m| (0..count as u16).filter(|j| m >> j & 1 == 1).collect()).collect();
        let root = (0..count).map(|b| dof[3 * b].map_or(0, |d: usize| model.bodies[model.dofs[d].body].root)).collect();
        Ok(Blocks { count, padded, dof, ancestors, mask, segment, root })
    }
}

/// Dofs that move `body`, from the root outwards.
pub(crate) fn path(model: &Model, body: usize) -> Vec<usize> {
    let mut list = Vec::new();
    let mut b = body;
    while b > 0 {
        list.extend(model.bodies[b].dofs.clone().rev());
        b = model.bodies[b].parent;
    }
    list.reverse();
    list
}
