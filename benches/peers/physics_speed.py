#!/usr/bin/env python3
"""Physics steps per second of one core: ours against MuJoCo's own C loop, interleaved in one run.

    pip install mujoco==3.17.0 numpy
    cargo build --release -p sim-vec --example throughput
    python benches/peers/physics_speed.py [--rounds 7] [--models cheetah,humanoid] [--isa avx512]

Both step the same model files (crates/sim-vec/models) from the same states (the golden ones, visited by a random policy)
under the same controls (a hash of environment, step and actuator, held for `--hold` steps), with contacts, MuJoCo's default
solver settings and warm starts. MuJoCo runs in f64 (it has no other) inside `mujoco.rollout` on the calling thread; ours in
f32 lanes on one thread. Time is the thread's CPU time. Printed: medians over the rounds, and the median of the per-round
ratios with the least and the largest one.
"""
import argparse, json, os, platform, re, subprocess, sys, time
import numpy as np, mujoco
from mujoco import rollout

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def control(env, step, actuator):
    """Uniform in [-1, 1); the same hash as in crates/sim-vec/examples/throughput.rs. Arguments broadcast."""
    m = np.uint64(0xFFFFFFFF)
    env, step, actuator = np.broadcast_arrays(*(np.asarray(x, np.uint64) for x in (env, step, actuator)))
    h = (env * np.uint64(0x9E3779B1) & m) ^ (step * np.uint64(0x85EBCA77) & m) ^ (actuator * np.uint64(0xC2B2AE3D) & m)
    h ^= h >> np.uint64(15); h = h * np.uint64(0x2C1B3C6D) & m
    h ^= h >> np.uint64(12); h = h * np.uint64(0x297A2D39) & m
    h ^= h >> np.uint64(15)
    return (h >> np.uint64(8)).astype(np.float64) / 8388608.0 - 1.0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--models", default="cheetah,humanoid"); p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--envs", type=int, default=64); p.add_argument("--steps", type=int, default=400)
    p.add_argument("--hold", type=int, default=5); p.add_argument("--isa", default="")
    p.add_argument("--precision", default="f32")
    a = p.parse_args()
    binary = os.path.join(ROOT, "target", "release", "examples", "throughput")
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    print("python benches/peers/" + " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + f" at commit {commit}")
    print(f"MuJoCo {mujoco.__version__}, {cpu}, {a.envs} environments x {a.steps} steps, {a.rounds} rounds")
    for name in a.models.split(","):
        model = mujoco.MjModel.from_xml_path(os.path.join(ROOT, "crates/sim-vec/models", f"{name}.xml"))
        golden = json.load(open(os.path.join(ROOT, "crates/sim-vec/tests/golden", f"physics_{name}.json")))["states"]
        data = mujoco.MjData(model)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        start = np.empty((a.envs, size))
        for e in range(a.envs):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = golden[e % len(golden)]["qpos"], golden[e % len(golden)]["qvel"]
            mujoco.mj_getState(model, data, start[e], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        ctrl = control(np.arange(a.envs)[:, None, None], (np.arange(a.steps) // a.hold)[None, :, None], np.arange(model.nu)[None, None, :])
        ours, theirs = [], []
        command = [binary, f"models={name}", f"envs={a.envs}", f"steps={a.steps}", f"hold={a.hold}", "rounds=1", f"precision={a.precision}"]
        if a.isa: command.append(f"isa={a.isa}")
        with rollout.Rollout(nthread=0) as run:
            run.rollout(model, data, start, ctrl)  # warm up
            for _ in range(a.rounds):
                text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                ours.append(float(re.search(r"(\d+) steps/s", text).group(1)))
                begin = time.thread_time()
                run.rollout(model, data, start, ctrl)
                theirs.append(a.envs * a.steps / (time.thread_time() - begin))
        ratios = np.array(ours) / np.array(theirs)
        print(f"{name}: ours {np.median(ours):,.0f} steps/s, MuJoCo {np.median(theirs):,.0f} steps/s per core; "
              f"ratio {np.median(ratios):.1f} (rounds {ratios.min():.1f} to {ratios.max():.1f})")
        print("   last round: " + text.strip())


main()
