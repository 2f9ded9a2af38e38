//! Settings to start from, as constants.

use crate::args::{PolicyKind, PrecisionArg, Preset, TrainerKind};
use crate::config::{
    CheckpointConfig, CriticSection, EnvConfig, GateArg, KlFormArg, PolicyConfig, RunConfig, TrainerConfig,
};

/// The settings of a preset for a task.
///
/// * `paper`: those of TruDi's and REPPO's public code for the control suite (arXiv 2606.15260, app.; REPPO, app.):
///   1024 × 128 steps per update, 8 epochs of minibatches of 2048, width 512, 151 bins on [0, 150], Adam at 3e-4.
/// * `quick`: smaller networks and rollouts with a larger learning rate, for two cores and minutes. A Gaussian policy
///   updates in half the time and learns from a step half as much: it gets twice the steps, and twice the KL bound. With
///   0.1 and 2 M steps two seeds of three ended below 600 on cartpole-swingup.
pub(crate) fn preset(preset: Preset, kind: PolicyKind, task: &str) -> RunConfig {
    let diffusion = kind == PolicyKind::Diffusion;
    let quick = preset == Preset::Quick;
    let lr = if quick { 1e-3 } else { 3e-4 };
    let dual_lr = if quick { 3e-3 } else { 3e-4 };
    RunConfig {
        version: RunConfig::VERSION,
        task: task.into(),
        seed: 1,
        steps: match (quick, diffusion) {
            (true, true) => 2_000_000,
            (true, false) => 4_000_000,
            (false, _) => 50_000_000,
        },
        env: EnvConfig { envs: if quick { 256 } else { 1024 }, precision: PrecisionArg::F32, stagger: true },
        policy: PolicyConfig {
            kind,
            width: if quick { 64 } else { 512 },
            depth: 3,
            denoising_steps: diffusion.then_some(8),
            layer_norm: diffusion.then_some(true),
            friction: diffusion.then_some(1.0),
            kl_form: diffusion.then_some(KlFormArg::Means),
        },
        trainer: TrainerConfig {
            kind: TrainerKind::TrustRegion,
            rollout_steps: if quick { 32 } else { 128 },
            discount: sim_vec::registry::find(task).ok().and_then(|t| t.discount).unwrap_or(0.99) as f32,
            lambda: 0.95,
            epochs: if quick { 4 } else { 8 },
            minibatch: if quick { 1024 } else { 2048 },
            kl_bound: if quick && !diffusion { 0.2 } else { 0.1 },
            kl_samples: if quick { 1 } else { 4 },
            target_entropy: if diffusion { 4.0 } else { 0.5 },
            temperature: if quick { 0.1 } else { 0.01 },
            multiplier: 0.01,
            actor_lr: lr,
            critic_lr: lr,
            temperature_lr: dual_lr,
            multiplier_lr: dual_lr,
            clip_norm: 0.5,
            anneal: quick,
            gate: GateArg::Clipped,
        },
        critic: CriticSection {
            width: if quick { 128 } else { 512 },
            bins: if quick { 101 } else { 151 },
            low: if quick { -50.0 } else { 0.0 },
            high: 150.0,
            aux_weight: 1.0,
        },
        checkpoint: CheckpointConfig { every_updates: if quick { 10 } else { 1 } },
    }
}
