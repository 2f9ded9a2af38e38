//! What MJCF says of tendons, servos, equalities and the rest arrives as MuJoCo 3.17.0 compiles it; numbers are its own.

use sim_vec::mjcf;
use sim_vec::model::*;

const ARM: &str = "<worldbody><body>
    <joint name='a' axis='0 1 0' armature='.3' springref='30' range='-10 20'/>
    <geom size='.1' mass='2' pos='.3 0 0'/><site name='s' pos='.2 0 .1'/>
    <body pos='.6 0 0'><joint name='b' axis='0 1 0'/><geom size='.1' pos='.3 .1 0'/><site name='t' pos='.1 .2 .3'/></body>
    </body></worldbody>";

fn load(inner: &str) -> Model {
    mjcf::parse(&format!("<mujoco>{inner}</mujoco>"), "m.xml").unwrap_or_else(|e| panic!("{inner}\n{e}"))
}

fn refused(inner: &str) -> String {
    mjcf::parse(&format!("<mujoco>\n{inner}</mujoco>"), "m.xml").expect_err(inner).to_string()
}

fn close(ours: &[f64], mujoco: &[f64]) {
    assert_eq!(ours.len(), mujoco.len());
    for (x, y) in ours.iter().zip(mujoco) {
        assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{ours:?}, MuJoCo has {mujoco:?}");
    }
}

fn actuator(inner: &str, element: &str) -> Actuator {
    load(&format!("{inner}{ARM}<actuator>{element}</actuator>")).actuators.remove(0)
}

#[test]
fn tendons_have_their_length_weight_and_rest() {
    let m = load(&format!(
        "{ARM}<tendon><fixed name='f'><joint joint='a' coef='.5'/><joint joint='b' coef='-2'/></fixed>
         <spatial><pulley divisor='4'/><site site='s'/><site site='t'/>
         <pulley divisor='2'/><site site='t'/><site site='s'/></spatial>
         <spatial springlength='.2'><site site='s'/><site site='t'/></spatial></tendon>"
    ));
    let all = |f: fn(&Tendon) -> f64| m.tendons.iter().map(f).collect::<Vec<f64>>();
    close(&all(|t| t.length0), &[0.0, 0.43084219849035205, 0.5744562646538027]);
    // −1, where nothing is said, stands for the length at qpos_spring
    close(&all(|t| t.rest[0]), &[0.2617993877991494, 0.4308421984903522, 0.2]);
    close(&all(|t| t.invweight0), &[82.72035735893863, 0.5164314612300943, 0.9181003755201674]);
    let Path::Spatial(segments) = &m.tendons[1].path else { panic!() };
    assert_eq!(segments[1], Segment { sites: [1, 0], divisor: 2.0 });
}

#[test]
fn tendon_classes_and_limits_apply() {
    let m = load(&format!(
        "<default><tendon stiffness='3' margin='.1'/><default class='k'><tendon range='0 1' solreflimit='.1'/></default>
         </default>{ARM}<tendon><fixed class='k' damping='2' frictionloss='.5'><joint joint='a' coef='1'/></fixed></tendon>"
    ));
    let t = &m.tendons[0];
    assert_eq!((t.stiffness, t.margin, t.damping, t.friction_loss), (3.0, 0.1, 2.0, 0.5));
    assert_eq!((t.range, t.limit.solref), (Some([0.0, 1.0]), [0.1, 1.0]));
}

#[test]
fn shortcuts_of_actuators_set_gain_bias_and_dynamics() {
    use Dynamics::*;
    for (element, gain, bias, dynamics) in [
        ("<motor joint='a'/>", [1.0, 0.0, 0.0], [0.0; 3], None),
        ("<position joint='a'/>", [1.0, 0.0, 0.0], [0.0, -1.0, 0.0], None),
        (
            "<position joint='a' kp='3' kv='.5' timeconst='.2'/>",
            [3.0, 0.0, 0.0],
            [0.0, -3.0, -0.5],
            FilterExact { time: 0.2 },
        ),
        ("<velocity joint='a' kv='3'/>", [3.0, 0.0, 0.0], [0.0, 0.0, -3.0], None),
        ("<intvelocity joint='a' kp='2'/>", [2.0, 0.0, 0.0], [0.0, -2.0, 0.0], Integrator),
        ("<damper joint='a' kv='2' ctrlrange='0 1'/>", [0.0, 0.0, -2.0], [0.0; 3], None),
        (
            "<cylinder joint='a' timeconst='.3' diameter='2' bias='1 2 3'/>",
            [std::f64::consts::PI, 0.0, 0.0],
            [1.0, 2.0, 3.0],
            Filter { time: 0.3 },
        ),
        (
            "<general joint='a' gaintype='affine' gainprm='1 2 3' biastype='affine' biasprm='4 5 6'/>",
            [1.0, 2.0, 3.0],
            [4.0, 5.0, 6.0],
            None,
        ),
        // without their types parameters do not act
        ("<general joint='a' gainprm='1 2 3' biasprm='4 5 6'/>", [1.0, 0.0, 0.0], [0.0; 3], None),
    ] {
        let a = actuator("", element);
        assert_eq!((a.gain, a.bias, a.dynamics), (gain, bias, dynamics), "{element}");
    }
}

#[test]
fn damping_ratios_follow_from_the_inertia_that_is_felt() {
    let m = load(&format!(
        "{ARM}<tendon><fixed name='f'><joint joint='a' coef='.5'/><joint joint='b' coef='-2'/></fixed></tendon>
         <actuator><position joint='a' kp='10' dampratio='1'/><position joint='b' kp='10' dampratio='.5' gear='3'/>
         <position tendon='f' kp='10' dampratio='1' gear='2'/></actuator>"
    ));
    let damping: Vec<f64> = m.actuators.iter().map(|a| a.bias[2]).collect();
    close(&damping, &[-4.699654034115677, -0.2489545368722796, -0.34769128015437323]);
}

#[test]
fn ranges_are_inherited_from_what_is_driven() {
    let a = actuator("", "<position joint='a' inheritrange='.5'/>");
    close(&a.ctrl_range.unwrap(), &[-0.04363323129985823, 0.21816615649929116]);
    let a = actuator("", "<intvelocity joint='a' inheritrange='1'/>");
    close(&a.act_range.unwrap(), &[-0.17453292519943292, 0.3490658503988659]);
    assert_eq!(a.ctrl_range, None);
}

#[test]
fn a_shortcut_starts_from_the_same_shortcut_or_a_general_one() {
    let classes = "<default><position kp='4'/><default class='v'><velocity/></default>
        <default class='g'><general gear='5'/></default></default>";
    for (element, gain, bias) in [
        ("<position joint='a'/>", 4.0, [0.0, -4.0, 0.0]),
        ("<general joint='a'/>", 4.0, [0.0, -4.0, 0.0]),
        ("<motor joint='a'/>", 1.0, [0.0; 3]),
        ("<velocity joint='a'/>", 1.0, [0.0, 0.0, -1.0]),
        ("<intvelocity joint='a'/>", 1.0, [0.0, -1.0, 0.0]),
        // the class around has a position servo
        ("<position class='v' joint='a'/>", 4.0, [0.0, -4.0, 0.0]),
        ("<velocity class='v' joint='a'/>", 1.0, [0.0, 0.0, -1.0]),
        ("<velocity class='g' joint='a'/>", 4.0, [0.0, 0.0, -4.0]),
    ] {
        let a = actuator(classes, element);
        assert_eq!((a.gain[0], a.bias), (gain, bias), "{element}");
    }
    assert_eq!(actuator(classes, "<motor class='g' joint='a'/>").gear, 5.0);
}

#[test]
fn equalities_relate_joints_and_tendons_where_active() {
    let m = load(&format!(
        "<default><equality solref='.05'/></default>{ARM}
         <equality><joint joint1='a' joint2='b' polycoef='.1 .2 .3'/><joint joint1='b'/>
         <joint joint1='a' active='false'/><weld body1='x' active='false'/></equality>"
    ));
    let kinds: Vec<EqualityKind> = m.equalities.iter().map(|e| e.kind.clone()).collect();
    let (first, second) = ([0.1, 0.2, 0.3, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(kinds[0], EqualityKind::Joint { first: 0, second: Some(1), poly: first });
    assert_eq!(kinds[1], EqualityKind::Joint { first: 1, second: None, poly: second });
    assert_eq!((kinds.len(), m.equalities[0].softness.solref), (2, [0.05, 1.0]));
    let off = "<option><flag equality='disable'/></option>";
    assert!(load(&format!("{off}{ARM}<equality><joint joint1='a'/></equality>")).equalities.is_empty());
}

#[test]
fn pairs_have_parameters_of_their_own() {
    let m = load(
        "<worldbody><geom name='a' size='1' friction='2 .1 .2' margin='.1' condim='4' solref='.03 1.5'/>
         <body><joint/><geom name='b' size='1'/></body></worldbody>
         <contact><pair geom1='a' geom2='b'/><pair geom1='b' geom2='a' friction='.5 .6 .7 .8 .9' gap='.05' condim='6'/></contact>",
    );
    let [p, q] = &m.pairs[..] else { panic!("{:?}", m.pairs) };
    assert_eq!((p.condim, p.friction, p.margin), (3, [1.0, 1.0, 0.005, 0.0001, 0.0001], 0.0));
    assert_eq!(p.softness.solref, [0.02, 1.0]);
    assert_eq!((q.condim, q.friction, q.gap), (6, [0.5, 0.6, 0.7, 0.8, 0.9], 0.05));
}

#[test]
fn free_bodies_are_aligned_where_asked() {
    let m = load(
        "<worldbody><body pos='1 0 0' euler='0 0 90'><freejoint align='true'/>
         <geom type='box' size='.1 .2 .3' pos='.5 0 0'/><site name='s'/></body></worldbody>",
    );
    let half = std::f64::consts::FRAC_1_SQRT_2;
    close(&m.qpos0, &[1.0, 0.5, 0.0, half, 0.0, 0.0, half]);
    close(&m.bodies[1].ipos, &[0.0; 3]);
    close(&m.sites[0].pos, &[-0.5, 0.0, 0.0]);
}

#[test]
fn meshes_load_where_neither_contact_nor_inertia_needs_them() {
    let body = |geom: &str, inertial: &str| {
        format!("<worldbody><geom type='plane' size='1 1 1'/><body><freejoint/>{inertial}{geom}</body></worldbody>")
    };
    let given = "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>";
    let looks = "<geom type='mesh' mesh='m' contype='0' conaffinity='0'/>";
    let m = load(&body(looks, given));
    assert!(matches!(m.geoms[1].shape, Shape::Visual { .. }) && m.pairs.is_empty() && m.bodies[1].mass == 1.0);
    load(&body("<geom size='1'/><geom type='mesh' mesh='m' mass='0' contype='0' conaffinity='0'/>", ""));
    load(&format!(
        "<compiler inertiagrouprange='0 0'/>{}",
        body("<geom size='1'/><geom type='mesh' mesh='m' group='2' contype='0' conaffinity='0'/>", "")
    ));
    assert_eq!(
        refused(&body(looks, "")),
        "m.xml:2:63: <geom>: it is not simulated; its mass and inertia are the mesh's, which is not read; give the body an \
         <inertial>, or the geom mass=\"0\""
    );
    assert_eq!(
        refused(&body("<geom name='hull' type='mesh' mesh='m'/>", given)),
        "m.xml:2:115: <geom name=\"hull\">: it is not simulated; meshes and height fields do not collide; write \
         contype=\"0\" conaffinity=\"0\" and put primitive geoms in its place"
    );
}

#[test]
fn mocap_bodies_are_numbered_and_stand_apart() {
    let m = load(
        "<worldbody><geom size='1'/><body mocap='true' gravcomp='1'><geom size='1'/><body><geom size='1'/></body></body>
         <body/><body mocap='true'/></worldbody>",
    );
    let mocap: Vec<Option<usize>> = m.bodies.iter().map(|b| b.mocap).collect();
    assert_eq!(mocap, [None, Some(0), None, None, Some(1)]);
    assert_eq!((m.bodies[2].weld, m.bodies[1].gravcomp, m.pairs.len()), (1, 1.0, 0));
}

#[test]
fn keyframes_fill_in_what_they_leave_out() {
    let m = load(&format!(
        "{ARM}<actuator><intvelocity joint='a'/><motor joint='b'/></actuator>
         <keyframe><key name='k' qvel='1 2' act='3' ctrl='4 5'/><key qpos='6 7'/></keyframe>"
    ));
    let [k, l] = &m.keyframes[..] else { panic!() };
    assert_eq!(
        (&k.qpos[..], &k.qvel[..], &k.act[..], &k.ctrl[..]),
        (&[0.0; 2][..], &[1.0, 2.0][..], &[3.0][..], &[4.0, 5.0][..])
    );
    assert_eq!((&l.qpos[..], &l.ctrl[..]), (&[6.0, 7.0][..], &[0.0; 2][..]));
}

#[test]
fn options_and_flags_arrive() {
    let m = load(&format!(
        "<option integrator='implicitfast' cone='elliptic' impratio='2' density='3' viscosity='4' wind='1 2 3'>
         <flag spring='disable' frictionloss='disable' actuation='disable'/></option>
         <default><joint stiffness='2' frictionloss='3' actuatorfrcrange='-1 1'/></default>{ARM}
         <actuator><motor joint='a' forcerange='1 2'/></actuator>"
    ));
    assert_eq!((m.opt.integrator, m.opt.cone, m.opt.impratio), (Integrator::ImplicitFast, Cone::Elliptic, 2.0));
    assert_eq!((m.opt.density, m.opt.viscosity, m.opt.wind), (3.0, 4.0, [1.0, 2.0, 3.0]));
    assert_eq!((m.joints[0].stiffness, m.dofs[0].friction_loss, m.joints[0].force_range), (0.0, 0.0, None));
    assert_eq!((m.actuators[0].gain, m.actuators[0].force_range), ([0.0; 3], None));
}

#[test]
fn sensors_of_cameras_are_skipped_and_others_counted() {
    let m = load(&format!(
        "{ARM}<sensor><framepos objtype='camera' objname='c'/><clock name='now'/><jointpos joint='b'/>
         <framequat objtype='xbody' objname='world' reftype='site' refname='s'/><gyro site='t'/></sensor>"
    ));
    let kinds: Vec<(SensorKind, usize)> = m.sensors.iter().map(|s| (s.kind, s.start)).collect();
    let quat = SensorKind::FrameQuat(Frame::Body(0), Some(Frame::Site(0)));
    assert_eq!(kinds, [(SensorKind::JointPos(1), 0), (quat, 1), (SensorKind::Gyro(1), 5)]);
    assert!(m.skipped.contains(&"clock now".to_string()), "{:?}", m.skipped);
}

#[test]
fn each_refusal_says_where_and_what_instead() {
    let on = |section: &str| format!("{}\n{section}", ARM.replace('\n', " "));
    for (file, message) in [
        (
            on("<tendon><spatial><site site='s'/><geom geom='g'/><site site='t'/></spatial></tendon>"),
            "m.xml:3:34: <geom>: it is not simulated; remove it: tendons run straight from site to site; put a <site> on the \
             geom's surface instead",
        ),
        (
            on("<tendon><fixed armature='1'><joint joint='a' coef='1'/></fixed></tendon>"),
            "m.xml:3:16: <fixed>: armature=\"1\" is not simulated; give the joints it pulls an armature",
        ),
        (
            on("<tendon><fixed actuatorfrcrange='-1 1'><joint joint='a' coef='1'/></fixed></tendon>"),
            "m.xml:3:16: <fixed>: actuatorfrcrange=\"-1 1\" is not simulated; limit the actuators with forcerange instead",
        ),
        (
            on("<tendon><spatial><site site='s'/></spatial></tendon>"),
            "m.xml:3:18: <site>: no segment begins or ends here; write another <site> next to it",
        ),
        (
            on("<tendon><spatial><pulley divisor='0'/></spatial></tendon>"),
            "m.xml:3:26: <pulley> divisor=\"0\": expected a number above 0",
        ),
        (
            on("<equality><connect body1='x' anchor='0 0 0'/></equality>"),
            "m.xml:3:11: <connect>: it is not simulated; nest the bodies and give them the joints that are left, or write \
             active=\"false\"",
        ),
        (
            on("<equality><flex flex='f'/></equality>"),
            "m.xml:3:11: <flex>: it is not simulated; remove it: there are no flexes",
        ),
        (
            on("<actuator><adhesion body='x'/></actuator>"),
            "m.xml:3:11: <adhesion>: it is not simulated; write a <motor>, <position>, <velocity>, <intvelocity>, <damper>, \
             <cylinder>, or a <general> with affine gain and bias",
        ),
        (
            on("<actuator><general site='s'/></actuator>"),
            "m.xml:3:20: <general>: site=\"s\" is not simulated; drive a joint or a tendon: write joint=\"…\" or tendon=\"…\"",
        ),
        (
            on("<actuator><general joint='a' dyntype='muscle'/></actuator>"),
            "m.xml:3:30: <general>: dyntype=\"muscle\" is not simulated; write dyntype=\"none\", \"integrator\", \"filter\" or \
             \"filterexact\"",
        ),
        (
            on("<actuator><position joint='a' kv='1' dampratio='1'/></actuator>"),
            "m.xml:3:11: <position>: kv and dampratio contradict each other; remove one of them",
        ),
        (
            on("<actuator><position joint='b' inheritrange='1'/></actuator>"),
            "m.xml:3:11: <position>: inheritrange needs a limited target; give the target a range",
        ),
        (
            on("<sensor><gyro site='s' cutoff='1'/></sensor>"),
            "m.xml:3:24: <gyro>: cutoff=\"1\" is not simulated; remove it: sensors read the present state as it is",
        ),
        (
            "<worldbody><body mocap='true'><joint/><geom size='1'/></body></worldbody>".into(),
            "m.xml:2:12: <body>: a body is moved by an input or by joints; remove mocap or the joints",
        ),
        (
            "<worldbody><geom size='1' adhesion='1'/></worldbody>".into(),
            "m.xml:2:27: <geom>: adhesion=\"1\" is not simulated; remove it: contacts only push",
        ),
        (
            "<option><flag multiccd='disable'/></option>".into(),
            "m.xml:2:15: <flag>: multiccd=\"disable\" is not simulated; write multiccd=\"enable\" or nothing",
        ),
        (
            "<default><muscle/></default><worldbody><body><joint name='j'/><geom size='1'/></body></worldbody>\
             <actuator><motor joint='j'/></actuator>"
                .into(),
            "m.xml:2:108: <motor>: its class has a <muscle>, which is not simulated; give it a class without, or remove \
             <muscle> from the class",
        ),
    ] {
        assert_eq!(refused(&file), message, "{file}");
    }
}
