//! `<geom>`: shape, mass and how it touches.

use super::error::MjcfError;
use super::joint::SOFTNESS;
use super::rotation::{Orientation, Quat, Vec3, compose};
use super::settings::Settings;
use super::shape::{Primitive, stretch};
use super::source::Attr;
use super::value::{Reader, orientation_attrs};
use crate::model::{Geom, Id, Shape, Softness};

/// A geom as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct GeomSpec {
    name: String,
    kind: Primitive,
    size: [f64; 3],
    sizes: usize,
    fromto: Option<(Attr, [f64; 6])>,
    pos: Vec3,
    orientation: Option<(Attr, Orientation)>,
    mass: Option<f64>,
    density: f64,
    group: i32,
    rgba: [f64; 4],
    /// The asset it takes its shape from.
    asset: Option<Attr>,
    /// The medium acts on it as on an ellipsoid.
    fluid: bool,
    fluid_coef: [f64; 5],
    touch: Touch,
}

/// How a geom touches others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Touch {
    pub(super) contype: u32,
    pub(super) conaffinity: u32,
    pub(super) condim: usize,
    pub(super) priority: i32,
    pub(super) friction: [f64; 3],
    pub(super) solmix: f64,
    pub(super) softness: Softness,
    pub(super) margin: f64,
    pub(super) gap: f64,
}

impl Default for GeomSpec {
    fn default() -> Self {
        GeomSpec {
            name: String::new(),
            kind: Primitive::Sphere,
            size: [0.0; 3],
            sizes: 0,
            fromto: None,
            pos: [0.0; 3],
            orientation: None,
            mass: None,
            density: 1000.0,
            group: 0,
            rgba: [0.5, 0.5, 0.5, 1.0],
            asset: None,
            fluid: false,
            fluid_coef: [0.5, 0.25, 1.5, 1.0, 1.0],
            touch: Touch {
                contype: 1,
                conaffinity: 1,
                condim: 3,
                priority: 0,
                friction: [1.0, 0.005, 0.0001],
                solmix: 1.0,
                softness: SOFTNESS,
                margin: 0.0,
                gap: 0.0,
            },
        }
    }
}

/// A geom with what only the compiler needs to know.
pub(super) struct Compiled {
    pub(super) geom: Geom,
    pub(super) kind: Primitive,
    pub(super) touch: Touch,
    /// Counted in its body's inertia.
    pub(super) mass: f64,
    /// About its own axes.
    pub(super) inertia: [f64; 3],
}

impl GeomSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        let t = &mut self.touch;
        for a in &r.node.attrs {
            if let Some(o) = r.orientation(a)? {
                self.orientation = Some((a.clone(), o));
                continue;
            }
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "type" => {
                    let words = [
                        ("plane", Primitive::Plane),
                        ("hfield", Primitive::Hfield),
                        ("sphere", Primitive::Sphere),
                        ("capsule", Primitive::Capsule),
                        ("ellipsoid", Primitive::Ellipsoid),
                        ("cylinder", Primitive::Cylinder),
                        ("box", Primitive::Box),
                        ("mesh", Primitive::Mesh),
                        ("sdf", Primitive::Sdf),
                    ];
                    self.kind = r.word(a, &words)?;
                }
                "size" => {
                    self.sizes = r.numbers(a, 1, 3)?.len();
                    self.size = [0.0; 3];
                    r.prefix(a, &mut self.size)?;
                }
                "fromto" => self.fromto = Some((a.clone(), r.vector(a)?)),
                "pos" => self.pos = r.vector(a)?,
                "mass" => self.mass = Some(r.magnitude(a)?),
                "density" => self.density = r.magnitude(a)?,
                "group" => self.group = r.integer(a)?,
                "rgba" => self.rgba = r.vector(a)?,
                "contype" => t.contype = r.integer(a)? as u32,
                "conaffinity" => t.conaffinity = r.integer(a)? as u32,
                "condim" => t.condim = condim(r, a)?,
                "priority" => t.priority = r.integer(a)?,
                "friction" => r.prefix(a, &mut t.friction)?,
                "solmix" => t.solmix = r.magnitude(a)?,
                "solref" => r.prefix(a, &mut t.softness.solref)?,
                "solimp" => r.prefix(a, &mut t.softness.solimp)?,
                "margin" => t.margin = r.magnitude(a)?,
                "gap" => t.gap = r.magnitude(a)?,
                "shellinertia" => {
                    if r.boolean(a)? {
                        return Err(r.refuse(a, "write an <inertial> with the shell's mass and moments"));
                    }
                }
                "surfacevel" => {
                    if r.numbers(a, 1, 3)?.iter().any(|x| *x != 0.0) {
                        return Err(r.refuse(a, "remove it: surfaces do not move on their own"));
                    }
                }
                "adhesion" => {
                    if r.numbers(a, 1, usize::MAX)?.iter().any(|x| *x != 0.0) {
                        return Err(r.refuse(a, "remove it: contacts only push"));
                    }
                }
                "mesh" | "hfield" => self.asset = Some(a.clone()).filter(|a| !a.value.is_empty()),
                "fluidshape" => self.fluid = r.word(a, &[("none", false), ("ellipsoid", true)])?,
                "fluidcoef" => r.prefix(a, &mut self.fluid_coef)?,
                // looks, user data, and how a primitive is fitted to a mesh, which is refused where it matters
                "class" | "material" | "user" | "fitscale" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    /// The geom of body `body` within the `<frame>`s around it. `weighed`: the body's inertia follows from its geoms.
    pub(super) fn compile(
        &self,
        r: Reader,
        body: Id,
        frame: (Vec3, Quat),
        weighed: bool,
        s: &Settings,
    ) -> Result<Compiled, MjcfError> {
        let (mut size, mut sizes) = (self.size, self.sizes);
        let (mut pos, mut quat) = (self.pos, orient(r, &self.orientation, s)?);
        // a primitive that names a mesh is fitted to it
        let external = self.kind.external() || self.asset.is_some();
        if external && self.asset.is_none() {
            return Err(r.invalid("it names no asset for its shape; write mesh=\"…\" or hfield=\"…\""));
        }
        if let Some((a, line)) = &self.fromto {
            if external || matches!(self.kind, Primitive::Sphere | Primitive::Plane) {
                return Err(
                    r.wrong(a, "nothing: only capsules, cylinders, boxes and ellipsoids stretch between points")
                );
            }
            if pos != [0.0; 3] {
                return Err(r.wrong(a, "no pos next to it; remove one of them"));
            }
            let stretched = stretch(r, a, *line)?;
            (pos, quat) = (stretched.pos, stretched.quat);
            let last = self.kind.sizes() - 1;
            if self.kind.sizes() == 3 {
                size[1] = size[0];
            }
            size[last] = stretched.half;
            sizes = if sizes == 0 { 0 } else { last + 1 };
        }
        if !external && self.kind != Primitive::Plane {
            let needed = self.kind.sizes();
            if sizes < needed || size[..needed].iter().any(|x| *x <= 0.0) {
                let given = self.fromto.is_some();
                let numbers = if given {
                    "its radius"
                } else {
                    ["", "a radius", "a radius and a half length", "three half sizes"][needed]
                };
                return Err(r.invalid(format!("it has no size; write size=\"…\" with {numbers} above 0")));
            }
        }
        (pos, quat) = compose(frame, pos, quat);
        let counted = weighed && (s.compiler.inertia_groups[0]..=s.compiler.inertia_groups[1]).contains(&self.group);
        if external && counted && self.mass.unwrap_or(self.density) != 0.0 {
            return Err(r.refuse_element(
                "its mass and inertia are the mesh's, which is not read; give the body an <inertial>, or the geom mass=\"0\"",
            ));
        }
        let (mass, inertia) = self.kind.weigh(size, self.mass, self.density);
        let shape = match self.kind {
            _ if external => Shape::Visual { size },
            Primitive::Plane => Shape::Plane,
            Primitive::Sphere => Shape::Sphere { radius: size[0] },
            Primitive::Capsule => Shape::Capsule { radius: size[0], half: size[1] },
            Primitive::Cylinder => Shape::Cylinder { radius: size[0], half: size[1] },
            Primitive::Ellipsoid => Shape::Ellipsoid { size },
            _ => Shape::Box { size },
        };
        let medium = s.opt.density != 0.0 || s.opt.viscosity != 0.0;
        if external && self.fluid && medium {
            return Err(r.refuse_element(
                "the medium's forces on it follow from its mesh, which is not read; write fluidshape=\"none\"",
            ));
        }
        Ok(Compiled {
            geom: Geom {
                name: self.name.clone(),
                body,
                shape,
                pos,
                quat,
                rbound: if external { 0.0 } else { self.kind.bound(size) },
                rgba: self.rgba,
                fluid: (self.fluid && !external).then_some(self.fluid_coef),
            },
            kind: self.kind,
            touch: self.touch,
            mass: if counted && !external { mass } else { 0.0 },
            inertia,
        })
    }
}

/// A contact dimension.
pub(super) fn condim(r: Reader, a: &Attr) -> Result<usize, MjcfError> {
    match r.count(a)? {
        condim @ (1 | 3 | 4 | 6) => Ok(condim),
        _ => Err(r.wrong(a, "1, 3, 4 or 6")),
    }
}

/// The quaternion of an orientation attribute, or none. Contradicting ones are refused.
pub(super) fn orient(r: Reader, given: &Option<(Attr, Orientation)>, s: &Settings) -> Result<Quat, MjcfError> {
    if let [_, second, ..] = orientation_attrs(r.node)[..] {
        return Err(r.wrong(second, "one orientation only; remove it or the other one"));
    }
    match given {
        None => Ok([1.0, 0.0, 0.0, 0.0]),
        Some((a, o)) => o.resolve(s.compiler.degree, s.compiler.eulerseq).map_err(|expected| r.wrong(a, expected)),
    }
}
