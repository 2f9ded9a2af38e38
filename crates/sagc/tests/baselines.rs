//! What the sizers do that [`sagc::Sagc`] is compared with.

mod common;

use common::{CANDIDATES, Counter, Lengths, mean, run};
use sagc::baselines::{GreedyChance, Oracle, PerArmBeta, RandomWithHistogram, Schedule};
use sagc::{Estimate, GroupReport, GroupSizer, Reference, SagcConfig};

fn config() -> SagcConfig {
    SagcConfig::new(&CANDIDATES)
}

#[test]
fn a_schedule_gives_its_sizes_in_turn_and_repeats_the_last() {
    let mut sizer = Schedule::new(vec![32, 8, 4]).unwrap();
    let (sizes, _) = run(&mut sizer, &mut Counter::of(Reference::Running), 5, |g| vec![1.0; g]);
    assert_eq!(sizes, [32, 8, 4, 4, 4]);
}

#[test]
fn random_sizes_follow_their_histogram() {
    for seed in 1..=4 {
        let mut sizer = RandomWithHistogram::new(&[(4, 1.0), (8, 0.0), (16, 3.0)], seed).unwrap();
        let (sizes, _) = run(&mut sizer, &mut Counter::of(Reference::Running), 4000, |g| vec![1.0; g]);
        let share = |g: usize| sizes.iter().filter(|s| **s == g).count() as f64 / 4000.0;
        // four standard errors of a share of 4000
        assert!((share(4) - 0.25).abs() < 0.028 && share(8) == 0.0, "seed {seed}: {}", share(4));
        // independent: a size follows itself as often as its share says
        let again = sizes.windows(2).filter(|w| w[0] == 4 && w[1] == 4).count() as f64 / 4000.0;
        assert!((again - 0.0625).abs() < 0.02, "seed {seed}: {again}");
    }
}

#[test]
fn baselines_with_a_queue_meet_a_feasible_budget() {
    // shares of groups above 2.5 times the median, τ = 0.3, σ = 0.45, from 20 000 groups each
    let mut lengths = Lengths { state: 99 };
    let risks = CANDIDATES.map(|g| {
        let length = lengths.log_normal(20_000 * g, g, 0.3, 0.45);
        length.chunks_exact(g).filter(|c| c.iter().any(|l| *l > 500.0)).count() as f64 / 20_000.0
    });
    for seed in 1..=4 {
        let thompson = SagcConfig { estimate: Estimate::Thompson { seed }, ..config() };
        let sizers: [(&str, Box<dyn GroupSizer>); 3] = [
            ("per-arm mean", Box::new(PerArmBeta::new(config()).unwrap())),
            ("per-arm Thompson", Box::new(PerArmBeta::new(thompson).unwrap())),
            ("oracle", Box::new(Oracle::new(config(), &risks).unwrap())),
        ];
        for (name, mut sizer) in sizers {
            let mut lengths = Lengths { state: seed };
            let mut counter = Counter::of(Reference::Running);
            let (_, rates) = run(&mut sizer, &mut counter, 1000, |g| lengths.log_normal(128, g, 0.3, 0.45));
            let rate = mean(&rates);
            assert!((rate - 0.25).abs() < 0.02, "{name}, seed {seed}: {rate}");
        }
    }
}

#[test]
fn the_greedy_chance_constraint_stays_below_the_budget_and_wastes_some() {
    for seed in 1..=4 {
        let mut lengths = Lengths { state: seed };
        let mut sizer = GreedyChance::new(config(), 0.1).unwrap();
        let mut counter = Counter::of(Reference::Running);
        let (_, rates) = run(&mut sizer, &mut counter, 1000, |g| lengths.log_normal(128, g, 0.3, 0.45));
        let rate = mean(&rates);
        assert!(rate < 0.24, "seed {seed}: {rate}");
    }
}

/// Nothing straggles: after n groups the chance that the risk is below ε nears 1, so the largest size is kept.
#[test]
fn greedy_keeps_the_largest_size_while_nothing_straggles() {
    let mut sizer = GreedyChance::new(config(), 0.1).unwrap();
    let (sizes, _) = run(&mut sizer, &mut Counter::of(Reference::Running), 200, |_| vec![5.0; 128]);
    assert_eq!(sizes[199], 32, "{sizes:?}");
    assert!(sizer.status().straggler_rate == Some(0.0));
}

/// With risks 0.9 from size 8 on, the queue drives an oracle to 4; told 0, it climbs back while the queue drains.
#[test]
fn an_oracle_acts_on_what_it_is_told() {
    let mut sizer = Oracle::new(config(), &[0.0, 0.9, 0.9, 0.9]).unwrap();
    for _ in 0..40 {
        let g = sizer.group_size();
        let length: Vec<f32> = (0..128).map(|i| if g > 4 && i % g == 0 { 900.0 } else { 100.0 }).collect();
        sizer.observe(&GroupReport::new(g, &length));
    }
    assert!(sizer.group_size() <= 8, "{}", sizer.status());
    sizer.tell(&[0.0; 4]).unwrap();
    run(&mut sizer, &mut Counter::of(Reference::Running), 20, |_| vec![100.0; 128]);
    assert_eq!(sizer.group_size(), 32, "{}", sizer.status());
    assert!(sizer.tell(&[0.0, 0.0, 0.0, 2.0]).is_err());
}
