//! What is said about rollouts that were cut.

mod common;

use common::{CANDIDATES, sagc};
use sagc::{GroupReport, GroupSizer, SagcConfig};

#[test]
fn rollouts_that_are_all_cut_look_even_and_raise_the_alarm() {
    let mut sizer = sagc(|_| ());
    for _ in 0..50 {
        let g = sizer.group_size();
        sizer.observe(&GroupReport::new(g, &[4096.0; 128]).with_truncated(&[true; 128]));
    }
    let status = sizer.status();
    assert_eq!((status.straggler_rate, status.clipped), (Some(0.0), Some(1.0)));
    assert!(status.clipped_alarm());
    assert!(status.to_string().contains("100 % of rollouts were cut"), "{status}");
}

#[test]
fn half_cut_is_no_alarm_and_one_more_is() {
    let mut sizer = sagc(|_| ());
    for (cut, alarm) in [(64, false), (65, true), (0, false)] {
        let truncated: Vec<bool> = (0..128).map(|i| i < cut).collect();
        sizer.observe(&GroupReport::new(32, &[10.0; 128]).with_truncated(&truncated));
        assert_eq!(sizer.status().clipped_alarm(), alarm, "{cut} of 128");
    }
    sizer.observe(&GroupReport::new(32, &[10.0; 128]));
    assert_eq!((sizer.status().clipped, sizer.status().clipped_alarm()), (None, false));
}

/// One rollout in eight runs into a limit of 8 times the usual length.
#[test]
fn a_cut_rollout_straggles_with_the_length_it_had() {
    let length: Vec<f32> = (0..128).map(|i| if i % 8 == 0 { 800.0 } else { 100.0 }).collect();
    let truncated: Vec<bool> = length.iter().map(|l| *l == 800.0).collect();
    let mut sizer = sagc(|_| ());
    sizer.observe(&GroupReport::new(32, &length).with_truncated(&truncated));
    assert_eq!(sizer.status().queue, 1.0 - 0.25);
}

#[test]
fn the_unit_of_length_does_not_matter() {
    let mut lengths = common::Lengths { state: 8 };
    let (mut tokens, mut seconds) = (sagc(|_| ()), sagc(|_| ()));
    for _ in 0..200 {
        let g = tokens.group_size();
        let length = lengths.log_normal(128, g, 0.3, 0.5);
        // a power of two, so that scaling rounds nothing
        let scaled: Vec<f32> = length.iter().map(|l| l / 1024.0).collect();
        tokens.observe(&GroupReport::new(g, &length));
        seconds.observe(&GroupReport::new(g, &scaled));
        assert_eq!(tokens.group_size(), seconds.group_size());
    }
    assert_eq!(tokens.status(), seconds.status());
}

#[test]
#[should_panic(expected = "one flag per rollout")]
fn flags_of_other_rollouts_are_a_mistake() {
    let _ = GroupReport::new(2, &[1.0, 2.0]).with_truncated(&[true]);
}

#[test]
fn a_status_reads_as_one_line() {
    let mut sizer = sagc::Sagc::new(SagcConfig::new(&CANDIDATES[..2])).unwrap();
    assert!(sizer.status().to_string().starts_with("groups of 8 after 0 steps; queue 0.00; risk 4: 0.16, 8: 0.27"));
    sizer.observe(&GroupReport::new(2, &[1.0, 1.0, 1.0, 9.0]));
    let text = sizer.status().to_string();
    assert!(
        text.starts_with("groups of 8 after 1 steps; 50.0 % straggled, budget 25.0 %; queue 0.25; risk 4: "),
        "{text}"
    );
    assert!(!text.contains('\n'));
}
