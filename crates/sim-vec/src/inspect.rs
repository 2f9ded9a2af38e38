//! Intermediate results of a forward evaluation, for tests, debugging and comparison with MuJoCo.
use crate::engine::{Engine, Scratch};
use crate::lane::Lane;
use crate::plan::blocks::tri;
use crate::sensor::{frame, normal_force};

/// A contact that pushes.
#[derive(Clone, Debug, PartialEq)]
pub struct ContactInfo {
    /// Index in [`crate::model::Model::pairs`].
    pub pair: usize,
    /// Distance of the surfaces, negative in penetration.
    pub dist: f64,
    /// Midway between the surfaces.
    pub pos: [f64; 3],
    /// Rows: normal from the first geom to the second, first and second tangent.
    pub frame: [f64; 9],
    /// Normal force, N.
    pub force: f64,
}

/// What one lane's last forward evaluation went through.
#[derive(Clone, Debug)]
pub struct Stages {
    /// `[nbody]` centre of mass of the tree that a body is the root of; zero for other bodies.
    pub tree_com: Vec<[f64; 3]>,
    /// `[nv*nv]` mass matrix.
    pub mass: Vec<f64>,
    /// `[nv]` Coriolis, centrifugal and gravity forces.
    pub bias: Vec<f64>,
    /// `[nv]` springs and dampers.
    pub passive: Vec<f64>,
    /// `[nv]` acceleration without constraints.
    pub qacc_smooth: Vec<f64>,
    /// `[nv]`
    pub qacc: Vec<f64>,
    /// Contacts that push.
    pub contacts: Vec<ContactInfo>,
    /// Constraint rows, counted as MuJoCo does: four per contact with friction.
    pub rows: usize,
}

impl Stages {
    /// Gathers a lane of the last forward evaluation.
    pub fn of<L: Lane>(engine: &Engine<L>, x: &Scratch<L>, lane: usize) -> Self {
        let (plan, nv) = (engine.plan(), engine.model().nv());
        let vector = |v: &[[L; 3]]| {
            let mut out = vec![0.0; nv];
            engine.dofs(v, lane, &mut out);
            out
        };
        let mut mass = vec![0.0; nv * nv];
        for i in 0..nv {
            for j in 0..=i {
                let (p, q) = (plan.blocks.padded[i], plan.blocks.padded[j]);
                let (a, b) = (p.max(q) / 3, p.min(q) / 3);
                if a == b || plan.blocks.mask[a] >> b & 1 == 1 {
                    let m = x.smooth.mass[tri(a) + b][3 * (p.max(q) % 3) + p.min(q) % 3].get(lane);
                    mass[i * nv + j] = m;
                    mass[j * nv + i] = m;
                }
            }
        }
        let live = |row: usize| x.rows.d[row].get(lane) != 0.0;
        let mut contacts = Vec::new();
        let rows = (0..x.rows.d.len()).filter(|&row| live(row)).count();
        for (c, p) in x.rows.multis[x.rows.first_contact..].iter().zip(&x.rows.points).filter(|(c, _)| live(c.row)) {
            contacts.push(ContactInfo {
                pair: p.pair.get(lane) as usize,
                dist: p.dist.get(lane),
                pos: p.pos.map(|e| e.get(lane)),
                frame: frame(p, lane),
                force: normal_force(plan, &x.rows, c, lane),
            });
        }
        Stages {
            tree_com: x.body.com.iter().map(|c| c.map(|e| e.get(lane))).collect(),
            mass,
            bias: vector(&x.smooth.bias),
            passive: vector(&x.smooth.passive),
            qacc_smooth: vector(&x.smooth.qacc_smooth),
            qacc: vector(&x.smooth.qacc),
            contacts,
            rows,
        }
    }
}
