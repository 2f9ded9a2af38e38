#!/usr/bin/env python3
"""Tiny random Qwen2 and Qwen3 folders, a tiny tokenizer, and what transformers makes of them. Writes qwen/ next to itself.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3 safetensors==0.8.0 trl==1.16.0 peft==0.21.2
    python make_qwen.py
    python make_qwen.py --check DIR...

qwen/qwen2: tied, biases, grouped queries, one file. qwen/qwen3: norms per head, a head size of its own, untied, two files.
qwen/qwen3-bf16: the same in bf16, one file. qwen/tokenizer: byte-level BPE that splits digits. qwen/golden.json: per model
the logits before each completion token (from a padded batch with an attention mask), greedy continuations, and the loss whose
gradients are in qwen/NAME.grad.safetensors; ids of texts; prompts of conversations by the published templates, as trl has them.
qwen/lora: adapters that PEFT wrote for qwen/qwen3, with the same numbers for the sum and gradients of the adapters.

--check: loads folders that the crate's tests wrote (each with an expected.json of sequences and logits) with transformers, or with
PEFT if they are adapters of qwen/qwen3, and prints the largest difference.
"""
import importlib.metadata, importlib.util, json, pathlib, shutil, sys
import peft, safetensors, safetensors.torch, tokenizers, torch, transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.utils.chat_template_utils import render_jinja_template
from transformers import AutoModelForCausalLM, GenerationConfig, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = pathlib.Path(__file__).parent / "qwen"
VOCAB = 61
# the last is long: attention that works on rows of a matrix in blocks has several
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 1, 59, 33], [60, 60], [(7 * i * i + 3 * i + 1) % VOCAB for i in range(145)]]
COMPLETIONS = [[4, 5, 0], [11, 12, 13, 14, 15, 16, 17, 0], [3], [20, 21], [9, 30, 2, 51, 0]]
SPLIT = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
TEXTS = [
    "", "Hello, world!", "the 12 and 345.67 of 2026", "  two  spaces\n\n\tand lines\r\n", "naïve café", "cafe\u0301 東京 🦀",
    "don't we'll I'M", "<|im_start|>user\nWhat is 3+4?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n7<|im_end|>",
    "<|im_star", "the the the, theory",
]


def perturb(model, seed):
    """Weights far from their start, so that nothing is accidentally 0 or 1 and logits differ by units."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * (0.25 if p.dim() == 2 else 0.2))
    return model.eval()


def score(model):
    """Logits before each completion token, `[M, V]`, from a padded batch."""
    rows = [p + c for p, c in zip(PROMPTS, COMPLETIONS)]
    width = max(map(len, rows))
    ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    mask = torch.tensor([[1] * len(r) + [0] * (width - len(r)) for r in rows])
    logits = model(input_ids=ids, attention_mask=mask).logits
    return torch.cat([logits[i, len(p) - 1 : len(p) + len(c) - 1] for i, (p, c) in enumerate(zip(PROMPTS, COMPLETIONS))])


SYSTEM, HI, ASK = ("system", "Be brief."), ("user", "Hi"), ("user", "3+4?")
THOUGHT, PLAIN = ("assistant", "<think>\nA greeting.\n</think>\n\nYes?"), ("assistant", "Yes?")
TOOL = ("user", "<tool_response>\n7\n</tool_response>")
CHATS = [
    [ASK], [SYSTEM, ASK], [("system", ""), ASK], [SYSTEM], [HI, PLAIN, ASK], [SYSTEM, HI, THOUGHT, ASK], [HI, THOUGHT], [HI, PLAIN],
    [HI, PLAIN, THOUGHT], [HI, THOUGHT, PLAIN], [HI, PLAIN, PLAIN], [HI, SYSTEM, ASK], [ASK, THOUGHT, TOOL], [ASK, PLAIN, TOOL, THOUGHT],
    [HI, ("assistant", "<think>\n\na\n</think>b</think>\n\n\nc\n"), ASK], [HI, ("assistant", "x<think>a</think>b</think>\n\n\nc\n")],
]


def chats():
    """Prompts by the published templates."""
    # found, not imported: only its files are wanted
    templates = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
    out = []
    for family in ["qwen2_5", "qwen3"]:
        template = (templates / f"{family}.jinja").read_text()
        for chat in CHATS:
            for thinking in [True, False] if family == "qwen3" else [True]:
                messages = [dict(role=role, content=content) for role, content in chat]
                texts, _ = render_jinja_template(
                    [messages], chat_template=template, add_generation_prompt=True, enable_thinking=thinking
                )
                out.append(dict(family=family, messages=chat, thinking=thinking, text=texts[0]))
    return out


def adapters():
    """Adapters that have moved, as PEFT writes them."""
    config = peft.LoraConfig(r=3, lora_alpha=7, target_modules=["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(load("qwen3"), config)
    g = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
    model.eval()
    shutil.rmtree(HERE / "lora", ignore_errors=True)
    model.save_pretrained(HERE / "lora")
    (HERE / "lora" / "README.md").unlink(missing_ok=True)
    # the base's name is a path
    path = HERE / "lora" / "adapter_config.json"
    saved = json.loads(path.read_text())
    saved["base_model_name_or_path"] = None
    saved["target_modules"].sort()
    path.write_text(json.dumps(saved, indent=2) + "\n")
    return golden(model, "lora", lambda n: n.replace(".default.", "."))


def golden(model, name, rename=lambda n: n):
    logits = score(model)
    targets = torch.tensor(sum(COMPLETIONS, []))
    weights = torch.randn(len(targets), generator=torch.Generator().manual_seed(7))
    loss = (weights * torch.log_softmax(logits, -1)[torch.arange(len(targets)), targets]).sum()
    model.zero_grad()
    loss.backward()
    grads = {rename(n): p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}
    safetensors.torch.save_file(grads, HERE / f"{name}.grad.safetensors")
    greedy = []
    with torch.no_grad():
        for prompt in PROMPTS:
            ids = list(prompt)
            for _ in range(8):
                ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            greedy.append(ids[len(prompt) :])
    return dict(logits=[[round(x, 7) for x in row] for row in logits.tolist()], weights=weights.tolist(), loss=loss.item(), greedy=greedy)


def save(model, name, ends, **kw):
    model.generation_config = GenerationConfig(eos_token_id=ends)
    shutil.rmtree(HERE / name, ignore_errors=True)
    model.save_pretrained(HERE / name, **kw)


def load(name):
    return AutoModelForCausalLM.from_pretrained(HERE / name, dtype=torch.float32, attn_implementation="eager").eval()


def tokenizer():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    t.decoder = decoders.ByteLevel()
    corpus = ["the theory of the other and there and then", "Hello world, hello 1234 1234 1234", "user assistant system"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]])
    t.add_tokens([AddedToken(s, special=False, normalized=False) for s in ["<think>", "</think>"]])
    (HERE / "tokenizer").mkdir(exist_ok=True)
    t.save(str(HERE / "tokenizer" / "tokenizer.json"))
    ends = [t.token_to_id("<|im_end|>"), t.token_to_id("<|endoftext|>")]
    (HERE / "tokenizer" / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}) + "\n")
    texts = [{"text": s, "ids": t.encode(s, add_special_tokens=False).ids} for s in TEXTS]
    for x in texts:
        x["decoded"] = t.decode(x["ids"], skip_special_tokens=True)
    return dict(size=t.get_vocab_size(), ends=ends, texts=texts)


def main():
    HERE.mkdir(exist_ok=True)
    common = dict(vocab_size=VOCAB, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, bos_token_id=None)
    rope = lambda theta: {"rope_type": "default", "rope_theta": theta}
    two = Qwen2Config(hidden_size=24, intermediate_size=40, tie_word_embeddings=True, rope_parameters=rope(1e6), eos_token_id=0, **common)
    three = Qwen3Config(
        hidden_size=16, intermediate_size=24, head_dim=10, tie_word_embeddings=False, rope_parameters=rope(5e4), eos_token_id=0, **common
    )
    torch.manual_seed(1)
    save(perturb(Qwen2ForCausalLM(two), 2), "qwen2", 0)
    model = perturb(Qwen3ForCausalLM(three), 3)
    save(model, "qwen3", [0, 60], max_shard_size="20KB")
    save(model.to(torch.bfloat16), "qwen3-bf16", [0, 60])
    # as files of the years before nested rope parameters have it
    path = HERE / "qwen3-bf16" / "config.json"
    config = json.loads(path.read_text())
    config["rope_theta"], config["rope_scaling"] = config.pop("rope_parameters")["rope_theta"], None
    path.write_text(json.dumps(config, indent=2) + "\n")
    out = dict(versions={m.__name__: m.__version__ for m in [torch, transformers, tokenizers, safetensors, peft]})
    out["versions"]["trl"] = importlib.metadata.version("trl")
    out["prompts"], out["completions"] = PROMPTS, COMPLETIONS
    out["models"] = {name: golden(load(name), name) for name in ["qwen2", "qwen3", "qwen3-bf16"]}
    out["models"]["lora"] = adapters()
    out["tokenizer"] = tokenizer()
    out["chats"] = chats()
    (HERE / "golden.json").write_text(json.dumps(out) + "\n")


def check(folders):
    for folder in folders:
        expected = json.loads((pathlib.Path(folder) / "expected.json").read_text())
        if (pathlib.Path(folder) / "adapter_config.json").exists():
            model = peft.PeftModel.from_pretrained(load("qwen3"), folder)
        else:
            model, info = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
            wrong = {k: sorted(v) for k, v in info.items() if v}
            assert not wrong, f"{folder}: {wrong}"
        kind, model = model.dtype, model.to(torch.float32)
        worst, at, scale = 0.0, 0, max(1.0, torch.tensor(expected["logits"]).abs().max().item())
        with torch.no_grad():
            for p, c in zip(expected["prompts"], expected["completions"]):
                ours = torch.tensor(expected["logits"][at : at + len(c)])
                theirs = model.eval()(input_ids=torch.tensor([p + c])).logits[0, len(p) - 1 : len(p) + len(c) - 1]
                worst, at = max(worst, (ours - theirs).abs().max().item()), at + len(c)
        print(
            f"{pathlib.Path(folder).name}: {type(model).__name__} {kind}, ends {model.generation_config.eos_token_id}: "
            f"largest difference of logits {worst:.2e}, of their size {worst / scale:.2e}"
        )
        assert worst <= 1e-5 * scale, folder


if __name__ == "__main__":
    check(sys.argv[2:]) if sys.argv[1:2] == ["--check"] else main()
