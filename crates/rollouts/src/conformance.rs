//! Checks that every implementation of a trait in this crate must pass. Call them from your own tests.

use crate::{EnvSpec, Status, StepOut, TextTask, VecEnv};

struct Buffers {
    obs: Vec<f32>,
    reward: Vec<f32>,
    status: Vec<Status>,
    last_obs: Vec<f32>,
}

impl Buffers {
    fn new(s: EnvSpec) -> Self {
        Buffers {
            obs: vec![0.0; s.lanes * s.obs_dim],
            reward: vec![0.0; s.lanes],
            status: vec![Status::Running; s.lanes],
            last_obs: vec![0.0; s.lanes * s.obs_dim],
        }
    }

    fn step(&mut self, env: &mut impl VecEnv, action: &[f32]) {
        env.step(
            action,
            StepOut {
                obs: &mut self.obs,
                reward: &mut self.reward,
                status: &mut self.status,
                last_obs: &mut self.last_obs,
            },
        );
    }

    /// Every bit of the step's result, as integers: NaN equals itself, −0 differs from 0.
    fn bits(&self) -> Vec<u32> {
        let floats = self.obs.iter().chain(&self.reward).chain(&self.last_obs).map(|x| x.to_bits());
        floats.chain(self.status.iter().map(|s| *s as u32)).collect()
    }
}

/// A small generator of its own: the checks must not depend on anybody's random numbers.
fn action(step: usize, lane: usize, k: usize) -> f32 {
    let mut z = (step as u64) << 40 ^ (lane as u64) << 16 ^ k as u64 ^ 0x9E37_79B9_7F4A_7C15;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn actions(s: EnvSpec, step: usize) -> Vec<f32> {
    (0..s.lanes * s.act_dim).map(|i| action(step, i / s.act_dim, i % s.act_dim)).collect()
}

/// Runs the promises of [`VecEnv`]; panics with the broken one. `make` builds equal environments and `steps`
/// should cover at least one episode end.
pub fn check_vec_env<E: VecEnv>(mut make: impl FnMut() -> E, steps: usize) {
    let mut env = make();
    let s = env.spec();
    assert!(s.lanes > 1, "check with at least two lanes");
    assert!(s.obs_dim > 0 && s.act_dim > 0 && s.dt_s > 0.0 && s.episode_steps > 0, "empty spec: {s:?}");
    let seeds: Vec<u64> = (0..s.lanes as u64).map(|n| n / 2).collect();

    // equal seeds, equal bits: between two lanes and between two environments
    let (mut a, mut b) = (Buffers::new(s), Buffers::new(s));
    env.reset(&seeds, &mut a.obs);
    assert!(a.obs.iter().all(|x| x.is_finite()), "reset gave a non-finite observation");
    assert_eq!(a.obs[..s.obs_dim], a.obs[s.obs_dim..2 * s.obs_dim], "two lanes of one seed start differently");
    let mut other = make();
    other.reset(&seeds, &mut b.obs);
    assert_eq!(a.bits(), b.bits(), "two environments of one seed start differently");

    // rewards and observations stay finite; ends are declared and followed by a new episode
    let mut ended = 0;
    let mut middle = None;
    for t in 0..steps {
        let act = actions(s, t);
        a.step(&mut env, &act);
        b.step(&mut other, &act);
        assert_eq!(a.bits(), b.bits(), "equal environments part at step {t}");
        assert!(
            a.obs.iter().chain(&a.last_obs).chain(&a.reward).all(|x| x.is_finite()),
            "non-finite output at step {t}"
        );
        for n in 0..s.lanes {
            let row = n * s.obs_dim..(n + 1) * s.obs_dim;
            match a.status[n] {
                Status::Running => {
                    assert_eq!(a.obs[row.clone()], a.last_obs[row], "lane {n} runs on, so both observations are one")
                }
                _ => {
                    ended += 1;
                    assert_ne!(
                        a.obs[row.clone()],
                        a.last_obs[row],
                        "lane {n} ended: the final observation was overwritten by the reset one"
                    );
                }
            }
        }
        if t == steps / 2 {
            middle = Some(env.snapshot());
        }
    }
    assert!(ended > 0, "no episode ended within {steps} steps: check with more");

    // a snapshot continues bit for bit, in a fresh environment
    let middle = middle.expect("at least one step");
    let mut resumed = make();
    resumed.restore(&middle).expect("own snapshot");
    let mut c = Buffers::new(s);
    for t in steps / 2 + 1..steps {
        c.step(&mut resumed, &actions(s, t));
    }
    if steps > 1 + steps / 2 {
        assert_eq!(a.bits(), c.bits(), "a restored environment parts from its original");
    }
    assert!(resumed.restore(&middle[..middle.len() / 2]).is_err(), "half a snapshot was accepted");

    // lanes are independent, even from a non-finite action in a neighbour
    let (mut calm, mut wild) = (make(), make());
    calm.reset(&seeds, &mut a.obs);
    wild.reset(&seeds, &mut b.obs);
    for t in 0..steps.min(20) {
        let mut act = actions(s, t);
        a.step(&mut calm, &act);
        act[..s.act_dim].fill(if t % 2 == 0 { f32::NAN } else { 1e30 });
        b.step(&mut wild, &act);
        assert_eq!(a.obs[s.obs_dim..], b.obs[s.obs_dim..], "lane 0's action reached another lane");
        assert_eq!(a.reward[1..], b.reward[1..], "lane 0's action reached another lane's reward");
        assert!(b.obs.iter().chain(&b.reward).all(|x| x.is_finite()), "a non-finite action came back");
    }
}

/// Runs the promises of [`TextTask`] on its first prompts; panics with the broken one. `completion` is any text.
pub fn check_text_task(task: &impl TextTask, completion: &str) {
    for index in 0..task.len().unwrap_or(u64::MAX).min(16) {
        let prompt = task.prompt(index);
        assert_eq!(prompt, task.prompt(index), "prompt {index} changed");
        for text in [completion, "", &prompt] {
            let score = task.score(index, text);
            assert!((0.0..=1.0).contains(&score), "prompt {index}: score {score} of {text:?} is not in [0, 1]");
            assert_eq!(score, task.score(index, text), "prompt {index}: {text:?} was scored twice, differently");
        }
        for variant in 0..4 {
            let solution = task.solution(index, variant);
            assert_eq!(solution, task.solution(index, variant), "prompt {index}: solution {variant} changed");
            if let Some(text) = solution {
                assert_eq!(task.score(index, &text), 1.0, "prompt {index}: its own solution {text:?} is not right");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotError;

    /// A counter per lane that starts at its seed and is cut after four steps.
    struct Counter {
        state: Vec<f32>,
        clock: Vec<f32>,
        episode: Vec<f32>,
        leak: bool,
    }

    impl VecEnv for Counter {
        fn spec(&self) -> EnvSpec {
            EnvSpec { lanes: self.state.len(), obs_dim: 1, act_dim: 1, dt_s: 0.1, episode_steps: 4 }
        }
        fn reset(&mut self, seeds: &[u64], obs: &mut [f32]) {
            for n in 0..seeds.len() {
                (self.state[n], self.clock[n], self.episode[n]) = (seeds[n] as f32, 0.0, 0.0);
                obs[n] = self.state[n];
            }
        }
        fn step(&mut self, action: &[f32], out: StepOut<'_>) {
            for n in 0..self.state.len() {
                let a = if action[n].is_finite() { action[n].clamp(-1.0, 1.0) } else { 0.0 };
                self.state[n] += a;
                if self.leak && n > 0 {
                    self.state[n] += self.state[0];
                }
                self.clock[n] += 1.0;
                out.last_obs[n] = self.state[n];
                out.reward[n] = self.state[n];
                out.status[n] = Status::Running;
                if self.clock[n] == 4.0 {
                    self.episode[n] += 1.0;
                    (self.clock[n], self.state[n]) = (0.0, 10.0 + self.episode[n]);
                    out.status[n] = Status::Truncated;
                }
                out.obs[n] = self.state[n];
            }
        }
        fn non_finite_lanes(&self) -> u64 {
            0
        }
        fn snapshot(&self) -> Vec<u8> {
            [&self.state, &self.clock, &self.episode].into_iter().flatten().flat_map(|x| x.to_le_bytes()).collect()
        }
        fn restore(&mut self, s: &[u8]) -> Result<(), SnapshotError> {
            let n = self.state.len();
            if s.len() != 12 * n {
                return Err(SnapshotError(format!("{} bytes, expected {}", s.len(), 12 * n)));
            }
            let v: Vec<f32> = s.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
            (self.state, self.clock, self.episode) = (v[..n].to_vec(), v[n..2 * n].to_vec(), v[2 * n..].to_vec());
            Ok(())
        }
    }

    fn counter(leak: bool) -> Counter {
        Counter { state: vec![0.0; 4], clock: vec![0.0; 4], episode: vec![0.0; 4], leak }
    }

    /// Asks for its index in decimals; right solutions are padded with zeros.
    struct Echo(f32);

    impl TextTask for Echo {
        fn prompt(&self, index: u64) -> String {
            format!("{index}?")
        }
        fn score(&self, index: u64, completion: &str) -> f32 {
            if completion.parse() == Ok(index) { self.0 } else { 0.0 }
        }
        fn solution(&self, index: u64, variant: u64) -> Option<String> {
            Some(format!("{index:0width$}", width = variant as usize))
        }
    }

    #[test]
    fn a_text_task_whose_solutions_are_right_passes() {
        check_text_task(&Echo(1.0), "3");
        assert!(!Echo(1.0).is_empty());
    }

    #[test]
    #[should_panic(expected = "its own solution")]
    fn a_solution_that_is_not_right_is_caught() {
        check_text_task(&Echo(0.5), "3");
    }

    #[test]
    fn a_well_behaved_environment_passes() {
        check_vec_env(|| counter(false), 12);
    }

    #[test]
    #[should_panic(expected = "reached another lane")]
    fn a_leak_between_lanes_is_caught() {
        check_vec_env(|| counter(true), 12);
    }
}
