#!/usr/bin/env python3
"""Golden accelerations, sensors and steps of models that use what the control suite does not. Writes features.json next to itself.

    pip install mujoco==3.17.0 numpy
    python make_features.py

Per model of features/: states that a random policy visits, and what mj_forward and mj_step make of them at solver tolerance
1e-14 from a zero warm start: qacc, sensordata, then qvel and act one step later.
"""
import json, pathlib
import numpy as np, mujoco

HERE = pathlib.Path(__file__).parent


def main():
    out, rng = {}, np.random.default_rng(3)
    for name in ["scene", "cones", "fast", "medium"]:
        m = mujoco.MjModel.from_xml_path(str(HERE / "features" / f"{name}.xml"))
        m.opt.tolerance = 1e-14
        d, states, contacts = mujoco.MjData(m), [], 0
        for _ in range(8):
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(0, 0.5, m.nv)
            for _ in range(int(rng.integers(20, 300))):
                d.ctrl[:] = rng.uniform(-1, 1, m.nu)
                mujoco.mj_step(m, d)
            s = dict(qpos=d.qpos.tolist(), qvel=d.qvel.tolist(), act=d.act.tolist(), ctrl=rng.uniform(-1, 1, m.nu).tolist())
            mujoco.mj_resetData(m, d)
            d.qpos[:], d.qvel[:], d.ctrl[:] = s["qpos"], s["qvel"], s["ctrl"]
            if m.na: d.act[:] = s["act"]
            mujoco.mj_forward(m, d)
            s["qacc"], s["sensor"] = d.qacc.tolist(), d.sensordata.tolist()
            contacts += d.ncon
            d.qacc_warmstart[:] = 0
            mujoco.mj_step(m, d)
            s["next_qvel"], s["next_act"] = d.qvel.tolist(), d.act.tolist()
            states.append(s)
        out[name] = states
        print(name, contacts, "contacts")
    (HERE / "features.json").write_text(json.dumps(out))


main()
