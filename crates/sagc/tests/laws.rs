//! What the controller holds, on lengths drawn from a seeded generator.

use sagc::conformance::check_group_sizer;
use sagc::straggler::median;
use sagc::{ConfigError, Fixed, GroupReport, GroupSizer, Reference, Sagc, SagcConfig, Straggling};

/// Log-normal lengths with a between-prompt part τ and a within-prompt part σ.
struct Lengths {
    state: u64,
}

impl Lengths {
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Pareto lengths: no prompt matters, a power law does.
    fn pareto(&mut self, rollouts: usize, shape: f64) -> Vec<f32> {
        (0..rollouts).map(|_| (100.0 * self.uniform().powf(-1.0 / shape)) as f32).collect()
    }

    fn step(&mut self, rollouts: usize, g: usize, tau: f64, sigma: f64) -> Vec<f32> {
        (0..rollouts / g)
            .flat_map(|_| {
                let prompt = tau * self.normal();
                (0..g).map(|_| (200.0 * (prompt + sigma * self.normal()).exp()) as f32).collect::<Vec<_>>()
            })
            .collect()
    }
}

const CANDIDATES: [usize; 4] = [4, 8, 16, 32];

/// Share of straggling groups, by the controller's own definition with the true median as reference.
fn rate(length: &[f32], g: usize) -> f64 {
    let groups = length.chunks_exact(g);
    let n = groups.len() as f64;
    groups.filter(|group| group.iter().any(|l| *l > 2.5 * 200.0)).count() as f64 / n
}

#[test]
fn every_sizer_conforms() {
    check_group_sizer(|| Fixed::new(8).unwrap());
    check_group_sizer(|| Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap());
    check_group_sizer(|| Box::new(Sagc::new(SagcConfig::new(&[2, 3])).unwrap()) as Box<dyn GroupSizer>);
}

#[test]
fn the_long_run_rate_of_straggling_groups_meets_a_feasible_budget() {
    for seed in 1..=6 {
        let mut lengths = Lengths { state: seed };
        let mut sizer = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
        let (mut total, mut sizes) = (0.0, 0);
        for _ in 0..600 {
            let g = sizer.group_size();
            let length = lengths.step(128, g, 0.3, 0.45);
            total += rate(&length, g);
            sizes += g;
            sizer.observe(&GroupReport::new(g, &length));
        }
        let (rate, size) = (total / 600.0, sizes as f64 / 600.0);
        assert!((rate - 0.25).abs() < 0.04, "seed {seed}: rate {rate}, budget 0.25");
        assert!(size > 4.5 && size < 31.0, "seed {seed}: mean size {size} uses neither end");
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
            let mut total = 0.0;
            for _ in 0..3000 {
                let length = lengths.pareto(rollouts, 2.2);
                let seen = GroupReport::new(sizer.group_size(), &length);
                let normal = sizer.state().reference.unwrap_or_else(|| median(&length));
                total += Straggling::count(&seen, 2.5, Some(normal)).unwrap().rate();
                sizer.observe(&seen);
            }
            // the bound is (Q + infeasible)/3000, and Q reaches some tens
            assert!((total / 3000.0 - 0.25).abs() < 0.01, "{rollouts} rollouts, seed {seed}: rate {}", total / 3000.0);
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
        assert_eq!(sizer.state().queue, 0.75 * f64::from(step));
        assert_eq!(sizer.group_size(), if step < 6 { 4 } else { 2 }, "step {step}");
    }
    let risks = sizer.risks();
    assert!((risks[0] - 0.336_106).abs() < 1e-6 && (risks[1] - 0.646_144).abs() < 1e-6, "{risks:?}");
}

#[test]
fn against_its_own_median_a_pair_never_straggles() {
    let mut sizer =
        Sagc::new(SagcConfig { reference: Reference::Group, threshold: 2.0, ..SagcConfig::new(&[2, 16]) }).unwrap();
    let mut lengths = Lengths { state: 4 };
    for _ in 0..300 {
        let g = sizer.group_size();
        let before = sizer.state().queue;
        sizer.observe(&GroupReport::new(g, &lengths.pareto(64, 1.0)));
        assert!(g == 16 || sizer.state().queue == (before - 0.25).max(0.0));
    }
    assert_eq!(sizer.state().infeasible, 0.0);
}

/// Whatever the lengths: Σ(s − ε) ≤ Q + infeasible.
#[test]
fn queue_and_infeasible_part_bound_the_excess_on_any_sequence() {
    let mut lengths = Lengths { state: 9 };
    let mut sizer = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    let (mut excess, mut reference): (f64, Option<f64>) = (0.0, None);
    for step in 0..500 {
        let g = sizer.group_size();
        let length = lengths.step(64, g, 0.5, if step / 100 % 2 == 0 { 0.2 } else { 1.2 });
        let normal = reference.unwrap_or_else(|| median(&length));
        let seen = GroupReport::new(g, &length);
        excess += Straggling::count(&seen, 2.5, Some(normal)).unwrap().rate() - 0.25;
        sizer.observe(&seen);
        reference = sizer.state().reference;
        assert!(excess <= sizer.state().queue + sizer.state().infeasible + 1e-9, "step {step}");
    }
}

#[test]
fn equal_lengths_bring_the_largest_groups_and_keep_them() {
    let mut sizer = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    for _ in 0..100 {
        let g = sizer.group_size();
        assert_eq!(g, 32);
        sizer.observe(&GroupReport::new(g, &vec![50.0; 128]));
    }
}

#[test]
fn an_impossible_budget_is_reported_and_the_controller_recovers_when_it_is_gone() {
    let mut lengths = Lengths { state: 3 };
    let mut sizer = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    let mut run = |sizer: &mut Sagc, steps, sigma| {
        for _ in 0..steps {
            let g = sizer.group_size();
            let length = lengths.step(128, g, 0.0, sigma);
            sizer.observe(&GroupReport::new(g, &length));
        }
    };
    run(&mut sizer, 150, 1.5);
    assert_eq!(sizer.group_size(), 4);
    assert!(sizer.out_of_reach() && sizer.state().infeasible > 10.0, "{:?}", sizer.state());
    run(&mut sizer, 60, 0.1);
    assert_eq!(sizer.group_size(), 32, "{:?}", sizer.state());
    assert!(!sizer.out_of_reach());
}

#[test]
fn a_restored_controller_goes_on_alike() {
    let mut lengths = Lengths { state: 5 };
    let mut a = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    let mut feed = |sizers: &mut [&mut Sagc], steps| {
        for _ in 0..steps {
            let g = sizers[0].group_size();
            let length = lengths.step(128, g, 0.3, 0.6);
            sizers.iter_mut().for_each(|s| s.observe(&GroupReport::new(g, &length)));
        }
    };
    feed(&mut [&mut a], 77);
    let mut b = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    b.restore(&a.save()).unwrap();
    feed(&mut [&mut a, &mut b], 50);
    assert_eq!(a, b);
    assert!(Sagc::new(SagcConfig::new(&[2, 4])).unwrap().restore(&a.save()).is_err());
}

#[test]
fn senseless_settings_are_refused_with_a_reason() {
    assert_eq!(Fixed::new(1), Err(ConfigError::GroupTooSmall(1)));
    let with = |f: fn(&mut SagcConfig)| {
        let mut c = SagcConfig::new(&CANDIDATES);
        f(&mut c);
        Sagc::new(c).unwrap_err().to_string()
    };
    assert!(with(|c| c.candidates = vec![]).contains("at least one"));
    assert!(with(|c| c.candidates = vec![8, 4]).contains("ascending"));
    assert!(with(|c| c.candidates = vec![1, 4]).contains("at least 2"));
    assert!(with(|c| c.budget = 0.0).contains("budget is 0"));
    assert!(with(|c| c.threshold = f64::NAN).contains("threshold"));
    assert!(with(|c| c.fade = 0.0).contains("fade"));
}
