//! Credit assignment on plain slices, `[T*N]`, row = `t * lanes + n`.

use crate::Status;

/// λ-return with one truncation rule: bootstrap from the value of the state the step led to.
///
/// ```text
/// G_t = r_t + γ·{ 0                                   terminated
///                 v_t                                 truncated, or the last step of the rollout
///                 λ·G_{t+1} + (1−λ)·v_t               otherwise }
/// ```
///
/// `v_next[t]` is the value of the state that step t led to, before any reset. A soft return is the
/// λ-return of rewards that already carry their entropy bonus. Idle rows get 0 and pass nothing on.
/// Sutton & Barto 2018, §12.1; Voelcker et al. 2025 (REPPO), eq. 6.
///
/// Panics if the slices differ in length or `lanes` does not divide it.
pub fn lambda_return(
    reward: &[f32],
    v_next: &[f32],
    status: &[Status],
    lanes: usize,
    gamma: f32,
    lambda: f32,
    out: &mut [f32],
) {
    let rows = reward.len();
    assert!(lanes > 0 && rows.is_multiple_of(lanes), "{lanes} lanes do not divide {rows} rows");
    assert_eq!((v_next.len(), status.len(), out.len()), (rows, rows, rows));
    let last = rows / lanes - usize::from(rows > 0);
    for t in (0..rows / lanes).rev() {
        for i in t * lanes..(t + 1) * lanes {
            let tail = match status[i] {
                Status::Idle => {
                    out[i] = 0.0;
                    continue;
                }
                Status::Terminated => 0.0,
                Status::Truncated => v_next[i],
                Status::Running if t == last => v_next[i],
                Status::Running => lambda * out[i + lanes] + (1.0 - lambda) * v_next[i],
            };
            out[i] = reward[i] + gamma * tail;
        }
    }
}

/// Generalised advantage estimate, backwards over time.
///
/// ```text
/// δ_t = r_t + γ·v'_t·[not terminated] − v_t,   Â_t = δ_t + γλ·Â_{t+1}·[same episode]
/// ```
///
/// `value[t]` = v(s_t); `v_next[t]` = value of the state that step t led to, before any reset. A truncated
/// step bootstraps from it like any other. Schulman et al. 2016, eq. 16.
///
/// Panics if the slices differ in length or `lanes` does not divide it.
pub fn gae(
    reward: &[f32],
    value: &[f32],
    v_next: &[f32],
    status: &[Status],
    lanes: usize,
    gamma: f32,
    lambda: f32,
    out: &mut [f32],
) {
    let rows = reward.len();
    assert!(lanes > 0 && rows.is_multiple_of(lanes), "{lanes} lanes do not divide {rows} rows");
    assert_eq!((value.len(), v_next.len(), status.len(), out.len()), (rows, rows, rows, rows));
    for i in (0..rows).rev() {
        if status[i] == Status::Idle {
            out[i] = 0.0;
            continue;
        }
        let bootstrap = if status[i] == Status::Terminated { 0.0 } else { gamma * v_next[i] };
        let delta = reward[i] + bootstrap - value[i];
        let carried = if status[i] == Status::Running && i + lanes < rows { out[i + lanes] } else { 0.0 };
        out[i] = delta + gamma * lambda * carried;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::*;

    #[test]
    fn perfect_critic_gives_zero_advantage_across_a_truncation() {
        // reward 1 for ever, γ = 0.9: V = 10 everywhere
        let status = [Running, Running, Running, Truncated, Running, Running];
        let mut a = [1.0; 6];
        gae(&[1.0; 6], &[10.0; 6], &[10.0; 6], &status, 1, 0.9, 0.95, &mut a);
        assert!(a.iter().all(|x| x.abs() < 1e-5), "{a:?}");
    }

    #[test]
    fn truncated_lane_bootstraps_from_the_state_it_led_to() {
        // V(s_t)=2, V(final)=5, V(reset state)=7: three rules, three numbers; ours is 1 + 0.5·5
        let mut g = [0.0; 2];
        lambda_return(&[1.0, 1.0], &[5.0, 7.0], &[Truncated, Running], 1, 0.5, 1.0, &mut g);
        assert_eq!(g[0], 3.5);
        let mut a = [0.0; 2];
        gae(&[1.0, 1.0], &[2.0, 7.0], &[5.0, 7.0], &[Truncated, Running], 1, 0.5, 1.0, &mut a);
        assert_eq!(a[0], 1.5);
    }

    #[test]
    fn terminated_lane_gets_its_reward_and_nothing_else() {
        let mut g = [0.0; 4];
        // two lanes, two steps; lane 1 terminates at step 0
        lambda_return(
            &[1.0, 2.0, 3.0, 4.0],
            &[9.0, 9.0, 9.0, 9.0],
            &[Running, Terminated, Running, Running],
            2,
            0.5,
            0.5,
            &mut g,
        );
        assert_eq!(g, [1.0 + 0.5 * (0.5 * 7.5 + 0.5 * 9.0), 2.0, 3.0 + 4.5, 4.0 + 4.5]);
    }

    #[test]
    fn gae_equals_lambda_return_minus_value() {
        let r = [0.3, -1.0, 2.0, 0.5, 0.1, 0.9, -0.4, 1.5];
        let v = [1.0, 2.0, 0.5, -1.0, 0.7, 0.2, 1.1, -0.3];
        let status = [Running, Running, Running, Terminated, Truncated, Running, Running, Running];
        // a value function of states: the next value is the next row's where the episode goes on
        let mut next = [0.0f32; 8];
        for i in 0..8 {
            next[i] = if status[i] == Running && i + 2 < 8 { v[i + 2] } else { 3.0 + i as f32 };
        }
        let (mut g, mut a) = ([0.0; 8], [0.0; 8]);
        lambda_return(&r, &next, &status, 2, 0.9, 0.8, &mut g);
        gae(&r, &v, &next, &status, 2, 0.9, 0.8, &mut a);
        for i in 0..8 {
            assert!((g[i] - v[i] - a[i]).abs() < 1e-5, "row {i}: {} {}", g[i] - v[i], a[i]);
        }
    }

    #[test]
    fn gae_equals_a_plain_f64_recursion_on_random_masks() {
        let mut x = 12345u64;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 40) as f64 / (1u64 << 24) as f64
        };
        let (steps, lanes) = (40, 3);
        let n = steps * lanes;
        let r: Vec<f32> = (0..n).map(|_| next() as f32).collect();
        let v: Vec<f32> = (0..n).map(|_| next() as f32).collect();
        let w: Vec<f32> = (0..n).map(|_| next() as f32).collect();
        let s: Vec<Status> =
            (0..n).map(|_| [Running, Running, Terminated, Truncated][(next() * 4.0) as usize]).collect();
        let mut a = vec![0.0; n];
        gae(&r, &v, &w, &s, lanes, 0.97, 0.9, &mut a);
        for lane in 0..lanes {
            let mut carried = 0.0f64;
            for t in (0..steps).rev() {
                let i = t * lanes + lane;
                let alive = if s[i] == Terminated { 0.0 } else { 1.0 };
                let same = if s[i] == Running { 1.0 } else { 0.0 };
                let delta = r[i] as f64 + 0.97 * alive * w[i] as f64 - v[i] as f64;
                carried = delta + 0.97 * 0.9 * same * carried;
                assert!((carried - a[i] as f64).abs() < 1e-5);
            }
        }
    }
}
