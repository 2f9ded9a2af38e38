//! What the controller holds, on lengths drawn from a seeded generator.

mod common;

use common::{CANDIDATES, Counter, Lengths, mean, run, sagc};
use sagc::{Estimate, GroupReport, GroupSizer, Reference, Sagc, SagcConfig, Utility};

/// Whatever the lengths, whatever the settings: Σ(s − ε) ≤ Q + infeasible debt after every step. The adversary sees the
/// size before it picks lengths: quiet steps, steps with one straggler per group, long prompts, growth without end.
#[test]
fn queue_and_infeasible_debt_bound_the_excess_on_any_sequence() {
    for seed in 1..=200 {
        let mut lengths = Lengths { state: seed };
        let reference = if lengths.below(2) == 0 { Reference::Running } else { Reference::Group };
        let mut sizer = sagc(|c| {
            c.candidates = [&CANDIDATES[..], &[2, 3, 5], &[7]][lengths.below(3)].into();
            c.budget = 0.02 + 0.9 * lengths.uniform();
            c.reference = reference;
            c.weight = 0.1 + 20.0 * lengths.uniform();
            c.dwell = lengths.below(6) as u32;
            c.fade = 0.5 + 0.5 * lengths.uniform();
            c.anti_windup = lengths.below(4) > 0;
            c.estimate = if lengths.below(2) == 0 { Estimate::Mean } else { Estimate::Thompson { seed } };
            c.utility =
                [Utility::BaselineBias, Utility::default(), Utility::PerSecond { u: 0.3, v: 2.0 }][lengths.below(3)];
        });
        let budget = sizer.config().budget;
        let mut counter = Counter::of(reference);
        let (mut excess, mut mode, mut scale) = (0.0, 0, 1.0f32);
        for step in 0..400 {
            if lengths.below(20) == 0 {
                mode = lengths.below(5);
            }
            let g = sizer.group_size();
            let prompts = 1 + lengths.below(6);
            let mut length = match mode {
                0 => vec![100.0; g * prompts],
                1 => lengths.log_normal(g * prompts, g, 1.0, 1.0),
                2 => lengths.pareto(g * prompts, 0.7),
                // one straggler in every group
                3 => (0..g * prompts).map(|i| if i % g == 0 { 5000.0 } else { 100.0 }).collect(),
                // all long in large groups, nothing at all in the smallest
                _ if g == sizer.config().candidates[0] => vec![0.0; g * prompts],
                _ => vec![1e6; g * prompts],
            };
            if mode == 1 {
                scale = (scale * 1.3).min(1e9);
                length.iter_mut().for_each(|l| *l *= scale);
            }
            let seen = GroupReport::new(g, &length).with_seconds(lengths.uniform());
            excess += counter.rate(&seen) - budget;
            sizer.observe(&seen);
            let s = sizer.status();
            assert!(s.queue >= 0.0 && s.infeasible_debt >= 0.0);
            assert!(
                excess <= s.queue + s.infeasible_debt + 1e-9,
                "seed {seed}, step {step}: excess {excess} above {} + {}",
                s.queue,
                s.infeasible_debt
            );
        }
    }
}

#[test]
fn the_long_run_rate_of_straggling_groups_meets_a_feasible_budget() {
    for estimate in [Estimate::Mean, Estimate::Thompson { seed: 7 }] {
        for seed in 1..=6 {
            let mut lengths = Lengths { state: seed };
            let mut sizer = sagc(|c| c.estimate = estimate);
            let mut counter = Counter::of(Reference::Running);
            let (sizes, rates) = run(&mut sizer, &mut counter, 1000, |g| lengths.log_normal(128, g, 0.3, 0.45));
            let rate = mean(&rates);
            assert!((rate - 0.25).abs() < 0.02, "{estimate:?}, seed {seed}: rate {rate}, budget 0.25");
            let size = sizes.iter().sum::<usize>() as f64 / 1000.0;
            assert!(size > 4.5 && size < 31.0, "{estimate:?}, seed {seed}: mean size {size} uses neither end");
        }
    }
}

/// Pareto lengths of shape 2.2: a rollout is longer than 2.5 times the median with probability 2.5^−2.2/2 = 0.0666, a
/// group of 4 straggles with 1 − (1 − 0.0666)⁴ = 0.241, one of 8 with 0.424. Only the smallest size meets 0.25.
#[test]
fn a_budget_that_only_the_smallest_size_meets_is_met() {
    for rollouts in [16, 32, 128] {
        for seed in 1..=3 {
            let mut lengths = Lengths { state: seed };
            let mut sizer = Sagc::new(SagcConfig::new(&[4, 8])).unwrap();
            let mut counter = Counter::of(Reference::Running);
            let (_, rates) = run(&mut sizer, &mut counter, 3000, |_| lengths.pareto(rollouts, 2.2));
            // the bound is (Q + debt)/3000, and Q reaches some tens
            let rate = mean(&rates);
            assert!((rate - 0.25).abs() < 0.01, "{rollouts} rollouts, seed {seed}: rate {rate}");
        }
    }
}

/// One group of 4 a step, always with one straggler. By hand, with U = 1/3 and 3/5, V = 5, ε = 0.25 and the risks of
/// `risk.rs` (γ = 0.97, prior 0.5 and 9.5):
///
/// ```text
/// step   Q      r̂(2)     r̂(4)     5/3 − Q·r̂(2)   3 − Q·r̂(4)
/// 4      3.00   0.30725   0.58535   0.74490         1.24395
/// 5      3.75   0.32369   0.61949   0.45283         0.67692
/// 6      4.50   0.33611   0.64614   0.15419         0.09235    the smaller size wins
/// ```
#[test]
fn queue_risk_and_size_follow_the_rule_step_by_step() {
    let mut sizer = Sagc::new(SagcConfig::new(&[2, 4])).unwrap();
    for step in 1..=6 {
        sizer.observe(&GroupReport::new(4, &[100.0, 100.0, 100.0, 1000.0]));
        assert_eq!(sizer.status().queue, 0.75 * f64::from(step));
        assert_eq!(sizer.group_size(), if step < 6 { 4 } else { 2 }, "step {step}");
    }
    let risks = sizer.risks();
    assert!((risks[0] - 0.336_106).abs() < 1e-6 && (risks[1] - 0.646_144).abs() < 1e-6, "{risks:?}");
    assert_eq!(sizer.status().straggler_rate, Some(1.0));
}

/// Of two positive numbers, the larger is less than 2 times their mean.
#[test]
fn against_its_own_median_a_pair_never_straggles() {
    let mut sizer =
        Sagc::new(SagcConfig { reference: Reference::Group, threshold: 2.0, ..SagcConfig::new(&[2, 16]) }).unwrap();
    let mut lengths = Lengths { state: 4 };
    let mut pairs = 0;
    for _ in 0..300 {
        let g = sizer.group_size();
        let before = sizer.status().queue;
        sizer.observe(&GroupReport::new(g, &lengths.pareto(64, 1.0)));
        assert!(g == 16 || sizer.status().queue == (before - 0.25).max(0.0));
        pairs += usize::from(g == 2);
    }
    assert!(pairs > 100, "{pairs} steps with pairs");
    assert_eq!(sizer.status().infeasible_debt, 0.0);
}

#[test]
fn equal_lengths_bring_the_largest_groups_and_keep_them() {
    for start in CANDIDATES {
        let mut sizer = sagc(|c| c.start = Some(start));
        let sizes: Vec<usize> = run(&mut sizer, &mut Counter::of(Reference::Running), 200, |_| vec![50.0; 128]).0;
        assert_eq!(sizes[0], start);
        assert!(sizes.windows(2).all(|w| w[0] <= w[1]), "from {start}: {sizes:?}");
        assert!(sizes[12..].iter().all(|g| *g == 32), "from {start}: {sizes:?}");
    }
}

/// σ rises from 0.35 to 0.6 at step 300 and falls back at step 600 (τ = 0.3). After either change, the sizes of 60 steps
/// on are as in the long run.
#[test]
fn after_a_drift_of_the_lengths_the_size_fits_within_60_steps() {
    for seed in 1..=5 {
        let mut lengths = Lengths { state: seed };
        let mut sizer = sagc(|_| ());
        let mut counter = Counter::of(Reference::Running);
        let mut phase =
            |steps, sigma| run(&mut sizer, &mut counter, steps, |g| lengths.log_normal(128, g, 0.3, sigma)).0;
        let size = |sizes: &[usize]| sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        let calm = phase(300, 0.3);
        let rough = phase(300, 0.5);
        let calm_again = phase(300, 0.3);
        let report = format!("seed {seed}: {calm:?}\n{rough:?}\n{calm_again:?}");
        assert!(size(&calm[60..]) > 24.0, "{report}");
        assert!(size(&rough[60..90]) < 12.0, "{report}");
        assert!(size(&calm_again[60..90]) > 24.0, "{report}");
    }
}

#[test]
fn an_impossible_budget_is_reported_and_the_controller_recovers_when_it_is_gone() {
    for seed in 1..=5 {
        let mut lengths = Lengths { state: seed };
        let mut sizer = sagc(|_| ());
        let mut counter = Counter::of(Reference::Running);
        run(&mut sizer, &mut counter, 150, |g| lengths.log_normal(128, g, 0.0, 1.5));
        let status = sizer.status();
        assert_eq!(sizer.group_size(), 4, "seed {seed}");
        assert!(status.out_of_reach && status.infeasible_debt > 10.0, "seed {seed}: {status}");
        assert!(status.to_string().contains("out of reach: raise budget"), "{status}");
        run(&mut sizer, &mut counter, 60, |g| lengths.log_normal(128, g, 0.0, 0.1));
        let status = sizer.status();
        assert!(sizer.group_size() == 32 && !status.out_of_reach, "seed {seed}: {status}");
    }
}

#[test]
fn without_anti_windup_an_impossible_budget_keeps_groups_small_long_after() {
    let after = |anti_windup| {
        let mut lengths = Lengths { state: 3 };
        let mut sizer = sagc(|c| c.anti_windup = anti_windup);
        let mut counter = Counter::of(Reference::Running);
        run(&mut sizer, &mut counter, 200, |g| lengths.log_normal(128, g, 0.0, 1.5));
        let sizes = run(&mut sizer, &mut counter, 100, |g| lengths.log_normal(128, g, 0.0, 0.1)).0;
        sizes.iter().filter(|g| **g < 32).count()
    };
    let (with, without) = (after(true), after(false));
    assert!(with < 60 && without > 80, "steps below the largest size: {with} with anti-windup, {without} without");
}

/// One prompt per step: rates are 0 or 1.
#[test]
fn with_one_group_per_step_the_budget_still_holds() {
    for seed in 1..=4 {
        let mut lengths = Lengths { state: seed };
        let mut sizer = Sagc::new(SagcConfig::new(&[2, 4, 8])).unwrap();
        let (_, rates) = run(&mut sizer, &mut Counter::of(Reference::Running), 3000, |g| lengths.pareto(g, 2.5));
        let rate = mean(&rates);
        assert!(rates.iter().all(|r| *r == 0.0 || *r == 1.0));
        assert!((rate - 0.25).abs() < 0.02, "seed {seed}: {rate}");
    }
}

#[test]
fn a_change_is_one_candidate_after_the_dwell() {
    for dwell in [0, 1, 4, 9] {
        let mut lengths = Lengths { state: 11 };
        let mut sizer = sagc(|c| c.dwell = dwell);
        let (sizes, _) =
            run(&mut sizer, &mut Counter::of(Reference::Running), 600, |g| lengths.log_normal(64, g, 0.3, 0.5));
        let rung = |g: usize| CANDIDATES.iter().position(|c| *c == g).unwrap();
        let changes: Vec<usize> = (1..600).filter(|t| sizes[*t] != sizes[t - 1]).collect();
        assert!(changes.len() > 3, "dwell {dwell}: {changes:?}");
        assert!(changes.iter().all(|t| rung(sizes[*t]).abs_diff(rung(sizes[t - 1])) == 1));
        assert!(changes.windows(2).all(|w| w[1] - w[0] >= dwell as usize), "dwell {dwell}: {changes:?}");
    }
}

/// Although nothing ever straggles. Where steps of groups of 4, 8, 16, 32 take 10, 10, 16 and 40 seconds, U/T is 0.060,
/// 0.078, 0.055, 0.023; where all take 3 seconds the largest U is the largest rate.
#[test]
fn utility_per_second_settles_where_steps_pay_best_from_any_start() {
    for start in CANDIDATES {
        let settled = |seconds: fn(usize) -> f64| {
            let mut sizer = sagc(|c| (c.utility, c.start) = (Utility::PerSecond { u: 1.0, v: 1.0 }, Some(start)));
            let mut used = [0; 33];
            for _ in 0..400 {
                let g = sizer.group_size();
                used[g] += 1;
                sizer.observe(&GroupReport::new(g, &[10.0; 128]).with_seconds(seconds(g)));
            }
            used
        };
        let slow = settled(|g| [10.0, 10.0, 16.0, 40.0][g.ilog2() as usize - 2]);
        assert!(slow[8] > 250, "from {start}: {slow:?}");
        let flat = settled(|_| 3.0);
        assert!(flat[32] > 250, "from {start}: {flat:?}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let trace = |seed| {
        let mut lengths = Lengths { state: 5 };
        let mut sizer = sagc(|c| c.estimate = Estimate::Thompson { seed });
        run(&mut sizer, &mut Counter::of(Reference::Running), 300, |g| lengths.log_normal(64, g, 0.3, 0.5)).0
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
