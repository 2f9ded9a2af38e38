//! Where lengths come from.

use std::collections::BTreeMap;

/// Uniform and normal numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Standard deviations of the logarithm of the length, within and between prompts, per phase.
const PHASES: [[f64; 2]; 3] = [[0.35, 0.3], [0.6, 0.5], [0.25, 0.3]];
/// Median length of the drawn rollouts.
const MEDIAN: f64 = 200.0;

/// A rollout's length and whether it was cut.
type Rollout = (f32, bool);

enum Source {
    /// Log-normal, in phases.
    Drawn,
    /// Of each prompt what was recorded; the path it came from.
    Recorded(String, Vec<Vec<Rollout>>),
}

/// Lengths to be had, in phases of equally many steps.
pub struct Workload {
    source: Source,
    steps_per_phase: usize,
}

impl Workload {
    pub fn drawn(steps_per_phase: usize) -> Self {
        Workload { source: Source::Drawn, steps_per_phase }
    }

    /// Reads a trace. Errors: `file:line: what is wrong and what to write`.
    pub fn recorded(path: &str, steps: usize) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("{path}: {e}; name a file of lines `prompt_id,length[,truncated]`"))?;
        Ok(Workload { source: Source::Recorded(path.into(), parse(path, &text)?), steps_per_phase: steps })
    }

    pub fn phases(&self) -> usize {
        match self.source {
            Source::Drawn => PHASES.len(),
            Source::Recorded(..) => 1,
        }
    }

    pub fn steps(&self) -> usize {
        self.phases() * self.steps_per_phase
    }

    pub fn phase(&self, step: usize) -> usize {
        step / self.steps_per_phase
    }

    /// What it is, for groups of at most `largest`.
    pub fn describe(&self, largest: usize) -> String {
        match &self.source {
            Source::Drawn => format!(
                "log-normal lengths of median {MEDIAN}; log-deviations within, between prompts: {}",
                PHASES.map(|[sigma, tau]| format!("{sigma}, {tau}")).join("; ")
            ),
            Source::Recorded(path, prompts) => {
                let rollouts: usize = prompts.iter().map(Vec::len).sum();
                let few = prompts.iter().filter(|p| p.len() < largest).count();
                let mut text = format!("{path}: {rollouts} rollouts of {} prompts", prompts.len());
                if few > 0 {
                    text += &format!("; {few} have fewer than {largest}, so that large groups repeat lengths");
                }
                text
            }
        }
    }

    /// `[groups * g]` lengths and cuts of a step.
    pub fn draw(&self, phase: usize, groups: usize, g: usize, random: &mut Random) -> (Vec<f32>, Vec<bool>) {
        let mut step = Vec::with_capacity(groups * g);
        for _ in 0..groups {
            match &self.source {
                Source::Drawn => {
                    let [sigma, tau] = PHASES[phase];
                    let prompt = tau * random.normal();
                    step.extend((0..g).map(|_| ((MEDIAN * (prompt + sigma * random.normal()).exp()) as f32, false)));
                }
                Source::Recorded(_, prompts) => {
                    let mut left = prompts[random.below(prompts.len())].clone();
                    let repeat = left.len() < g;
                    step.extend((0..g).map(|_| {
                        let k = random.below(left.len());
                        if repeat { left[k] } else { left.swap_remove(k) }
                    }));
                }
            }
        }
        step.into_iter().unzip()
    }

    /// Probability that a group straggles, per phase and size, from 4000 drawn groups each against the median of all.
    pub fn risks(&self, threshold: f64, sizes: &[usize]) -> Vec<Vec<f64>> {
        const GROUPS: usize = 4000;
        let mut random = Random(0);
        (0..self.phases())
            .map(|phase| {
                let limit = threshold * sagc::straggler::median(&self.draw(phase, GROUPS, sizes[0], &mut random).0);
                let mut risk = |g: usize| {
                    let length = self.draw(phase, GROUPS, g, &mut random).0;
                    let late = length.chunks_exact(g).filter(|c| c.iter().any(|l| f64::from(*l) > limit));
                    late.count() as f64 / GROUPS as f64
                };
                sizes.iter().map(|&g| risk(g)).collect()
            })
            .collect()
    }
}

/// Rollouts per prompt, prompts in the order of their names.
fn parse(path: &str, text: &str) -> Result<Vec<Vec<Rollout>>, String> {
    let mut prompts: BTreeMap<&str, Vec<Rollout>> = BTreeMap::new();
    for (k, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || (k == 0 && line.starts_with("prompt_id")) {
            continue;
        }
        let at = format!("{path}:{}", k + 1);
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let (prompt, length, cut) = match fields[..] {
            [prompt, length] => (prompt, length, "0"),
            [prompt, length, cut] => (prompt, length, cut),
            _ => {
                return Err(format!(
                    "{at}: `{line}` is not `prompt_id,length[,truncated]`; write for example `17,312,0`"
                ));
            }
        };
        let length = match length.parse::<f32>() {
            Ok(l) if l.is_finite() && l >= 0.0 => l,
            _ => return Err(format!("{at}: length is `{length}`; write a number of at least 0, such as 312")),
        };
        let cut = match cut {
            "0" | "false" => false,
            "1" | "true" => true,
            _ => {
                return Err(format!(
                    "{at}: truncated is `{cut}`; write 1 if the rollout was cut, otherwise 0 or nothing"
                ));
            }
        };
        prompts.entry(prompt).or_default().push((length, cut));
    }
    if prompts.is_empty() {
        return Err(format!("{path}:1: there are no rollouts; write lines `prompt_id,length[,truncated]`"));
    }
    Ok(prompts.into_values().collect())
}
