//! What all generated tasks promise.

use std::collections::BTreeSet;

use rollouts::TextTask;
use rollouts::conformance::check_text_task;
use text_tasks::{ALPHABET, Split, TASKS, build, find};

fn all() -> impl Iterator<Item = (&'static str, Split, text_tasks::DynTask)> {
    TASKS.iter().flat_map(|t| Split::ALL.map(|s| (t.name, s, build(t.name, s).unwrap())))
}

#[test]
fn every_task_keeps_the_promises_of_the_trait() {
    for (_, _, task) in all() {
        check_text_task(&task, "1+2=3\n=3");
        assert_eq!(task.len(), None);
    }
}

#[test]
fn prompts_and_solutions_stay_within_the_alphabet_and_the_stated_length() {
    let known: BTreeSet<char> = ALPHABET.chars().collect();
    let mut used = BTreeSet::new();
    for (name, split, task) in all() {
        for index in 0..300 {
            let solution = task.solution(index, index).unwrap();
            let text = task.prompt(index) + &solution;
            if let Some(c) = text.chars().find(|c| !known.contains(c)) {
                panic!("{name} writes {c:?}");
            }
            used.extend(text.chars());
            if split != Split::Harder {
                assert!(
                    solution.len() < find(name).unwrap().max_tokens,
                    "{name} {index}: {} characters",
                    solution.len()
                );
            }
        }
    }
    let idle: Vec<&char> = known.difference(&used).filter(|c| **c != '\n').collect();
    assert!(idle.is_empty(), "no task writes {idle:?}");
}

/// Instances are compared by what they ask, whichever way it is written.
#[test]
fn no_instance_is_both_trained_on_and_held_out() {
    for info in TASKS {
        let key = |prompt: String| {
            let mut numbers: Vec<String> =
                prompt.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).map(String::from).collect();
            if info.name.starts_with("countdown") {
                let target = numbers.pop();
                numbers.sort();
                numbers.extend(target);
            } else if info.name == "addition" {
                numbers.sort();
            }
            numbers
        };
        let of = |split| {
            let task = build(info.name, split).unwrap();
            (0..3000).map(|i| key(task.prompt(i))).collect::<BTreeSet<_>>()
        };
        let (train, held_out) = (of(Split::Train), of(Split::HeldOut));
        assert!(train.intersection(&held_out).next().is_none(), "{}", info.name);
        assert!(held_out.len() > 30, "{}: {} held-out instances", info.name, held_out.len());
    }
}

#[test]
fn no_text_makes_a_verifier_panic_and_only_answers_score() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    let letters: Vec<char> = ALPHABET.chars().chain("é\u{0}9".chars()).collect();
    for (name, _, task) in all() {
        for index in 0..400 {
            let length = next() % 40;
            let mut text: String = (0..length).map(|_| letters[next() % letters.len()]).collect();
            if next() % 2 == 0 {
                text = format!("={text}");
            }
            let score = task.score(index, &text);
            assert!(score == 0.0 || score == 1.0, "{name} {index}: {score} for {text:?}");
        }
        assert_eq!(task.score(0, &format!("={}", "9".repeat(400))), 0.0);
        assert_eq!(task.score(0, &format!("={}1{}", "(".repeat(5000), ")".repeat(5000))), 0.0);
        // what is right as a whole is wrong with something after it, or without its end
        let solution = task.solution(3, 0).unwrap();
        assert_eq!(task.score(3, &format!("{solution}\n1")), 0.0, "{name}");
        assert_eq!(task.score(3, &solution[..solution.len() - 1]), 0.0, "{name}: {solution}");
    }
}

/// Squared deviations of log length: of single solutions about their prompt's mean, and of the means.
fn spread(name: &str) -> (f64, f64, Vec<usize>) {
    let task = build(name, Split::Train).unwrap();
    let (prompts, variants) = (200, 8);
    let logs: Vec<Vec<f64>> = (0..prompts)
        .map(|i| (0..variants).map(|v| (task.solution(i, v).unwrap().len() as f64).ln()).collect())
        .collect();
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let square = |x: &[f64]| x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>() / (x.len() - 1) as f64;
    let within = mean(&logs.iter().map(|l| square(l)).collect::<Vec<_>>());
    let means: Vec<f64> = logs.iter().map(|l| mean(l)).collect();
    let between = (square(&means) - within / variants as f64).max(0.0);
    let mut lengths: Vec<usize> = logs.iter().flatten().map(|l| l.exp().round() as usize).collect();
    lengths.sort_unstable();
    (within, between, lengths)
}

#[test]
fn countdown_has_a_heavy_tail_and_the_chain_none_within_a_prompt() {
    let (within, _, lengths) = spread("countdown");
    let at = |share: f64| lengths[(share * (lengths.len() - 1) as f64) as usize];
    assert!(at(0.95) > 2 * at(0.5), "{} {}", at(0.95), at(0.5));
    assert!(within > 0.05);
    let (within, between, _) = spread("modular-chain");
    assert!(within < 1e-20 && between > 0.01, "{within} {between}");
}

/// A policy that imitates the solutions does both; reinforcement decides.
#[test]
fn half_of_countdowns_solutions_show_no_working() {
    for name in ["countdown", "countdown-4"] {
        let task = build(name, Split::Train).unwrap();
        let bare = (0..2000).filter(|&i| task.solution(i, 0).unwrap().starts_with('=')).count();
        assert!((900..1100).contains(&bare), "{name}: {bare} of 2000");
        // it is drawn for every variant anew
        let bare = (0..2000).filter(|&v| task.solution(7, v).unwrap().starts_with('=')).count();
        assert!((900..1100).contains(&bare), "{name}: {bare} of 2000 variants");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let error = build("countdwn", Split::Train).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("nearest is `countdown`") && error.contains("sorting"), "{error}");
}
