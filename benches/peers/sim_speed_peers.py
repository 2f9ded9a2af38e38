"""The sides of `sim_speed.py` that are not ours, and the processes that all but MuJoCo's physics run in."""
import json, math, os, subprocess, sys, time

EPISODE = 1000  # control steps of every task of the suite


class Refused(Exception):
    """A side cannot run; the text says why."""


class Worker:
    """A process that answers each line of `key=value` words, set apart by tabs, with a line of JSON."""

    def __init__(self, words, name, **env):
        self.name = name
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE if env else None,
                                        text=True, env={**os.environ, **env})

    def send(self, **request):
        self.process.stdin.write("\t".join(f"{k}={v}" for k, v in request.items()) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read() if self.process.stderr else ""
            last = (said.strip().splitlines() or [""])[-1]
            raise Refused(f"{self.name} ended with code {self.process.wait()} {last}".strip())
        answer = json.loads(line)
        if "error" in answer: raise Refused(answer["error"])
        return answer

    def ask(self, **request):
        self.send(**request)
        return self.receive()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def control(env, step, actuator):
    """Uniform in [-1, 1); the same hash as in crates/sim-vec/examples/request. Arguments broadcast."""
    import numpy as np
    m = np.uint64(0xFFFFFFFF)
    env, step, actuator = np.broadcast_arrays(*(np.asarray(x, np.uint64) for x in (env, step, actuator)))
    h = (env * np.uint64(0x9E3779B1) & m) ^ (step * np.uint64(0x85EBCA77) & m) ^ (actuator * np.uint64(0xC2B2AE3D) & m)
    h ^= h >> np.uint64(15); h = h * np.uint64(0x2C1B3C6D) & m
    h ^= h >> np.uint64(12); h = h * np.uint64(0x297A2D39) & m
    h ^= h >> np.uint64(15)
    return (h >> np.uint64(8)).astype(np.float64) / 8388608.0 - 1.0


class Physics:
    """MuJoCo's own loop over states, on the calling thread."""

    def __init__(self, root, name, envs, steps, hold, folder):
        import mujoco, numpy as np
        from mujoco import rollout
        self.xml = os.path.join(root, "crates/sim-vec/models", f"{name}.xml")
        self.states = os.path.join(root, "crates/sim-vec/tests/golden", f"physics_{name}.json")
        if not os.path.exists(self.xml): self.xml = suite_file(f"{name}.xml")
        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_path(self.xml)
        self.data = mujoco.MjData(self.model)
        self.envs, self.steps, self.hold = envs, steps, hold
        if not os.path.exists(self.states):
            self.states = os.path.join(folder, "states.json")
            with open(self.states, "w") as f: json.dump({"states": self.visit(envs)}, f)
        with open(self.states) as f: states = json.load(f)["states"]
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self.start = np.empty((envs, mujoco.mj_stateSize(self.model, kind)))
        for e in range(envs):
            self.put(states[e % len(states)])
            mujoco.mj_getState(self.model, self.data, self.start[e], kind)
        self.ctrl = control(np.arange(envs)[:, None, None], (np.arange(steps) // hold)[None, :, None], np.arange(self.model.nu)[None, None, :])
        self.rollout = rollout.Rollout(nthread=0)

    def put(self, state):
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = state["qpos"], state["qvel"]

    def visit(self, count):
        """States after a second under random controls, from random joint angles."""
        import numpy as np
        m, d, states = self.model, self.data, []
        for e in range(count):
            rng = np.random.default_rng(e)
            self.mujoco.mj_resetData(m, d)
            for j in np.flatnonzero(m.jnt_limited):
                d.qpos[m.jnt_qposadr[j]] = rng.uniform(*m.jnt_range[j])
            for _ in range(round(1 / m.opt.timestep / 5)):
                d.ctrl[:] = rng.uniform(-1, 1, m.nu)
                self.mujoco.mj_step(m, d, nstep=5)
            states.append({"qpos": d.qpos.tolist(), "qvel": d.qvel.tolist()})
        return states

    def round(self):
        """Steps per second of CPU time."""
        begin = time.thread_time()
        self.rollout.rollout(self.model, self.data, self.start, self.ctrl)
        return self.envs * self.steps / (time.thread_time() - begin)

    def sample(self):
        """Means of active contacts and solver iterations over the last step under each control, as ours samples."""
        m, d, contacts, iterations, samples = self.model, self.data, 0, 0, 0
        for e in range(self.envs):
            self.mujoco.mj_resetData(m, d)
            self.mujoco.mj_setState(m, d, self.start[e], self.mujoco.mjtState.mjSTATE_FULLPHYSICS)
            for step in range(0, self.steps, self.hold):
                d.ctrl[:] = self.ctrl[e, step]
                self.mujoco.mj_step(m, d, nstep=min(self.hold, self.steps - step))
                contacts += int((d.contact.efc_address >= 0).sum())
                if d.nefc: iterations += int(d.solver_niter[:max(1, d.nisland)].max())
                samples += 1
        return {"contacts": contacts / samples, "iterations": iterations / samples}


def suite_file(name):
    """A file of dm_control's suite, without importing the suite."""
    from importlib.util import find_spec
    spec = find_spec("dm_control")
    path = os.path.join(spec.submodule_search_locations[0], "suite", name) if spec else ""
    if not os.path.exists(path): raise Refused(f"dm_control has no file suite/{name}")
    return path


def python(kind, *words):
    return Worker([sys.executable, os.path.abspath(__file__), kind, *map(str, words)], kind, MUJOCO_GL="disable")


class EnvPool:
    """A pool of environments in one process."""
    name = "EnvPool"

    def __init__(self, task, envs, threads, warm, rounds, seconds):
        self.worker, self.envs = python("envpool", task, envs, threads), envs
        # a pool ends all its episodes at once, which is no fair share for a round: stay within one
        step = min(self.worker.ask(steps=1)["seconds"] for _ in range(2))
        self.worker.ask(steps=warm)
        self.reset = min(self.worker.ask(reset=1)["seconds"] for _ in range(2))
        self.worker.ask(steps=warm)
        self.steps = max(1, min((EPISODE - warm - 10) // rounds, math.ceil(2 * seconds / step)))

    def round(self):
        """Seconds per environment step, with one reset per episode."""
        return (self.worker.ask(steps=self.steps)["seconds"] / self.steps + self.reset / EPISODE) / self.envs

    def close(self): self.worker.close()


class DmControl:
    """One environment per process, one process per core."""
    name = "dm_control"

    def __init__(self, task, envs, threads, warm, rounds, seconds):
        self.workers = [python("dm_control", task, i) for i in range(threads)]
        for w in self.workers: w.send(steps=warm)
        for w in self.workers: w.receive()

    def round(self):
        """Seconds per environment step over an episode in each process, with its reset."""
        begin = time.perf_counter()
        for w in self.workers: w.send(steps=EPISODE)
        for w in self.workers: w.receive()
        return (time.perf_counter() - begin) / (EPISODE * len(self.workers))

    def close(self):
        for w in self.workers: w.close()


def serve(run):
    """Answers requests of a [`Worker`] with the time that each takes."""
    for line in sys.stdin:
        key, value = line.strip().split("=")
        begin = time.perf_counter()
        run(key, int(value))
        print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)


def serve_envpool(task, envs, threads):
    import envpool, numpy as np
    name = "".join(word.capitalize() for word in task.split("-")) + "-v1"
    if name not in envpool.list_all_envs():
        raise Refused(f"EnvPool {envpool.__version__} has no task {name}")
    pool = envpool.make(name, env_type="gymnasium", num_envs=envs, num_threads=threads, seed=1)
    rng = np.random.default_rng(1)
    actions = rng.uniform(-1, 1, (16, envs, pool.action_space.shape[0]))
    pool.reset()
    clock = 0

    def run(key, n):
        nonlocal clock
        if key == "reset": pool.reset()
        else:
            for _ in range(n):
                pool.step(actions[clock % 16])
                clock += 1
    serve(run)


def serve_dm_control(task, seed):
    import numpy as np
    from dm_control import suite
    domain, name = task.split("-")
    env = suite.load(domain, name, task_kwargs={"random": seed})
    actions = np.random.default_rng(seed).uniform(-1, 1, (16, *env.action_spec().shape))
    env.reset()

    def run(_, n):
        for i in range(n):
            # after the last step of an episode this resets, and counts as none
            if env.step(actions[i % 16]).last(): env.reset()
    serve(run)


if __name__ == "__main__":
    kind, task, *numbers = sys.argv[1:]
    try:
        {"envpool": serve_envpool, "dm_control": serve_dm_control}[kind](task, *map(int, numbers))
    except (ImportError, Refused) as e:
        print(json.dumps({"error": f"{e}"}), flush=True)
