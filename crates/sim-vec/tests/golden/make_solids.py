#!/usr/bin/env python3
"""Golden contacts: what MuJoCo's narrow phase reports for pairs of solids, kind by kind.

    pip install mujoco==3.17.0 numpy
    python make_solids.py            # writes solids.json next to this file

A pair is two geoms on free bodies (a plane is fixed). Sizes and poses have few decimals, so that the file stays small;
the reader normalises the quaternions and makes the matrices in the order of operations of `matrix` below, which this
script checks to be MuJoCo's to the last bit. Each case is [size 1, size 2, margin, pose 1, pose 2, contacts], a pose
is [x, y, z, qw, qx, qy, qz], a contact is [dist, position, normal, second row of the frame] in one list of ten.
Poses are near contact, in deep penetration or concentric; orientations random, aligned, at right angles or parallel.
"""
import json, math, os
import numpy as np, mujoco

COUNT, SEED = 40, 11
HERE = os.path.dirname(os.path.abspath(__file__))
ORDER = ["plane", "sphere", "capsule", "ellipsoid", "cylinder", "box"]
NSIZE = dict(plane=0, sphere=1, capsule=2, ellipsoid=3, cylinder=2, box=3)
QUARTER = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [1, -1, 0, 0], [0, 0, 1, 0]]


def unit(q):
    norm = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if abs(norm - 1) <= 1e-15: return list(map(float, q))
    inv = 1 / norm
    return [x * inv for x in q]


def matrix(q):
    w, x, y, z = q
    if q == [1, 0, 0, 0]: return [1, 0, 0, 0, 1, 0, 0, 0, 1]
    return [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z]


class Pair:
    """Two geoms that can be moved."""

    def __init__(self, kinds, sizes, margin):
        geom = lambda k, s, m, more="": f'<geom type="{k}" size="{" ".join(map(repr, s)) or "0 0 1"}" margin="{m!r}" {more}/>'
        body = lambda k, s, m: geom(k, s, m, 'quat="0 0 1 1" pos="1 2 3"') if k == "plane" else f"<body><freejoint/>{geom(k, s, m)}</body>"
        self.model = mujoco.MjModel.from_xml_string(
            f"<mujoco><worldbody>{body(kinds[0], sizes[0], margin[0])}{body(kinds[1], sizes[1], margin[1])}</worldbody></mujoco>")
        self.data, self.plane = mujoco.MjData(self.model), kinds[0] == "plane"

    def contacts(self, poses):
        m, d = self.model, self.data
        mujoco.mj_resetData(m, d)
        if self.plane:
            m.geom_pos[0], m.geom_quat[0] = poses[0][:3], unit(poses[0][3:])
            d.qpos[:] = poses[1]
        else:
            d.qpos[:] = poses[0] + poses[1]
        mujoco.mj_fwdPosition(m, d)
        for g in range(2):
            assert list(d.geom_xpos[g]) == poses[g][:3]
            assert list(d.geom_xmat[g]) == matrix(unit(poses[g][3:])), (d.geom_xmat[g], matrix(unit(poses[g][3:])))
        found = [d.contact[i] for i in range(d.ncon)]
        assert all(list(c.geom) == [0, 1] for c in found)
        return [[float(round(x, 14)) for x in (c.dist, *c.pos, *c.frame[:6])] for c in found]


def tidy(x):
    x = float(x)
    return int(x) if x == int(x) else x


def size(kind, rng, k):
    s = [round(float(x), 3) for x in np.exp(rng.uniform(np.log(0.08), np.log(0.6), NSIZE[kind]))]
    if k == 7 and kind == "box": s = [s[0]] * 3
    return s


def case(kinds, k, rng):
    sizes = [size(g, rng, k % 8) for g in kinds]
    margin = [0.0, 0.0] if k % 3 else [round(float(x), 3) for x in rng.uniform(0.005, 0.05, 2)]
    random = lambda: [round(float(x), 3) for x in rng.normal(size=4)]
    how = k % 8
    if how == 4: q = [QUARTER[rng.integers(8)], QUARTER[rng.integers(8)]]
    elif how == 5: q = [random()] * 2
    elif how == 6:  # almost parallel
        q = [random()]
        q.append([x + float(e) for x, e in zip(q[0], rng.choice([-0.001, 0.0, 0.001, 0.02], 4))])
    elif how == 7: q = [[1, 0, 0, 0], [1, 0, 0, 0]] if k % 16 == 7 else [[1, 0, 0, 0], random()]
    else: q = [random(), random()]
    q = [[float(round(x, 3)) for x in p] for p in q]
    first = [round(float(x), 2) for x in rng.normal(size=3)]
    u = rng.normal(size=3)
    if kinds[0] == "plane": u = np.array(matrix(unit(q[0])))[[2, 5, 8]]
    elif how in (4, 5) and k % 16 < 8: u = np.array(matrix(unit(q[0]))).reshape(3, 3)[:, rng.integers(3)]
    u = u / np.linalg.norm(u)
    side = np.zeros(3)
    if how in (4, 5): side = rng.uniform(-0.2, 0.2, 3) * (k % 16 >= 8 or kinds[0] == "plane")
    if kinds[0] == "plane": side = rng.normal(size=3)
    at = lambda t: [first + q[0], [float(round(x, 4)) for x in np.array(first) + side + t * u] + q[1]]
    pair = Pair(kinds, sizes, margin)
    # the farthest touch along u
    low, high = -3.0, 5.0
    if kinds[0] != "plane": low = 0.0
    for _ in range(40):
        mid = 0.5 * (low + high)
        if pair.contacts(at(mid)): low = mid
        else: high = mid
    small = min(map(min, filter(len, sizes)))
    back = [0.002, 0.01, 0.3 * small, 0.001 + 0.5 * sum(margin), 0.02 * small, 0.05 * small, 0.8 * small, -0.004, 0.5 * sum(margin)][k % 9]
    t = low - back
    if k == 1 and kinds[0] != "plane": t, side = 0.0, np.zeros(3)  # concentric
    if k == 2 and kinds[0] != "plane": t, side = 0.03 * small, np.zeros(3)
    if k % 10 == 3: t = 0.5 * low  # one in the other
    poses = at(t)
    return [sizes[0], sizes[1], round(sum(margin), 3), poses[0], poses[1], pair.contacts(poses)], pair


def main():
    out = {}
    for i, a in enumerate(ORDER):
        for b in ORDER[max(i, 1):]:
            rng = np.random.default_rng([SEED, i, ORDER.index(b)])
            cases = [case([a, b], k, rng)[0] for k in range(COUNT)]
            assert any(c[-1] for c in cases)
            out[f"{a}-{b}"] = [[[tidy(x) if not isinstance(x, list) else [tidy(y) for y in x] for x in part] if isinstance(part, list)
                                else part for part in c] for c in cases]
            print(f"{a}-{b}: {len(cases)} cases, {sum(bool(c[-1]) for c in cases)} touch, {sum(len(c[-1]) for c in cases)} contacts")
    with open(os.path.join(HERE, "solids.json"), "w") as f:
        json.dump(dict(mujoco=mujoco.__version__, pairs=out), f, separators=(",", ":"))
        f.write("\n")


main()
