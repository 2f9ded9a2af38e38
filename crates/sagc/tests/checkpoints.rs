//! Every sizer keeps its promises, and goes on where it was saved.

mod common;

use common::{CANDIDATES, Lengths, sagc};
use sagc::baselines::{GreedyChance, Oracle, PerArmBeta, RandomWithHistogram, Schedule};
use sagc::conformance::check_group_sizer;
use sagc::{Estimate, Fixed, GroupReport, GroupSizer, Reference, SagcConfig, Utility};

const HISTOGRAM: [(usize, f64); 3] = [(4, 1.0), (8, 0.0), (16, 3.0)];
const RISKS: [f64; 4] = [0.1, 0.2, 0.4, 0.8];

fn thompson() -> SagcConfig {
    SagcConfig { estimate: Estimate::Thompson { seed: 3 }, ..SagcConfig::new(&CANDIDATES) }
}

/// One of each, afresh.
fn every_sizer() -> Vec<Box<dyn GroupSizer>> {
    let plain = || SagcConfig::new(&CANDIDATES);
    vec![
        Box::new(Fixed::new(8).unwrap()),
        Box::new(sagc(|_| ())),
        Box::new(sagc(|c| *c = thompson())),
        Box::new(sagc(|c| (c.utility, c.reference) = (Utility::PerSecond { u: 1.0, v: 3.0 }, Reference::Group))),
        Box::new(sagc(|c| c.candidates = vec![2, 3])),
        Box::new(GreedyChance::new(plain(), 0.1).unwrap()),
        Box::new(PerArmBeta::new(plain()).unwrap()),
        Box::new(PerArmBeta::new(thompson()).unwrap()),
        Box::new(RandomWithHistogram::new(&HISTOGRAM, 1).unwrap()),
        Box::new(Schedule::new(vec![32, 16, 16, 4]).unwrap()),
        Box::new(Oracle::new(plain(), &RISKS).unwrap()),
    ]
}

#[test]
fn every_sizer_conforms() {
    for k in 0..every_sizer().len() {
        check_group_sizer(|| every_sizer().swap_remove(k));
    }
}

#[test]
fn a_restored_sizer_goes_on_alike() {
    for k in 0..every_sizer().len() {
        let mut lengths = Lengths { state: 5 };
        let (mut a, mut b) = (every_sizer().swap_remove(k), every_sizer().swap_remove(k));
        for step in 0..150 {
            if step == 77 {
                b.restore(&a.save()).unwrap();
            }
            let g = a.group_size();
            let length = lengths.log_normal(96, g, 0.3, 0.6);
            let seen = GroupReport::new(g, &length).with_seconds(lengths.uniform());
            a.observe(&seen);
            if step >= 77 {
                b.observe(&seen);
                assert_eq!(a.save(), b.save(), "step {step}");
            }
        }
    }
}

#[test]
fn no_sizer_takes_the_state_of_another_kind() {
    let kind = |s: &str| s.split(' ').next().unwrap().to_string();
    for from in every_sizer() {
        let saved = from.save();
        for mut into in every_sizer() {
            let own = into.save();
            if kind(&own) == kind(&saved) {
                continue;
            }
            let error = into.restore(&saved).unwrap_err().to_string();
            assert!(error.contains(&format!("beginning with `{} `", kind(&own))), "{error}");
            assert_eq!(into.save(), own);
        }
    }
}

#[test]
fn a_damaged_state_is_refused_with_what_was_expected() {
    let mut sizer = sagc(|_| ());
    let good = sizer.save();
    let words: Vec<&str> = good.split(' ').collect();
    let with = |k: usize, word: &str| {
        let mut damaged = words.clone();
        damaged[k] = word;
        damaged.join(" ")
    };
    for (text, expected) in [
        (with(0, "sagc/0"), "expected one line beginning with `sagc/1 `"),
        (with(1, "4,8"), "expected the candidates `4,8,16,32`"),
        (with(2, "4"), "expected index of a candidate"),
        (with(4, "NaN"), "expected queue in a `sagc/1` line, found `NaN`"),
        (with(5, "-1.0"), "expected infeasible debt"),
        (with(words.len() - 1, "x"), "found `x`"),
        (format!("{good} 0.0"), "expected nothing more"),
        (good[..good.len() - 4].into(), "found `its end`"),
    ] {
        let error = sizer.restore(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "`{text}`: {error}");
        assert_eq!(sizer.save(), good);
    }
}

#[test]
fn a_saved_state_says_which_kind_and_version_it_is() {
    let mut kinds: Vec<String> =
        every_sizer().iter().map(|s| s.save().split(' ').next().unwrap().to_string()).collect();
    kinds.dedup();
    assert_eq!(kinds, ["fixed/1", "sagc/1", "greedy-chance/1", "per-arm-beta/1", "random/1", "schedule/1", "oracle/1"]);
}

#[test]
fn a_budget_changed_on_the_way_holds_from_then_on() {
    let mut before = sagc(|_| ());
    before.observe(&GroupReport::new(32, &[1.0; 64]));
    let mut after = sagc(|c| c.budget = 0.5);
    after.restore(&before.save()).unwrap();
    assert_eq!((after.status().budget, after.status().steps), (0.5, 1));
}
