//! Settings that make no sizer are refused, and the message says what would.

mod common;

use common::CANDIDATES;
use sagc::baselines::{GreedyChance, Oracle, RandomWithHistogram, Schedule};
use sagc::{ConfigError, Fixed, Gauge, Reference, Sagc, SagcConfig, Utility, check_menu};

fn refused(change: impl FnOnce(&mut SagcConfig)) -> String {
    let mut config = SagcConfig::new(&CANDIDATES);
    change(&mut config);
    Sagc::new(config).unwrap_err().to_string()
}

#[test]
fn senseless_settings_are_refused_with_a_reason() {
    assert!(refused(|c| c.candidates = vec![]).contains("at least one"));
    assert!(refused(|c| c.candidates = vec![8, 4]).contains("ascending"));
    assert!(refused(|c| c.candidates = vec![4, 4]).contains("without repeats"));
    assert!(refused(|c| c.budget = 0.0).contains("budget is 0"));
    assert!(refused(|c| c.budget = 1.0).contains("between 0 and 1"));
    assert!(refused(|c| c.threshold = f64::NAN).contains("threshold"));
    assert!(refused(|c| c.threshold = 1.0).contains("above 1"));
    assert!(refused(|c| c.weight = f64::INFINITY).contains("weight"));
    assert!(refused(|c| c.fade = 0.0).contains("fade"));
    assert!(refused(|c| c.start = Some(5)).contains("start is 5; it must be one of the candidates 4,8,16,32"));
    assert!(refused(|c| c.utility = Utility::PerSecond { u: 1.0, v: 0.0 }).contains("v of the utility is 0"));
}

#[test]
fn groups_of_one_are_refused_everywhere() {
    let single = ConfigError::GroupTooSmall(1);
    assert!(refused(|c| c.candidates = vec![1, 4]).contains("a group of 1 has nothing to compare; use at least 2"));
    assert_eq!(Fixed::new(1).unwrap_err(), single);
    assert_eq!(Schedule::new(vec![4, 1]).unwrap_err(), single);
    assert_eq!(RandomWithHistogram::new(&[(1, 1.0)], 0).unwrap_err(), single);
    assert_eq!(check_menu(8, &[1, 2]).unwrap_err(), single);
    assert!(Fixed::new(0).is_err());
}

#[test]
fn senseless_baselines_are_refused() {
    assert_eq!(Schedule::new(vec![]).unwrap_err(), ConfigError::Empty("the schedule"));
    assert_eq!(RandomWithHistogram::new(&[], 0).unwrap_err(), ConfigError::Empty("the histogram"));
    for weights in [[-1.0, 2.0], [f64::NAN, 1.0], [0.0, 0.0]] {
        assert!(RandomWithHistogram::new(&[(2, weights[0]), (4, weights[1])], 0).is_err(), "{weights:?}");
    }
    let config = || SagcConfig::new(&CANDIDATES);
    assert!(GreedyChance::new(config(), 1.0).unwrap_err().to_string().contains("delta is 1"));
    assert!(Oracle::new(config(), &[0.1, 0.2, 0.3, 1.5]).unwrap_err().to_string().contains("risk is 1.5"));
    assert!(Gauge::new(0.5, Reference::Group).is_err());
}

#[test]
fn a_menu_must_divide_the_rollouts_and_the_refusal_says_what_would() {
    assert_eq!(check_menu(128, &CANDIDATES), Ok(()));
    assert_eq!(check_menu(4, &[2, 4]), Ok(()));
    assert_eq!(
        check_menu(48, &[4, 5, 8, 32]),
        Err(ConfigError::Menu { rollouts: 48, misfits: vec![5, 32], fits: vec![2, 3, 4, 6, 8, 12, 16, 24, 48] })
    );
    let text = check_menu(7, &[2]).unwrap_err().to_string();
    assert_eq!(text, "7 rollouts cannot be split into groups of 2; sizes that divide them: 7");
    assert!(check_menu(0, &[2]).unwrap_err().to_string().contains("use at least 2"));
}
