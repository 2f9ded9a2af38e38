//! What the controller holds, on lengths drawn from a seeded generator.

use sagc::conformance::check_group_sizer;
use sagc::{ConfigError, Fixed, GroupReport, GroupSizer, Sagc, SagcConfig};

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
            sizer.observe(&GroupReport { group_size: g, length: &length });
        }
        let (rate, size) = (total / 600.0, sizes as f64 / 600.0);
        assert!((rate - 0.25).abs() < 0.04, "seed {seed}: rate {rate}, budget 0.25");
        assert!(size > 4.5 && size < 31.0, "seed {seed}: mean size {size} uses neither end");
    }
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
        let m = reference.or_else(|| {
            let mut sorted = length.clone();
            sorted.sort_by(f32::total_cmp);
            Some((f64::from(sorted[31]) + f64::from(sorted[32])) / 2.0)
        });
        let straggling = length.chunks_exact(g).filter(|c| c.iter().any(|l| f64::from(*l) > 2.5 * m.unwrap())).count();
        excess += straggling as f64 / (64 / g) as f64 - 0.25;
        sizer.observe(&GroupReport { group_size: g, length: &length });
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
        sizer.observe(&GroupReport { group_size: g, length: &vec![50.0; 128] });
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
            sizer.observe(&GroupReport { group_size: g, length: &length });
        }
    };
    run(&mut sizer, 150, 1.5);
    assert_eq!(sizer.group_size(), 4);
    assert!(sizer.state().infeasible > 10.0, "{:?}", sizer.state());
    run(&mut sizer, 60, 0.1);
    assert_eq!(sizer.group_size(), 32, "{:?}", sizer.state());
}

#[test]
fn a_restored_controller_goes_on_alike() {
    let mut lengths = Lengths { state: 5 };
    let mut a = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    let mut feed = |sizers: &mut [&mut Sagc], steps| {
        for _ in 0..steps {
            let g = sizers[0].group_size();
            let length = lengths.step(128, g, 0.3, 0.6);
            sizers.iter_mut().for_each(|s| s.observe(&GroupReport { group_size: g, length: &length }));
        }
    };
    feed(&mut [&mut a], 77);
    let mut b = Sagc::new(SagcConfig::new(&CANDIDATES)).unwrap();
    b.restore(a.state().clone()).unwrap();
    feed(&mut [&mut a, &mut b], 50);
    assert_eq!(a, b);
    assert!(Sagc::new(SagcConfig::new(&[2, 4])).unwrap().restore(a.state().clone()).is_err());
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
