#!/usr/bin/env python3
"""Golden physics: compiled models and stage-by-stage results of MuJoCo on states that a random policy visits.

    pip install mujoco==3.17.0 dm_control==1.0.50 numpy
    python make_physics.py            # writes physics_NAME.json next to this file

The models are those of dm_control's suite. `model` holds the compiled arrays in the layout of `sim_vec::model`;
`states` hold inputs (qpos, qvel, ctrl; warm start zero) and what mj_forward and mj_step made of them at solver
tolerance 1e-14. The first FULL states carry every stage, the others a selection.
"""
import importlib, json, os
import numpy as np, mujoco

NAMES, COUNT, FULL, SEED = ["pendulum", "cartpole", "cheetah", "hopper", "walker", "humanoid"], 20, 4, 7
HERE = os.path.dirname(os.path.abspath(__file__))
D, E = mujoco.mjtDisableBit, mujoco.mjtGeom


def num(a):
    a = np.asarray(a, float)
    return [num(x) for x in a] if a.ndim else (int(a) if a == int(a) and abs(a) < 1e9 else float(a))


def name(m, kind, i):
    return mujoco.mj_id2name(m, kind, i) or ""


def first(a, i):
    return float(np.asarray(a[i]).ravel()[0])


def pairs(m):
    excluded = {(int(x) >> 16, int(x) & 0xFFFF) for x in m.exclude_signature}
    out = []
    for a in range(m.ngeom):
        for b in range(a + 1, m.ngeom):
            if not (m.geom_contype[a] & m.geom_conaffinity[b] or m.geom_contype[b] & m.geom_conaffinity[a]): continue
            ba, bb = int(m.geom_bodyid[a]), int(m.geom_bodyid[b])
            wa, wb = m.body_weldid[ba], m.body_weldid[bb]
            if wa == wb: continue
            pa, pb = m.body_weldid[m.body_parentid[wa]], m.body_weldid[m.body_parentid[wb]]
            if wa and wb and (wa == pb or wb == pa): continue
            if (min(ba, bb), max(ba, bb)) in excluded or (max(ba, bb), min(ba, bb)) in excluded: continue
            g, h = (a, b) if m.geom_type[a] <= m.geom_type[b] else (b, a)
            assert m.geom_priority[g] == m.geom_priority[h]
            mix = m.geom_solmix[g] / (m.geom_solmix[g] + m.geom_solmix[h])
            r, s = m.geom_solref[g], m.geom_solref[h]
            ref = mix * r + (1 - mix) * s if r[0] > 0 and s[0] > 0 else np.minimum(r, s)
            imp = mix * m.geom_solimp[g] + (1 - mix) * m.geom_solimp[h]
            # MuJoCo detects up to margin + gap and pushes below margin
            gap = m.geom_gap[g] + m.geom_gap[h]
            margin = m.geom_margin[g] + m.geom_margin[h] + gap
            out.append([g, h, int(max(m.geom_condim[g], m.geom_condim[h])),
                        *num(np.maximum(m.geom_friction[g], m.geom_friction[h])), *num(ref), *num(imp), num(margin), num(gap)])
    return [[int(x) if i < 3 else x for i, x in enumerate(p)] for p in out]


def shape(m, g):
    kind, s = m.geom_type[g], m.geom_size[g]
    if kind == E.mjGEOM_PLANE: return ["plane"]
    if kind == E.mjGEOM_SPHERE: return ["sphere", num(s[0])]
    if kind == E.mjGEOM_CAPSULE: return ["capsule", num(s[0]), num(s[1])]
    return ["visual", *num(s)]


def model(m, title):
    o, off = m.opt, lambda bit: bool(m.opt.disableflags & int(bit))
    J = mujoco.mjtObj
    kinds = {0: "free", 2: "slide", 3: "hinge"}
    sensors = {int(mujoco.mjtSensor.mjSENS_TOUCH): "touch", int(mujoco.mjtSensor.mjSENS_SUBTREELINVEL): "subtreelinvel"}
    sites = {int(E.mjGEOM_SPHERE): "sphere", int(E.mjGEOM_CAPSULE): "capsule", int(E.mjGEOM_ELLIPSOID): "ellipsoid",
             int(E.mjGEOM_CYLINDER): "cylinder", int(E.mjGEOM_BOX): "box"}
    assert (m.actuator_biastype == 0).all() and (m.actuator_dyntype == 0).all() and o.impratio == 1
    return dict(
        name=title,
        opt=dict(timestep=o.timestep, gravity=num(o.gravity * (not off(D.mjDSBL_GRAVITY))),
                 integrator={0: "euler", 1: "rk4"}[int(o.integrator)], iterations=int(o.iterations), tolerance=1e-14,
                 ls_iterations=int(o.ls_iterations), ls_tolerance=float(o.ls_tolerance),
                 euler_damp=not off(D.mjDSBL_EULERDAMP), contact=not off(D.mjDSBL_CONTACT),
                 limit=not off(D.mjDSBL_LIMIT), constraint=not off(D.mjDSBL_CONSTRAINT)),
        nq=int(m.nq), mean_inertia=float(m.stat.meaninertia), qpos0=num(m.qpos0), qpos_spring=num(m.qpos_spring),
        bodies=[dict(name=name(m, J.mjOBJ_BODY, i), parent=int(m.body_parentid[i]), root=int(m.body_rootid[i]),
                     weld=int(m.body_weldid[i]), pos=num(m.body_pos[i]), quat=num(m.body_quat[i]), ipos=num(m.body_ipos[i]),
                     iquat=num(m.body_iquat[i]), mass=num(m.body_mass[i]), inertia=num(m.body_inertia[i]),
                     subtree_mass=num(m.body_subtreemass[i]), invweight0=num(m.body_invweight0[i]),
                     joints=[max(0, int(m.body_jntadr[i])), int(m.body_jntnum[i])],
                     dofs=[max(0, int(m.body_dofadr[i])), int(m.body_dofnum[i])]) for i in range(m.nbody)],
        joints=[dict(name=name(m, J.mjOBJ_JOINT, i), kind=kinds[int(m.jnt_type[i])], body=int(m.jnt_bodyid[i]),
                     qpos=int(m.jnt_qposadr[i]), dof=int(m.jnt_dofadr[i]), pos=num(m.jnt_pos[i]), axis=num(m.jnt_axis[i]),
                     stiffness=first(m.jnt_stiffness, i), range=num(m.jnt_range[i]) if m.jnt_limited[i] else None,
                     margin=num(m.jnt_margin[i]), solref=num(m.jnt_solref[i]), solimp=num(m.jnt_solimp[i])) for i in range(m.njnt)],
        dofs=[dict(body=int(m.dof_bodyid[i]), joint=int(m.dof_jntid[i]),
                   parent=int(m.dof_parentid[i]) if m.dof_parentid[i] >= 0 else None, armature=num(m.dof_armature[i]),
                   damping=first(m.dof_damping, i), invweight0=num(m.dof_invweight0[i])) for i in range(m.nv)],
        geoms=[dict(name=name(m, J.mjOBJ_GEOM, i), body=int(m.geom_bodyid[i]), shape=shape(m, i), pos=num(m.geom_pos[i]),
                    quat=num(m.geom_quat[i]), rbound=num(m.geom_rbound[i])) for i in range(m.ngeom)],
        sites=[dict(name=name(m, J.mjOBJ_SITE, i), body=int(m.site_bodyid[i]), pos=num(m.site_pos[i]), quat=num(m.site_quat[i]),
                    size=num(m.site_size[i]), shape=sites[int(m.site_type[i])]) for i in range(m.nsite)],
        pairs=[] if off(D.mjDSBL_CONTACT) else pairs(m),
        actuators=[dict(name=name(m, J.mjOBJ_ACTUATOR, i), joint=int(m.actuator_trnid[i, 0]),
                        gear=float(m.actuator_gear[i, 0] * m.actuator_gainprm[i, 0]),
                        ctrl_range=num(m.actuator_ctrlrange[i]) if m.actuator_ctrllimited[i] else None) for i in range(m.nu)],
        sensors=[dict(name=name(m, J.mjOBJ_SENSOR, i), kind=sensors[int(m.sensor_type[i])], object=int(m.sensor_objid[i]))
                 for i in range(m.nsensor) if int(m.sensor_type[i]) in sensors])


def visited(m, rng, count):
    d, out = mujoco.MjData(m), []
    low = np.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 0], -1.0)
    high = np.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 1], 1.0)
    while len(out) < count:
        mujoco.mj_resetData(m, d)
        if m.nkey: mujoco.mj_resetDataKeyframe(m, d, int(rng.integers(m.nkey)))
        d.qvel[:] = rng.normal(0, 0.5, m.nv)
        for _ in range(int(rng.integers(20, 400))):
            d.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(m, d)
        if np.isfinite(d.qpos).all():
            out.append((d.qpos.copy(), d.qvel.copy(), rng.uniform(low, high)))
    return out


def results(m, qpos, qvel, ctrl, full, index):
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = qpos, qvel, ctrl
    mujoco.mj_forward(m, d)
    which = {tuple(p[:2]): i for i, p in enumerate(index)}
    con = [d.contact[i] for i in range(d.ncon) if d.contact[i].exclude == 0]
    out = dict(qpos=num(qpos), qvel=num(qvel), ctrl=num(ctrl), qacc_smooth=num(d.qacc_smooth), qacc=num(d.qacc),
               nefc=int(d.nefc), contacts=[[which[tuple(map(int, c.geom))], float(c.dist), *num(c.pos), *num(c.frame)] for c in con],
               sensors=[num(d.sensordata[m.sensor_adr[i]:m.sensor_adr[i] + m.sensor_dim[i]]) for i in range(m.nsensor)
                        if m.sensor_type[i] in (mujoco.mjtSensor.mjSENS_TOUCH, mujoco.mjtSensor.mjSENS_SUBTREELINVEL)])
    if full:
        M = np.zeros((m.nv, m.nv))
        try: mujoco.mj_fullM(m, M, d.qM)
        except (AttributeError, TypeError): mujoco.mj_fullM(m, d, M)
        roots = [i for i in range(1, m.nbody) if m.body_rootid[i] == i]
        out |= dict(xpos=num(d.xpos), xmat=num(d.xmat), xipos=num(d.xipos), tree_com=[[i, *num(d.subtree_com[i])] for i in roots],
                    mass=num(M[np.tril_indices(m.nv)]), bias=num(d.qfrc_bias), passive=num(d.qfrc_passive))
    d.qacc_warmstart[:] = 0
    mujoco.mj_step(m, d)
    out |= dict(next_qpos=num(d.qpos), next_qvel=num(d.qvel))
    for _ in range(4): mujoco.mj_step(m, d)  # warm started
    return out | dict(fifth_qpos=num(d.qpos), fifth_qvel=num(d.qvel))


def main():
    for title in NAMES:
        xml, assets = importlib.import_module(f"dm_control.suite.{title}").get_model_and_assets()
        m = mujoco.MjModel.from_xml_string(xml if isinstance(xml, str) else xml.decode(), assets)
        m.opt.tolerance = 1e-14
        compiled = model(m, title)
        states = [results(m, *s, i < FULL, compiled["pairs"]) for i, s in enumerate(visited(m, np.random.default_rng(SEED), COUNT))]
        with open(os.path.join(HERE, f"physics_{title}.json"), "w") as f:
            json.dump(dict(mujoco=mujoco.__version__, model=compiled, states=states), f, separators=(",", ":"))
            f.write("\n")
        print(title, "contacts", sum(len(s["contacts"]) for s in states), "rows", sum(s["nefc"] for s in states))


main()
