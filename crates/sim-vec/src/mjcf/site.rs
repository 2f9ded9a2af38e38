//! `<site>`.

use super::error::MjcfError;
use super::geom::orient;
use super::rotation::{Orientation, Quat, Vec3, compose};
use super::settings::Settings;
use super::shape::stretch;
use super::source::Attr;
use super::value::Reader;
use crate::model::{Id, Site, SiteShape};

/// A site as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct SiteSpec {
    name: String,
    shape: SiteShape,
    size: [f64; 3],
    fromto: Option<(Attr, [f64; 6])>,
    pos: Vec3,
    orientation: Option<(Attr, Orientation)>,
}

impl Default for SiteSpec {
    fn default() -> Self {
        SiteSpec {
            name: String::new(),
            shape: SiteShape::Sphere,
            size: [0.005; 3],
            fromto: None,
            pos: [0.0; 3],
            orientation: None,
        }
    }
}

impl SiteSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            if let Some(o) = r.orientation(a)? {
                self.orientation = Some((a.clone(), o));
                continue;
            }
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "type" => {
                    let words = [
                        ("sphere", SiteShape::Sphere),
                        ("capsule", SiteShape::Capsule),
                        ("ellipsoid", SiteShape::Ellipsoid),
                        ("cylinder", SiteShape::Cylinder),
                        ("box", SiteShape::Box),
                    ];
                    self.shape = r.word(a, &words)?;
                }
                "size" => r.prefix(a, &mut self.size)?,
                "fromto" => self.fromto = Some((a.clone(), r.vector(a)?)),
                "pos" => self.pos = r.vector(a)?,
                // looks and user data
                "class" | "group" | "material" | "rgba" | "user" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    /// The site of body `body` within the `<frame>`s around it.
    pub(super) fn compile(&self, r: Reader, body: Id, frame: (Vec3, Quat), s: &Settings) -> Result<Site, MjcfError> {
        let (mut pos, mut quat, mut size) = (self.pos, orient(r, &self.orientation, s)?, self.size);
        if let Some((a, line)) = &self.fromto {
            let half = match self.shape {
                SiteShape::Sphere => return Err(r.wrong(a, "nothing: a sphere does not stretch between points")),
                SiteShape::Capsule | SiteShape::Cylinder => 1,
                SiteShape::Ellipsoid | SiteShape::Box => 2,
            };
            let stretched = stretch(r, a, *line)?;
            (pos, quat, size[half]) = (stretched.pos, stretched.quat, stretched.half);
        }
        if size.iter().any(|x| *x < 0.0) || size[0] == 0.0 {
            return Err(r.invalid("it has no size; write size=\"…\" above 0"));
        }
        (pos, quat) = compose(frame, pos, quat);
        Ok(Site { name: self.name.clone(), body, pos, quat, size, shape: self.shape })
    }
}
