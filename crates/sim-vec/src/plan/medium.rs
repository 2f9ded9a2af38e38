//! Forces on bodies that are no contacts: of the medium, and against gravity.
use crate::lane::Lane;
use crate::model::{Model, Shape};
use std::f64::consts::PI;

/// Compensated weight of a body.
#[derive(Debug)]
pub(crate) struct Buoy<L: Lane> {
    pub body: usize,
    /// Force, `−g m c`.
    pub force: [L::S; 3],
}

/// A body as a box in the medium, or a geom as an ellipsoid.
#[derive(Debug)]
pub(crate) struct Drag<L: Lane> {
    pub body: usize,
    pub shape: DragShape<L>,
}

/// How the medium acts, see [`crate::fluid`].
#[derive(Debug)]
pub(crate) enum DragShape<L: Lane> {
    /// In the frame of principal axes: coefficients of `ω`, `v`, `|ω|ω` and `|v|v`.
    Box {
        turn: L::S,
        move_: L::S,
        turn2: [L::S; 3],
        move2: [L::S; 3],
    },
    Ellipsoid(Box<Ellipsoid<L>>),
}

/// A geom as an ellipsoid.
#[derive(Debug)]
pub(crate) struct Ellipsoid<L: Lane> {
    pub pos: [L::S; 3],
    pub quat: [L::S; 4],
    /// Semi-axes.
    pub size: [L::S; 3],
    /// ρ times virtual mass and inertia.
    pub mass: [L::S; 3],
    pub inertia: [L::S; 3],
    /// ρ times Magnus' coefficient times the volume; ρ times Kutta's coefficient.
    pub magnus: L::S,
    pub kutta: L::S,
    /// Viscous: force per velocity and torque per angular velocity.
    pub move_: L::S,
    pub turn: L::S,
    /// ρ times blunt and slender drag.
    pub blunt: L::S,
    pub slender: L::S,
    /// Largest projected area.
    pub area: L::S,
    /// ρ times the moments of angular drag.
    pub turn2: [L::S; 3],
}

/// Bodies whose weight is compensated.
pub(super) fn buoys<L: Lane>(model: &Model) -> Vec<Buoy<L>> {
    let light = model.bodies.iter().enumerate().skip(1).filter(|(_, b)| b.gravcomp != 0.0 && b.mass != 0.0);
    light
        .filter(|_| model.opt.gravity != [0.0; 3])
        .map(|(body, b)| Buoy { body, force: model.opt.gravity.map(|g| L::scalar(-g * b.mass * b.gravcomp)) })
        .collect()
}

/// Everything the medium acts on.
pub(super) fn drags<L: Lane>(model: &Model) -> Vec<Drag<L>> {
    let (density, viscosity) = (model.opt.density, model.opt.viscosity);
    let mut list = Vec::new();
    if density <= 0.0 && viscosity <= 0.0 {
        return list;
    }
    for (body, b) in model.bodies.iter().enumerate().skip(1).filter(|(_, b)| b.mass >= 1e-15) {
        let own = || model.geoms.iter().filter(|g| g.body == body && g.fluid.is_some());
        if own().next().is_none() {
            list.push(Drag { body, shape: as_box(b.mass, b.inertia, density, viscosity) });
            continue;
        }
        for g in own() {
            let Some(coefficients) = g.fluid else { continue };
            let size = match g.shape {
                Shape::Sphere { radius } => [radius; 3],
                Shape::Capsule { radius, half } => [radius, radius, half + radius],
                Shape::Cylinder { radius, half } => [radius, radius, half],
                Shape::Ellipsoid { size } | Shape::Box { size } | Shape::Visual { size } => size,
                Shape::Plane => continue,
            };
            let shape =
                DragShape::Ellipsoid(Box::new(ellipsoid(size, coefficients, density, viscosity, g.pos, g.quat)));
            list.push(Drag { body, shape });
        }
    }
    list
}

/// The box with the body's moments of inertia.
fn as_box<L: Lane>(mass: f64, [x, y, z]: [f64; 3], density: f64, viscosity: f64) -> DragShape<L> {
    let side = |s: f64| (s.max(1e-15) / mass * 6.0).sqrt();
    let b = [side(y + z - x), side(x + z - y), side(x + y - z)];
    let diameter = (b[0] + b[1] + b[2]) / 3.0;
    let others = |k: usize| (b[(k + 1) % 3], b[(k + 2) % 3]);
    DragShape::Box {
        turn: L::scalar(PI * diameter.powi(3) * viscosity.max(0.0)),
        move_: L::scalar(3.0 * PI * diameter * viscosity.max(0.0)),
        turn2: [0, 1, 2].map(|k| {
            let (p, q) = others(k);
            L::scalar(density.max(0.0) * b[k] * (p.powi(4) + q.powi(4)) / 64.0)
        }),
        move2: [0, 1, 2].map(|k| {
            let (p, q) = others(k);
            L::scalar(0.5 * density.max(0.0) * p * q)
        }),
    }
}

fn ellipsoid<L: Lane>(
    size: [f64; 3],
    [blunt, slender, angular, kutta, magnus]: [f64; 5],
    density: f64,
    viscosity: f64,
    pos: [f64; 3],
    quat: [f64; 4],
) -> Ellipsoid<L> {
    let s = L::scalar;
    let [a, b, c] = size;
    let volume = 4.0 / 3.0 * PI * a * b * c;
    let most = a.max(b).max(c);
    let least = a.min(b).min(c);
    let middle = a + b + c - most - least;
    let diameter = 2.0 / 3.0 * (a + b + c);
    let (mass, inertia) = virtual_inertia(size);
    let top = 8.0 / 15.0 * PI * middle * most.powi(4);
    // largest moment of the drag about each axis
    let moment = |k: usize| {
        let (p, q) = (size[(k + 1) % 3], size[(k + 2) % 3]);
        8.0 / 15.0 * PI * size[k] * p.max(q).powi(4)
    };
    Ellipsoid {
        pos: pos.map(s),
        quat: quat.map(s),
        size: size.map(s),
        mass: mass.map(|m| s(density * m)),
        inertia: inertia.map(|i| s(density * i)),
        magnus: s(magnus * density * volume),
        kutta: s(kutta * density),
        move_: s(viscosity * 3.0 * PI * diameter),
        turn: s(viscosity * PI * diameter.powi(3)),
        blunt: s(density * blunt),
        slender: s(density * slender),
        area: s(PI * most * middle),
        turn2: [0, 1, 2].map(|k| s(density * (angular * moment(k) + slender * (top - moment(k))))),
    }
}

/// Mass and moments of the medium that an ellipsoid carries along, per density (Lamb 1932, §114 and §115).
///
/// ```text
/// κ_x = abc ∫₀^∞ dλ / ((a² + λ) √((a² + λ)(b² + λ)(c² + λ)))
/// m_x = V κ_x / (2 − κ_x)
/// I_x = V (b² − c²)² (κ_z − κ_y) / (5 (2 (b² − c²) + (b² + c²)(κ_y − κ_z)))
/// ```
fn virtual_inertia([a, b, c]: [f64; 3]) -> ([f64; 3], [f64; 3]) {
    let kappa = |x: f64, y: f64, z: f64| integral(x, y, z);
    let k = [kappa(a, b, c), kappa(b, c, a), kappa(c, a, b)];
    let volume = 4.0 / 3.0 * PI * a * b * c;
    let size = [a, b, c];
    let mass = k.map(|k| volume * k / (2.0 - k).max(1e-15));
    let inertia = [0, 1, 2].map(|i| {
        let (y, z) = ((i + 1) % 3, (i + 2) % 3);
        let (y2, z2) = (size[y] * size[y], size[z] * size[z]);
        let (difference, sum) = (y2 - z2, y2 + z2);
        let below = (2.0 * difference + sum * (k[y] - k[z])).abs();
        volume / 5.0 * difference * difference * (k[z] - k[y]).abs() / below.max(1e-15)
    });
    (mass, inertia)
}

/// κ_x by the 15-point Kronrod rule after `λ = s x³ / (1 − x)²` with `s = (a³ b c)^(2/5)`.
///
/// The rule's nodes and weights are rounded to eight digits: κ then is MuJoCo's to rounding, and off the integral by
/// about 1e-7.
fn integral(a: f64, b: f64, c: f64) -> f64 {
    let s = (a * a * a * b * c).powf(0.4);
    let f = |x: f64| {
        let y = 1.0 - x;
        let lambda = s * x.powi(3) / (y * y);
        let slope = s * (3.0 * x * x * y + 2.0 * x.powi(3)) / y.powi(3);
        let [p, q, r] = [a, b, c].map(|d| 1.0 + lambda / (d * d));
        slope / (p * (p * q * r).sqrt())
    };
    let digits = |x: f64| (x * 1e8).round() / 1e8;
    // nodes and weights on [−1, 1], those of the right half
    const RULE: [[f64; 2]; 8] = [
        [0.991_455_371_120_812_6, 0.022_935_322_010_529_22],
        [0.949_107_912_342_758_5, 0.063_092_092_629_978_55],
        [0.864_864_423_359_769_1, 0.104_790_010_322_250_19],
        [0.741_531_185_599_394_4, 0.140_653_259_715_525_92],
        [0.586_087_235_467_691_1, 0.169_004_726_639_267_9],
        [0.405_845_151_377_397_2, 0.190_350_578_064_785_4],
        [0.207_784_955_007_898_47, 0.204_432_940_075_298_9],
        [0.0, 0.209_482_141_084_727_83],
    ];
    let mut sum = 0.0;
    for [node, weight] in RULE {
        let w = digits(weight / 2.0);
        sum += w * f(digits(0.5 * (1.0 + node)));
        if node > 0.0 {
            sum += w * f(digits(0.5 * (1.0 - node)));
        }
    }
    sum / (a * a)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `geom_fluid` of a compiled model in MuJoCo 3.17.0.
    #[test]
    fn virtual_masses_and_moments_are_mujoco_s() {
        let (mass, inertia) = virtual_inertia([0.1, 0.2, 0.05]);
        let want = [
            [0.001667859335949013, 0.0005301781912503561, 0.006358840071141025],
            [3.470126052738953e-05, 4.253697731835504e-06, 6.081304683493237e-06],
        ];
        for (got, want) in mass.iter().chain(&inertia).zip(want.as_flattened()) {
            assert!((got / want - 1.0).abs() < 1e-13, "{got} {want}");
        }
    }
}
