#!/usr/bin/env python3
"""Physics of every model of dm_control's suite against MuJoCo: physics_parity.py on each, for some seeds, in f64 and f32.

    pip install mujoco==3.17.0 dm_control==1.0.50 numpy
    python benches/peers/suite_physics.py [--phalanx target/release/phalanx] [--seeds 1,2,3]

Besides the files as they are: the models that the suite builds from them for its tasks (quadrupeds without terrain, swimmers of
6 and 15 links, stackers, LQR). A model that our loader refuses is listed with the refusal. Exit status 1 if one falls short.
"""
import argparse, os, pathlib, re, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
import numpy as np
from dm_control.suite import common, lqr, quadruped, stacker, swimmer


def models(folder):
    """Files of the suite and of what it builds, all in one folder so that no message names another place."""
    for name, text in common.ASSETS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    suite = pathlib.Path(quadruped.__file__).parent
    for file in sorted(suite.glob("*.xml")):
        (folder / file.name).write_bytes(file.read_bytes())
        yield file.name
    built = {
        "quadruped-walk": quadruped.make_model(floor_size=10),
        "quadruped-fetch": quadruped.make_model(walls_and_ball=True),
        "swimmer6": swimmer.get_model_and_assets(6)[0],
        "swimmer15": swimmer.get_model_and_assets(15)[0],
        "stacker2": stacker.make_model(2)[0],
        "stacker4": stacker.make_model(4)[0],
        "lqr6": lqr.get_model_and_assets(6, 3, np.random.RandomState(1))[0],
    }
    for name, text in built.items():
        (folder / f"{name}.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
        yield f"{name}.xml"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--phalanx", default="target/release/phalanx"); p.add_argument("--seeds", default="1,2,3")
    a = p.parse_args()
    parity, phalanx = pathlib.Path(__file__).with_name("physics_parity.py").resolve(), os.path.abspath(a.phalanx)
    short, held = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in models(pathlib.Path(folder)):
            refused = subprocess.run([phalanx, "physics", name], cwd=folder, input="", capture_output=True, text=True)
            if refused.returncode:
                print(f"{name}: refused: {refused.stderr.strip().removeprefix('error: ')}", flush=True)
                continue
            for precision in ("f64", "f32"):
                for seed in a.seeds.split(","):
                    run = subprocess.run([sys.executable, str(parity), name, "--phalanx", phalanx, "--precision", precision, "--seed", seed],
                                         cwd=folder, capture_output=True, text=True)
                    qacc, last = re.search(r"qacc: (.*)", run.stdout), run.stdout.strip().splitlines()[-1:]
                    print(f"{name} {precision} seed {seed}: qacc {qacc.group(1) if qacc else '-'}; {''.join(last)}", flush=True)
                    if run.returncode: short.append(f"{name} {precision}")
                    else: held += 1
    print(f"{held} runs hold; short: {', '.join(sorted(set(short))) or 'none'}")
    sys.exit(1 if short else 0)


main()
