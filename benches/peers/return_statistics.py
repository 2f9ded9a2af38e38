#!/usr/bin/env python3
"""Do episodes of uniformly random actions have the same returns here as in dm_control? Two-sample tests, task by task.

    pip install mujoco==3.17.0 dm_control==1.0.50 numpy scipy
    cargo build --release -p sim-vec --example random_returns
    python return_statistics.py [--ours target/release/examples/random_returns] [--episodes 64] [--seed 1] [--cache FILE] [TASK ...]

Both sides play EPISODES episodes of 1,000 control steps with actions uniform in their ranges, independently of each other
(ours in f32, as in training). Tests on the returns: Mann-Whitney U and Kolmogorov-Smirnov; where more than half of all returns
are one and the same value (sparse rewards), a permutation test of the mean instead. A task holds if every p is above 0.01.
Finer: the same Kolmogorov-Smirnov test on every entry's mean over an episode's observations, with p multiplied by the number
of entries (Bonferroni). Equal simulators fail a test at that level in one of a hundred tasks by chance, and tasks of a domain
that differ only in reward see the same episodes, so that their p values move together.
dm_control is slow, so its episodes are kept in the file --cache names, if any.
"""
import argparse, concurrent.futures, json, os, pathlib, subprocess, sys, warnings
import numpy as np
from scipy import stats

LEVEL, STEPS, CHUNK = 0.01, 1000, 8


def play(reference, episodes, seed):
    """Returns and per-episode means of the observations of dm_control."""
    warnings.filterwarnings("ignore")
    from dm_control import suite
    domain, task = reference.split()[1].split("/")
    env = suite.load(domain, task, task_kwargs={"random": seed})
    rng, spec = np.random.default_rng([seed, 1]), env.action_spec()
    out = []
    for _ in range(episodes):
        env.reset()
        total, mean = 0.0, 0.0
        for _ in range(STEPS):
            ts = env.step(rng.uniform(spec.minimum, spec.maximum))
            total += float(ts.reward)
            mean = mean + np.concatenate([np.ravel(v) for v in ts.observation.values()]) / STEPS
        assert ts.last()
        out.append((total, mean.tolist()))
    return [r for r, _ in out], [m for _, m in out]


def theirs(a, tasks):
    """dm_control's episodes of all tasks, from the cache where it has them."""
    import dm_control, mujoco
    from importlib.metadata import version
    key = f"dm_control {version('dm_control')}, mujoco {mujoco.__version__}, {a.episodes} episodes, seed {a.seed}"
    path = pathlib.Path(a.cache) if a.cache else None
    known = json.loads(path.read_text()) if path and path.exists() else {}
    kept = known.setdefault(key, {})
    with concurrent.futures.ProcessPoolExecutor(a.processes) as pool:
        jobs = {}
        for n, reference in tasks.items():
            if n not in kept:
                sizes = [min(CHUNK, a.episodes - k) for k in range(0, a.episodes, CHUNK)]
                jobs[n] = [pool.submit(play, reference, size, 1000 * a.seed + i) for i, size in enumerate(sizes)]
        for n, parts in jobs.items():
            parts = [p.result() for p in parts]
            kept[n] = dict(returns=[r for p in parts for r in p[0]], means=[m for p in parts for m in p[1]])
            if path: path.write_text(json.dumps(known))
            print(f"  dm_control played {n}", file=sys.stderr, flush=True)
    return kept


def compare(x, y):
    """Names and p values of the tests that fit the returns."""
    both = np.concatenate([x, y])
    values, counts = np.unique(both, return_counts=True)
    if len(values) == 1: return dict(alike=1.0)
    if counts.max() > len(both) / 2:
        mean = lambda u, v, axis: u.mean(axis=axis) - v.mean(axis=axis)
        test = stats.permutation_test((x, y), mean, vectorized=True, n_resamples=9999, rng=np.random.default_rng(0))
        return dict(permutation=float(test.pvalue))
    return dict(U=float(stats.mannwhitneyu(x, y).pvalue), KS=float(stats.ks_2samp(x, y).pvalue))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tasks", nargs="*"); p.add_argument("--ours", default="target/release/examples/random_returns")
    p.add_argument("--episodes", type=int, default=64); p.add_argument("--seed", type=int, default=1)
    p.add_argument("--processes", type=int, default=os.cpu_count()); p.add_argument("--cache")
    a = p.parse_args()
    run = subprocess.run([a.ours, f"episodes={a.episodes}", f"seed={a.seed}", *([f"tasks={','.join(a.tasks)}"] if a.tasks else [])],
                         capture_output=True, text=True)
    if run.returncode: sys.exit(f"{a.ours} failed: {run.stderr.strip()[-400:]}")
    ours = {d["task"]: d for d in map(json.loads, run.stdout.splitlines())}
    reference = theirs(a, {n: d["reference"] for n, d in ours.items()})
    short = []
    print(f"{a.episodes} episodes of {STEPS} random steps a side, seed {a.seed}; mean return ± standard error")
    for n, d in ours.items():
        x, y = np.array(d["returns"]), np.array(reference[n]["returns"])
        tests = compare(x, y)
        mx, my = np.array(d["means"]), np.array(reference[n]["means"])
        entries = [1.0 if np.ptp(np.r_[u, v]) < 1e-6 else float(stats.ks_2samp(u, v).pvalue) for u, v in zip(mx.T, my.T, strict=True)]
        worst = int(np.argmin(entries)); fine = min(1.0, entries[worst] * len(entries))
        ok = d["non_finite"] == 0 and all(v > LEVEL for v in tests.values()) and fine > LEVEL
        if not ok: short.append(n)
        se = lambda z: z.std(ddof=1) / np.sqrt(len(z))
        print(f"{n}: ours {x.mean():.3f} ± {se(x):.3f}, dm_control {y.mean():.3f} ± {se(y):.3f}; "
              + ", ".join(f"p({k}) {v:.3f}" for k, v in tests.items())
              + f"; {len(entries)} observation entries p {fine:.3f} (entry {worst}); non-finite {d['non_finite']}; {'holds' if ok else 'FALLS SHORT'}")
    print(f"{len(ours) - len(short)} of {len(ours)} tasks hold; short: {', '.join(short) or 'none'}")
    sys.exit(1 if short else 0)


if __name__ == "__main__": main()
