#!/usr/bin/env python3
"""Trains countdown from nothing and collects the curve. Python's standard library only.

    cargo build --release
    python docs/results/make_countdown.py            # writes countdown.csv and countdown.json

Runs lie in runs/countdown; those that are complete are not trained again, those that were stopped go on.

countdown.csv: seed, update, wall_s, phase (warm-up or grpo), supervised_loss (nats a token), score_mean (share of training completions that are
right), held_out (share of held-out prompts solved, one drawn completion each), length_mean (tokens).
countdown.json: machine, command, and for every run its training time, threads, commit, and the evaluations before and after group-relative training.
"""
import argparse, csv, json, os

from runs import HERE, ROOT, cpu, train

FIELDS = ["supervised_loss", "score_mean", "held_out", "length_mean"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seeds", type=int, default=1); p.add_argument("--phalanx", default=os.path.join(ROOT, "target/release/phalanx"))
    p.add_argument("--threads", type=int, default=os.cpu_count()); p.add_argument("--group", default="static:8")
    a = p.parse_args()
    rows, results = [], []
    for seed in range(1, a.seeds + 1):
        out = os.path.join(ROOT, "runs", "countdown", f"seed{seed}")
        made = train(a, out, ["countdown", "--algo", "grpo", "--group", a.group, "--seed", str(seed)])
        with open(os.path.join(out, "metrics.jsonl")) as f: lines = [json.loads(l) for l in f]
        for l in lines:
            cells = ["" if l.get(k) is None else round(l[k], 4) for k in FIELDS]
            rows.append([seed, l["update"], round(l["wall_s"], 1), "warm-up" if "supervised_loss" in l else "grpo", *cells])
        with open(os.path.join(out, "eval.json")) as f: evaluations = json.load(f)
        results.append(dict(seed=seed, train_s=round(lines[-1]["wall_s"], 1), **made, evaluations=evaluations))
        print(json.dumps(results[-1]), flush=True)
    with open(os.path.join(HERE, "countdown.csv"), "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["seed", "update", "wall_s", "phase", *FIELDS])
        w.writerows(rows)
    with open(os.path.join(HERE, "countdown.json"), "w") as f:
        json.dump(dict(machine=cpu(), command="python docs/results/make_countdown.py", runs=results), f, indent=1)
        f.write("\n")


main()
