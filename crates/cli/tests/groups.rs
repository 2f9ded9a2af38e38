//! Group-relative runs as their users run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use onpolicy::Bundle;
use serde_json::Value;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let out = run(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn refused(args: &[&str], hints: &[&str]) {
    let out = run(args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && !error.contains("panicked"), "{args:?}: {error}");
    for hint in hints {
        assert!(error.contains(hint), "{args:?} says: {error}\nlacks: {hint}");
    }
}

/// Settings of a run that takes no time.
const TINY: [&str; 14] = [
    "policy.hidden=16",
    "layers=1",
    "heads=2",
    "kv_heads=1",
    "ffn=16",
    "warm_up.steps=60",
    "warm_up.batch=4",
    "rollouts=16",
    "max_tokens=24",
    "evaluation.prompts=8",
    "evaluation.every=2",
    "closing=16",
    "slots=8",
    "every_updates=1",
];

fn tiny<'a>(task: &'a str, dir: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["train", task, "--updates", "4", "--threads", "2", "--out", dir];
    words.extend(TINY.iter().flat_map(|s| ["--set", s]));
    words.extend(more);
    words
}

fn newest(dir: &Path) -> Option<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir.join("checkpoints")).ok()?.flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "safetensors") && p.to_string_lossy().contains("update-"));
    all.sort();
    all.pop()
}

fn state(dir: &Path) -> String {
    let mut bundle = Bundle::read(&newest(dir).unwrap()).unwrap();
    bundle.put_u64("loop.wall_f64_bits", &[0]);
    format!("{bundle:?}")
}

fn lines(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn a_text_run_warms_up_improves_and_reports_both_ends() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("a");
    let said = ok(&tiny("countdown", dir.to_str().unwrap(), &["--group", "static:4"]));
    assert!(
        said.contains("before group-relative training") && said.contains("held-out prompts solved (sample"),
        "{said}"
    );
    let lines = lines(&dir);
    assert_eq!(lines.len(), 6, "two chunks of warm-up, four updates");
    assert!(lines[1]["supervised_loss"].as_f64().unwrap() < lines[0]["supervised_loss"].as_f64().unwrap());
    for key in [
        "score_mean",
        "group_size",
        "degenerate",
        "clipped_high",
        "truncated",
        "length_p99",
        "stragglers",
        "max_over_median",
        "behaviour_gap_max",
        "tokens_useful",
        "tokens_computed",
        "seconds_generate",
        "seconds_tail",
        "seconds_score",
        "seconds_update",
    ] {
        assert!(lines[2..].iter().all(|l| l[key].is_number()), "{key}");
    }
    assert!(lines[2..].iter().all(|l| l["behaviour_gap_max"].as_f64().unwrap() < 1e-3));
    let measured: Vec<bool> = lines.iter().map(|l| l.get("held_out").is_some()).collect();
    assert_eq!(measured, [false, false, true, false, true, false]);
    let eval: Value = serde_json::from_str(&fs::read_to_string(dir.join("eval.json")).unwrap()).unwrap();
    assert!(eval["start"]["pass_at_1"].is_number() && eval["sample"]["interval"][1].is_number(), "{eval}");
    // another process sees the same policy, and can show what it writes
    let seen = dir.join("seen.jsonl");
    let dir = dir.to_str().unwrap();
    let e = ok(&["eval", dir, "--prompts", "3", "--samples", "2", "--json", "--completions", seen.to_str().unwrap()]);
    let e: Value = serde_json::from_str(&e).unwrap();
    let seen: Vec<Value> =
        fs::read_to_string(seen).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(seen.iter().map(|l| l["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    assert!(seen.iter().all(|l| l["prompt"].as_str().unwrap().ends_with('\n') && l["completion"].is_string()));
    let mean = |key: &str| seen.iter().map(|l| l[key].as_f64().unwrap()).sum::<f64>() / 6.0;
    assert!((mean("score") - e["pass_at_1"].as_f64().unwrap()).abs() < 1e-6);
    assert!((mean("tokens") - e["length_mean"].as_f64().unwrap()).abs() < 1e-6);
    let again: Value = serde_json::from_str(&ok(&["eval", dir, "--prompts", "16", "--json"])).unwrap();
    assert_eq!(again["pass_at_1"], eval["sample"]["pass_at_1"]);
    for (more, split) in [(&["--split", "harder", "--samples", "3"][..], "harder"), (&["--mode", "greedy"], "held-out")]
    {
        let words: Vec<&str> = ["eval", dir, "--prompts", "4", "--json"].iter().chain(more).copied().collect();
        let e: Value = serde_json::from_str(&ok(&words)).unwrap();
        assert_eq!((&e["split"], &e["prompts"]), (&split.into(), &4.into()));
    }
}

#[test]
#[cfg(unix)]
fn a_text_run_that_was_killed_ends_in_the_weights_of_one_that_was_not() {
    let root = tempfile::tempdir().unwrap();
    let (whole, killed) = (root.path().join("whole"), root.path().join("killed"));
    // one digit is soon guessed right now and then, so that there is something to learn from
    let file = root.path().join("digits.jsonl");
    let lines_of = |n: u32| format!("{{\"prompt\": \"{n}=\", \"answer\": \"{}\"}}\n", (7 * n + 3) % 10);
    fs::write(&file, (0..40).map(lines_of).collect::<String>()).unwrap();
    let task = file.to_str().unwrap();
    let more = ["--algo", "dapo", "--group", "sagc", "--set", "candidates=2,4,8", "--set", "generation.trace=true"];
    ok(&tiny(task, whole.to_str().unwrap(), &more));
    let mut child = Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .args(tiny(task, killed.to_str().unwrap(), &more))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while newest(&killed).is_none_or(|p| p < killed.join("checkpoints/update-00000003.safetensors")) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its time");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    ok(&["train", "--resume", killed.to_str().unwrap(), "--threads", "1"]);
    assert!(state(&whole) == state(&killed), "other weights, or another state");
    let read = |dir: &Path, file: &str| fs::read_to_string(dir.join(file)).unwrap();
    assert_eq!(read(&whole, "lengths.csv"), read(&killed, "lengths.csv"));
    assert_eq!(read(&whole, "eval.json"), read(&killed, "eval.json"));
    let lines = lines(&killed);
    let numbers: Vec<u64> = lines.iter().map(|l| l["update"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert!(lines[2..].iter().all(|l| l["grad_norm"].as_f64().unwrap() > 0.0), "nothing was learned");
}

#[test]
fn comparing_ways_of_batching_changes_nothing_but_the_report() {
    let root = tempfile::tempdir().unwrap();
    let (plain, compared) = (root.path().join("plain"), root.path().join("compared"));
    ok(&tiny("countdown", plain.to_str().unwrap(), &[]));
    ok(&tiny("countdown", compared.to_str().unwrap(), &["--set", "compare=true"]));
    let params = |dir: &Path| {
        let bundle = Bundle::read(&newest(dir).unwrap()).unwrap();
        let names: Vec<String> = bundle.names().filter(|n| n.starts_with("policy")).map(String::from).collect();
        assert!(!names.is_empty());
        state(dir).split("texts").next().unwrap().to_string()
    };
    assert!(params(&plain) == params(&compared), "other weights");
    for line in &lines(&compared)[2..] {
        for mode in ["padded_groups", "padded_wave", "continuous"] {
            assert!(line[format!("seconds_{mode}")].is_number() && line[format!("tokens_{mode}")].is_number());
        }
        assert_eq!(line["tokens_continuous"], line["tokens_useful"]);
        assert!(line["tokens_padded_wave"].as_u64() >= line["tokens_padded_groups"].as_u64());
    }
}

#[test]
fn races_keep_the_number_of_rollouts_and_report_their_bias() {
    let root = tempfile::tempdir().unwrap();
    for race in ["members", "tail"] {
        let dir = root.path().join(race);
        let set = format!("generation.race={race}");
        ok(&tiny(
            "countdown",
            dir.to_str().unwrap(),
            &["--set", &set, "--set", "race_factor=2", "--group", "static:4"],
        ));
        for line in &lines(&dir)[2..] {
            assert_eq!((&line["rollouts"], &line["groups_kept"]), (&16.into(), &4.into()), "{race}");
            assert!(line["race_bias"].as_f64().unwrap() <= 1.0, "{race}");
        }
    }
    refused(&tiny("countdown", "unused", &["--set", "race=tail", "--set", "compare=true"]), &["compare=false"]);
    refused(&tiny("countdown", "unused", &["--set", "race_factor=0.5"]), &["race_factor is 0.5"]);
}

#[test]
fn a_run_starts_from_the_policy_of_another() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    ok(&tiny("addition", first.to_str().unwrap(), &[]));
    let start = format!("policy.start={}", first.display());
    let more = ["--set", &start, "--set", "warm_up.steps=0", "--set", "trainer.lr=0"];
    ok(&tiny("addition", second.to_str().unwrap(), &more));
    let eval = |dir: &Path, key: &str| -> Value {
        let all: Value = serde_json::from_str(&fs::read_to_string(dir.join("eval.json")).unwrap()).unwrap();
        all[key]["pass_at_1"].clone()
    };
    assert_eq!(eval(&first, "sample"), eval(&second, "start"));
    assert_eq!(eval(&second, "start"), eval(&second, "sample"), "nothing was learned at rate 0");
    let nowhere = root.path().join("nowhere");
    let missing = format!("policy.start={}", nowhere.display());
    refused(&tiny("addition", "unused", &["--set", &missing]), &["holds no checkpoint"]);
    let other = ["--set", &start, "--set", "policy.hidden=32"];
    refused(&tiny("addition", "unused", &other), &["does not fit", "policy.hidden"]);
}

#[test]
fn prompts_of_ones_own_come_from_a_file() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("own.jsonl");
    fs::write(&file, "{\"prompt\": \"2+2=\", \"answer\": \"4\"}\n{\"prompt\": \"3+4=\", \"answer\": \"7\"}\n").unwrap();
    let dir = root.path().join("run");
    let task = file.to_str().unwrap();
    ok(&tiny(task, dir.to_str().unwrap(), &[]));
    assert!(newest(&dir).is_some());
    fs::write(&file, "{\"prompt\": \"2+2=\"}\n").unwrap();
    refused(&tiny(task, "unused", &[]), &["own.jsonl:1", "answer"]);
}

#[test]
fn whole_episodes_are_groups_for_gaussian_and_diffusion_policies() {
    let root = tempfile::tempdir().unwrap();
    for policy in ["gaussian", "diffusion"] {
        let dir = root.path().join(policy);
        let words = [
            "train",
            "cartpole-balance",
            "--algo",
            "grpo",
            "--policy",
            policy,
            "--updates",
            "2",
            "--group",
            "sagc",
            "--out",
            dir.to_str().unwrap(),
            "--set",
            "max_steps=20",
            "--set",
            "rollouts=32",
            "--set",
            "width=16",
        ];
        let said = ok(&words);
        assert!(said.contains("return over 64 fresh episodes"), "{said}");
        let lines = lines(&dir);
        assert!(lines.iter().all(|l| l["length_mean"] == 20 && l["group_size"].is_number()));
        assert!(lines.iter().all(|l| l["behaviour_gap_max"].as_f64().unwrap() < 1e-2), "{lines:?}");
        refused(&["eval", dir.to_str().unwrap(), "--mode", "best-of-k"], &["critic"]);
        refused(&["eval", dir.to_str().unwrap(), "--completions", "unused"], &["for text tasks"]);
    }
}

#[test]
fn senseless_pairings_and_settings_are_refused_with_what_would_do() {
    for (words, hints) in [
        (&["train", "countdown", "--algo", "trudi"][..], &["text task", "--algo grpo"][..]),
        (&["train", "countdwn", "--algo", "grpo"], &["countd"]),
        (&["train", "countdown", "--policy", "gaussian"], &["transformer"]),
        (&["train", "countdown", "--trainer", "trust-region"], &["--algo grpo brings its own"]),
        (&["train", "countdown", "--steps", "5"], &["--updates"]),
        (&["train", "cartpole-swingup", "--group", "sagc"], &["--algo grpo"]),
        (&["train", "cartpole-swingup", "--updates", "5"], &["--steps"]),
        (&["train", "countdown", "--group", "static:7"], &["sizes that divide"]),
        (&["train", "countdown", "--group", "magic"], &["static:8"]),
        (&["train", "countdown", "--set", "temperature=0"], &["at least 1e-4"]),
        (&["train", "countdown", "--set", "heads=3"], &["heads"]),
        (&["train", "countdown", "--set", "rollouts=0"], &["trainer.rollouts is 0"]),
        (&["train", "countdown", "--set", "clip_norm=0"], &["clip_norm"]),
        (&["train", "countdown", "--set", "loss=magic"], &["grpo"]),
        (&["train", "countdown", "--preset", "paper"], &["no paper preset"]),
        (&["train", "nowhere.jsonl"], &["nowhere.jsonl"]),
    ] {
        let with: Vec<&str> = words.iter().chain(&["--out", "unused"]).copied().collect();
        refused(&with, hints);
        assert!(!Path::new("unused").exists(), "{words:?} wrote something");
    }
}
