//! Which elements and attributes MJCF has (MuJoCo 3.17's own listing), to tell a misspelt name from an unsupported one.
//!
//! Sections that are refused as a whole (deformable, extension) are named but not listed further.

use super::error::MjcfError;
use super::source::{Node, Sources};

/// An element: its key (`parent/tag` where the tag alone is ambiguous), attributes, and children.
struct Kind(&'static str, &'static [&'static str], &'static str);

const TURN: &str = "quat axisangle xyaxes zaxis euler";
const JOINT: &str = "type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit solreffriction \
    solimpfriction stiffness range actuatorfrcrange actuatorgravcomp margin ref springref armature damping frictionloss user";
const GEOM: &str = "type contype conaffinity condim group priority size material friction mass density shellinertia solmix \
    solref solimp margin gap surfacevel adhesion fromto pos hfield mesh fitscale rgba fluidshape fluidcoef user";
const SITE: &str = "type group pos material size fromto rgba user mesh";
const CAMERA: &str =
    "projection fovy ipd resolution output pos mode focal focalpixel principal principalpixel sensorsize user";
const LIGHT: &str = "active ambient attenuation bulbradius castshadow cutoff diffuse dir directional exponent intensity mode \
    pos range softness specular texture type";
const PAIR: &str = "adhesion condim friction gap margin solimp solref solreffriction";
const MATERIAL: &str = "emission metallic reflectance rgba roughness shininess specular texrepeat texture texuniform";
const TEXTURE: &str = "builtin colorspace embed gridlayout gridsize height hflip mark markrgb nchannel random rgb1 rgb2 type \
    vflip width";
const ACTUATOR: &str = "armature cranklength ctrllimited ctrlrange damping delay forcelimited forcerange gear group interp \
    nsample user";
const TARGET: &str = "name class joint jointinparent tendon slidersite cranksite site refsite lengthrange";
const GENERAL: &str = "actdim actearly actlimited actrange biasprm biastype dynprm dyntype ffrange gainprm gaintype \
    inheritrange input velrange";
const SENSOR: &str = "cutoff delay interp interval name noise nsample user";
const FRAME: &str = "objname objtype refname reftype";
const SECTIONS: &str = "compiler option size visual statistic default custom extension asset worldbody contact deformable \
    tendon equality actuator sensor keyframe include";
const BODY: &str = "body frame replicate inertial joint freejoint geom attach site camera light plugin composite flexcomp \
    include";
const TENDON: &str = "damping frictionloss group limited margin range solimpfriction solimplimit solreffriction solreflimit \
    springlength stiffness user";
const FORCES: &str = "name class actuatorfrclimited actuatorfrcrange armature";
const EQUALITY: &str = "active class name solimp solref";
/// Shortcuts that are simulated, with the attributes of their own.
const SHORTCUTS: [(&str, &str); 7] = [
    ("general", GENERAL),
    ("motor", ""),
    ("position", "kp kv dampratio timeconst inheritrange"),
    ("velocity", "kv"),
    ("intvelocity", "kp kv dampratio inheritrange actlimited actrange"),
    ("damper", "kv"),
    ("cylinder", "timeconst area diameter bias"),
];
const ACTUATORS: &str =
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor";

const KINDS: &[Kind] = &[
    Kind("mujoco", &["model"], SECTIONS),
    Kind(
        "compiler",
        &[
            "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict coordinate discardvisual \
           eulerseq fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir passthrough savecanonical savecompiled \
           saveinertial settotalmass strippath texturedir usethread",
        ],
        "lengthrange",
    ),
    Kind(
        "lengthrange",
        &["accel interval inttotal maxforce mode timeconst timestep tolrange useexisting uselimit"],
        "",
    ),
    Kind(
        "option",
        &[
            "actuatorgroupdisable ccd_iterations ccd_tolerance cone density gravity impratio integrator iterations jacobian \
           ls_iterations ls_tolerance magnetic noslip_iterations noslip_tolerance o_friction o_margin o_solimp o_solref \
           sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance viscosity wind",
        ],
        "flag",
    ),
    Kind(
        "flag",
        &["actuation autoreset clampctrl constraint contact damper diagexact energy equality eulerdamp filterparent \
           frictionloss fwdinv gravity invdiscrete ipc island limit midphase multiccd nativeccd override refsafe sensor \
           sleep spring warmstart"],
        "",
    ),
    Kind(
        "size",
        &["memory nconmax njmax nkey nstack nuser_actuator nuser_body nuser_cam nuser_geom nuser_jnt nuser_sensor \
           nuser_site nuser_tendon nuserdata"],
        "",
    ),
    Kind("statistic", &["center extent meaninertia meanmass meansize"], ""),
    Kind("visual", &[], "global quality headlight map scale rgba"),
    Kind(
        "global",
        &[
            "azimuth bvactive cameraid elevation ellipsoidinertia fovy glow ipd linewidth offheight offwidth orthographic \
           realtime",
        ],
        "",
    ),
    Kind("quality", &["numquads numslices numstacks offsamples shadowsize"], ""),
    Kind("headlight", &["active ambient diffuse specular"], ""),
    Kind(
        "map",
        &[
            "actuatortendon alpha fogend fogstart force haze shadowclip shadowscale stiffness stiffnessrot torque zfar znear",
        ],
        "",
    ),
    Kind(
        "scale",
        &[
            "actuatorlength actuatorwidth camera com connect constraint contactheight contactwidth forcewidth framelength \
           framewidth frustum jointlength jointwidth light selectpoint slidercrank",
        ],
        "",
    ),
    Kind(
        "rgba",
        &["actuator actuatornegative actuatorpositive bv bvactive camera com connect constraint contactforce \
           contactfriction contactgap contactpoint contacttorque crankbroken fog force frustum haze inertia joint light \
           rangefinder selectpoint slidercrank"],
        "",
    ),
    Kind(
        "default",
        &["class"],
        "default mesh texture material joint geom site camera light pair equality tendon general \
        motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor include",
    ),
    Kind("default/mesh", &["inertia maxhullvert scale"], ""),
    Kind("default/texture", &[TEXTURE], ""),
    Kind("default/material", &[MATERIAL], "layer"),
    Kind("default/joint", &[JOINT], ""),
    Kind("default/geom", &[GEOM, TURN], ""),
    Kind("default/site", &[SITE, TURN], ""),
    Kind("default/camera", &[CAMERA, TURN], ""),
    Kind("default/light", &[LIGHT], ""),
    Kind("default/pair", &[PAIR], ""),
    Kind("default/equality", &["active solimp solref"], ""),
    Kind("default/tendon", &[TENDON, "material rgba width"], ""),
    Kind("default/general", &[ACTUATOR, SHORTCUTS[0].1], ""),
    Kind("default/motor", &[ACTUATOR, SHORTCUTS[1].1], ""),
    Kind("default/position", &[ACTUATOR, SHORTCUTS[2].1], ""),
    Kind("default/velocity", &[ACTUATOR, SHORTCUTS[3].1], ""),
    Kind("default/intvelocity", &[ACTUATOR, SHORTCUTS[4].1], ""),
    Kind("default/damper", &[ACTUATOR, SHORTCUTS[5].1], ""),
    Kind("default/cylinder", &[ACTUATOR, SHORTCUTS[6].1], ""),
    Kind("custom", &[], "numeric text tuple"),
    Kind("numeric", &["data name size"], ""),
    Kind("text", &["data name"], ""),
    Kind("tuple", &["name"], "element"),
    Kind("element", &["objname objtype prm"], ""),
    Kind("asset", &[], "mesh hfield skin texture material model include"),
    Kind(
        "asset/mesh",
        &["builtin class content_type face file inertia material maxhullvert name normal params refpos refquat scale \
           smoothnormal texcoord vertex"],
        "plugin",
    ),
    Kind("hfield", &["content_type elevation file name ncol nrow size"], ""),
    Kind("skin", &["face file group inflate material name rgba texcoord vertex"], "bone"),
    Kind("bone", &["bindpos bindquat body vertid vertweight"], ""),
    Kind(
        "asset/texture",
        &["name class content_type file fileback filedown filefront fileleft fileright fileup", TEXTURE],
        "",
    ),
    Kind("asset/material", &["name class", MATERIAL], "layer"),
    Kind("layer", &["role texture"], ""),
    Kind("model", &["content_type file name"], ""),
    Kind("worldbody", &[], BODY),
    Kind("body", &["name childclass pos mocap gravcomp sleep simple fuse user", TURN], BODY),
    Kind("frame", &["name childclass pos", TURN], BODY),
    Kind("inertial", &["pos mass diaginertia fullinertia", TURN], ""),
    Kind("joint", &["name class", JOINT], ""),
    Kind("freejoint", &["name group align"], ""),
    Kind("geom", &["name class", GEOM, TURN], "plugin"),
    Kind("site", &["name class", SITE, TURN], ""),
    Kind("camera", &["name class target", CAMERA, TURN], ""),
    Kind("light", &["name class target", LIGHT], ""),
    Kind("contact", &[], "pair exclude include"),
    Kind("pair", &["name class geom1 geom2", PAIR], ""),
    Kind("exclude", &["name body1 body2"], ""),
    Kind(
        "actuator",
        &[],
        "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion \
        dcmotor plugin include",
    ),
    Kind("general", &["body", ACTUATOR, TARGET, SHORTCUTS[0].1], ""),
    Kind("motor", &[ACTUATOR, TARGET, SHORTCUTS[1].1], ""),
    Kind("position", &[ACTUATOR, TARGET, SHORTCUTS[2].1], ""),
    Kind("velocity", &[ACTUATOR, TARGET, SHORTCUTS[3].1], ""),
    Kind("intvelocity", &[ACTUATOR, TARGET, SHORTCUTS[4].1], ""),
    Kind("actuator/damper", &[ACTUATOR, TARGET, SHORTCUTS[5].1], ""),
    Kind("actuator/cylinder", &[ACTUATOR, TARGET, SHORTCUTS[6].1], ""),
    Kind("tendon", &[], "spatial fixed include"),
    Kind("spatial", &[TENDON, FORCES, "material rgba width"], "site geom pulley"),
    Kind("fixed", &[TENDON, FORCES], "joint"),
    Kind("spatial/site", &["site"], ""),
    Kind("spatial/geom", &["geom sidesite"], ""),
    Kind("pulley", &["divisor"], ""),
    Kind("fixed/joint", &["joint coef"], ""),
    Kind("equality", &[], "connect weld joint tendon flex flexvert flexstrain include"),
    Kind("connect", &[EQUALITY, "anchor body1 body2 site1 site2"], ""),
    Kind("weld", &[EQUALITY, "anchor body1 body2 relpose site1 site2 torquescale"], ""),
    Kind("equality/joint", &[EQUALITY, "joint1 joint2 polycoef"], ""),
    Kind("equality/tendon", &[EQUALITY, "tendon1 tendon2 polycoef"], ""),
    Kind(
        "sensor",
        &[],
        "touch accelerometer velocimeter gyro force torque magnetometer camprojection rangefinder jointpos jointvel \
         tendonpos tendonvel actuatorpos actuatorvel actuatorfrc jointactuatorfrc tendonactuatorfrc ballquat ballangvel \
         jointlimitpos jointlimitvel jointlimitfrc tendonlimitpos tendonlimitvel tendonlimitfrc framepos framequat \
         framexaxis frameyaxis framezaxis framelinvel frameangvel framelinacc frameangacc subtreecom subtreelinvel \
         subtreeangmom insidesite distance normal fromto contact e_potential e_kinetic clock tactile user plugin include",
    ),
    Kind(
        "sensor/",
        &[
            SENSOR,
            FRAME,
            "site camera joint tendon actuator body data enclosed body1 body2 geom geom1 geom2 \
        mesh num reduce subtree1 subtree2 datatype dim needstage",
        ],
        "",
    ),
    Kind("keyframe", &[], "key include"),
    Kind("key", &["act ctrl mpos mquat name qpos qvel time"], ""),
];

/// The tags that drive something and are simulated.
pub(super) fn is_simulated(tag: &str) -> bool {
    SHORTCUTS.iter().any(|s| s.0 == tag)
}

/// The tags that drive something.
pub(super) fn is_actuator(tag: &str) -> bool {
    ACTUATORS.split(' ').any(|a| a == tag)
}

fn kind(parent: &str, tag: &str) -> Option<&'static Kind> {
    let exact = format!("{parent}/{tag}");
    let find = |key: &str| KINDS.iter().find(|k| k.0 == key);
    find(&exact).or_else(|| if parent == "sensor" { find("sensor/") } else { find(tag) })
}

fn words(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(' ').filter(|w| !w.is_empty())
}

/// The most similar of `names`, if any is similar enough to be meant.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    names
        .map(|n| (strsim::jaro_winkler(name, n), n))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(score, _)| *score > 0.7)
        .map(|(_, n)| n.to_string())
}

/// Refuses attributes and children that MJCF does not have in an element that stands in a `parent`, down the tree.
/// Nothing is said about elements whose kind is not listed: their readers refuse them anyway.
pub(super) fn check(sources: &Sources, parent: &str, node: &Node) -> Result<(), MjcfError> {
    let Some(Kind(_, attributes, children)) = kind(parent, &node.tag) else { return Ok(()) };
    let unknown = |at, what, name: &str, nearest_name| MjcfError::Unknown {
        place: sources.place(at),
        within: node.tag.clone(),
        kind: what,
        name: name.to_string(),
        nearest_name,
    };
    for a in &node.attrs {
        let valid = || attributes.iter().flat_map(|group| words(group));
        if !valid().any(|w| w == a.name) {
            return Err(unknown(a.at, "attribute", &a.name, nearest(&a.name, valid())));
        }
    }
    for child in &node.children {
        if !words(children).any(|w| w == child.tag) {
            return Err(unknown(child.at, "element", &child.tag, nearest(&child.tag, words(children))));
        }
        check(sources, &node.tag, child)?;
    }
    Ok(())
}
