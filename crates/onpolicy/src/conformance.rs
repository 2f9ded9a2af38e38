//! Checks that every policy must pass. Call them from your own tests.

use candle_core::{Result, Tensor};

use crate::noise::Noise;
use crate::pathwise::Pathwise;
use crate::policy::{Policy, Rows};

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().and_then(|t| t.to_vec1()).expect("f32 tensor")
}

fn assert_close(a: &[f32], b: &[f32], tol: f32, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}: lengths");
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).abs() <= tol * y.abs().max(1.0), "{what}: element {i} is {x}, expected {y}");
    }
}

/// Runs the promises of [`Policy`] on a continuous-action policy; panics with the broken one.
///
/// `obs` needs at least two rows; `disturb` must change the parameters it is given by a visible amount.
pub fn check_policy<P>(policy: &mut P, obs: &Tensor, disturb: impl Fn(&P)) -> Result<()>
where
    P: Policy<Obs = Tensor, Action = Tensor>,
{
    let drawn = policy.sample(obs, &mut Noise::new(1))?;
    let again = policy.sample(obs, &mut Noise::new(1))?;
    assert_eq!(values(&drawn.action), values(&again.action), "equal noise gave two actions");
    let other = policy.sample(obs, &mut Noise::new(2))?;
    assert_ne!(values(&drawn.action), values(&other.action), "other noise gave the same actions");
    assert!(values(&drawn.action).iter().all(|a| a.abs() <= 1.0), "an action leaves [-1, 1]");

    let rescored = policy.log_prob(obs, &drawn.trace)?;
    assert_close(&values(&rescored.value), &values(&drawn.log_prob.value), 2e-4, "re-scoring equals sampling");

    // rows are independent: scoring the last two alone changes nothing
    let rows = obs.rows() as u32;
    let pick = Tensor::new(&[rows - 1, rows - 2], obs.device())?;
    let some = policy.log_prob(&obs.select(&pick)?, &drawn.trace.select(&pick)?)?;
    assert_close(&values(&some.value), &values(&rescored.value.index_select(&pick, 0)?), 1e-5, "rows are independent");

    let old = policy.snapshot()?;
    let before = values(&old.log_prob(obs, &drawn.trace)?.value);
    let own = values(&P::kl(&old, policy, obs, &drawn.trace)?.value);
    assert!(own.iter().all(|k| k.abs() < 1e-6), "KL(p‖p) is not 0: {own:?}");
    disturb(policy);
    assert_eq!(values(&old.log_prob(obs, &drawn.trace)?.value), before, "the snapshot moved with the policy");
    let kl = P::kl(&old, policy, obs, &drawn.trace)?;
    let per_factor = values(&kl.value);
    assert!(per_factor.iter().all(|k| *k >= -1e-6), "a KL factor is negative: {per_factor:?}");
    assert!(per_factor.iter().sum::<f32>() > 1e-4, "the disturbed policy is not told apart");

    // every parameter part matters to the density
    let loss = policy.log_prob(obs, &drawn.trace)?.sum()?.sum_all()?;
    let grads = loss.backward()?;
    for params in policy.params() {
        let Some(grad) = grads.get(params.var()) else { panic!("parameters without a gradient") };
        let grad = values(grad);
        for part in params.parts() {
            assert!(grad[part.range()].iter().any(|g| *g != 0.0), "{} gets no gradient", part.name);
        }
    }
    Ok(())
}

/// Runs the promises of [`Pathwise`]: gradient equals finite differences, the graph-free twin equals it, and the
/// mean log ratio over many traces equals the closed-form KL of whole decisions.
pub fn check_pathwise<P: Pathwise>(policy: &mut P, obs: &Tensor, disturb: impl Fn(&P)) -> Result<()> {
    let objective = |p: &P| -> Result<Tensor> {
        let r = p.sample_grad(obs, &mut Noise::new(3))?;
        // a fixed, uneven mixture of all outputs
        let w = Noise::new(4).normal(r.action.shape())?;
        let v = Noise::new(5).normal(r.log_prob.shape())?;
        ((r.action * w)?.sum_all()? + (r.log_prob * &v)?.sum_all()?)? + (r.entropy.sqr()? * 0.1)?.sum_all()?
    };
    let scored = policy.sample_scored(obs, &mut Noise::new(3))?;
    let tracked = policy.sample_grad(obs, &mut Noise::new(3))?;
    assert_eq!(values(&scored.action), values(&tracked.action), "the graph-free sample differs");
    assert_eq!(values(&scored.log_prob), values(&tracked.log_prob), "the graph-free log-probability differs");

    let grads = objective(policy)?.backward()?;
    for params in policy.params() {
        let Some(grad) = grads.get(params.var()) else { panic!("parameters without a pathwise gradient") };
        let (grad, start) = (values(grad), params.to_vec()?);
        for part in params.parts() {
            assert!(grad[part.range()].iter().any(|g| *g != 0.0), "{} gets no pathwise gradient", part.name);
            // central difference along the gradient of this part
            let norm = grad[part.range()].iter().map(|g| g * g).sum::<f32>().sqrt();
            let step = 2e-3 / norm.max(1e-3) * (1.0 + start[part.range()].iter().map(|x| x * x).sum::<f32>().sqrt());
            let at = |sign: f32| -> Result<f64> {
                let mut moved = start.clone();
                for i in part.range() {
                    moved[i] += sign * step * grad[i];
                }
                params.write(&moved)?;
                objective(policy)?.to_scalar::<f32>().map(f64::from)
            };
            let difference = (at(1.0)? - at(-1.0)?) / (2.0 * f64::from(step));
            params.write(&start)?;
            let want = f64::from(norm) * f64::from(norm);
            assert!(
                (difference - want).abs() < 0.03 * want + 0.02 * f64::from(norm),
                "{}: gradient² {want}, finite difference {difference}",
                part.name
            );
        }
    }

    let old = policy.snapshot()?;
    disturb(policy);
    let mut noise = Noise::new(6);
    let (draws, mut closed, mut sampled) = (400, 0.0, 0.0);
    for _ in 0..draws {
        let drawn = old.sample(obs, &mut noise)?;
        let ratio = (drawn.log_prob.sum()? - policy.log_prob(obs, &drawn.trace)?.sum()?)?;
        sampled += f64::from(ratio.mean_all()?.to_scalar::<f32>()?);
        closed += f64::from(P::kl(&old, policy, obs, &drawn.trace)?.sum()?.mean_all()?.to_scalar::<f32>()?);
    }
    let (closed, sampled) = (closed / f64::from(draws), sampled / f64::from(draws));
    assert!((closed - sampled).abs() < 0.25 * closed + 1e-3, "closed-form KL {closed}, sampled log-ratio {sampled}");
    Ok(())
}
