"""What the scripts of this folder share: runs that are made once, and where they were made."""
import json, os, platform, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def output(*words):
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def cpu():
    try:
        return next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    except OSError:
        return platform.processor()


def train(a, out, words):
    """Trains unless it was done before; returns what was noted about it. `a`: options with phalanx and threads."""
    note = os.path.join(out, "made.json")
    if not os.path.exists(note):
        made = dict(threads=a.threads, commit=output("git", "rev-parse", "HEAD"))
        words = ["--resume", out] if os.path.exists(os.path.join(out, "config.toml")) else [*words, "--out", out]
        subprocess.run([a.phalanx, "train", *words, "--threads", str(a.threads)], check=True, stdout=subprocess.DEVNULL)
        with open(note, "w") as f: json.dump(made, f)
    with open(note) as f: return json.load(f)
