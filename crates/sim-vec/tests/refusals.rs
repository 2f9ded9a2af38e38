//! Files that are no mechanism, or more than is simulated, are refused by place, element and remedy.

use std::sync::Arc;

use sim_vec::engine::Engine;
use sim_vec::lane::F64x1;
use sim_vec::mjcf::{self, MjcfError};
use sim_vec::models::{BUILTIN, builtin};

fn refused(body: &str) -> String {
    let text = format!("<mujoco>\n{body}\n</mujoco>");
    mjcf::parse(&text, "m.xml").expect_err(body).to_string()
}

#[test]
fn each_refusal_names_line_element_and_remedy() {
    let ball = "<worldbody><body><joint type='ball'/><geom size='1'/></body></worldbody>";
    let body = |inner: &str| format!("<worldbody><body>{inner}</body></worldbody>");
    let hinge = "<joint name='j'/><geom size='0.1'/>";
    let drive = |motor: &str| format!("{}<actuator>{motor}</actuator>", body(hinge));
    for (file, hints) in [
        (ball.to_string(), vec!["m.xml:2:", "<joint>", "three <joint type=\"hinge\">"]),
        (body("<joint/><geom type='mesh' mesh='m'/>"), vec!["m.xml:2:", "<geom>", "<inertial>", "mass=\"0\""]),
        (body("<joint/><geom type='mesh'/>"), vec!["names no asset"]),
        (body("<joint/><geom size='0'/>"), vec!["<geom>", "no size", "a radius above 0"]),
        (body("<joint/><geom type='capsule' size='0.1'/>"), vec!["a radius and a half length"]),
        (body("<joint/>"), vec!["<body>", "has no inertia", "armature"]),
        (body("<joint axis='0 0 0'/><geom size='1'/>"), vec!["no direction"]),
        (body("<joint range='1 -1' limited='true'/><geom size='1'/>"), vec!["low < high"]),
        (body("<joint/><geom size='1' condim='5'/>"), vec!["1, 3, 4 or 6"]),
        (body("<joint/><geom size='1 x'/>"), vec!["size=\"1 x\"", "numbers"]),
        (body("<joint/><geom size='1' mass='nan'/>"), vec!["mass=\"nan\"", "finite"]),
        (body("<joint/><geom size='1' mass='-1'/>"), vec!["at least 0"]),
        (body("<joint/><geom size='1' quat='0 0 0 0'/>"), vec!["quaternion that is not zero"]),
        (body("<joint/><geom size='1' euler='0 0 1' quat='1 0 0 0'/>"), vec!["one orientation only"]),
        (body("<joint/><geom size='1' class='soft'/>"), vec!["no default class is named `soft`"]),
        (body("<joint frictionloss='-1'/><geom size='1'/>"), vec!["at least 0"]),
        (body("<joint type='free'/><joint/><geom size='1'/>"), vec!["only joint"]),
        (body("<joint/><geom size='1'/><body><freejoint/><geom size='1'/></body>"), vec!["child of the world"]),
        (body("<joint/><geom type='plane' size='1 1 1'/>"), vec!["fixed to the world"]),
        (body("<inertial mass='1' diaginertia='1 1 9'/><joint/>"), vec!["those of no body", "balanceinertia"]),
        (body("<inertial mass='1'/><joint/>"), vec!["has no inertia", "<inertial>"]),
        ("<worldbody><joint/></worldbody>".into(), vec!["the world does not move"]),
        (drive("<motor joint='k'/>"), vec!["no joint is named `k`", "name one that exists"]),
        (drive("<motor/>"), vec!["drives nothing", "joint="]),
        (drive("<muscle joint='j'/>"), vec!["<muscle>", "write a <motor>"]),
        (drive("<motor joint='j' forcelimited='true'/>"), vec!["forcerange is empty"]),
        (drive("<motor joint='j' ctrlrange='1 1' ctrllimited='true'/>"), vec!["ctrlrange is empty"]),
        (drive("<motor name='a' joint='j'/><motor name='a' joint='j'/>"), vec!["`a` exists already"]),
        ("<option integrator='implicit'/>".into(), vec!["integrator=\"implicit\"", "implicitfast"]),
        ("<option solver='CG'/>".into(), vec!["Newton"]),
        ("<option timestep='0'/>".into(), vec!["seconds above 0"]),
        ("<option timestep='fast'/>".into(), vec!["a number"]),
        ("<equality><weld body1='a'/></equality>".into(), vec!["<weld>", "nest the bodies"]),
        ("<tendon><fixed/></tendon>".into(), vec!["<fixed>", "no path"]),
        ("<worldbodi/>".into(), vec!["no element `worldbodi`", "`worldbody`"]),
        ("<worldbody><geom sise='1'/></worldbody>".into(), vec!["no attribute `sise`", "`size`"]),
        ("text".into(), vec!["make it a comment"]),
        ("<include file='nowhere.xml'/>".into(), vec!["nowhere.xml", "no such file"]),
        (
            "<worldbody><geom name='g' size='1'/><geom name='g' size='1'/></worldbody>".into(),
            vec!["`g` exists already"],
        ),
        ("<keyframe><key qpos='1'/></keyframe>".into(), vec!["qpos", "0 numbers"]),
        ("<sensor><touch/></sensor>".into(), vec!["measures nothing", "site="]),
        (
            "<worldbody><geom type='mesh' mesh='m'/><body><freejoint/><geom size='1'/></body></worldbody>".into(),
            vec!["meshes and height fields do not collide", "contype"],
        ),
    ] {
        let error = refused(&file);
        for hint in hints {
            assert!(error.contains(hint), "{file}\n  says: {error}\n  lacks: {hint}");
        }
        assert!(error.starts_with("m.xml:2:"), "{error}");
    }
}

#[test]
fn text_that_is_not_xml_or_not_mjcf_is_refused() {
    for text in ["", "<", "<mujoco>", "<robot/>", "<mujoco/><mujoco/>", "\u{0}"] {
        assert!(mjcf::parse(text, "m.xml").unwrap_err().to_string().starts_with("m.xml:"), "{text:?}");
    }
    let deep = format!("<mujoco><worldbody>{}{}</worldbody></mujoco>", "<body>".repeat(300), "</body>".repeat(300));
    assert!(mjcf::parse(&deep, "m.xml").unwrap_err().to_string().contains("deeper"));
    assert!(matches!(mjcf::load("/no/such/file.xml"), Err(MjcfError::Read { .. })));
}

/// Whatever stands in an attribute, reading ends in a model or an error.
#[test]
fn no_attribute_value_brings_the_reader_down() {
    let values =
        ["", "0", "-1", "1e308", "nan", "true", "x", "1 2 3 4 5 6 7 8", "0 0 0", "-1 -1 -1", "free", "99999999999"];
    let mut tried = 0;
    for name in BUILTIN {
        let text = builtin(name).unwrap();
        let starts: Vec<usize> = text.match_indices("=\"").map(|m| m.0 + 2).collect();
        // the humanoid's attributes are many and alike
        let every = if name == "humanoid" { 16 } else { 2 };
        for start in starts.into_iter().step_by(every) {
            let end = start + text[start..].find('"').unwrap();
            for value in values {
                let broken = format!("{}{value}{}", &text[..start], &text[end..]);
                if let Ok(model) = mjcf::parse(&broken, name) {
                    assert!(model.bodies.iter().all(|b| b.mass.is_finite()), "{name}: {value} at {start}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1500, "{tried}");
}

/// Whatever an error says, it says it of the right line.
#[test]
fn a_broken_number_is_reported_on_its_line() {
    for name in BUILTIN {
        let text = builtin(name).unwrap();
        for (i, line) in text.lines().enumerate().filter(|(_, l)| l.contains("size=\"")) {
            let broken: Vec<String> = text
                .lines()
                .enumerate()
                .map(|(k, l)| if k == i { l.replace("size=\"", "size=\"? ") } else { l.into() })
                .collect();
            let error = mjcf::parse(&broken.join("\n"), name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}:{}:", i + 1)), "{line}: {error}");
        }
    }
}

#[test]
fn what_implicitfast_would_have_to_differentiate_is_refused_by_name() {
    let engine = |option: &str, inside: &str| {
        let text = format!(
            "<mujoco><option integrator='implicitfast' {option}/><worldbody><body name='ship'><freejoint/>\
             <geom size='.1'/>{inside}</body></worldbody></mujoco>"
        );
        Engine::<F64x1>::new(Arc::new(mjcf::parse(&text, "ship.xml").unwrap())).map(|_| ()).map_err(|e| e.to_string())
    };
    let mast = "<body><joint/><geom size='.1' pos='.1 0 0'/></body>";
    assert_eq!(engine("", mast), Ok(()));
    assert_eq!(
        engine("density='1000'", mast).unwrap_err(),
        "integrator implicitfast with a medium is not simulated; write integrator=\"Euler\""
    );
    assert_eq!(
        engine("", "").unwrap_err(),
        "integrator implicitfast with body `ship`, which is free and alone, is not simulated; write integrator=\"Euler\""
    );
}
