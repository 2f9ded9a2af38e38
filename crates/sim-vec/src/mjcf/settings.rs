//! `<compiler>`, `<option>` with `<flag>`, `<size>` and `<statistic>`.

use super::error::MjcfError;
use super::source::{Node, Sources};
use super::value::{Auto, Reader};
use crate::model::{Cone, Integrator, Options};

/// How the rest of the file is to be understood.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    /// Angles are in degrees.
    pub(super) degree: bool,
    /// Axes of `euler`, small letters moving, capitals fixed.
    pub(super) eulerseq: [u8; 3],
    /// A range limits although `limited` is not given.
    pub(super) autolimits: bool,
    /// Body inertias come from geoms: always, never, or where there is no `<inertial>`.
    pub(super) inertia_from_geom: Auto,
    /// Geom groups that have mass, first and last.
    pub(super) inertia_groups: [i32; 2],
    /// Least body mass and moment.
    pub(super) bound_mass: f64,
    pub(super) bound_inertia: f64,
    /// Moments that no body can have are replaced by their mean.
    pub(super) balance_inertia: bool,
    /// Frames of free bodies without children are moved to their centres of mass, where the joint does not say.
    pub(super) align_free: bool,
    /// The model's total mass, if positive.
    pub(super) total_mass: f64,
}

/// What flags and sizes say beyond [`Options`].
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) compiler: Compiler,
    pub(super) opt: Options,
    /// Equalities hold.
    pub(super) equality: bool,
    /// Actuators act.
    pub(super) actuation: bool,
    /// Dry friction counts.
    pub(super) friction_loss: bool,
    /// Springs and dampers of joints and tendons act.
    pub(super) spring: bool,
    pub(super) damper: bool,
    /// Controls are clamped to their ranges.
    pub(super) clamp_ctrl: bool,
    /// A body and its parent do not collide.
    pub(super) filter_parent: bool,
    /// Keyframes at least.
    pub(super) keyframes: usize,
    /// Mean inertia, if the file fixes it.
    pub(super) mean_inertia: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            compiler: Compiler {
                degree: true,
                eulerseq: *b"xyz",
                autolimits: true,
                inertia_from_geom: Auto::Unsaid,
                inertia_groups: [0, 5],
                bound_mass: 0.0,
                bound_inertia: 0.0,
                balance_inertia: false,
                align_free: false,
                total_mass: -1.0,
            },
            opt: Options {
                timestep: 0.002,
                gravity: [0.0, 0.0, -9.81],
                integrator: Integrator::Euler,
                iterations: 100,
                tolerance: 1e-8,
                ls_iterations: 50,
                ls_tolerance: 0.01,
                euler_damp: true,
                contact: true,
                limit: true,
                constraint: true,
                cone: Cone::Pyramidal,
                impratio: 1.0,
                density: 0.0,
                viscosity: 0.0,
                wind: [0.0; 3],
                ccd_tolerance: 1e-6,
                ccd_iterations: 35,
            },
            equality: true,
            actuation: true,
            friction_loss: true,
            spring: true,
            damper: true,
            clamp_ctrl: true,
            filter_parent: true,
            keyframes: 0,
            mean_inertia: None,
        }
    }
}

impl Settings {
    /// Reads the sections of this kind that stand directly in `<mujoco>`; later ones go over earlier ones.
    pub(super) fn read(sources: &Sources, root: &Node, skipped: &mut Vec<String>) -> Result<Self, MjcfError> {
        let mut s = Settings::default();
        let sections = |tag: &'static str| root.children.iter().filter(move |c| c.tag == tag);
        for node in sections("compiler") {
            s.compiler.read(Reader { sources, node })?;
        }
        let mut gravity = true;
        for node in sections("option") {
            s.option(Reader { sources, node })?;
            for flag in &node.children {
                s.flags(Reader { sources, node: flag }, &mut gravity, skipped)?;
            }
        }
        if !gravity {
            s.opt.gravity = [0.0; 3];
        }
        for node in sections("size") {
            let r = Reader { sources, node };
            if let Some(a) = node.attr("nkey").filter(|a| a.value.trim() != "-1") {
                s.keyframes = r.count(a)?.min(1 << 16);
            }
        }
        for node in sections("statistic") {
            let r = Reader { sources, node };
            if let Some(a) = node.attr("meaninertia") {
                s.mean_inertia = Some(r.magnitude(a)?);
            }
        }
        Ok(s)
    }

    fn option(&mut self, r: Reader) -> Result<(), MjcfError> {
        let o = &mut self.opt;
        for a in &r.node.attrs {
            match a.name.as_str() {
                "timestep" => {
                    o.timestep = r.magnitude(a)?;
                    if o.timestep == 0.0 {
                        return Err(r.wrong(a, "seconds above 0"));
                    }
                }
                "gravity" => o.gravity = r.vector(a)?,
                "integrator" => {
                    let words = [
                        ("Euler", Some(Integrator::Euler)),
                        ("RK4", Some(Integrator::Rk4)),
                        ("implicit", None),
                        ("implicitfast", Some(Integrator::ImplicitFast)),
                    ];
                    o.integrator = r.word(a, &words)?.ok_or_else(|| {
                        r.refuse(a, "write integrator=\"implicitfast\", which leaves out the Coriolis terms only")
                    })?;
                }
                "iterations" => o.iterations = r.count(a)?,
                "tolerance" => o.tolerance = r.magnitude(a)?,
                "ls_iterations" => o.ls_iterations = r.count(a)?,
                "ls_tolerance" => o.ls_tolerance = r.magnitude(a)?,
                "cone" => o.cone = r.word(a, &[("pyramidal", Cone::Pyramidal), ("elliptic", Cone::Elliptic)])?,
                "solver" => {
                    if !r.word(a, &[("Newton", true), ("CG", false), ("PGS", false)])? {
                        return Err(r.refuse(a, "write solver=\"Newton\"; it finds the same optimum"));
                    }
                }
                "jacobian" => r.word(a, &[("auto", ()), ("dense", ()), ("sparse", ())])?,
                "impratio" => {
                    o.impratio = r.number(a)?;
                    if o.impratio <= 0.0 {
                        return Err(r.wrong(a, "a number above 0"));
                    }
                }
                "noslip_iterations" => {
                    if r.count(a)? != 0 {
                        return Err(r.refuse(a, "write noslip_iterations=\"0\""));
                    }
                }
                "density" => o.density = r.magnitude(a)?,
                "viscosity" => o.viscosity = r.magnitude(a)?,
                "wind" => o.wind = r.vector(a)?,
                "ccd_tolerance" => o.ccd_tolerance = r.magnitude(a)?,
                "ccd_iterations" => o.ccd_iterations = r.count(a)?,
                "actuatorgroupdisable" => {
                    if !a.value.trim().is_empty() {
                        return Err(r.refuse(a, "remove the actuators instead"));
                    }
                }
                // need the override flag, the sleep flag, noslip, other collisions, or a magnetometer
                "magnetic" => drop(r.vector::<3>(a)?),
                "o_margin" | "noslip_tolerance" | "sleep_tolerance" => drop(r.number(a)?),
                "o_solref" | "o_solimp" | "o_friction" => drop(r.numbers(a, 1, 5)?),
                "sdf_iterations" | "sdf_initpoints" => drop(r.integer(a)?),
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    fn flags(&mut self, r: Reader, gravity: &mut bool, skipped: &mut Vec<String>) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            let on = r.enabled(a)?;
            match a.name.as_str() {
                "constraint" => self.opt.constraint = on,
                "limit" => self.opt.limit = on,
                "contact" => self.opt.contact = on,
                "eulerdamp" => self.opt.euler_damp = on,
                "gravity" => *gravity = on,
                "spring" => self.spring = on,
                "damper" => self.damper = on,
                "clampctrl" => self.clamp_ctrl = on,
                "filterparent" => self.filter_parent = on,
                "frictionloss" => self.friction_loss = on,
                "equality" => self.equality = on,
                "actuation" => self.actuation = on,
                // about speed and diagnosis
                "midphase" | "island" | "autoreset" | "energy" | "fwdinv" | "invdiscrete" => {
                    skipped.push(format!("flag {}", a.name));
                }
                "warmstart" | "refsafe" | "sensor" | "nativeccd" | "multiccd" => {
                    if !on {
                        return Err(r.refuse(a, format!("write {}=\"enable\" or nothing", a.name)));
                    }
                }
                _ => {
                    if on {
                        return Err(r.refuse(a, format!("write {}=\"disable\" or nothing", a.name)));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Compiler {
    fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "angle" => self.degree = r.word(a, &[("degree", true), ("radian", false)])?,
                "autolimits" => self.autolimits = r.boolean(a)?,
                "eulerseq" => {
                    let letters: [u8; 3] = a.value.as_bytes().try_into().map_err(|_| r.wrong(a, EULERSEQ))?;
                    if !letters.iter().all(|l| b"xyzXYZ".contains(l)) {
                        return Err(r.wrong(a, EULERSEQ));
                    }
                    self.eulerseq = letters;
                }
                "inertiafromgeom" => self.inertia_from_geom = r.auto(a)?,
                "inertiagrouprange" => {
                    let [low, high] = r.vector::<2>(a)?;
                    self.inertia_groups = [low as i32, high as i32];
                }
                "boundmass" => self.bound_mass = r.magnitude(a)?,
                "boundinertia" => self.bound_inertia = r.magnitude(a)?,
                "balanceinertia" => self.balance_inertia = r.boolean(a)?,
                "settotalmass" => self.total_mass = r.number(a)?,
                "coordinate" => {
                    if !r.word(a, &[("local", true), ("global", false)])? {
                        return Err(
                            r.refuse(a, "give every frame in its parent's, as MuJoCo itself has required since 3.0")
                        );
                    }
                }
                "alignfree" => self.align_free = r.boolean(a)?,
                "fusestatic" => {
                    if r.boolean(a)? {
                        return Err(
                            r.refuse(a, "merge the bodies without joints in the file, or write fusestatic=\"false\"")
                        );
                    }
                }
                // about meshes, textures, saving and speed
                "assetdir" | "meshdir" | "texturedir" | "strippath" | "discardvisual" | "fitaabb" | "usethread"
                | "saveinertial" | "savecanonical" | "savecompiled" | "passthrough" | "conflict" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }
}

const EULERSEQ: &str = "three letters out of xyzXYZ";
