#!/usr/bin/env python3
"""Golden data of the 23 control-suite tasks, from dm_control. Writes suite.json next to itself.

    pip install mujoco==3.17.0 dm_control==1.0.50 numpy
    python make_suite.py

Per domain, and per task where the tasks of a domain differ in more than their rewards:
  states   six states after random play and four that score: qpos, qvel, ctrl, target, body frames and sensors as MuJoCo has them after a full forward,
           dm_control's observation (flattened in its order) and the reward of each of the entry's tasks
  play     a start state, controls, and the observation and rewards after each control step (legacy stepping)
  resets   over 400 resets: mean, standard deviation, minimum and maximum of every entry of the first observation
  settle   (cheetah) drawn joint positions and the state after the reset's 200 physics steps
"""
import json, pathlib
import numpy as np
from dm_control import suite
from dm_control.rl import control

# entry: domain, tasks
ENTRIES = {
    "pendulum": ("pendulum", ["swingup"]),
    "cartpole": ("cartpole", ["balance", "balance_sparse", "swingup", "swingup_sparse"]),
    "cheetah": ("cheetah", ["run"]),
    "hopper": ("hopper", ["stand", "hop"]),
    "walker": ("walker", ["stand", "walk", "run"]),
    "humanoid": ("humanoid", ["stand", "walk", "run"]),
    "acrobot": ("acrobot", ["swingup", "swingup_sparse"]),
    "ball-in-cup": ("ball_in_cup", ["catch"]),
    "finger-spin": ("finger", ["spin"]),
    "finger-turn-easy": ("finger", ["turn_easy"]),
    "finger-turn-hard": ("finger", ["turn_hard"]),
    "fish": ("fish", ["swim"]),
    "reacher-easy": ("reacher", ["easy"]),
    "reacher-hard": ("reacher", ["hard"]),
}
STATES, PLAY, RESETS = 6, 12, 400


def name(domain, task):
    return f"{domain}-{task}".replace("_", "-")


def flat(obs):
    return np.concatenate([np.ravel(v) for v in obs.values()])


def floats(x):
    return np.asarray(x, float).ravel().tolist()


def rewards(domain, tasks, env):
    out = {}
    for task in tasks:
        other = suite.load(domain, task, task_kwargs={"random": 0})
        out[name(domain, task)] = float(np.asarray(other.task.get_reward(env.physics)).item())
    return out


def target(domain, ph):
    """What the episode is about: position of the target, or its angle from the vertical seen from the hinge."""
    m = ph.named.model
    if domain == "reacher": return floats(m.geom_pos["target", :2])
    if domain == "fish": return floats(m.geom_pos["target"])
    if domain == "finger":
        x, z = m.site_pos["target", ["x", "z"]] - m.body_pos["spinner", ["x", "z"]]
        return [float(np.arctan2(x, z))]
    return []


def score(domain, tasks, ph, rng, k):
    """Moves the state or the target to where the k-th of four states scores or just fails to."""
    m, d = ph.named.model, ph.named.data
    if domain not in ["ball_in_cup", "reacher", "fish", "finger"]: return
    away = rng.standard_normal(3)
    if domain == "ball_in_cup":
        d.qpos[["ball_x", "ball_z"]] = [0, 0.35] + [0.0, 0.2, 0.9, 1.1][k] * 0.025 * np.sign(away[:2])
        d.qpos[["cup_x", "cup_z"]] = 0
    elif domain == "reacher":
        ph.forward()
        reach = m.geom_size["target", 0] + m.geom_size["finger", 0]
        m.geom_pos["target", :2] = d.geom_xpos["finger", :2] + [0.0, 0.5, 0.99, 1.01][k] * reach * away[:2] / np.linalg.norm(away[:2])
    elif domain == "fish":
        ph.forward()
        m.geom_pos["target"] = d.geom_xpos["mouth"] + [0.0, 0.04, 0.07, 0.3][k] * away / np.linalg.norm(away)
    elif domain == "finger":
        if k >= 2: press(ph, rng)
        d.qvel["hinge"] = [-5.0, -14.99, -15.01, -30.0][k]
        ph.forward()
        if tasks[0] != "spin":
            x, z = d.site_xpos["tip", ["x", "z"]] - d.xpos["spinner", ["x", "z"]]
            chord = [0.0, 0.5, 0.99, 1.01][k] * m.site_size["target", 0]
            angle = np.arctan2(x, z) + 2 * np.arcsin(chord / 2 / 0.13) * np.sign(away[0])
            m.site_pos["target", ["x", "z"]] = d.xpos["spinner", ["x", "z"]] + 0.13 * np.array([np.sin(angle), np.cos(angle)])


def press(ph, rng):
    """Draws joint angles at which the fingertip presses lightly on the spinner and a touch sensor feels it."""
    while True:
        for joint in ["proximal", "distal"]: ph.named.data.qpos[joint] = rng.uniform(*ph.named.model.jnt_range[joint])
        ph.named.data.qpos["hinge"] = rng.uniform(-np.pi, np.pi)
        ph.forward()
        con = ph.data.contact
        if 0 < ph.data.ncon < 3 and con.dist.min() > -0.004 and ph.touch().max() > 0: return


def state(domain, tasks, env):
    ph = env.physics
    m, d = ph.model, ph.data
    sensors = {}
    for s in range(m.nsensor):
        kind = m.id2name(s, "sensor")
        if kind == "torso_subtreelinvel" or "touch_toe" in kind or "touch_heel" in kind:
            sensors[kind] = floats(d.sensordata[m.sensor_adr[s]:m.sensor_adr[s] + m.sensor_dim[s]])
    return dict(qpos=floats(d.qpos), qvel=floats(d.qvel), ctrl=floats(d.ctrl), xpos=floats(d.xpos), xmat=floats(d.xmat),
                xipos=floats(d.xipos), sensor=sensors, target=target(domain, ph), observation=floats(flat(env.task.get_observation(ph))),
                reward=rewards(domain, tasks, env))


def main():
    out = {}
    for entry, (domain, tasks) in ENTRIES.items():
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
            states.append(state(domain, tasks, env))
        for k in range(4):
            env.reset()
            ph = env.physics
            ph.data.qpos[:] = ph.model.qpos0 + 0.03 * rng.standard_normal(ph.model.nq)
            ph.data.qvel[:] = 0.2 * rng.standard_normal(ph.model.nv)
            # forward, at a fraction of the wanted speed
            if domain == "walker": ph.data.qvel[1] = [0.2, 0.8, 3.0, 9.0][k]
            elif domain == "humanoid": ph.data.qvel[0] = [0.2, 0.8, 3.0, 11.0][k]
            elif domain in ["cheetah", "hopper"]: ph.data.qvel[0] = [0.2, 1.5, 4.0, 11.0][k]
            score(domain, tasks, ph, rng, k)
            ph.data.ctrl[:] = act() * [0, 0.3, 0.7, 1.0][k]
            ph.forward()
            states.append(state(domain, tasks, env))

        # a little way into an episode, so that contacts are there, from a state without history
        env.reset()
        for _ in range(40):
            env.step(act() * 0.5)
        ph = env.physics
        if domain == "finger":
            press(ph, rng)
            ph.named.data.qvel["hinge"] = -1.0
        q, v = ph.data.qpos.copy(), ph.data.qvel.copy()
        with ph.reset_context():
            ph.data.qpos[:], ph.data.qvel[:] = q, v
        play = dict(qpos=floats(q), qvel=floats(v), target=target(domain, ph), steps=[])
        for _ in range(PLAY):
            a = act()
            ts = env.step(a)
            play["steps"].append(dict(ctrl=floats(a), observation=floats(flat(ts.observation)), reward=rewards(domain, tasks, env)))

        resets = {}
        for task in tasks:
            e = suite.load(domain, task, task_kwargs={"random": 2})
            x = np.stack([flat(e.reset().observation) for _ in range(RESETS)])
            resets[name(domain, task)] = dict(n=RESETS, mean=floats(x.mean(0)), std=floats(x.std(0)), min=floats(x.min(0)), max=floats(x.max(0)))

        out[entry] = dict(bodies=bodies, states=states, play=play, resets=resets)
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
            out[entry]["settle"] = settled
    path = pathlib.Path(__file__).with_name("suite.json")
    with path.open("w") as f:
        f.write("{\n")
        f.write(",\n".join(f"{json.dumps(d)}: {json.dumps(v)}" for d, v in out.items()))
        f.write("\n}\n")


main()
