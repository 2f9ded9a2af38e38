#!/usr/bin/env python3
"""Trains the quick preset and collects curves and evaluations. Python's standard library only.

    cargo build --release
    python docs/results/make_quick.py            # about half an hour on two cores; writes quick.csv and quick.json

Runs lie in runs/quick; those that are complete are not trained again, those that were stopped go on.

quick.csv: task, algo, seed, env_steps, wall_s, return_mean (mean over the last 100 whole training episodes, with exploration noise).
quick.json: machine, command, and for every run its training time, threads, commit and evaluation (64 fresh episodes, noise-free
actions).
"""
import argparse, csv, json, os

from runs import HERE, ROOT, cpu, output, train

RUNS = [("cartpole-swingup", "trudi"), ("cartpole-swingup", "reppo"), ("cheetah-run", "trudi")]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seeds", type=int, default=3); p.add_argument("--phalanx", default=os.path.join(ROOT, "target/release/phalanx"))
    p.add_argument("--every", type=int, default=8, help="updates between rows of quick.csv")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    a = p.parse_args()
    rows, results = [], []
    for task, algo in RUNS:
        for seed in range(1, a.seeds + 1):
            out = os.path.join(ROOT, "runs", "quick", f"{task}-{algo}-seed{seed}")
            made = train(a, out, [task, "--algo", algo, "--seed", str(seed)])
            with open(os.path.join(out, "metrics.jsonl")) as f: lines = [json.loads(l) for l in f]
            for l in lines[a.every - 1::a.every]:
                mean = l["return_mean"]
                rows.append([task, algo, seed, l["env_steps"], round(l["wall_s"], 1), "" if mean is None else round(mean, 1)])
            evaluation = json.loads(output(a.phalanx, "eval", out, "--mode", "ode", "--episodes", "64", "--json"))
            last = lines[-1]
            results.append(dict(task=task, algo=algo, seed=seed, env_steps=last["env_steps"], train_s=round(last["wall_s"], 1), **made, **{
                k: round(evaluation[k], 2) for k in ("mean", "standard_error", "min", "max")}))
            print(results[-1], flush=True)
    with open(os.path.join(HERE, "quick.csv"), "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["task", "algo", "seed", "env_steps", "wall_s", "return_mean"])
        w.writerows(rows)
    with open(os.path.join(HERE, "quick.json"), "w") as f:
        json.dump(dict(machine=cpu(), command="python docs/results/make_quick.py", evaluation="phalanx eval RUN --mode ode --episodes 64",
                       runs=results), f, indent=1)
        f.write("\n")


main()
