//! Which geoms may touch, and how: filters, `<pair>`, `<exclude>`.

use std::collections::BTreeMap;

use super::error::MjcfError;
use super::geom::{Compiled, Touch, condim};
use super::joint::SOFTNESS;
use super::names::Names;
use super::settings::Settings;
use super::source::{Attr, Node, Sources};
use super::value::Reader;
use crate::model::{Body, Id, Pair, Shape, Softness};

/// What a `<pair>` says, over its class; the geoms' own contact parameters do not count.
#[derive(Clone, Debug)]
pub(super) struct PairSpec {
    condim: usize,
    friction: [f64; 5],
    softness: Softness,
    margin: f64,
    gap: f64,
}

impl Default for PairSpec {
    fn default() -> Self {
        PairSpec { condim: 3, friction: [1.0, 1.0, 0.005, 0.0001, 0.0001], softness: SOFTNESS, margin: 0.0, gap: 0.0 }
    }
}

impl PairSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "condim" => self.condim = condim(r, a)?,
                "friction" => r.prefix(a, &mut self.friction)?,
                "solref" => r.prefix(a, &mut self.softness.solref)?,
                "solimp" => r.prefix(a, &mut self.softness.solimp)?,
                "margin" => self.margin = r.magnitude(a)?,
                "gap" => self.gap = r.magnitude(a)?,
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

    fn pair(&self, geoms: [Id; 2]) -> Pair {
        let PairSpec { condim, friction, softness, margin, gap } = self.clone();
        Pair { geoms, condim, friction, softness, margin: margin + gap, gap }
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
        let mut explicit: BTreeMap<_, Vec<PairSpec>> = BTreeMap::new();
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
                    explicit.entry((a.min(b), a.max(b))).or_default().push(spec);
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
                let specs = explicit.get(&(a, b));
                if self.still(a) && self.still(b) || specs.is_none() && !self.meet(a, b, &excluded) {
                    continue;
                }
                let order = if self.geoms[a].kind as u8 <= self.geoms[b].kind as u8 { [a, b] } else { [b, a] };
                self.check(order)?;
                match specs {
                    Some(specs) => pairs.extend(specs.iter().map(|s| s.pair(order))),
                    None => pairs.push(mix(order, &self.geoms[order[0]].touch, &self.geoms[order[1]].touch)),
                }
            }
        }
        Ok(pairs)
    }

    /// No dof moves the geom.
    fn still(&self, geom: Id) -> bool {
        self.bodies[self.bodies[self.geoms[geom].geom.body].weld].dofs.is_empty()
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

    /// Only shapes that the file itself describes collide.
    fn check(&self, geoms: [Id; 2]) -> Result<(), MjcfError> {
        for id in geoms {
            if matches!(self.geoms[id].geom.shape, Shape::Visual { .. }) {
                let r = Reader { sources: self.sources, node: self.nodes[id] };
                return Err(r.refuse_element(
                    "meshes and height fields do not collide; write contype=\"0\" conaffinity=\"0\" and put primitive \
                     geoms in its place",
                ));
            }
        }
        Ok(())
    }
}
