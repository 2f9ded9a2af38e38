//! Whole episodes in groups: every lane of a group starts alike and runs until its first end.

use candle_core::{Device, Result, Tensor};
use rollouts::{Rollout, Status, StepOut, VecEnv};

use crate::noise::Noise;
use crate::normaliser::Normaliser;
use crate::policy::{Policy, Rows};

/// One episode per lane. The lanes are `starts.len()` groups of equal size, next to each other; a group's lanes are reset
/// with one seed and so start in one state, and each draws its own actions.
///
/// A lane that has ended waits: its rows are [`Status::Idle`] with reward 0, and count in no statistics. The environment
/// starts it over meanwhile, which nobody looks at. Steps go on until all lanes have ended or `longest` steps are made; a
/// lane that goes on then is [`Status::Truncated`].
///
/// All observations are normalised with the statistics as they stood before, so that scoring again sees what was acted on;
/// those of live rows enter the statistics afterwards.
///
/// Panics if the lanes are no multiple of the groups, or there are no groups.
pub fn collect_episodes<E: VecEnv, P: Policy<Obs = Tensor, Action = Tensor>>(
    env: &mut E,
    policy: &P,
    normaliser: &mut Normaliser,
    starts: &[u64],
    longest: Option<usize>,
    noise: &mut Noise,
) -> Result<Rollout<Tensor, P::Trace>> {
    let s = env.spec();
    assert!(!starts.is_empty() && s.lanes.is_multiple_of(starts.len()), "{} lanes, {} groups", s.lanes, starts.len());
    let size = s.lanes / starts.len();
    let seeds: Vec<u64> = (0..s.lanes).map(|n| starts[n / size]).collect();
    let width = s.lanes * s.obs_dim;
    let (mut now, mut last) = (vec![0.0; width], vec![0.0; width]);
    env.reset(&seeds, &mut now);
    let (mut obs, mut next, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let (mut action, mut log_prob, mut traces) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reward, mut status) = (Vec::new(), Vec::new());
    let mut live = vec![true; s.lanes];
    let mut length = vec![0; s.lanes];
    let limit = longest.unwrap_or(s.episode_steps).max(1);
    let mut steps = 0;
    while live.contains(&true) && steps < limit {
        let mut x = now.clone();
        normaliser.apply(&mut x);
        obs.extend_from_slice(&x);
        let drawn = policy.sample(&Tensor::from_vec(x, (s.lanes, s.obs_dim), &Device::Cpu)?, noise)?;
        let act = drawn.action.flatten_all()?.to_vec1::<f32>()?;
        let mut density = (&drawn.log_prob.value * &drawn.log_prob.mask)?.flatten_all()?.to_vec1::<f32>()?;
        let factors = density.len() / s.lanes;
        let (mut r, mut ended) = (vec![0.0; s.lanes], vec![Status::Running; s.lanes]);
        let before = now.clone();
        env.step(&act, StepOut { obs: &mut now, reward: &mut r, status: &mut ended, last_obs: &mut last });
        steps += 1;
        for n in 0..s.lanes {
            let row = n * s.obs_dim..(n + 1) * s.obs_dim;
            if !live[n] {
                (r[n], ended[n]) = (0.0, Status::Idle);
                density[n * factors..(n + 1) * factors].fill(0.0);
                continue;
            }
            length[n] += 1;
            seen.extend_from_slice(&before[row]);
            if ended[n] == Status::Running && steps == limit {
                ended[n] = Status::Truncated;
            }
            live[n] = ended[n] == Status::Running;
        }
        let mut x = last.clone();
        normaliser.apply(&mut x);
        next.extend_from_slice(&x);
        action.extend_from_slice(&act);
        log_prob.extend(density);
        traces.push(drawn.trace);
        reward.extend(r);
        status.extend(ended);
    }
    normaliser.update(&seen);
    let rows = steps * s.lanes;
    Ok(Rollout {
        steps,
        lanes: s.lanes,
        obs: Tensor::from_vec(obs, (rows, s.obs_dim), &Device::Cpu)?,
        next_obs: Some(Tensor::from_vec(next, (rows, s.obs_dim), &Device::Cpu)?),
        trace: Rows::concat(&traces)?,
        action,
        log_prob,
        reward,
        status,
        group: (0..s.lanes).map(|n| (n / size) as u32).collect(),
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaussianPolicy;
    use rollouts::SnapshotError;

    /// Walks from its seed; ends when it has gone as far as its seed says, or after six steps.
    struct Walk {
        state: Vec<f32>,
        clock: Vec<f32>,
        seed: Vec<u64>,
    }

    impl VecEnv for Walk {
        fn spec(&self) -> rollouts::EnvSpec {
            rollouts::EnvSpec { lanes: self.state.len(), obs_dim: 2, act_dim: 1, dt_s: 0.1, episode_steps: 6 }
        }
        fn reset(&mut self, seeds: &[u64], obs: &mut [f32]) {
            for n in 0..seeds.len() {
                (self.state[n], self.clock[n], self.seed[n]) = (seeds[n] as f32, 0.0, seeds[n]);
                (obs[2 * n], obs[2 * n + 1]) = (self.state[n], 0.0);
            }
        }
        fn step(&mut self, action: &[f32], out: StepOut<'_>) {
            for n in 0..self.state.len() {
                self.state[n] += action[n];
                self.clock[n] += 1.0;
                (out.last_obs[2 * n], out.last_obs[2 * n + 1]) = (self.state[n], self.clock[n]);
                out.reward[n] = 1.0;
                let over = self.clock[n] >= 6.0;
                let there = self.clock[n] >= (self.seed[n] % 4 + 1) as f32 && action[n] > 0.0;
                out.status[n] = match (there, over) {
                    (true, _) => Status::Terminated,
                    (_, true) => Status::Truncated,
                    _ => Status::Running,
                };
                if there || over {
                    (self.state[n], self.clock[n]) = (1e6, 0.0); // an idle lane's observations would spoil statistics
                }
                (out.obs[2 * n], out.obs[2 * n + 1]) = (self.state[n], self.clock[n]);
            }
        }
        fn non_finite_lanes(&self) -> u64 {
            0
        }
        fn snapshot(&self) -> Vec<u8> {
            Vec::new()
        }
        fn restore(&mut self, _: &[u8]) -> std::result::Result<(), SnapshotError> {
            Ok(())
        }
    }

    fn collect(longest: Option<usize>) -> (GaussianPolicy, Normaliser, Rollout<Tensor, Tensor>) {
        let mut env = Walk { state: vec![0.0; 12], clock: vec![0.0; 12], seed: vec![0; 12] };
        let policy = GaussianPolicy::new(2, 1, 16, 3, 1).unwrap();
        let mut normaliser = Normaliser::new(2);
        let r = collect_episodes(&mut env, &policy, &mut normaliser, &[3, 5, 6], longest, &mut Noise::new(2)).unwrap();
        (policy, normaliser, r)
    }

    #[test]
    fn members_of_a_group_start_alike_and_differ_afterwards() {
        let (_, _, r) = collect(None);
        assert_eq!(r.group, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        let obs = r.obs.to_vec2::<f32>().unwrap();
        for g in 0..3 {
            assert!((1..4).all(|m| obs[4 * g + m] == obs[4 * g]), "group {g}");
            assert!((1..4).any(|m| r.action[4 * g + m] != r.action[4 * g]), "group {g}");
        }
    }

    #[test]
    fn a_lane_that_has_ended_is_idle_and_its_return_is_that_of_one_episode() {
        let (_, _, r) = collect(None);
        let lengths: std::collections::BTreeSet<u32> = r.length.iter().copied().collect();
        assert!(lengths.len() > 1, "{lengths:?}");
        assert_eq!(r.steps, *r.length.iter().max().unwrap() as usize);
        for n in 0..r.lanes {
            let column: Vec<usize> = (0..r.steps).map(|t| t * r.lanes + n).collect();
            let live = column.iter().filter(|row| r.status[**row] != Status::Idle).count();
            assert_eq!(live as u32, r.length[n]);
            assert_eq!(column.iter().map(|row| r.reward[*row]).sum::<f32>(), live as f32, "one for each live step");
            assert!(column[live..].iter().all(|row| r.log_prob[*row] == 0.0));
            assert!(matches!(r.status[column[live - 1]], Status::Terminated | Status::Truncated));
        }
    }

    #[test]
    fn scoring_again_repeats_the_densities_of_live_rows() {
        let (policy, _, r) = collect(None);
        let again = policy.log_prob(&r.obs, &r.trace).unwrap().value.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for row in (0..r.rows()).filter(|row| r.status[*row] != Status::Idle) {
            assert!((again[row] - r.log_prob[row]).abs() < 1e-4, "row {row}");
        }
    }

    #[test]
    fn statistics_see_what_was_acted_on_and_nothing_of_idle_lanes() {
        let (_, normaliser, _) = collect(None);
        assert!(normaliser.moments().0[0].abs() < 10.0, "{:?}", normaliser.moments());
    }

    #[test]
    fn a_limit_truncates_what_goes_on() {
        let (_, _, r) = collect(Some(2));
        assert_eq!(r.steps, 2);
        let last = &r.status[r.lanes..];
        assert!(last.contains(&Status::Truncated) && !last.contains(&Status::Running));
    }
}
