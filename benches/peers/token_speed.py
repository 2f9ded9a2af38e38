#!/usr/bin/env python3
"""Speed of decoding and of training steps against PyTorch and transformers, one thread each, interleaved.

    pip install torch transformers numpy
    cargo build --release -p token-policy --example token_speed
    python benches/peers/token_speed.py              # writes docs/results/tokens.txt and tokens.json

Both sides run the same Llama-shaped decoder with the same weights in 32 bits: ours writes the folder, transformers reads it, and before anything is
timed the log-probabilities of both must agree. Every round times every side once, in an order that turns; a figure is the median over rounds, and
a ratio the median of the rounds' ratios. transformers runs in every way named below, and each is compared:

  training: forward, cross-entropy on all tokens but the first, backward, clipped to norm 1, Adam (fused), with attention `eager` or `sdpa`; rows of
      unequal length are padded on the right, as its data collators do. Ours packs them.
  decoding: tokens drawn at temperature 1 with their log-probabilities after prompts of 16 tokens; `generate` as it comes (with scores), and a loop
      written by hand around the model and its DynamicCache. Ours includes packing the weights anew.
  modes: ours alone, log-normal lengths (sigma 1, median 48, at most 512), all rows in one padded wave after the other, in padded groups of 8, or continuously.
"""
import argparse, json, math, os, platform, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VOCAB, PROMPT = 128, 16


class Ours:
    """The example as a process that answers JSON with JSON."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "RAYON_NUM_THREADS": "1"})

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n"); self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line: sys.exit(f"the example ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer: sys.exit(f"the example says: {answer['error']}")
        return answer


class Peer:
    """transformers' model with one kind of attention."""

    def __init__(self, folder, attention):
        import torch
        from transformers import AutoModelForCausalLM
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def score(self, rows):
        torch = self.torch
        with torch.no_grad():
            return [self.model(torch.tensor([r])).logits[0, :-1].log_softmax(-1).gather(1, torch.tensor(r[1:])[:, None])[:, 0].tolist() for r in rows]

    def train(self, rows):
        torch, longest = self.torch, max(map(len, rows))
        begin = time.perf_counter()
        ids = torch.tensor([r + [0] * (longest - len(r)) for r in rows])
        mask = torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for r in rows])
        labels = ids.masked_fill(mask == 0, -100)
        self.model.train()
        # without padding a mask is only in the way of the causal kernel
        logits = self.model(ids, attention_mask=None if mask.all() else mask, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), labels[:, 1:].reshape(-1), ignore_index=-100)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step(); self.adam.zero_grad(set_to_none=True)
        return time.perf_counter() - begin

    def generate(self, prompts, tokens):
        torch = self.torch
        self.model.eval()
        begin = time.perf_counter()
        ids = torch.tensor(prompts)
        with torch.no_grad():
            out = self.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=tokens,
                                      min_new_tokens=tokens, pad_token_id=0, output_scores=True, return_dict_in_generate=True)
            torch.stack(out.scores, 1).log_softmax(-1).gather(2, out.sequences[:, len(prompts[0]):, None])
        return time.perf_counter() - begin

    def loop(self, prompts, tokens):
        torch = self.torch
        from transformers import DynamicCache
        self.model.eval()
        begin = time.perf_counter()
        with torch.inference_mode():
            cache, ids, drawn, scores = DynamicCache(config=self.model.config), torch.tensor(prompts), [], []
            for _ in range(tokens):
                logits = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
                log_prob = logits.log_softmax(-1)
                ids = torch.multinomial(log_prob.exp(), 1)
                drawn.append(ids); scores.append(log_prob.gather(1, ids))
            torch.cat(drawn, 1), torch.cat(scores, 1)
        return time.perf_counter() - begin


def lengths(count, median, longest, seed):
    """Log-normal with sigma 1."""
    import numpy as np
    drawn = np.random.default_rng(seed).lognormal(math.log(median), 1.0, count)
    return [int(n) for n in np.clip(drawn, 2, longest)]


def rows_of(sizes, seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    return [[int(x) for x in rng.integers(1, VOCAB, n)] for n in sizes]


def measure(sides, rounds):
    """Seconds of every side in every round; the first round is not counted."""
    names, seconds = list(sides), {n: [] for n in sides}
    for r in range(rounds + 1):
        for k in range(len(names)):
            name = names[(r + k) % len(names)]
            t = sides[name]()
            if r > 0: seconds[name].append(t)
    return seconds


def case(what, tokens, sides, rounds):
    """Tokens a second of every side, and how many times those of each other side the first has."""
    seconds = measure(sides, rounds)
    first = next(iter(seconds))
    out = dict(case=what, tokens=tokens, seconds=seconds, rate={n: tokens / statistics.median(s) for n, s in seconds.items()}, ratio={})
    for n in seconds:
        if n == first: continue
        ratios = sorted(b / a for a, b in zip(seconds[first], seconds[n]))
        out["ratio"][n] = dict(median=statistics.median(ratios), least=ratios[0], largest=ratios[-1])
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--example", default=os.path.join(ROOT, "target/release/examples/token_speed"))
    p.add_argument("--out", default=os.path.join(ROOT, "docs/results/tokens.txt"))
    a = p.parse_args()
    if a.rounds < 1: sys.exit("--rounds must be at least 1")
    if not os.path.exists(a.example): sys.exit(f"{a.example} is not there; cargo build --release -p token-policy --example token_speed")
    import numpy as np, torch, transformers
    torch.set_num_threads(1)
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    ours, cases, gap = Ours(a.example), [], 0.0
    for hidden in (128, 256):
        with tempfile.TemporaryDirectory() as folder:
            ours.ask(do="make", hidden=hidden, dir=folder)
            peers = {kind: Peer(folder, kind) for kind in ("sdpa", "eager")}
        probe = rows_of([2, 17, 60, 128], 9)
        for kind, peer in peers.items():
            for x, y in zip(ours.ask(do="score", rows=probe)["score"], peer.score(probe)):
                gap = max(gap, float(np.abs(np.array(x) - np.array(y)).max()))
        if gap > 1e-4: sys.exit(f"log-probabilities differ by {gap}")
        for name, sizes in [("16 rows of 128", [128] * 16), ("8 rows of 512", [512] * 8), ("64 rows, log-normal", lengths(64, 64, 512, 3))]:
            rows = rows_of(sizes, 1)
            sides = {"ours": lambda: ours.ask(do="train", rows=rows)["seconds"]}
            for kind, peer in peers.items(): sides[f"transformers, {kind}"] = lambda peer=peer: peer.train(rows)
            cases.append(case(f"training step, width {hidden}, {name}", sum(sizes) - len(sizes), sides, a.rounds))
            show(cases[-1])
        for count, tokens in [(16, 128), (64, 128), (64, 384)]:
            prompts = rows_of([PROMPT] * count, 2)
            sides = {"ours": lambda: ours.ask(do="decode", prompts=prompts, tokens=tokens)["seconds"],
                     "transformers, generate": lambda: peers["sdpa"].generate(prompts, tokens)}
            for kind, peer in peers.items(): sides[f"transformers, loop, {kind}"] = lambda peer=peer: peer.loop(prompts, tokens)
            cases.append(case(f"decoding, width {hidden}, {count} rows of {tokens}", count * tokens, sides, a.rounds))
            show(cases[-1])
        for slots in (64, 256):
            sizes = lengths(256, 48, 512, 4)
            sides = {mode: lambda mode=mode: ours.ask(do="modes", lengths=sizes, slots=slots, mode=mode)["seconds"]
                     for mode in ("continuous", "padded-wave", "padded-groups")}
            cases.append(case(f"modes, width {hidden}, 256 requests in {slots} slots", sum(sizes), sides, a.rounds))
            show(cases[-1])
    facts = dict(command="python benches/peers/token_speed.py" + (f" --rounds {a.rounds}" if a.rounds != 9 else ""), commit=commit(), machine=cpu(), rounds=a.rounds, threads=1,
                 versions=dict(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version()), log_prob_gap=gap)
    head = f"{facts['command']}, commit {facts['commit']}\n{facts['machine']}; torch {torch.__version__}, transformers {transformers.__version__}; one thread each, {a.rounds} rounds\n" \
           f"log-probabilities of both sides agree to {gap:.1e}\n\n"
    with open(a.out, "w") as f: f.write(head + "".join(lines(c) for c in cases))
    with open(os.path.splitext(a.out)[0] + ".json", "w") as f:
        json.dump(dict(facts, cases=cases), f, indent=1); f.write("\n")


def commit():
    try: return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError): return None


def cpu():
    try:
        with open("/proc/cpuinfo") as f: return next(l.split(":")[1].strip() for l in f if l.startswith("model name"))
    except OSError:
        return platform.processor()


def lines(c):
    text, first = f"{c['case']}\n", next(iter(c["rate"]))
    for name, rate in c["rate"].items():
        r = c["ratio"].get(name)
        text += f"  {name:28} {rate:10.0f} tokens/s" + (f"   {first} is {r['median']:5.2f} times as fast ({r['least']:.2f} to {r['largest']:.2f})\n" if r else "\n")
    return text


def show(c):
    print(lines(c), end="", flush=True)


if __name__ == "__main__":
    main()
