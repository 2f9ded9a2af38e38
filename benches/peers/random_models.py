#!/usr/bin/env python3
"""Random mechanisms against MuJoCo: the loader's every rule and the engine's every term, on models nobody chose.

    pip install mujoco==3.17.0 numpy
    cargo build --release
    python benches/peers/random_models.py --models 200 --seed 1

Each model is a random tree of bodies (free, slide and hinge joints with limits, springs, dampers, armature, references, margins;
spheres and capsules with random density, friction, softness, margins, gaps, priorities, condim 1 and 3; planes, frames, classes;
motors) in a random state near its start. `phalanx physics --precision f64` is compared with mj_forward and mj_step at solver tolerance
1e-14; the error is |ours - MuJoCo| / max(1, |MuJoCo|) in the 2-norm. Exit status 1 if one of them is above --bound or the
numbers of contacts differ. A failing model is kept as FAILED_n.xml next to where you run it.
"""
import argparse, json, os, subprocess, sys, tempfile
import numpy as np, mujoco


def fmt(v):
    return " ".join(f"{x:.6g}" for x in np.atleast_1d(v))


def softness(r, names):
    out = []
    if r.random() < 0.5: out.append(f'{names[0]}="{r.uniform(0.01, 0.1):.4f} {r.uniform(0.5, 1.5):.3f}"')
    if r.random() < 0.3: out.append(f'{names[1]}="{r.uniform(0.3, 0.9):.3f} {r.uniform(0.9, 0.99):.3f} {r.uniform(0.001, 0.02):.4f} {r.uniform(0.2, 0.8):.2f} {r.choice([1, 2, 3])}"')
    return " ".join(out)


def orientation(r):
    kind = r.integers(6)
    return ["", f'quat="{fmt(r.normal(size=4))}"', f'euler="{fmt(r.uniform(-90, 90, 3))}"', f'axisangle="{fmt(np.append(r.normal(size=3), r.uniform(-90, 90)))}"',
            f'zaxis="{fmt(r.normal(size=3))}"', f'xyaxes="{fmt(r.normal(size=6))}"'][kind]


def geom(r, plain=False):
    kind = r.choice(["sphere", "capsule", "fromto"])
    a = [f'friction="{r.uniform(0.1, 1.2):.3f}"' if r.random() < 0.5 else "", f'condim="{r.choice([1, 3])}"', f'solmix="{r.uniform(0.1, 3):.2f}"' if r.random() < 0.3 else "",
         f'margin="{r.uniform(0, 0.05):.4f}"' if r.random() < 0.3 else "", f'gap="{r.uniform(0, 0.03):.4f}"' if r.random() < 0.2 else "",
         f'priority="{r.integers(3)}"' if r.random() < 0.2 else "", f'density="{r.uniform(200, 3000):.1f}"' if r.random() < 0.5 else f'mass="{r.uniform(0.2, 3):.3f}"',
         softness(r, ("solref", "solimp")), f'contype="{r.choice([1, 2, 3])}" conaffinity="{r.choice([0, 1, 3])}"' if r.random() < 0.3 else ""]
    if r.random() < 0.1: a.append('class="special"')
    size = r.uniform(0.04, 0.12)
    if kind == "sphere": shape = f'type="sphere" size="{size:.4f}" pos="{fmt(r.normal(0, 0.1, 3))}"'
    elif kind == "capsule": shape = f'type="capsule" size="{size:.4f} {r.uniform(0.05, 0.25):.4f}" pos="{fmt(r.normal(0, 0.1, 3))}" {orientation(r)}'
    else: shape = f'type="capsule" size="{size:.4f}" fromto="{fmt(r.normal(0, 0.2, 6))}"'
    return f'<geom {shape} {" ".join(a)}/>'


def joint(r, name):
    kind = r.choice(["slide", "hinge"], p=[0.35, 0.65])
    axis = r.choice([0, 1], p=[0.5, 0.5])
    a = [f'name="{name}" type="{kind}" axis="{fmt(np.eye(3)[r.integers(3)] if axis else r.normal(size=3))}"']
    if r.random() < 0.5: a.append(f'pos="{fmt(r.normal(0, 0.1, 3))}"')
    if r.random() < 0.5: a.append(f'range="{-r.uniform(5, 60):.2f} {r.uniform(5, 60):.2f}"' if kind == "hinge" else f'range="{-r.uniform(0.01, 0.3):.3f} {r.uniform(0.01, 0.3):.3f}"')
    if r.random() < 0.2: a.append(f'margin="{r.uniform(0, 0.05):.3f}"')
    if r.random() < 0.5: a.append(f'stiffness="{r.uniform(0, 50):.2f}" springref="{r.uniform(-20, 20) if kind == "hinge" else r.uniform(-0.1, 0.1):.3f}"')
    elif r.random() < 0.2: a.append(f'springdamper="{r.uniform(0.05, 0.5):.3f} {r.uniform(0.3, 1.5):.3f}"')
    if r.random() < 0.6: a.append(f'damping="{r.uniform(0, 3):.3f}"')
    if r.random() < 0.5: a.append(f'armature="{r.uniform(0, 0.2):.3f}"')
    if r.random() < 0.2: a.append(f'ref="{r.uniform(-20, 20) if kind == "hinge" else r.uniform(-0.1, 0.1):.3f}"')
    a.append(softness(r, ("solreflimit", "solimplimit")))
    return f'<joint {" ".join(a)}/>'


def body(r, depth, names, top):
    inner = []
    if top and r.random() < 0.4:
        inner.append(r.choice(["<freejoint/>", '<joint type="free" armature="0.01" damping="0.3"/>']))
    elif top or r.random() < 0.85:
        for _ in range(r.choice([1, 2, 3], p=[0.6, 0.25, 0.15])):
            names.append(f"j{len(names)}"); inner.append(joint(r, names[-1]))
    inner += [geom(r) for _ in range(r.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))]
    if r.random() < 0.15:
        m = r.uniform(0.01, 0.05, 3); m[2] = min(m[2], m[0] + m[1]); m.sort()
        inner.append(f'<inertial pos="{fmt(r.normal(0, 0.05, 3))}" mass="{r.uniform(0.3, 3):.3f}" diaginertia="{fmt([m[2], m[1], max(m[0], m[2] - m[1])])}" {orientation(r)}/>')
    if r.random() < 0.15: inner.append(f'<frame pos="{fmt(r.normal(0, 0.1, 3))}" {orientation(r)}>{geom(r)}</frame>')
    if depth: inner += [body(r, depth - 1, names, False) for _ in range(r.choice([0, 1, 2], p=[0.25, 0.5, 0.25]))]
    height = r.uniform(0.1, 0.8) if top else 0.0
    return f'<body pos="{fmt(r.normal(0, 0.2, 3) + [0, 0, height])}" {orientation(r)}>{"".join(inner)}</body>'


def model(r):
    names, flags = [], []
    bodies = "".join(body(r, int(r.integers(4)), names, True) for _ in range(r.choice([1, 2], p=[0.7, 0.3])))
    driven = [n for n in names if r.random() < 0.5]
    motors = "".join(f'<motor joint="{n}" gear="{r.uniform(-20, 20):.2f}" {"ctrlrange=" + chr(34) + "-1 0.7" + chr(34) if r.random() < 0.7 else ""}/>' for n in driven)
    for flag in ["eulerdamp", "filterparent", "limit", "gravity"]:
        if r.random() < 0.08: flags.append(f'{flag}="disable"')
    compiler = r.choice(["", '<compiler settotalmass="7"/>', '<compiler angle="degree" eulerseq="zyx"/>', '<compiler inertiafromgeom="true"/>'], p=[0.6, 0.1, 0.2, 0.1])
    return f'''<mujoco>{compiler}<option timestep="{r.choice([0.002, 0.005])}" integrator="{r.choice(["Euler", "RK4"], p=[0.75, 0.25])}"><flag {" ".join(flags)}/></option>
<default><geom solref="0.02 1.1"/><default class="special"><geom friction="0.9" condim="3" margin="0.01"/></default></default>
<worldbody><geom type="plane" size="5 5 1" {orientation(r) if r.random() < 0.1 else ""} friction="{r.uniform(0.2, 1):.3f}"/>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>'''


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--models", type=int, default=200); p.add_argument("--seed", type=int, default=1); p.add_argument("--states", type=int, default=5)
    p.add_argument("--phalanx", default="target/release/phalanx"); p.add_argument("--bound", type=float, default=1e-7)
    a = p.parse_args()
    errors, bad, contacts, limits, skipped = [], 0, 0, 0, 0
    for n in range(a.models):
        r = np.random.default_rng([a.seed, n])
        text = model(r)
        try: m = mujoco.MjModel.from_xml_string(text)
        except ValueError: skipped += 1; continue
        m.opt.tolerance, m.opt.iterations = 1e-14, 200
        # collinear joints without armature: no mechanism, and MuJoCo's own numbers mean nothing
        d, inertia = mujoco.MjData(m), np.zeros((m.nv, m.nv))
        mujoco.mj_forward(m, d)
        try: mujoco.mj_fullM(m, inertia, d.qM)
        except (AttributeError, TypeError): mujoco.mj_fullM(m, d, inertia)
        if m.nv and np.linalg.cond(inertia) > 1e12: skipped += 1; continue
        states, answers = [], []
        for _ in range(a.states):
            d = mujoco.MjData(m)
            d.qvel[:] = r.normal(0, 0.5, m.nv)
            mujoco.mj_integratePos(m, d.qpos, r.normal(0, 0.4, m.nv), 1.0)
            ctrl = r.uniform(-1.3, 1.3, m.nu)
            states.append(dict(qpos=d.qpos.tolist(), qvel=d.qvel.tolist(), ctrl=ctrl.tolist()))
            d.ctrl[:] = ctrl
            mujoco.mj_forward(m, d)
            qacc, ncon = d.qacc.copy(), sum(1 for i in range(d.ncon) if d.contact[i].exclude == 0)
            contacts += ncon; limits += d.nefc > 0
            d.qacc_warmstart[:] = 0
            mujoco.mj_step(m, d)
            answers.append((qacc, d.qpos.copy(), d.qvel.copy(), ncon))
        with tempfile.NamedTemporaryFile("w", suffix=".xml", delete=False) as f: f.write(text.replace("<option", '<option tolerance="1e-14" iterations="200"'))
        run = subprocess.run([a.phalanx, "physics", f.name, "--precision", "f64"], input="\n".join(map(json.dumps, states)) + "\n", text=True, capture_output=True)
        os.unlink(f.name)
        worst, why = 0.0, run.stderr.strip()[-300:]
        for line, want in zip(run.stdout.splitlines(), answers):
            got = json.loads(line)
            for k, w in zip(("qacc", "qpos", "qvel"), want):
                e = np.linalg.norm(np.asarray(got[k]) - w) / max(1.0, np.linalg.norm(w))
                if not e <= worst: worst, why = e, k
            if got["ncon"] != want[3]: worst, why = np.inf, f"{got['ncon']} contacts, MuJoCo {want[3]}"
        if len(run.stdout.splitlines()) != len(answers): worst = np.inf
        errors.append(worst)
        if not worst <= a.bound:
            bad += 1
            open(f"FAILED_{n}.xml", "w").write(text)
            print(f"model {n}: {worst:.1e} ({why})")
    e = np.array(errors)
    print(f"{len(e)} models ({skipped} left out: not valid in MuJoCo or singular), {contacts} contacts, {limits} constrained states: median error {np.median(e):.1e}, "
          f"largest {e.max():.1e}; {bad} above {a.bound:g}: {'FALLS SHORT' if bad else 'holds'}")
    sys.exit(bad > 0)


main()
