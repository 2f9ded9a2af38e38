#!/usr/bin/env python3
"""The engine's speed against MuJoCo, EnvPool and dm_control: one table, in `cargo xtask bench sim`.

Everything that is compared is interleaved: in each round every side runs once, in processes that stay alive, and a
ratio is taken within the round. Printed are medians over the rounds, and of ratios also the least and the largest.
Sides that cannot run say why below their table. What is measured:

a. Physics. Both step the same files from the same states (golden ones that a random policy visits; drawn by a random
   policy here where there is no golden file), under the same controls (a hash of environment, step and actuator, kept
   for `HOLD` steps), with contacts, the model's own solver settings, and warm starts that begin at zero. MuJoCo runs
   in f64 (it has no other) in `mujoco.rollout` on the calling thread. Time is the thread's CPU time.
b. Whole tasks: physics, observations, rewards, new episodes. Time is wall time. Ours starts episodes at random phases,
   so that each round has its share of new ones, and one more run without any tells what they cost. dm_control runs
   one whole episode per round and process. EnvPool's environments all end at once, so its rounds have no reset in
   them and a reset's time, measured apart, is added in the proportion of one per episode.
c. Scaling of ours with threads and with environments.
d. What lanes lose by waiting for one another: the same environments once in blocks of different ones, once in blocks
   of which all lanes are the same.
"""
import argparse, json, math, os, platform, statistics, subprocess, sys, tempfile, time
from importlib import metadata

import sim_speed_peers as peers
from sim_speed_peers import Refused, Worker

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = ["cheetah", "hopper", "walker", "humanoid", "humanoid_CMU"]
LANES = [("avx512", "f32"), ("avx2", "f32"), ("avx512", "f64")]
TASKS = ["humanoid-walk", "cheetah-run", "hopper-hop", "walker-walk"]
DIVERGENT = [("cheetah", 1), ("walker", 10), ("humanoid", 5)]  # model, physics steps per control step
HOLD = 5  # physics steps that a control is kept in section a
ENVS = 64  # of section a and d
THREADED = 4096  # environments of the comparison of threads


def spread(values):
    """Median, least and largest, and all of them."""
    return {"median": statistics.median(values), "least": min(values), "largest": max(values), "rounds": values}


def ratios(ours, theirs):
    return spread([a / b for a, b in zip(ours, theirs)])


def cell(value, digits=0):
    if value is None: return "-"
    return f"{value:,.{digits}f}"


def range_of(s, digits=1):
    return "-" if s is None else f"{cell(s['median'], digits)} ({cell(s['least'], digits)} to {cell(s['largest'], digits)})"


def significant(value):
    """Three digits."""
    return cell(value, max(0, 2 - math.floor(math.log10(value)))) if value else "-"


def table(head, rows):
    """Columns set apart by two spaces; the first to the left, the others to the right."""
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]
    line = lambda r: "  ".join(str(x).ljust(w) if i == 0 else str(x).rjust(w) for i, (x, w) in enumerate(zip(r, widths)))
    return [line(head).rstrip(), *(line(r).rstrip() for r in rows)]


class Bench:
    def __init__(self, a):
        self.a, self.lines, self.data = a, [], {}
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

    def say(self, *lines):
        for line in lines:
            print(line, flush=True)
            self.lines.append(line)

    def example(self, name):
        return Worker([os.path.join(self.a.examples, name)], name)

    # a

    def physics(self):
        self.say("", f"a. Physics steps per second of one core; {ENVS} environments x {self.a.steps} steps from states of a random policy;",
                 "   contacts and iterations: means over environments, worst: of the slowest lane of each block")
        rows, notes, out = [], [], []
        for name in MODELS:
            ours, theirs = self.example("throughput"), None
            with tempfile.TemporaryDirectory() as folder:
                try:
                    theirs = peers.Physics(ROOT, name, ENVS, self.a.steps, HOLD, folder)
                except Refused as e:
                    notes.append(f"{name}: {e}")
                    continue
                request = dict(xml=theirs.xml, states=theirs.states, envs=ENVS, steps=self.a.steps, hold=HOLD)
                requests, first = {}, {}
                for isa, precision in LANES:
                    key = f"{precision} {isa}"
                    try:
                        r = dict(request, isa=isa, precision=precision)
                        first[key] = ours.ask(**r, rounds=2, stages="on")
                        requests[key] = dict(r, rounds=repeats(self.a.seconds * max(first[key]["rates"]), ENVS * self.a.steps))
                    except Refused as e:
                        first[key] = {"refusal": str(e).replace(os.path.dirname(theirs.xml) + os.sep, "")}
                rates, reference = {key: [] for key in requests}, []
                theirs.round()
                for _ in range(self.a.rounds):
                    for key, r in requests.items():
                        # steps over time, all repetitions together
                        rates[key].append(statistics.harmonic_mean(ours.ask(**r)["rates"]))
                    reference.append(theirs.round())
                sampled = theirs.sample()
            ours.close()
            refusals = {f["refusal"] for f in first.values() if "refusal" in f}
            for text in sorted(refusals):
                which = [k for k, f in first.items() if f.get("refusal") == text]
                notes.append(f"{name}{'' if len(which) == len(LANES) else ' ' + ', '.join(which)}: refused: {text}")
            for key, f in first.items():
                row = {"model": name, "lanes": key, "mujoco": spread(reference), "mujoco_contacts": sampled["contacts"],
                       "mujoco_iterations": sampled["iterations"]}
                if "refusal" in f:
                    row.update(refusal=f["refusal"])
                else:
                    row.update(ours=spread(rates[key]), ratio=ratios(rates[key], reference), contacts=f["contacts"],
                               iterations=f["iterations"], worst_iterations=f["worst_iterations"], stages=f["stages"])
                out.append(row)
                if len(refusals) == 1 and "refusal" in f and all("refusal" in g for g in first.values()):
                    key = "all"
                    if rows and rows[-1][0] == name: continue
                median = lambda k: significant(row[k]["median"]) if k in row else "refused"
                rows.append([name, key, median("ours"), median("mujoco"), range_of(row.get("ratio")),
                             cell(row.get("contacts"), 2), cell(row["mujoco_contacts"], 2), cell(row.get("iterations"), 2),
                             cell(row.get("worst_iterations"), 2), cell(row["mujoco_iterations"], 2)])
        self.say(*table(["model", "lanes", "ours/s", "MuJoCo/s", "ratio", "contacts", "MuJoCo", "iterations", "worst", "MuJoCo"], rows), *notes)
        shares = [[r["model"], r["lanes"], *(f"{100 * s:.0f}%" for s in r["stages"].values())] for r in out if "stages" in r]
        if shares:
            stages = next(r["stages"] for r in out if "stages" in r)
            self.say("", "   Where our time goes", *table(["model", "lanes", *stages], shares))
        self.data["physics"] = {"rows": out, "notes": notes}

    # b

    def tasks(self):
        self.say("", f"b. Environment steps per second of whole tasks; ours (f32, widest lanes) and EnvPool with {self.a.batch} environments,",
                 "   dm_control with one environment per process; wall time")
        counts = [1] if self.cores == 1 else [1, self.cores]
        rows, notes, out = [], [], []
        for task in TASKS:
            ours = self.example("env_speed")
            for threads in counts:
                request = dict(task=task, envs=self.a.batch, threads=threads, warm=self.a.warm)
                sides = {"ours": Ours(ours, request, self.a.seconds)}
                calm = Ours(ours, dict(request, stagger="off"), self.a.seconds / 2, most=(peers.EPISODE - self.a.warm) // self.a.rounds - 2)
                for kind in (peers.EnvPool, peers.DmControl):
                    try:
                        sides[kind.name] = kind(task, self.a.batch, threads, self.a.warm, self.a.rounds, self.a.seconds)
                    except Refused as e:
                        notes.append(f"{kind.name}, {task}: {e}")
                times = {side: [] for side in sides}
                without = []
                for _ in range(self.a.rounds):
                    for side, runner in sides.items():
                        times[side].append(runner.round())
                    without.append(calm.round())
                for side in ("EnvPool", "dm_control"):
                    if side in sides: sides[side].close()
                rate = {side: spread([1 / t for t in ts]) for side, ts in times.items()}
                row = {"task": task, "substeps": sides["ours"].substeps, "threads": threads, "rate": rate,
                       "ratio": {s: ratios(times[s], times["ours"]) for s in sides if s != "ours"},
                       "new_episodes": spread([100 * (1 - c / t) for c, t in zip(without, times["ours"])])}
                out.append(row)
                of = lambda side: significant(rate[side]["median"]) if side in rate else "-"
                rows.append([task, row["substeps"], threads, of("ours"), of("EnvPool"), of("dm_control"), range_of(row["ratio"].get("EnvPool")),
                             range_of(row["ratio"].get("dm_control")), range_of(row["new_episodes"], 0)])
            ours.close()
        self.say(*table(["task", "substeps", "cores", "ours/s", "EnvPool/s", "dm_control/s", "to EnvPool", "to dm_control", "new episodes"], rows),
                 "   new episodes: per cent of our time that starting them takes", *dict.fromkeys(notes))
        self.data["tasks"] = {"rows": out, "notes": notes}

    # c

    def scaling(self):
        sizes = [64, 512, 4096] if self.a.quick else [64, 512, 4096, 65536]
        self.say("", f"c. Scaling of whole tasks: microseconds per environment step on one thread, and the gain of two at {THREADED:,} environments; wall time")
        rows, out = [], []
        for task in ("cheetah-run", "humanoid-walk"):
            sides = {}
            for size, threads in [(n, 1) for n in sizes] + ([(THREADED, 2)] if self.cores > 1 else []):
                worker = self.example("env_speed")
                sides[size, threads] = Ours(worker, dict(task=task, envs=size, threads=threads, warm=self.a.warm), self.a.seconds)
            times = {key: [] for key in sides}
            for _ in range(self.a.rounds):
                for key, side in sides.items(): times[key].append(side.round())
            for side in sides.values(): side.worker.close()
            gain = ratios(times[THREADED, 1], times[THREADED, 2]) if (THREADED, 2) in times else None
            out.append({"task": task, "seconds": {f"{n} on {t}": spread(ts) for (n, t), ts in times.items()}, "gain_of_two": gain})
            rows.append([task, *(range_of(spread([1e6 * t for t in times[n, 1]]), 2) for n in sizes), range_of(gain, 2)])
        self.say(*table(["task", *(f"{n:,} envs" for n in sizes), "2 threads to 1"], rows))
        self.data["scaling"] = out

    # d

    def divergence(self):
        self.say("", "d. Lanes that wait for one another: microseconds of physics per environment step, f32 on avx512 (16 lanes),",
                 "   in blocks of different environments and in blocks of equal ones")
        rows, notes, out = [], [], []
        for model, substeps in DIVERGENT:
            worker = self.example("throughput")
            r = dict(model=model, isa="avx512", precision="f32", envs=ENVS, steps=self.a.steps, hold=substeps)
            try:
                first = {same: worker.ask(**r, same=same, rounds=1, stages="on") for same in ("off", "on")}
                times = {"off": [], "on": []}
                for _ in range(self.a.rounds):
                    for same in times:
                        n = repeats(self.a.seconds * first[same]["rates"][0], ENVS * self.a.steps * (16 if same == "on" else 1))
                        times[same].append(1e6 * substeps / statistics.harmonic_mean(worker.ask(**r, same=same, rounds=n)["rates"]))
            except Refused as e:
                notes.append(f"{model}: {e}")
                continue
            finally:
                worker.close()
            factor = ratios(times["off"], times["on"])
            cost = {s: {k: statistics.median(times[s]) * v for k, v in first[s]["stages"].items()} for s in times}
            out.append({"model": model, "substeps": substeps, "different_us": spread(times["off"]), "equal_us": spread(times["on"]), "factor": factor,
                        "stage_us": {"different": cost["off"], "equal": cost["on"]}, "worst_iterations": first["off"]["worst_iterations"],
                        "iterations": first["off"]["iterations"]})
            stage = lambda k: f"{cost['off'][k] / cost['on'][k]:.1f}"
            rows.append([model, substeps, cell(statistics.median(times["off"]), 2), cell(statistics.median(times["on"]), 2), range_of(factor, 2),
                         cell(first["off"]["worst_iterations"], 2), cell(first["off"]["iterations"], 2), *(stage(k) for k in ("constraints", "solve"))])
        self.say(*table(["model", "substeps", "different", "equal", "factor lost", "worst iterations", "mean", "in constraints", "in solve"], rows), *notes)
        self.data["divergence"] = {"rows": out, "notes": notes}

    # around

    def head(self):
        def version(name):
            try: return metadata.version(name)
            except metadata.PackageNotFoundError: return "absent"
        run = lambda *words: subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()
        dirty = run("git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/results")
        about = {
            "command": self.a.command,
            "commit": (run("git", "rev-parse", "HEAD") or "unknown") + (" with changes" if dirty else ""),
            "machine": f"{processor()}, {self.cores} cores, {platform.system()} {platform.machine()}",
            "versions": {"rustc": run("rustc", "--version").removeprefix("rustc "), "Python": platform.python_version(),
                         **{n: version(p) for n, p in [("MuJoCo", "mujoco"), ("dm_control", "dm_control"), ("EnvPool", "envpool"), ("NumPy", "numpy")]}},
            "rounds": self.a.rounds,
            "load": load(),
        }
        self.data["about"] = about
        self.say(f"{about['command']} at commit {about['commit']}", about["machine"], ", ".join(f"{n} {v}" for n, v in about["versions"].items()),
                 f"{about['rounds']} rounds; medians, and of ratios the least and the largest; load average before: {cell(about['load'], 1)}")

    def foot(self):
        """Other work on the machine shows here, and in the spread."""
        self.data["about"]["load_after"] = load()
        self.say("", f"load average after: {cell(load(), 1)}")

    def write(self):
        text = os.path.abspath(self.a.out)
        os.makedirs(os.path.dirname(text), exist_ok=True)
        both = [(text, "\n".join(self.lines) + "\n"), (os.path.splitext(text)[0] + ".json", json.dumps(self.data, indent=1) + "\n")]
        for path, content in both:
            with open(path + ".tmp", "w") as f: f.write(content)
        for path, _ in both: os.replace(path + ".tmp", path)
        print("\nwritten: " + " and ".join(os.path.relpath(p) for p, _ in both))


class Ours:
    """Whole tasks of ours, in an `env_speed` process."""

    def __init__(self, worker, request, seconds, most=2000):
        first = worker.ask(**request, steps=1, rounds=3)
        steps = math.ceil(seconds / (min(first["seconds"]) * request["envs"]))
        self.worker, self.request = worker, dict(request, steps=max(1, min(most, steps)), rounds=1)
        self.substeps = first["substeps"]

    def round(self):
        """Seconds per environment step."""
        return self.worker.ask(**self.request)["seconds"][0]


def repeats(wanted, done):
    return max(1, min(200, math.ceil(wanted / done)))


def load():
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def processor():
    try:
        with open("/proc/cpuinfo") as f:
            return next(l.split(":")[1].strip() for l in f if l.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--examples", required=True, help="folder of the built examples of sim-vec")
    p.add_argument("--out", required=True, help="where the table goes; the figures go next to it as .json")
    p.add_argument("--command", default="python benches/peers/sim_speed.py", help="named in the table")
    p.add_argument("--rounds", type=int)
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    a.rounds = a.rounds or (3 if a.quick else 7)
    a.steps, a.seconds, a.warm, a.batch = (100, 0.05, 20, 64) if a.quick else (200, 0.25, 50, 256)
    bench = Bench(a)
    bench.head()
    for section in (bench.physics, bench.tasks, bench.scaling, bench.divergence):
        begin = time.monotonic()
        section()
        print(f"   ({time.monotonic() - begin:.0f} s)", file=sys.stderr)
    bench.foot()
    bench.write()


if __name__ == "__main__":
    sys.exit(main())
