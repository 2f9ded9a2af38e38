//! The command line: the only place where strings become choices.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

/// Train diffusion, Gaussian and language policies on-policy: in thousands of parallel simulations inside a trust region,
/// or group-relative on texts and whole episodes.
#[derive(Parser)]
#[command(version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Train a policy on a task, or continue a run
    Train(Train),
    /// How good a run's policy is on fresh episodes or held-out prompts
    Eval(Eval),
    /// All tasks with their sizes and status
    Tasks(Tasks),
    /// Physics of a model: one state a line in, one step a line out (JSON)
    Physics(Physics),
    /// Observation and reward of a task: one state a line in, one answer a line out (JSON)
    Observe(Observe),
}

#[derive(clap::Args)]
#[command(after_help = "Keys for --set are those of the run's config.toml, as trainer.kl_bound=0.2 or kl_bound=0.2.\n\
    Example: phalanx train cartpole-swingup --seed 2 --set trainer.kl_bound=0.2")]
pub(crate) struct Train {
    /// Task to train on; `phalanx tasks` lists them
    #[arg(required_unless_present_any = ["resume", "config"], conflicts_with_all = ["resume", "config"])]
    pub task: Option<String>,
    /// Policy and trainer that belong together [default: trudi]
    #[arg(long, value_enum, conflicts_with_all = ["resume", "config"])]
    pub algo: Option<Algo>,
    /// Policy alone [default: that of --algo]
    #[arg(long, value_enum, conflicts_with_all = ["resume", "config"])]
    pub policy: Option<PolicyKind>,
    /// Trainer alone [default: that of --algo]
    #[arg(long, value_enum, conflicts_with_all = ["resume", "config"])]
    pub trainer: Option<TrainerKind>,
    /// Settings to start from: quick for minutes on two cores, paper for the published ones [default: quick]
    #[arg(long, value_enum, conflicts_with_all = ["resume", "config"])]
    pub preset: Option<Preset>,
    /// Group size for grpo and dapo: sagc, static:8, greedy, per-arm, random:4*12,8*30 or schedule:32*10,16*50
    #[arg(long, value_name = "SIZER", conflicts_with = "resume")]
    pub group: Option<String>,
    /// Updates of grpo and dapo, after the warm-up [default: the preset's]
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "resume")]
    pub updates: Option<u64>,
    /// Parallel environments, or rollouts per update of grpo and dapo [default: the preset's]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub envs: Option<usize>,
    /// Environment steps in all, over all environments [default: the preset's]
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "resume")]
    pub steps: Option<u64>,
    /// Seed of everything random [default: 1]
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    pub seed: Option<u64>,
    /// Threads; the result does not depend on them [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Run directory to make [default: runs/TASK-ALGO-seedS]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Continue the run in this directory from its last checkpoint
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Repeat the run of this config.toml
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub config: Option<PathBuf>,
    /// Change a setting; may be given several times
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., conflicts_with = "resume")]
    pub set: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Eval {
    /// Run directory
    pub dir: PathBuf,
    /// How actions or tokens are chosen [default: ode; for text sample]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Episodes, each in an environment of its own, or prompts [default: 64; of a text task 512]
    #[arg(long, visible_alias = "prompts", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub episodes: Option<u32>,
    /// Which prompts of a text task [default: held-out]
    #[arg(long, value_enum)]
    pub split: Option<SplitArg>,
    /// Completions per prompt of a text task [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: Option<u32>,
    /// Write every prompt and completion of a text task to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub completions: Option<PathBuf>,
    /// Actions drawn per state in mode best-of-k
    #[arg(long, value_name = "K", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub k: u32,
    /// Seed of starts and actions
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Which checkpoint
    #[arg(long, value_enum, default_value = "latest")]
    pub checkpoint: Which,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Tasks {
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "In:  {\"qpos\": [nq], \"qvel\": [nv], \"ctrl\": [nu]}\n\
    Out: {\"qacc\": [nv], \"qpos\": [nq], \"qvel\": [nv], \"act\": [], \"ncon\": contacts}: acceleration and pushing contacts at\n     \
    the given state, and the state one time step later. The solver starts from zero.")]
pub(crate) struct Physics {
    /// MJCF file
    pub model: PathBuf,
    /// Floating-point precision; f64 also tightens the solver's tolerance to 1e-14
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: PrecisionArg,
}

#[derive(clap::Args)]
#[command(
    after_help = "In:  {\"qpos\": [nq], \"qvel\": [nv], \"ctrl\": [nu]}\nOut: {\"observation\": [O], \"reward\": r}: at that state, no step taken."
)]
pub(crate) struct Observe {
    /// Task
    pub task: String,
}

/// Policy and trainer that belong together.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Algo {
    /// Diffusion policy inside a trust region over its denoising trajectory
    Trudi,
    /// Gaussian policy, the same trainer
    Reppo,
    /// Group-relative, on texts or whole episodes
    Grpo,
    /// Group-relative with clip-higher, dynamic sampling, token-level loss and soft punishment of length
    Dapo,
}

impl Algo {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Algo::Trudi => "trudi",
            Algo::Reppo => "reppo",
            Algo::Grpo => "grpo",
            Algo::Dapo => "dapo",
        }
    }
}

/// Kinds of policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyKind {
    /// Denoising chain
    Diffusion,
    /// Squashed normal distribution
    Gaussian,
}

/// Kinds of trainer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrainerKind {
    /// Maximum-entropy pathwise gradient inside a KL trust region
    TrustRegion,
}

/// Settings to start from.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Preset {
    /// Minutes on two cores
    Quick,
    /// The published settings
    Paper,
}

/// How evaluation chooses actions.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Mode {
    /// Without noise after the prior's draw (Gaussian: the mean)
    Ode,
    /// As in training
    Sde,
    /// The best of K drawn actions by the critic's value
    BestOfK,
    /// Text: the likeliest token each time
    Greedy,
    /// Text: tokens drawn as in training
    Sample,
}

impl Mode {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Ode => "ode",
            Mode::Sde => "sde",
            Mode::BestOfK => "best-of-k",
            Mode::Greedy => "greedy",
            Mode::Sample => "sample",
        }
    }
}

/// Which prompts of a text task.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum SplitArg {
    /// Those it learns from
    Train,
    /// Others of the same kind
    HeldOut,
    /// Longer ones, with larger numbers
    Harder,
}

/// Which of a run's checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Which {
    /// The last one
    Latest,
    /// That of the highest mean return in training
    Best,
}

/// Floating-point precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PrecisionArg {
    /// Single
    F32,
    /// Double
    F64,
}

impl From<PrecisionArg> for sim_vec::dispatch::Precision {
    fn from(p: PrecisionArg) -> Self {
        match p {
            PrecisionArg::F32 => sim_vec::dispatch::Precision::F32,
            PrecisionArg::F64 => sim_vec::dispatch::Precision::F64,
        }
    }
}

/// `2000000`, `2_000_000`, `2e6` or `2M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let (digits, unit) = match plain.char_indices().last() {
        Some((i, 'k' | 'K')) => (&plain[..i], 1e3),
        Some((i, 'M')) => (&plain[..i], 1e6),
        _ => (&plain[..], 1.0),
    };
    if let (1.0, Ok(n)) = (unit, digits.parse::<u64>()) {
        return Ok(n);
    }
    let n = digits.parse::<f64>().map(|x| x * unit).ok().filter(|n| *n >= 0.0 && *n < 9e15 && n.fract() == 0.0);
    n.map(|n| n as u64).ok_or_else(|| "write a whole number, as 2000000, 2_000_000, 2e6 or 2M".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn counts_are_read_in_every_notation_people_use() {
        for text in ["2000000", "2_000_000", "2e6", "2M", "2000k"] {
            assert_eq!(count(text), Ok(2_000_000), "{text}");
        }
        for text in ["", "-1", "1.5", "2m", "NaN", "1e300"] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
