"""Compares models that sim-vec compiles with MuJoCo's, field by field, and lists which models load.

    pip install mujoco==3.17.0 dm_control==1.0.50
    cargo build --release -p sim-vec --example compile
    python benches/peers/model_parity.py                                  # the dm_control suite
    python benches/peers/model_parity.py model.xml ...                    # files
    python benches/peers/model_parity.py --menagerie DIR --table docs/MODELS.md

Each file is first compiled by sim-vec as it is. What loads is then compiled by both from the same temporary copy, in
which includes are expanded and assets, mesh geoms and materials are left out, so that MuJoCo needs no mesh files.
Every field of the compiled model is compared; the error printed is the largest |ours - MuJoCo's| / max(1, |MuJoCo's|).
Exits with 1 if one exceeds 1e-10.
"""

import argparse
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

import mujoco
import numpy as np

TOLERANCE = 1e-10
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MJ = mujoco


class Comparison:
    """Largest relative error and the first differences."""

    def __init__(self):
        self.error, self.differences, self.numbers = 0.0, [], 0

    def close(self, what, ours, theirs):
        ours = np.asarray([] if ours is None else ours, float).ravel()
        theirs = np.asarray([] if theirs is None else theirs, float).ravel()
        if ours.shape != theirs.shape:
            self.differences.append(f"{what}: {ours} is {theirs} in MuJoCo")
            return
        self.numbers += ours.size
        if not ours.size:
            return
        error = float(np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))))
        self.error = max(self.error, error)
        if not error <= TOLERANCE:
            self.differences.append(f"{what}: {ours} is {theirs} in MuJoCo")

    def same(self, what, ours, theirs):
        self.numbers += 1
        if ours != theirs:
            self.differences.append(f"{what}: {ours!r} is {theirs!r} in MuJoCo")

    def turn(self, what, ours, theirs):
        """q and -q are the same rotation."""
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        self.close(what, ours * (1 if ours @ theirs >= 0 else -1), theirs)


def rotation(quat):
    m = np.zeros(9)
    MJ.mju_quat2Mat(m, np.asarray(quat, float))
    return m.reshape(3, 3)


def tensor(quat, inertia):
    r = rotation(quat)
    return r @ np.diag(inertia) @ r.T


def disabled(m, bit):
    return bool(m.opt.disableflags & int(bit))


DSBL = MJ.mjtDisableBit


def name(m, kind, i):
    return MJ.mj_id2name(m, kind, i) or ""


def compare(ours, m):
    """Compares our model (JSON) with an mjModel."""
    c = Comparison()
    options(c, ours["opt"], m)
    c.same("nq", ours["nq"], m.nq)
    c.close("qpos0", ours["qpos0"], m.qpos0)
    c.close("qpos_spring", ours["qpos_spring"], m.qpos_spring)
    c.close("mean inertia", ours["mean_inertia"], m.stat.meaninertia)
    bodies(c, ours["bodies"], m)
    joints(c, ours["joints"], ours["dofs"], m)
    geoms(c, ours["geoms"], ours["sites"], m)
    pairs(c, ours["pairs"], m)
    tendons(c, ours["tendons"], m)
    equalities(c, ours["equalities"], m)
    actuators(c, ours["actuators"], m)
    sensors(c, ours["sensors"], m)
    c.same("keyframes", len(ours["keyframes"]), m.nkey)
    for i, k in enumerate(ours["keyframes"][: m.nkey]):
        at = f"key {i}"
        c.same(f"{at} name", k["name"], name(m, MJ.mjtObj.mjOBJ_KEY, i))
        for field in ["qpos", "qvel", "act", "ctrl"]:
            c.close(f"{at} {field}", k[field], getattr(m, f"key_{field}")[i])
    return c


def options(c, o, m):
    p = m.opt
    c.close("timestep", o["timestep"], p.timestep)
    c.close("gravity", o["gravity"], np.zeros(3) if disabled(m, DSBL.mjDSBL_GRAVITY) else p.gravity)
    c.same("integrator", o["integrator"], {0: "Euler", 1: "Rk4", 3: "ImplicitFast"}[p.integrator])
    c.same("solver", 2, p.solver)
    c.same("cone", o["cone"], ["Pyramidal", "Elliptic"][p.cone])
    for field in ["iterations", "tolerance", "ls_iterations", "ls_tolerance", "impratio", "density", "viscosity",
                  "wind", "ccd_tolerance", "ccd_iterations"]:
        c.close(field, o[field], getattr(p, field))
    for field, bit in [("euler_damp", DSBL.mjDSBL_EULERDAMP), ("contact", DSBL.mjDSBL_CONTACT),
                       ("limit", DSBL.mjDSBL_LIMIT), ("constraint", DSBL.mjDSBL_CONSTRAINT)]:
        c.same(field, o[field], not disabled(m, bit))


def bodies(c, ours, m):
    c.same("bodies", len(ours), m.nbody)
    for i, b in enumerate(ours[: m.nbody]):
        at = f"body {i} {b['name']}"
        c.same(f"{at} name", b["name"], name(m, MJ.mjtObj.mjOBJ_BODY, i))
        c.same(f"{at} ids", [b["parent"], b["root"], b["weld"]],
               [int(m.body_parentid[i]), int(m.body_rootid[i]), int(m.body_weldid[i])])
        c.same(f"{at} counts", [b["joints"][1], b["dofs"][1]], [int(m.body_jntnum[i]), int(m.body_dofnum[i])])
        c.same(f"{at} mocap", -1 if b["mocap"] is None else b["mocap"], int(m.body_mocapid[i]))
        for field in ["pos", "ipos", "mass", "invweight0", "gravcomp"]:
            c.close(f"{at} {field}", b[field], getattr(m, f"body_{field}")[i])
        c.close(f"{at} subtree mass", b["subtree_mass"], m.body_subtreemass[i])
        c.turn(f"{at} quat", b["quat"], m.body_quat[i])
        c.close(f"{at} inertia", tensor(b["iquat"], b["inertia"]), tensor(m.body_iquat[i], m.body_inertia[i]))


def soft(c, what, ours, solref, solimp):
    c.close(f"{what} solref", ours[0], solref)
    c.close(f"{what} solimp", ours[1], solimp)


def joints(c, ours, dofs, m):
    c.same("joints", len(ours), m.njnt)
    spring = 0 if disabled(m, DSBL.mjDSBL_SPRING) else 1
    damper = 0 if disabled(m, DSBL.mjDSBL_DAMPER) else 1
    dry = 0 if disabled(m, DSBL.mjDSBL_FRICTIONLOSS) else 1
    for i, j in enumerate(ours[: m.njnt]):
        at = f"joint {i} {j['name']}"
        c.same(f"{at} name", j["name"], name(m, MJ.mjtObj.mjOBJ_JOINT, i))
        c.same(f"{at} kind", j["kind"], ["Free", "Ball", "Slide", "Hinge"][m.jnt_type[i]])
        c.same(f"{at} ids", [j["body"], j["qpos"], j["dof"]],
               [int(m.jnt_bodyid[i]), int(m.jnt_qposadr[i]), int(m.jnt_dofadr[i])])
        for field in ["pos", "axis", "margin"]:
            c.close(f"{at} {field}", j[field], getattr(m, f"jnt_{field}")[i])
        c.close(f"{at} stiffness", j["stiffness"], m.jnt_stiffness[i] * spring)
        c.close(f"{at} range", j["range"], m.jnt_range[i] if m.jnt_limited[i] else None)
        soft(c, f"{at} limit", j["limit"], m.jnt_solref[i], m.jnt_solimp[i])
        c.close(f"{at} force range", j["force_range"], m.jnt_actfrcrange[i] if m.jnt_actfrclimited[i] else None)
        c.same(f"{at} actuated", j["gravcomp_actuated"], bool(m.jnt_actgravcomp[i]))
    c.same("dofs", len(dofs), m.nv)
    for i, d in enumerate(dofs[: m.nv]):
        at = f"dof {i}"
        c.same(f"{at} ids", [d["body"], d["joint"], -1 if d["parent"] is None else d["parent"]],
               [int(m.dof_bodyid[i]), int(m.dof_jntid[i]), int(m.dof_parentid[i])])
        c.close(f"{at} armature", d["armature"], m.dof_armature[i])
        c.close(f"{at} damping", d["damping"], m.dof_damping[i] * damper)
        c.close(f"{at} invweight0", d["invweight0"], m.dof_invweight0[i])
        c.close(f"{at} friction loss", d["friction_loss"], m.dof_frictionloss[i] * dry)
        soft(c, f"{at} friction", d["friction"], m.dof_solref[i], m.dof_solimp[i])


SHAPES = ["plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf"]
SIZES = {"plane": 0, "sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}


def geoms(c, ours, sites, m):
    c.same("geoms", len(ours), m.ngeom)
    for i, g in enumerate(ours[: m.ngeom]):
        at = f"geom {i} {g['name']}"
        shape = SHAPES[m.geom_type[i]]
        c.same(f"{at} name", g["name"], name(m, MJ.mjtObj.mjOBJ_GEOM, i))
        c.same(f"{at} shape", g["shape"], shape)
        c.same(f"{at} body", g["body"], int(m.geom_bodyid[i]))
        c.close(f"{at} size", g["size"], m.geom_size[i][: SIZES.get(shape, 0)])
        for field in ["pos", "rbound"]:
            c.close(f"{at} {field}", g[field], getattr(m, f"geom_{field}")[i])
        c.turn(f"{at} quat", g["quat"], m.geom_quat[i])
        c.close(f"{at} fluid", g["fluid"], m.geom_fluid[i][1:6] if m.geom_fluid[i][0] > 0 else None)
    c.same("sites", len(sites), m.nsite)
    for i, s in enumerate(sites[: m.nsite]):
        at = f"site {i} {s['name']}"
        c.same(f"{at} name", s["name"], name(m, MJ.mjtObj.mjOBJ_SITE, i))
        c.same(f"{at} shape", s["shape"].lower(), SHAPES[m.site_type[i]])
        c.same(f"{at} body", s["body"], int(m.site_bodyid[i]))
        c.close(f"{at} pos", s["pos"], m.site_pos[i])
        c.turn(f"{at} quat", s["quat"], m.site_quat[i])
        c.close(f"{at} size", s["size"], m.site_size[i])


def mixed(m, a, b):
    """Contact parameters of two geoms."""
    priority = m.geom_priority[a] - m.geom_priority[b]
    s, t = m.geom_solmix[a], m.geom_solmix[b]
    if s >= 1e-15 and t >= 1e-15:
        mix = s / (s + t)
    else:
        mix = 0.5 if s < 1e-15 and t < 1e-15 else float(t < 1e-15)
    condim, friction = max(m.geom_condim[a], m.geom_condim[b]), np.maximum(m.geom_friction[a], m.geom_friction[b])
    refs = m.geom_solref[a], m.geom_solref[b]
    solref = mix * refs[0] + (1 - mix) * refs[1] if refs[0][0] > 0 and refs[1][0] > 0 else np.minimum(*refs)
    solimp = mix * m.geom_solimp[a] + (1 - mix) * m.geom_solimp[b]
    if priority:
        g = a if priority > 0 else b
        condim, friction, solref, solimp = m.geom_condim[g], m.geom_friction[g], m.geom_solref[g], m.geom_solimp[g]
    gap = m.geom_gap[a] + m.geom_gap[b]
    margin = m.geom_margin[a] + m.geom_margin[b] + gap
    return int(condim), friction[[0, 0, 1, 2, 2]], solref, solimp, margin, gap


def touching(m):
    """All pairs of geoms that may touch, with their parameters, in the order of geoms."""
    weld = m.body_weldid[m.geom_bodyid]
    dofs = m.body_dofnum[weld]
    above = m.body_weldid[m.body_parentid[weld]]
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in m.exclude_signature}
    explicit = {}
    for i in range(m.npair):
        key = tuple(sorted((int(m.pair_geom1[i]), int(m.pair_geom2[i]))))
        explicit.setdefault(key, []).append(
            (int(m.pair_dim[i]), m.pair_friction[i], m.pair_solref[i], m.pair_solimp[i],
             m.pair_margin[i] + m.pair_gap[i], m.pair_gap[i]))
    both = []
    if disabled(m, DSBL.mjDSBL_CONTACT):
        return both
    for a, b in itertools.combinations(range(m.ngeom), 2):
        if not dofs[a] and not dofs[b]:
            continue
        order = (a, b) if m.geom_type[a] <= m.geom_type[b] else (b, a)
        if (a, b) in explicit:
            both += [(order, p) for p in explicit[a, b]]
            continue
        affine = m.geom_contype[a] & m.geom_conaffinity[b] or m.geom_contype[b] & m.geom_conaffinity[a]
        related = weld[a] and weld[b] and (weld[a] == above[b] or weld[b] == above[a])
        bodies = tuple(sorted((int(m.geom_bodyid[a]), int(m.geom_bodyid[b]))))
        if (not affine or weld[a] == weld[b] or related and not disabled(m, DSBL.mjDSBL_FILTERPARENT)
                or bodies in excluded or bodies[::-1] in excluded):
            continue
        both.append((order, mixed(m, *order)))
    return both


def pairs(c, ours, m):
    theirs = touching(m)
    c.same("pairs", [p["geoms"] for p in ours], [list(order) for order, _ in theirs])
    for p, (order, (condim, friction, solref, solimp, margin, gap)) in zip(ours, theirs):
        at = f"pair {order}"
        c.same(f"{at} condim", p["condim"], condim)
        c.close(f"{at} friction", p["friction"], friction)
        soft(c, at, p["softness"], solref, solimp)
        c.close(f"{at} margin", [p["margin"], p["gap"]], [margin, gap])


def path(m, i):
    """A tendon's path as ours is."""
    wraps = range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
    if m.wrap_type[wraps[0]] == MJ.mjtWrap.mjWRAP_JOINT:
        return {"joints": [[int(m.wrap_objid[w]), float(m.wrap_prm[w])] for w in wraps]}
    segments, divisor, last = [], 1.0, None
    for w in wraps:
        if m.wrap_type[w] == MJ.mjtWrap.mjWRAP_PULLEY:
            divisor, last = float(m.wrap_prm[w]), None
        elif m.wrap_type[w] == MJ.mjtWrap.mjWRAP_SITE:
            site = int(m.wrap_objid[w])
            if last is not None:
                segments.append([[last, site], divisor])
            last = site
        else:
            segments.append("geom")
    return {"segments": segments}


def tendons(c, ours, m):
    c.same("tendons", len(ours), m.ntendon)
    spring = 0 if disabled(m, DSBL.mjDSBL_SPRING) else 1
    damper = 0 if disabled(m, DSBL.mjDSBL_DAMPER) else 1
    dry = 0 if disabled(m, DSBL.mjDSBL_FRICTIONLOSS) else 1
    for i, t in enumerate(ours[: m.ntendon]):
        at = f"tendon {i} {t['name']}"
        c.same(f"{at} name", t["name"], name(m, MJ.mjtObj.mjOBJ_TENDON, i))
        c.same(f"{at} path", t["path"], path(m, i))
        c.close(f"{at} range", t["range"], m.tendon_range[i] if m.tendon_limited[i] else None)
        for field, theirs in [("margin", "margin"), ("length0", "length0"), ("invweight0", "invweight0"),
                              ("rest", "lengthspring")]:
            c.close(f"{at} {field}", t[field], getattr(m, f"tendon_{theirs}")[i])
        c.close(f"{at} friction loss", t["friction_loss"], m.tendon_frictionloss[i] * dry)
        c.close(f"{at} stiffness", t["stiffness"], m.tendon_stiffness[i] * spring)
        c.close(f"{at} damping", t["damping"], m.tendon_damping[i] * damper)
        soft(c, f"{at} limit", t["limit"], m.tendon_solref_lim[i], m.tendon_solimp_lim[i])
        soft(c, f"{at} friction", t["friction"], m.tendon_solref_fri[i], m.tendon_solimp_fri[i])


def equalities(c, ours, m):
    active = [] if disabled(m, DSBL.mjDSBL_EQUALITY) else [i for i in range(m.neq) if m.eq_active0[i]]
    c.same("equalities", len(ours), len(active))
    for e, i in zip(ours, active):
        at = f"equality {i} {e['name']}"
        kinds = {int(MJ.mjtEq.mjEQ_JOINT): "joint", int(MJ.mjtEq.mjEQ_TENDON): "tendon"}
        c.same(f"{at} name", e["name"], name(m, MJ.mjtObj.mjOBJ_EQUALITY, i))
        c.same(f"{at} kind", e["kind"], kinds.get(int(m.eq_type[i])))
        c.same(f"{at} objects", [e["first"], -1 if e["second"] is None else e["second"]],
               [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])])
        c.close(f"{at} poly", e["poly"], m.eq_data[i][:5])
        soft(c, at, e["softness"], m.eq_solref[i], m.eq_solimp[i])


def actuators(c, ours, m):
    c.same("actuators", len(ours), m.nu)
    for i, a in enumerate(ours[: m.nu]):
        at = f"actuator {i} {a['name']}"
        c.same(f"{at} name", a["name"], name(m, MJ.mjtObj.mjOBJ_ACTUATOR, i))
        on = {0: "joint", 1: "joint", 3: "tendon"}.get(int(m.actuator_trntype[i]))
        c.same(f"{at} target", [a["on"], a["target"]], [on, int(m.actuator_trnid[i][0])])
        c.close(f"{at} gear", a["gear"], m.actuator_gear[i][0])
        gain, bias = m.actuator_gainprm[i][:3].copy(), m.actuator_biasprm[i][:3].copy()
        if m.actuator_gaintype[i] == MJ.mjtGain.mjGAIN_FIXED:
            gain[1:] = 0
        if m.actuator_biastype[i] == MJ.mjtBias.mjBIAS_NONE:
            bias[:] = 0
        c.close(f"{at} gain", a["gain"], gain)
        c.close(f"{at} bias", a["bias"], bias)
        dynamics = ["none", "integrator", "filter", "filterexact"][m.actuator_dyntype[i]]
        c.same(f"{at} dynamics", a["dynamics"], dynamics)
        if dynamics.startswith("filter"):
            c.close(f"{at} time", a["time"], m.actuator_dynprm[i][0])
        clamp = not disabled(m, DSBL.mjDSBL_CLAMPCTRL)
        c.close(f"{at} ctrl range", a["ctrl_range"],
                m.actuator_ctrlrange[i] if m.actuator_ctrllimited[i] and clamp else None)
        c.close(f"{at} force range", a["force_range"],
                m.actuator_forcerange[i] if m.actuator_forcelimited[i] else None)
        c.close(f"{at} act range", a["act_range"], m.actuator_actrange[i] if m.actuator_actlimited[i] else None)
        c.same(f"{at} early", a["act_early"], bool(m.actuator_actearly[i]))


KINDS = ("touch accelerometer velocimeter gyro force torque rangefinder jointpos jointvel tendonpos tendonvel "
         "actuatorpos actuatorvel actuatorfrc framepos framequat framexaxis frameyaxis framezaxis framelinvel "
         "frameangvel subtreecom subtreelinvel subtreeangmom").split()
SENS = {int(getattr(MJ.mjtSensor, f"mjSENS_{k.upper()}")): k for k in KINDS}
FRAMES = {1: "body", 2: "xbody", 5: "geom", 6: "site"}


def sensors(c, ours, m):
    theirs, start = [], 0
    for i in range(m.nsensor):
        kind = SENS.get(int(m.sensor_type[i]))
        of, ref = int(m.sensor_objid[i]), int(m.sensor_refid[i])
        if kind is None or kind == "rangefinder" and (m.sensor_objtype[i] != 6 or m.sensor_dim[i] != 1):
            continue
        if kind.startswith("frame"):
            frame = FRAMES.get(int(m.sensor_objtype[i]))
            seen = None if ref < 0 else FRAMES.get(int(m.sensor_reftype[i]))
            if frame is None or ref >= 0 and (seen is None or kind in ("framelinvel", "frameangvel")):
                continue
            of = [[frame, of], None if ref < 0 else [seen, ref]]
        theirs.append([name(m, MJ.mjtObj.mjOBJ_SENSOR, i), kind, of, start])
        start += int(m.sensor_dim[i])
    c.same("sensors", [[s["name"], s["kind"], s["of"], s["start"]] for s in ours], theirs)


def expanded(path, main=None):
    """The file's root element with includes replaced by what they include."""
    root = ET.parse(path).getroot()
    main = main or os.path.dirname(os.path.abspath(path))

    def expand(node):
        for child in list(node):
            if child.tag == "include":
                at = list(node).index(child)
                node.remove(child)
                places = [os.path.join(d, child.get("file")) for d in (main, os.path.dirname(os.path.abspath(path)))]
                parts = list(expanded(next(p for p in places if os.path.exists(p)), main))
                for k, part in enumerate(parts):
                    node.insert(at + k, part)
            else:
                expand(child)

    expand(root)
    return root


def stripped(path):
    """MJCF text without anything that needs other files."""
    root = expanded(path)

    def external(geom):
        return geom.tag == "geom" and (geom.get("mesh") or geom.get("hfield"))

    # classes that give geoms a mesh
    classes = {inner.get("class") for outer in root.iter("default") if any(external(g) for g in outer)
               for inner in outer.iter("default")}

    def strip(node):
        for child in list(node):
            if child.tag in ("asset", "visual", "skin") or external(child) or (
                    child.tag == "geom" and child.get("class") in classes):
                node.remove(child)
                continue
            child.attrib.pop("material", None)
            strip(child)

    strip(root)
    ET.SubElement(root, "compiler", discardvisual="false")
    return ET.tostring(root, encoding="unicode")


def ours(binary, files):
    """What sim-vec makes of the files."""
    out = subprocess.run([binary, *files], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def examine(binary, path):
    """A row of the table: result, comparison or nothing."""
    verdict = ours(binary, [path])[0]
    if "error" in verdict:
        where = re.escape(os.path.dirname(path)) + "/"
        return re.sub(where, "", verdict["error"]), None
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as f:
        f.write(stripped(path))
        f.flush()
        again = ours(binary, [f.name])[0]
        if "error" in again:
            return f"the copy without assets: {again['error']}", None
        return verdict, compare(again["model"], mujoco.MjModel.from_xml_path(f.name))


def suite():
    import dm_control

    return sorted(glob.glob(os.path.join(os.path.dirname(dm_control.__file__), "suite", "*.xml")))


def row(label, result, c):
    if c is None:
        return f"| {label} | refused | {result.replace('|', ' ')} |"
    m = result["model"]
    parts = ["bodies", "dofs", "pairs", "tendons", "equalities", "actuators", "sensors"]
    counts = ", ".join(f"{len(m[k])} {k}" for k in parts if m[k])
    state = f"{c.numbers} numbers, error {c.error:.0e}" if not c.differences else f"differs: {c.differences[0]}"
    return f"| {label} | loads | {counts}; {state} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--compile", default=os.path.join(ROOT, "target/release/examples/compile"))
    parser.add_argument("--menagerie", help="a checkout of mujoco_menagerie; its scenes are left out")
    parser.add_argument("--source", default="", help="a sentence for the table: which copy of the menagerie this is")
    parser.add_argument("--table", help="Markdown file to write")
    args = parser.parse_args()

    groups = [("Files", [(f, f) for f in args.files])] if args.files else []
    if not args.files:
        groups.append(("DeepMind Control Suite", [(os.path.basename(f), f) for f in suite()]))
    if args.menagerie:
        files = sorted(glob.glob(os.path.join(args.menagerie, "*", "*.xml")))
        robots = [f for f in files if not os.path.basename(f).startswith("scene") and "<worldbody" in open(f).read()]
        groups.append(("MuJoCo Menagerie", [(os.path.relpath(f, args.menagerie), f) for f in robots]))

    bad, lines = 0, []
    for title, models in groups:
        rows, loaded = [], 0
        for label, path in models:
            result, c = examine(args.compile, path)
            loaded += c is not None
            bad += c is not None and bool(c.differences)
            rows.append(row(label, result, c))
            print(rows[-1])
            for d in c.differences[1:12] if c else []:
                print("   ", d)
        lines += [f"## {title}", "", f"{loaded} of {len(models)} load.", "",
                  "| model | result | contents and agreement, or reason |", "|---|---|---|", *rows, ""]
    if args.table:
        command = f"python benches/peers/model_parity.py{' --menagerie DIR' if args.menagerie else ''} --table {args.table}"
        head = ["# Which models load", "",
                f"Made by `{command}`",
                f"with MuJoCo {mujoco.__version__}. What loads is compared with MuJoCo's compiled model field by field",
                "(without mesh geoms, so that no mesh files are needed); the error is the largest",
                "|ours − MuJoCo's| / max(1, |MuJoCo's|). What is refused names its place and what to write instead.",
                *([args.source] if args.source else []), ""]
        with open(args.table, "w") as f:
            f.write("\n".join(head + lines))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
