#!/usr/bin/env python3
"""Losses, gradients and advantages of TRL on fixed numbers.

    pip install trl torch transformers
    python make_trl.py > trl.json

Losses and gradients come from TRL's own GRPOTrainer._compute_loss, called on a stand-in that holds its settings and returns given
log-probabilities as a leaf tensor, in 64 bits. Advantages come from TRL's nanstd and the lines around it in
_generate_and_score_completions (mean of the group, division by std + 1e-4), which cannot be called on their own.
"""
import json
from collections import defaultdict
from types import SimpleNamespace

import torch
import transformers
import trl
from trl import GRPOTrainer
from trl.trainer.utils import nanstd

torch.manual_seed(7)
LENGTHS = [3, 7, 1, 5]
WIDTH = max(LENGTHS)
ADVANTAGES = [1.3, -0.7, 0.4, -1.0]


def numbers():
    new = -torch.rand(4, WIDTH, dtype=torch.float64) * 2 - 0.05
    # ratios on both sides of every bound
    old = new + torch.randn(4, WIDTH, dtype=torch.float64) * 0.35
    reference = new + torch.randn(4, WIDTH, dtype=torch.float64) * 0.3
    return new, old, reference


NEW, OLD, REFERENCE = numbers()


def loss(loss_type, level="token", low=0.2, high=0.2, beta=0.0, bias_correction=False, delta=None, masked=()):
    mask = torch.zeros(4, WIDTH, dtype=torch.float64)
    for row, n in enumerate(LENGTHS):
        mask[row, : 0 if row in masked else n] = 1
    new = NEW.clone().requires_grad_(True)
    stand_in = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (new, torch.zeros_like(new), None), aux_loss_enabled=False,
        top_entropy_quantile=1.0, off_policy_mask_threshold=None, importance_sampling_level=level, beta=beta, loss_type=loss_type,
        epsilon_low=low, epsilon_high=high, use_vllm=False, vllm_importance_sampling_correction=False, max_completion_length=20,
        current_gradient_accumulation_steps=1, _entropy_bonus_enabled=False, use_adaptive_entropy=False,
        model=SimpleNamespace(training=True), _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        args=SimpleNamespace(use_bias_correction_kl=bias_correction, delta=delta, steps_per_generation=1),
        accelerator=SimpleNamespace(num_processes=1, gather=lambda x: x, gather_for_metrics=lambda x: x, reduce=lambda x, reduction: x))
    ids = torch.zeros(4, WIDTH, dtype=torch.long)
    inputs = dict(prompt_ids=ids[:, :1], prompt_mask=ids[:, :1], completion_ids=ids, completion_mask=mask,
                  advantages=torch.tensor(ADVANTAGES, dtype=torch.float64), old_per_token_logps=OLD, ref_per_token_logps=REFERENCE,
                  num_items_in_batch=mask.sum())
    value = GRPOTrainer._compute_loss(stand_in, None, inputs)
    value.backward()
    return dict(loss=value.item(), slope=new.grad.tolist(), masked=list(masked))


def advantages(scale):
    rewards = torch.tensor([1, 0, 0, 1, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 2.5], dtype=torch.float64)
    mean = torch.nanmean(rewards.view(-1, 4), dim=1).repeat_interleave(4, dim=0)
    a = rewards - mean
    if scale == "group":
        a = a / (nanstd(rewards.view(-1, 4), dim=1).repeat_interleave(4, dim=0) + 1e-4)
    if scale == "batch":
        a = a / (nanstd(rewards).expand_as(rewards) + 1e-4)
    return dict(rewards=rewards.tolist(), advantages=a.tolist())


print(json.dumps(dict(
    versions=dict(trl=trl.__version__, torch=torch.__version__, transformers=transformers.__version__),
    lengths=LENGTHS, advantages=ADVANTAGES, new=NEW.tolist(), old=OLD.tolist(), reference=REFERENCE.tolist(),
    losses={
        "grpo": loss("grpo"), "grpo_clip_higher": loss("grpo", high=0.28), "bnpo": loss("bnpo"), "dr_grpo": loss("dr_grpo"),
        "dapo": loss("dapo", high=0.28), "dapo_masked": loss("dapo", high=0.28, masked=(1,)), "cispo": loss("cispo", high=1.3),
        "gspo": loss("grpo", level="sequence", low=0.1, high=0.12), "gspo_tokens": loss("dapo", level="sequence", low=0.1, high=0.12),
        "delta": loss("grpo", delta=1.4), "kl": loss("grpo", beta=0.3), "kl_weighted": loss("dapo", beta=0.3, bias_correction=True),
        "kl_dr_grpo": loss("dr_grpo", beta=0.1),
        "kl_weighted_sequence": loss("grpo", level="sequence", low=0.1, high=0.12, beta=0.3, bias_correction=True),
    },
    normalised={scale: advantages(scale) for scale in ("group", "batch", "none")}), indent=1))
