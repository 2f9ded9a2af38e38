#!/usr/bin/env python3
"""Golden accelerations of models whose numbers were changed after compilation. Writes vary.json next to itself.

    pip install mujoco==3.17.0 numpy
    python make_vary.py

Per model of crates/sim-vec/models: factors on mass and inertia of each body, on damping of each dof, on the force of each
actuator (its gear), on friction and on gravity; states that a random policy visits; and what mj_forward makes of them.
Nothing is recomputed after the change, as in MuJoCo when an application writes to a compiled model.
"""
import json, pathlib
import numpy as np, mujoco

HERE = pathlib.Path(__file__).parent
STATES, SEED = 6, 11


def main():
    out = {}
    rng = np.random.default_rng(SEED)
    for name in ["hopper", "humanoid", "finger"]:
        m = mujoco.MjModel.from_xml_path(str(HERE / f"../../models/{name}.xml"))
        d = mujoco.MjData(m)
        states = []
        while len(states) < STATES:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(0, 0.5, m.nv)
            for _ in range(int(rng.integers(50, 300))):
                d.ctrl[:] = rng.uniform(-1, 1, m.nu)
                mujoco.mj_step(m, d)
            if d.ncon == 0 and len(states) < STATES - 2: continue
            states.append(dict(qpos=d.qpos.tolist(), qvel=d.qvel.tolist(), ctrl=rng.uniform(-1, 1, m.nu).tolist()))
        f = dict(mass=rng.uniform(0.5, 1.5, m.nbody), damping=rng.uniform(0.5, 2.0, m.nv), strength=rng.uniform(0.5, 1.5, m.nu),
                 friction=0.6, gravity=1.1)
        m.body_mass[:] *= f["mass"]
        m.body_inertia[:] *= f["mass"][:, None]
        m.dof_damping[:] = (np.asarray(m.dof_damping).reshape(m.nv, -1) * f["damping"][:, None]).reshape(m.dof_damping.shape)
        m.actuator_gear[:] *= f["strength"][:, None]
        m.geom_friction[:] *= f["friction"]
        m.opt.gravity[:] *= f["gravity"]
        m.opt.tolerance = 1e-14
        for s in states:
            mujoco.mj_resetData(m, d)
            d.qpos[:], d.qvel[:], d.ctrl[:] = s["qpos"], s["qvel"], s["ctrl"]
            mujoco.mj_forward(m, d)
            s["contacts"], s["qacc"] = int(d.ncon), d.qacc.tolist()
            d.qacc_warmstart[:] = 0
            mujoco.mj_step(m, d)
            s["next_qvel"] = d.qvel.tolist()
        flat = [*f["mass"].tolist(), *f["damping"].tolist(), *f["strength"].tolist(), f["friction"], f["gravity"]]
        out[name] = dict(factors=flat, states=states)
        print(name, [s["contacts"] for s in states])
    (HERE / "vary.json").write_text(json.dumps(out))


main()
