#!/usr/bin/env python3
"""Golden data of the 14 control-suite tasks, from dm_control. Writes suite.json next to itself.

    pip install mujoco==3.17.0 dm_control==1.0.50 numpy
    python make_suite.py

Per domain:
  states   six states after random play and four near the reference configuration that score: qpos, qvel, ctrl, body frames and sensors as MuJoCo has them after a full forward,
           dm_control's observation (flattened in its order) and the reward of each of the domain's tasks
  play     a start state, controls, and the observation and rewards after each control step (legacy stepping)
  resets   over 400 resets: mean, standard deviation, minimum and maximum of every entry of the first observation
  settle   (cheetah) drawn joint positions and the state after the reset's 200 physics steps
"""
import json, pathlib
import numpy as np
from dm_control import suite
from dm_control.rl import control

TASKS = {
    "pendulum": ["swingup"],
    "cartpole": ["balance", "balance_sparse", "swingup", "swingup_sparse"],
    "cheetah": ["run"],
    "hopper": ["stand", "hop"],
    "walker": ["stand", "walk", "run"],
    "humanoid": ["stand", "walk", "run"],
}
STATES, PLAY, RESETS = 6, 12, 400


def name(domain, task):
    return f"{domain}-{task}".replace("_", "-")


def flat(obs):
    return np.concatenate([np.ravel(v) for v in obs.values()])


def floats(x):
    return np.asarray(x, float).ravel().tolist()


def rewards(domain, env):
    out = {}
    for task in TASKS[domain]:
        other = suite.load(domain, task, task_kwargs={"random": 0})
        out[name(domain, task)] = float(np.asarray(other.task.get_reward(env.physics)).item())
    return out


def state(domain, env):
    ph = env.physics
    m, d = ph.model, ph.data
    sensors = {}
    for s in range(m.nsensor):
        kind = m.id2name(s, "sensor")
        if kind == "torso_subtreelinvel" or "touch_toe" in kind or "touch_heel" in kind:
            sensors[kind] = floats(d.sensordata[m.sensor_adr[s]:m.sensor_adr[s] + m.sensor_dim[s]])
    return dict(qpos=floats(d.qpos), qvel=floats(d.qvel), ctrl=floats(d.ctrl), xpos=floats(d.xpos), xmat=floats(d.xmat),
                xipos=floats(d.xipos), sensor=sensors, observation=floats(flat(env.task.get_observation(ph))),
                reward=rewards(domain, env))


def main():
    out = {}
    for domain, tasks in TASKS.items():
        env = suite.load(domain, tasks[-1], task_kwargs={"random": 1})
        spec, rng = env.action_spec(), np.random.default_rng(1)
        act = lambda: rng.uniform(spec.minimum, spec.maximum)
        bodies = [env.physics.model.id2name(b, "body") for b in range(env.physics.model.nbody)]
        states = []
        for k in range(STATES):
            env.reset()
            for _ in range([0, 5, 20, 60, 120, 250][k]):
                env.step(act())
            env.physics.data.ctrl[:] = 0 if k == 0 else act()
            env.physics.forward()
            states.append(state(domain, env))
        for k in range(4):
            env.reset()
            ph = env.physics
            ph.data.qpos[:] = ph.model.qpos0 + 0.03 * rng.standard_normal(ph.model.nq)
            ph.data.qvel[:] = 0.2 * rng.standard_normal(ph.model.nv)
            # forward, at a fraction of the wanted speed
            slides = np.flatnonzero(ph.model.jnt_type == 2)
            if domain == "walker": ph.data.qvel[1] = [0.2, 0.8, 3.0, 9.0][k]
            elif domain == "humanoid": ph.data.qvel[0] = [0.2, 0.8, 3.0, 11.0][k]
            elif len(slides) and domain != "cartpole": ph.data.qvel[0] = [0.2, 1.5, 4.0, 11.0][k]
            ph.data.ctrl[:] = act() * [0, 0.3, 0.7, 1.0][k]
            ph.forward()
            states.append(state(domain, env))

        # a little way into an episode, so that contacts are there, from a state without history
        env.reset()
        for _ in range(40):
            env.step(act() * 0.5)
        ph = env.physics
        q, v = ph.data.qpos.copy(), ph.data.qvel.copy()
        with ph.reset_context():
            ph.data.qpos[:], ph.data.qvel[:] = q, v
        play = dict(qpos=floats(q), qvel=floats(v), steps=[])
        for _ in range(PLAY):
            a = act()
            ts = env.step(a)
            play["steps"].append(dict(ctrl=floats(a), observation=floats(flat(ts.observation)), reward=rewards(domain, env)))

        resets = {}
        for task in tasks:
            e = suite.load(domain, task, task_kwargs={"random": 2})
            x = np.stack([flat(e.reset().observation) for _ in range(RESETS)])
            resets[name(domain, task)] = dict(n=RESETS, mean=floats(x.mean(0)), std=floats(x.std(0)), min=floats(x.min(0)), max=floats(x.max(0)))

        out[domain] = dict(bodies=bodies, states=states, play=play, resets=resets)
        if domain == "cheetah":
            drawn, settled = [], []
            env = suite.load(domain, "run", task_kwargs={"random": 3})
            ph, original = env.physics, type(env.physics).step

            def record(self, nstep=1):
                if nstep == 200: drawn.append(floats(self.data.qpos))
                return original(self, nstep)
            type(ph).step = record
            for _ in range(4):
                env.reset()
                settled.append(dict(qpos=drawn[-1], settled_qpos=floats(ph.data.qpos), settled_qvel=floats(ph.data.qvel)))
            type(ph).step = original
            out[domain]["settle"] = settled
    path = pathlib.Path(__file__).with_name("suite.json")
    with path.open("w") as f:
        f.write("{\n")
        f.write(",\n".join(f"{json.dumps(d)}: {json.dumps(v)}" for d, v in out.items()))
        f.write("\n}\n")


main()
