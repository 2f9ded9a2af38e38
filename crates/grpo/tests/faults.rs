//! Faults that users of other trainers reported, as claims about this one. Numbers are those of the notes that list them.

mod common;

use common::{Bigram, LONGEST, generate, score};
use grpo::{Aggregate, Ask, Generated, Grpo, GrpoConfig, KlEstimate, Loss, SetupError, Spread, Surrogate};
use onpolicy::{Bundle, Noise, Persist, TrainError};
use sagc::{Fixed, GroupReport, GroupSizer, Sagc, SagcConfig, StateError};

fn config() -> GrpoConfig {
    GrpoConfig { lr: 0.05, clip_norm: 10.0, ..GrpoConfig::new(32) }
}

fn trainer(config: GrpoConfig, policy: &Bigram) -> Grpo<Fixed> {
    Grpo::new(config, policy, Fixed::new(8).unwrap(), 1).unwrap()
}

/// One update from fixed draws; the weights afterwards, and the report.
fn update(config: GrpoConfig, temperature: f64, score: impl Fn(&[u32]) -> f32) -> (Vec<f32>, grpo::Report) {
    let mut policy = Bigram::new(temperature);
    let mut trainer = trainer(config, &policy);
    let mut noise = Noise::new(3);
    let report = trainer.step(&mut policy, &mut |p, ask| generate(p, ask, &mut noise, &score)).unwrap();
    (policy.params.to_vec().unwrap(), report)
}

/// 1
#[test]
fn groups_of_equal_rewards_move_nothing_and_are_counted() {
    let before = Bigram::new(1.0).params.to_vec().unwrap();
    let (after, report) = update(config(), 1.0, |_| 1.0);
    assert_eq!(before, after);
    assert_eq!((report.degenerate, report.loss), (1.0, 0.0));
    assert!(report.entropy > 0.0);
}

/// 1: rewards 0, ½, 1 leave the middle one at advantage 0, in a group that teaches.
#[test]
fn groups_without_signal_leave_the_divisor_whole_and_only_they() {
    let norm = |mask_degenerate, score: fn(&[u32]) -> f32| {
        let loss = Loss::dr_grpo(LONGEST);
        update(GrpoConfig { mask_degenerate, loss, spread: Spread::None, ..config() }, 1.0, score).1
    };
    let thirds = |r: &[u32]| [0.0, 0.5, 1.0][r.len() % 3];
    let (kept, masked) = (norm(false, thirds), norm(true, thirds));
    assert_eq!(kept.degenerate, 0.0);
    assert!((kept.grad_norm / masked.grad_norm - 1.0).abs() < 1e-6, "every group has signal: nothing is masked");
    let seldom = |r: &[u32]| f32::from(u8::from(r.len() == 1));
    let (kept, masked) = (norm(false, seldom), norm(true, seldom));
    let share = 1.0 - kept.degenerate;
    assert!((kept.grad_norm / masked.grad_norm - share).abs() < 1e-5, "{share}");
}

/// 2, 3, 5: every divisor is the window's, never a part's.
#[test]
fn the_step_does_not_depend_on_how_the_window_is_split() {
    let sequence = Surrogate::Sequence { low: 0.2, high: 0.2 };
    let losses = [
        Loss::grpo(),
        Loss::dapo(),
        Loss::dr_grpo(LONGEST),
        Loss::cispo(),
        Loss { surrogate: sequence, ..Loss::gspo() },
        Loss { aggregate: Aggregate::TokenMean, ..Loss::gspo() },
    ];
    for loss in losses {
        let of = |micro_batch| update(GrpoConfig { loss, micro_batch, ..config() }, 1.0, score);
        let (whole, report) = of(32);
        for micro_batch in [1, 2, 5, 31] {
            let (parts, other) = of(micro_batch);
            assert!((report.grad_norm / other.grad_norm - 1.0).abs() < 1e-5, "{loss:?} {micro_batch}");
            assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-4), "{loss:?} {micro_batch}");
        }
    }
}

/// 4, 20
#[test]
fn truncated_rows_leave_numerator_and_divisor_and_none_left_is_no_nan() {
    let masked = |loss| GrpoConfig { loss, mask_truncated: true, ..config() };
    let (_, report) = update(masked(Loss::dapo()), 1.0, score);
    assert!(report.truncated > 0.0 && report.grad_norm.is_finite() && report.grad_norm > 0.0);
    let before = Bigram::new(1.0).params.to_vec().unwrap();
    let mut policy = Bigram::new(1.0);
    let mut trainer = trainer(masked(Loss::dapo()), &policy);
    let mut noise = Noise::new(3);
    trainer
        .step(&mut policy, &mut |p, ask| {
            let mut g = generate(p, ask, &mut noise, score)?;
            g.rollout.status.fill(rollouts::Status::Truncated);
            Ok(g)
        })
        .unwrap();
    assert_eq!(policy.params.to_vec().unwrap(), before);
}

/// 7
#[test]
fn the_share_of_cut_rollouts_is_reported() {
    let (_, report) = update(config(), 1.0, score);
    assert!((0.01..0.99).contains(&report.truncated), "{}", report.truncated);
}

/// 10, 12, 14: what was drawn is scored on the same support at the same temperature.
#[test]
fn scores_repeat_the_behaviour_at_any_temperature_and_a_foreign_number_shows() {
    for temperature in [0.6, 1.0, 2.0] {
        let (_, report) = update(config(), temperature, score);
        assert!(report.behaviour_gap[0] < 1e-5, "{temperature}: {:?}", report.behaviour_gap);
    }
    let mut policy = Bigram::new(1.0);
    let mut noise = Noise::new(3);
    let report = trainer(config(), &policy)
        .step(&mut policy, &mut |p, ask| {
            let mut g = generate(p, ask, &mut noise, score)?;
            g.rollout.log_prob[0] += 0.5;
            Ok(g)
        })
        .unwrap();
    assert!((report.behaviour_gap[0] - 0.5).abs() < 1e-4);
}

/// 15, 17
#[test]
fn groups_are_told_by_number_and_rows_stay_with_their_lane() {
    let run = |interleave: bool| {
        let mut policy = Bigram::new(1.0);
        let mut trainer = trainer(config(), &policy);
        let mut noise = Noise::new(3);
        trainer
            .step(&mut policy, &mut |p, ask| {
                let mut g = generate(p, ask, &mut noise, score)?;
                if interleave {
                    let r = &mut g.rollout;
                    let order: Vec<usize> = (0..32).map(|i| (i % 4) * 8 + i / 4).collect();
                    let width = r.log_prob.len() / 32;
                    r.log_prob = order.iter().flat_map(|i| r.log_prob[i * width..(i + 1) * width].to_vec()).collect();
                    r.obs.0 = order.iter().map(|i| r.obs.0[*i].clone()).collect();
                    r.trace.0 = order.iter().map(|i| r.trace.0[*i].clone()).collect();
                    r.reward = order.iter().map(|i| r.reward[*i]).collect();
                    r.status = order.iter().map(|i| r.status[*i]).collect();
                    r.group = order.iter().map(|i| r.group[*i]).collect();
                    r.length = order.iter().map(|i| r.length[*i]).collect();
                }
                Ok(g)
            })
            .unwrap();
        policy.params.to_vec().unwrap()
    };
    assert!(run(false).iter().zip(run(true)).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// 16
#[test]
fn prompts_times_members_is_the_number_of_rollouts_for_every_size() {
    for g in [2, 4, 8, 16, 32] {
        let policy = Bigram::new(1.0);
        let trainer = Grpo::new(config(), &policy, Fixed::new(g).unwrap(), 1).unwrap();
        assert_eq!(trainer.ask(), Ask { groups: 32 / g, group_size: g });
    }
}

/// 18
#[test]
fn a_single_step_clips_nothing_by_construction_and_several_do() {
    let (_, one) = update(config(), 1.0, score);
    assert_eq!((one.clipped_low, one.clipped_high), (0.0, 0.0));
    let (_, many) = update(GrpoConfig { epochs: 8, lr: 0.3, ..config() }, 1.0, score);
    assert!(many.clipped_low + many.clipped_high > 0.0);
}

/// 19, 20
#[test]
fn dynamic_sampling_asks_a_bounded_number_of_times_then_trains_on_what_there_is() {
    let dynamic = GrpoConfig { dynamic_sampling: Some(3), ..config() };
    let mut policy = Bigram::new(1.0);
    let mut trainer = trainer(dynamic, &policy);
    let (mut noise, mut rounds) = (Noise::new(3), 0);
    let report = trainer
        .step(&mut policy, &mut |p, ask| {
            rounds += 1;
            let mut g = generate(p, ask, &mut noise, score)?;
            g.rollout.reward[8..].fill(1.0); // one group of four says something
            Ok(g)
        })
        .unwrap();
    assert_eq!((rounds, report.refills, report.groups_seen, report.groups_kept), (3, 2, 12, 3));
    assert_eq!((report.under_filled, report.degenerate), (1.0, 0.75));
    assert!(report.grad_norm > 0.0);
    // timing of all rounds adds up
    assert_eq!((report.timing.generate_s, report.timing.tail_s, report.timing.useful), (6.0, 1.5, 30));
}

/// 21
#[test]
fn the_divergence_s_slope_is_right_in_expectation_where_it_says_so() {
    let softmax = |x: [f64; 3]| {
        let e = x.map(f64::exp);
        e.map(|v| v / e.iter().sum::<f64>())
    };
    let (logits, reference) = ([0.3, -0.5, 0.9], softmax([-0.4, 0.6, 0.1]));
    let kl = |x: [f64; 3]| {
        let p = softmax(x);
        (0..3).map(|k| p[k] * (p[k] / reference[k]).ln()).sum::<f64>()
    };
    let exact = |k: usize| {
        let at = |h: f64| {
            let mut x = logits;
            x[k] += h;
            kl(x)
        };
        (at(1e-6) - at(-1e-6)) / 2e-6
    };
    // E over the drawing policy of slope·∂ ln p/∂ logit k
    let expected = |estimate: KlEstimate, drawn: [f64; 3], k: usize| {
        let p = softmax(logits);
        (0..3)
            .map(|v| {
                let (_, slope) = estimate.token(p[v].ln(), reference[v].ln(), p[v] / drawn[v]);
                drawn[v] * slope * (f64::from(u8::from(v == k)) - p[k])
            })
            .sum::<f64>()
    };
    let p = softmax(logits);
    for k in 0..3 {
        for right in [KlEstimate::K2, KlEstimate::K3Straight, KlEstimate::K3Weighted] {
            assert!((expected(right, p, k) - exact(k)).abs() < 1e-8, "{right:?}");
        }
        let old = softmax([0.0, 0.2, 0.1]);
        assert!((expected(KlEstimate::K3Weighted, old, k) - exact(k)).abs() < 1e-8, "off the policy");
        assert!(expected(KlEstimate::K1, p, k).abs() < 1e-12, "no gradient at all");
    }
    assert!(
        (0..3).any(|k| (expected(KlEstimate::K3, p, k) - exact(k)).abs() > 0.05),
        "that of the opposite divergence"
    );
}

/// 22
#[test]
fn sizes_without_comparison_or_that_do_not_divide_are_refused() {
    assert!(Fixed::new(1).is_err());
    let error = Grpo::new(config(), &Bigram::new(1.0), Fixed::new(5).unwrap(), 1).map(|_| ()).unwrap_err();
    assert!(matches!(error, SetupError::GroupSize { group_size: 5, rollouts: 32 }), "{error}");
    let error = Grpo::new(GrpoConfig { epochs: 0, ..config() }, &Bigram::new(1.0), Fixed::new(8).unwrap(), 1);
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("epochs is 0"));
}

/// 26
#[test]
fn what_is_left_alone_in_its_group_teaches_nothing() {
    let mut policy = Bigram::new(1.0);
    let before = policy.weights();
    let mut noise = Noise::new(3);
    trainer(config(), &policy)
        .step(&mut policy, &mut |p, ask| {
            let mut g = generate(p, ask, &mut noise, score)?;
            g.rollout.group = (0..32).collect();
            Ok(g)
        })
        .unwrap();
    assert_eq!(policy.weights(), before);
}

/// 27
#[test]
fn seconds_are_attributed_by_the_clock_that_is_given() {
    let mut policy = Bigram::new(1.0);
    let ticks = std::cell::Cell::new(0.0);
    let clock = move || {
        ticks.set(ticks.get() + 1.0);
        ticks.get()
    };
    let mut trainer = trainer(GrpoConfig { epochs: 2, ..config() }, &policy).with_clock(clock);
    let mut noise = Noise::new(3);
    let report = trainer.step(&mut policy, &mut |p, ask| generate(p, ask, &mut noise, score)).unwrap();
    assert_eq!((report.score_s, report.update_s, report.timing.generate_s), (1.0, 1.0, 2.0));
}

/// The lengths of the groups heard of.
type Heard = std::rc::Rc<std::cell::RefCell<Vec<usize>>>;
/// The size that is asked for.
type Asked = std::rc::Rc<std::cell::Cell<usize>>;

/// Remembers what it was told.
struct Listener {
    heard: Heard,
    size: Asked,
}

/// With what it hears, and the size that it will ask for.
fn listener() -> (Listener, Heard, Asked) {
    let (heard, size) = (Heard::default(), std::rc::Rc::new(std::cell::Cell::new(8)));
    (Listener { heard: std::rc::Rc::clone(&heard), size: std::rc::Rc::clone(&size) }, heard, size)
}

impl GroupSizer for Listener {
    fn group_size(&self) -> usize {
        self.size.get()
    }
    fn observe(&mut self, seen: &GroupReport<'_>) {
        self.heard.borrow_mut().push(seen.length.len());
        assert_eq!((seen.truncated.len(), seen.seconds), (seen.length.len(), None));
    }
    fn save(&self) -> String {
        String::new()
    }
    fn restore(&mut self, _: &str) -> Result<(), StateError> {
        Ok(())
    }
}

#[test]
fn the_sizer_hears_of_every_group_that_was_generated_and_of_no_clock() {
    for size in [8, 32] {
        let (sizer, heard, asked) = listener();
        asked.set(size);
        let mut policy = Bigram::new(1.0);
        let dynamic = GrpoConfig { dynamic_sampling: Some(2), ..config() };
        let mut trainer = Grpo::new(dynamic, &policy, sizer, 1).unwrap();
        let mut noise = Noise::new(3);
        let report = trainer.step(&mut policy, &mut |p, ask| generate(p, ask, &mut noise, |_| 0.0)).unwrap();
        assert_eq!(*heard.borrow(), [64], "one group a round or four");
        assert!(report.behaviour_gap[0].is_nan(), "nothing was scored again");
    }
}

#[test]
fn a_group_that_lost_members_is_learned_from_and_not_taken_for_one_of_full_size() {
    let (sizer, heard, _) = listener();
    let mut policy = Bigram::new(1.0);
    let before = policy.weights();
    let mut trainer = Grpo::new(config(), &policy, sizer, 1).unwrap();
    let mut noise = Noise::new(3);
    let report = trainer
        .step(&mut policy, &mut |p, ask| {
            let mut g = generate(p, ask, &mut noise, score)?;
            g.rollout.status[2] = rollouts::Status::Idle;
            Ok(g)
        })
        .unwrap();
    assert_eq!((report.rollouts, report.groups_kept), (31, 4));
    assert_eq!(*heard.borrow(), [24]);
    assert_ne!(policy.weights(), before);
}

#[test]
fn a_size_that_does_not_divide_is_refused_whenever_it_comes() {
    let (sizer, _, size) = listener();
    let mut policy = Bigram::new(1.0);
    let mut trainer = Grpo::new(config(), &policy, sizer, 1).unwrap();
    size.set(5);
    let error = trainer.step(&mut policy, &mut |_, _| unreachable!("nothing is generated")).unwrap_err();
    assert!(matches!(error, TrainError::GroupSize { group_size: 5, rollouts: 32 }), "{error}");
}

#[test]
fn a_reward_that_is_no_number_is_refused_before_it_reaches_a_weight() {
    let mut policy = Bigram::new(1.0);
    let before = policy.weights();
    let mut noise = Noise::new(3);
    let error = trainer(config(), &policy)
        .step(&mut policy, &mut |p, ask| generate(p, ask, &mut noise, |r| if r.len() > 2 { f32::NAN } else { 1.0 }))
        .unwrap_err();
    assert!(matches!(error, TrainError::NotFinite { what: "a reward", update: 0 }), "{error}");
    assert_eq!(policy.weights(), before);
}

#[test]
fn a_restored_trainer_goes_on_to_the_same_bits() {
    let config = || GrpoConfig {
        loss: Loss { kl: grpo::KlTerm { weight: 0.05, estimate: KlEstimate::K3Straight }, ..Loss::grpo() },
        minibatches: 2,
        epochs: 2,
        spread: Spread::LeaveOneOut,
        ..config()
    };
    let sizer = || Sagc::new(SagcConfig::new(&[4, 8, 16])).unwrap();
    let mut policy = Bigram::new(1.0);
    let mut a = Grpo::new(config(), &policy, sizer(), 1).unwrap();
    let mut noise = Noise::new(3);
    let mut run = |t: &mut Grpo<Sagc>, p: &mut Bigram, steps| {
        for _ in 0..steps {
            t.step(p, &mut |p, ask| generate(p, ask, &mut noise, score)).unwrap();
        }
    };
    run(&mut a, &mut policy, 3);
    let mut bundle = Bundle::default();
    a.save("t", &mut bundle);
    let mut copy = Bigram { params: policy.params.snapshot().unwrap(), temperature: 1.0 };
    let mut b = Grpo::new(config(), &Bigram::new(1.0), sizer(), 9).unwrap();
    b.load("t", &bundle).unwrap();
    let (mut n1, mut n2) = (Noise::new(8), Noise::new(8));
    for _ in 0..3 {
        let x = a.step(&mut policy, &mut |p, ask| generate(p, ask, &mut n1, score)).unwrap();
        let y = b.step(&mut copy, &mut |p, ask| generate(p, ask, &mut n2, score)).unwrap();
        assert_eq!((x.loss, x.kl, x.group_size), (y.loss, y.kl, y.group_size));
        assert!(x.kl > 0.0, "the reference stays while the policy moves");
    }
    assert_eq!(policy.weights(), copy.weights());
}

#[test]
fn groups_teach_a_policy_what_scores_whatever_their_size() {
    for (loss, adaptive) in [(Loss::grpo(), false), (Loss::dapo(), true)] {
        let mut policy = Bigram::new(1.0);
        let sizer: Box<dyn GroupSizer> = if adaptive {
            Box::new(Sagc::new(SagcConfig::new(&[4, 8, 16])).unwrap())
        } else {
            Box::new(Fixed::new(8).unwrap())
        };
        let mut trainer = Grpo::new(GrpoConfig { loss, ..config() }, &policy, sizer, 1).unwrap();
        let mut noise = Noise::new(3);
        let mut step =
            || trainer.step(&mut policy, &mut |p, ask| generate(p, ask, &mut noise, score)).unwrap().score_mean;
        let first: f64 = (0..5).map(|_| step()).sum::<f64>() / 5.0;
        for _ in 0..90 {
            step();
        }
        let last: f64 = (0..5).map(|_| step()).sum::<f64>() / 5.0;
        assert!(first < 0.5 && last > 0.8, "{loss:?}: {first} to {last}");
    }
}

/// The trait's own entry: one rollout, no refills.
#[test]
fn a_rollout_can_be_given_instead_of_a_source() {
    use onpolicy::Trainer;
    let mut policy = Bigram::new(1.0);
    let mut trainer = trainer(GrpoConfig { dynamic_sampling: Some(3), ..config() }, &policy);
    let Generated { rollout, .. } = generate(&policy, trainer.ask(), &mut Noise::new(3), score).unwrap();
    let report = trainer.update(&mut policy, rollout).unwrap();
    assert_eq!((report.groups_seen, report.refills), (4, 0));
}
