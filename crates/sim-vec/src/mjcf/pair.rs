//! Which geoms may touch, and how: filters, `<pair>`, `<exclude>`.

use std::collections::BTreeMap;

use super::error::MjcfError;
use super::geom::{Compiled, Touch, condim};
use super::names::Names;
use super::settings::Settings;
use super::shape::Primitive;
use super::source::{Attr, Node, Sources};
use super::value::Reader;
use crate::model::{Body, Id, Pair, Softness};

/// What a `<pair>` says over what its geoms say.
#[derive(Clone, Debug, Default)]
pub(super) struct PairSpec {
    condim: Option<usize>,
    friction: Option<[f64; 5]>,
    solref: Option<Vec<f64>>,
    solimp: Option<Vec<f64>>,
    margin: Option<f64>,
    gap: Option<f64>,
}

impl PairSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "condim" => self.condim = Some(condim(r, a)?),
                "friction" => {
                    let mut f = [1.0, 1.0, 0.005, 0.0001, 0.0001];
                    r.prefix(a, &mut f)?;
                    self.friction = Some(f);
                }
                "solref" => self.solref = Some(r.numbers(a, 1, 2)?),
                "solimp" => self.solimp = Some(r.numbers(a, 1, 5)?),
                "margin" => self.margin = Some(r.magnitude(a)?),
                "gap" => self.gap = Some(r.magnitude(a)?),
                "name" | "class" | "geom1" | "geom2" => {}
                "solreffriction" => {
                    if r.numbers(a, 1, 2)?.iter().any(|x| *x != 0.0) {
                        return Err(r.refuse(a, "remove it: friction has the softness of its contact"));
                    }
                }
                "adhesion" => {
                    if r.numbers(a, 1, usize::MAX)?.iter().any(|x| *x != 0.0) {
                        return Err(r.refuse(a, "remove it: contacts only push"));
                    }
                }
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    fn over(&self, mut pair: Pair) -> Pair {
        fn put(to: &mut [f64], from: &Option<Vec<f64>>) {
            if let Some(v) = from {
                to[..v.len()].copy_from_slice(v);
            }
        }
        put(&mut pair.softness.solref, &self.solref);
        put(&mut pair.softness.solimp, &self.solimp);
        pair.condim = self.condim.unwrap_or(pair.condim);
        pair.friction = self.friction.unwrap_or(pair.friction);
        let gap = self.gap.unwrap_or(pair.gap);
        pair.margin = self.margin.unwrap_or(pair.margin - pair.gap) + gap;
        pair.gap = gap;
        pair
    }
}

/// Contact parameters of two geoms: the one of higher priority decides; among equals condim and friction are the
/// larger ones, softness is averaged with weights `solmix`, margins and gaps add up.
fn mix(geoms: [Id; 2], a: &Touch, b: &Touch) -> Pair {
    let weight = match (a.priority.cmp(&b.priority), a.solmix + b.solmix) {
        (std::cmp::Ordering::Greater, _) => 1.0,
        (std::cmp::Ordering::Less, _) => 0.0,
        (_, sum) if sum < 1e-15 => 0.5,
        (_, sum) => a.solmix / sum,
    };
    let blend = |x: f64, y: f64| weight * x + (1.0 - weight) * y;
    let (r, s) = (a.softness.solref, b.softness.solref);
    let solref = if r[0] > 0.0 && s[0] > 0.0 || a.priority != b.priority {
        [0, 1].map(|i| blend(r[i], s[i]))
    } else {
        [0, 1].map(|i| r[i].min(s[i]))
    };
    let solimp = std::array::from_fn(|i| blend(a.softness.solimp[i], b.softness.solimp[i]));
    let (condim, friction) = match a.priority.cmp(&b.priority) {
        std::cmp::Ordering::Greater => (a.condim, a.friction),
        std::cmp::Ordering::Less => (b.condim, b.friction),
        std::cmp::Ordering::Equal => {
            (a.condim.max(b.condim), std::array::from_fn(|i| a.friction[i].max(b.friction[i])))
        }
    };
    let [slide, twist, roll] = friction;
    let friction = [slide, slide, twist, roll, roll];
    let gap = a.gap + b.gap;
    Pair { geoms, condim, friction, softness: Softness { solref, solimp }, margin: a.margin + b.margin + gap, gap }
}

/// Everything that may touch.
pub(super) struct Touching<'a> {
    pub(super) sources: &'a Sources,
    pub(super) settings: &'a Settings,
    pub(super) bodies: &'a [Body],
    pub(super) geoms: &'a [Compiled],
    /// Elements of the geoms, for messages.
    pub(super) nodes: &'a [&'a Node],
    pub(super) geom_names: &'a Names,
    pub(super) body_names: &'a Names,
}

impl Touching<'_> {
    /// Pairs in the order of their geoms. `class` finds the values a `<pair>` starts from.
    pub(super) fn pairs(
        &self,
        root: &Node,
        class: impl Fn(Reader) -> Result<PairSpec, MjcfError>,
    ) -> Result<Vec<Pair>, MjcfError> {
        let mut explicit = BTreeMap::new();
        let mut excluded = Vec::new();
        for node in root.children.iter().filter(|c| c.tag == "contact").flat_map(|c| &c.children) {
            let r = Reader { sources: self.sources, node };
            match node.tag.as_str() {
                "pair" => {
                    let [a, b] = [self.named(r, "geom1", self.geom_names)?, self.named(r, "geom2", self.geom_names)?];
                    if a == b {
                        return Err(r.invalid("geom1 and geom2 are the same; name two geoms"));
                    }
                    let mut spec = class(r)?;
                    spec.read(r)?;
                    explicit.insert((a.min(b), a.max(b)), spec);
                }
                "exclude" => {
                    let [a, b] = [self.named(r, "body1", self.body_names)?, self.named(r, "body2", self.body_names)?];
                    excluded.push((a.min(b), a.max(b)));
                }
                _ => return Err(r.refuse_element("write <pair> or <exclude>")),
            }
        }
        let mut pairs = Vec::new();
        if !self.settings.opt.contact {
            return Ok(pairs);
        }
        for a in 0..self.geoms.len() {
            for b in a + 1..self.geoms.len() {
                let spec = explicit.get(&(a, b));
                if spec.is_none() && !self.meet(a, b, &excluded) {
                    continue;
                }
                let order = if self.geoms[a].kind as u8 <= self.geoms[b].kind as u8 { [a, b] } else { [b, a] };
                let [first, second] = order;
                self.check(first, second)?;
                let mixed = mix(order, &self.geoms[first].touch, &self.geoms[second].touch);
                pairs.push(spec.map_or(mixed.clone(), |s| s.over(mixed)));
            }
        }
        Ok(pairs)
    }

    fn named(&self, r: Reader, attribute: &str, names: &Names) -> Result<Id, MjcfError> {
        let a: &Attr =
            r.node.attr(attribute).ok_or_else(|| r.invalid(format!("it names nothing; write {attribute}=\"…\"")))?;
        names.find(r, a)
    }

    /// Whether two geoms pass the filters.
    fn meet(&self, a: Id, b: Id, excluded: &[(Id, Id)]) -> bool {
        let (g, h) = (&self.geoms[a], &self.geoms[b]);
        let (ba, bb) = (g.geom.body, h.geom.body);
        let weld = |b: Id| self.bodies[b].weld;
        let (wa, wb) = (weld(ba), weld(bb));
        let above = |w: Id| weld(self.bodies[w].parent);
        let affine = g.touch.contype & h.touch.conaffinity != 0 || h.touch.contype & g.touch.conaffinity != 0;
        let related = wa != 0 && wb != 0 && (wa == above(wb) || wb == above(wa));
        affine && wa != wb && !(self.settings.filter_parent && related) && !excluded.contains(&(ba.min(bb), ba.max(bb)))
    }

    /// Only planes, spheres and capsules collide.
    fn check(&self, first: Id, second: Id) -> Result<(), MjcfError> {
        let kinds = [self.geoms[first].kind, self.geoms[second].kind];
        for (id, kind) in [(first, kinds[0]), (second, kinds[1])] {
            if !matches!(kind, Primitive::Plane | Primitive::Sphere | Primitive::Capsule) {
                let r = Reader { sources: self.sources, node: self.nodes[id] };
                return Err(r.refuse_element(
                    "only planes, spheres and capsules collide; change its type, or write contype=\"0\" conaffinity=\"0\"",
                ));
            }
        }
        Ok(())
    }
}
