//! The program as its users run it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use onpolicy::Bundle;
use serde_json::Value;

fn phalanx() -> Command {
    Command::new(env!("CARGO_BIN_EXE_phalanx"))
}

fn run(args: &[&str]) -> Output {
    phalanx().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs and expects success.
fn ok(args: &[&str]) -> String {
    let out = run(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs and expects refusal with that exit status and every hint in the message.
fn refused(args: &[&str], status: i32, hints: &[&str]) {
    let out = run(args);
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {error}");
    for hint in hints {
        assert!(error.contains(hint), "{args:?} says: {error}\nlacks: {hint}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

/// A run of that many tiny updates.
fn tiny(dir: &Path, updates: usize) -> Vec<String> {
    let steps = (updates * 32 * 4).to_string();
    let set = ["rollout_steps=4", "minibatch=64", "epochs=1", "policy.width=16", "critic.width=16", "every_updates=1"];
    let words = [
        "train",
        "pendulum-swingup",
        "--envs",
        "32",
        "--threads",
        "2",
        "--steps",
        &steps,
        "--out",
        dir.to_str().unwrap(),
    ];
    words.iter().copied().chain(set.iter().flat_map(|s| ["--set", s])).map(String::from).collect()
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The newest checkpoint, numbered.
fn newest(dir: &Path) -> Option<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir.join("checkpoints")).ok()?.flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "safetensors") && p.to_string_lossy().contains("update-"));
    all.sort();
    all.pop()
}

/// Everything a checkpoint holds, but for the time it took.
fn state(path: &Path) -> Vec<(String, String)> {
    let mut bundle = Bundle::read(path).unwrap();
    bundle.put_u64("loop.wall_f64_bits", &[0]);
    vec![("all".into(), format!("{bundle:?}"))]
}

fn metrics(dir: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Starts training and waits until it has written a checkpoint newer than `seen`.
fn started(words: &[&str], dir: &Path, seen: Option<PathBuf>) -> Child {
    let mut child = phalanx().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while newest(dir) <= seen {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its time");
        std::thread::yield_now();
    }
    child
}

#[test]
#[cfg(unix)]
fn a_run_killed_three_times_resumes_to_the_weights_of_an_uninterrupted_one() {
    use std::os::unix::process::ExitStatusExt;
    let root = tempfile::tempdir().unwrap();
    let (whole, killed) = (root.path().join("whole"), root.path().join("killed"));
    let updates = 60;
    ok(&strs(&tiny(&whole, updates)));
    let resume = ["train", "--resume", killed.to_str().unwrap(), "--threads", "1"];
    let begin = tiny(&killed, updates);
    for sitting in 0..3 {
        let words = if sitting == 0 { strs(&begin) } else { resume.to_vec() };
        let mut child = started(&words, &killed, newest(&killed));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it was killed, not done");
    }
    ok(&resume);
    assert_eq!(state(&newest(&whole).unwrap()), state(&newest(&killed).unwrap()));
    // one line per update, in order, though some were written twice
    let numbers: Vec<u64> = metrics(&killed).iter().map(|l| l["update"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=updates as u64).collect::<Vec<_>>());
    let returns = |dir: &Path| fs::read_to_string(dir.join("eval.json")).unwrap();
    assert_eq!(returns(&whole), returns(&killed));
}

#[test]
#[cfg(unix)]
fn an_interrupt_writes_a_checkpoint_and_says_how_to_go_on() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let child = started(&strs(&tiny(&dir, 100_000)), &dir, None);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("phalanx train --resume {}", dir.display())), "{said}");
    let last = metrics(&dir).last().unwrap()["update"].as_u64().unwrap();
    assert!(newest(&dir).unwrap().ends_with(format!("update-{last:08}.safetensors")));
}

#[test]
fn a_run_directory_holds_everything_and_its_config_alone_repeats_it() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("a"), root.path().join("b"));
    let out = run(&strs(&tiny(&first, 5)));
    assert!(out.status.success());
    assert_eq!(text(&out.stderr), "", "no terminal, no progress");
    assert!(text(&out.stdout).contains(&format!("phalanx eval {}", first.display())));
    for file in ["config.toml", "metrics.jsonl", "eval.json", "checkpoints"] {
        assert!(first.join(file).exists(), "{file}");
    }
    let events =
        fs::read_dir(&first).unwrap().flatten().filter(|e| e.file_name().to_string_lossy().contains("tfevents"));
    assert_eq!(events.count(), 1);
    assert_eq!(fs::read_dir(first.join("checkpoints")).unwrap().count(), 2, "the newest two");
    let lines = metrics(&first);
    assert_eq!(lines.len(), 5);
    for key in [
        "env_steps",
        "wall_s",
        "steps_per_s",
        "return_mean",
        "kl",
        "entropy",
        "temperature",
        "multiplier",
        "critic_loss",
        "explained_variance",
        "non_finite_lanes",
        "seconds_collect",
        "seconds_bootstrap",
        "seconds_critic",
        "seconds_actor",
    ] {
        assert!(lines.iter().all(|l| l.get(key).is_some()), "{key}");
    }
    assert_eq!(lines[4]["env_steps"], 5 * 32 * 4);
    assert!(lines[4]["return_mean"].is_null(), "no whole episode has ended: null, not NaN or 0");

    let config = first.join("config.toml");
    ok(&["train", "--config", config.to_str().unwrap(), "--out", second.to_str().unwrap()]);
    assert_eq!(fs::read(&config).unwrap(), fs::read(second.join("config.toml")).unwrap());
    assert_eq!(state(&newest(&first).unwrap()), state(&newest(&second).unwrap()));
}

#[test]
fn evaluation_reports_every_mode_and_policy() {
    let root = tempfile::tempdir().unwrap();
    for algo in ["trudi", "reppo"] {
        let dir = root.path().join(algo);
        let mut words = tiny(&dir, 2);
        words.extend(["--algo".into(), algo.into()]);
        ok(&strs(&words));
        // a new process sees what the training process saw: weights, statistics and settings travel together
        let recorded: Value = serde_json::from_str(&fs::read_to_string(dir.join("eval.json")).unwrap()).unwrap();
        let again: Value = serde_json::from_str(&ok(&["eval", dir.to_str().unwrap(), "--json"])).unwrap();
        assert_eq!(recorded["ode"], again);
        let dir = dir.to_str().unwrap();
        for mode in ["ode", "sde", "best-of-k"] {
            let eval = ["eval", dir, "--mode", mode, "--episodes", "3", "--k", "2", "--json"];
            let out: Value = serde_json::from_str(&ok(&eval)).unwrap();
            assert_eq!((&out["mode"], &out["episodes"]), (&mode.into(), &3.into()));
            let [min, mean, max] = ["min", "mean", "max"].map(|k| out[k].as_f64().unwrap());
            assert!(0.0 <= min && min <= mean && mean <= max && max <= 1000.0, "{out}");
            assert!(out["standard_error"].as_f64().unwrap() >= 0.0);
            assert_eq!(serde_json::from_str::<Value>(&ok(&eval)).unwrap(), out, "equal seeds, equal returns");
        }
        let all: Value = serde_json::from_str(&fs::read_to_string(Path::new(dir).join("eval.json")).unwrap()).unwrap();
        assert_eq!(all.as_object().unwrap().len(), 3);
        assert!(ok(&["eval", dir, "--episodes", "1"]).contains("mean"));
    }
}

#[test]
fn wrong_words_are_answered_with_what_would_do_and_write_nothing() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let dir = out.to_str().unwrap();
    let train = |more: &[&'static str]| -> Vec<String> {
        ["train"].iter().chain(more).copied().chain(["--out", dir]).map(String::from).collect()
    };
    for (words, status, hints) in [
        (train(&["cartpole-swignup"]), 1, vec!["no task is named `cartpole-swignup`", "`cartpole-swingup`"]),
        (train(&["g1-flat"]), 1, vec!["`g1-flat`", "planned and cannot run yet"]),
        (train(&["cheetah-run", "--set", "kl_bond=1"]), 1, vec!["no such setting", "`trainer.kl_bound`"]),
        (train(&["cheetah-run", "--set", "kl_bound=-1"]), 1, vec!["trainer.kl_bound is -1", "above 0"]),
        (train(&["cheetah-run", "--set", "critic.low=900"]), 1, vec!["critic.low is 900", "below `critic.high`"]),
        (train(&["cheetah-run", "--set", "discount=2"]), 1, vec!["trainer.discount is 2"]),
        (train(&["cheetah-run", "--set", "denoising_steps=0"]), 1, vec!["at least 1 denoising step"]),
        (train(&["cheetah-run", "--algo", "reppo", "--set", "denoising_steps=4"]), 1, vec!["no such setting"]),
        (train(&["cheetah-run", "--envs", "0"]), 1, vec!["env.envs is 0", "at least 1"]),
        (train(&["cheetah-run", "--steps", "0"]), 1, vec!["steps is 0"]),
        (train(&["cheetah-run", "--threads", "0"]), 1, vec!["--threads is 0"]),
        (train(&["cheetah-run", "--steps", "many"]), 2, vec!["--steps", "2e6"]),
        (train(&["cheetah-run", "--algo", "ppo"]), 2, vec!["trudi", "reppo"]),
        (train(&["cheetah-run", "--preset", "quik"]), 2, vec!["quick"]),
        (train(&["cheetah-run", "--sed", "1"]), 2, vec!["--seed"]),
        (train(&[]), 2, vec!["TASK"]),
        (train(&["cheetah-run", "--resume", "x"]), 2, vec!["--resume"]),
    ] {
        refused(&strs(&words), status, &hints);
        assert!(!out.exists(), "{words:?} left something behind");
    }
    refused(&["eval", dir], 1, &["does not exist", "phalanx train TASK"]);
    refused(&["train", "--resume", dir], 1, &["does not exist"]);
    refused(&["eval", root.path().to_str().unwrap()], 1, &["holds no run"]);
    refused(&["observe", "cheetah-rum"], 1, &["`cheetah-run`"]);
    refused(&["physics", "nowhere.xml"], 1, &["nowhere.xml"]);
    refused(&[], 2, &["Usage"]);
}

#[test]
fn an_existing_run_and_a_foreign_directory_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    ok(&strs(&tiny(&dir, 1)));
    let before = fs::read(newest(&dir).unwrap()).unwrap();
    refused(&strs(&tiny(&dir, 3)), 1, &["holds a run already", "--resume"]);
    assert_eq!(fs::read(newest(&dir).unwrap()).unwrap(), before);
    let foreign = root.path().join("papers");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "x").unwrap();
    refused(&strs(&tiny(&foreign, 1)), 1, &["not empty", "--out"]);
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
    let under_a_file = foreign.join("thesis.tex").join("run");
    refused(&strs(&tiny(&under_a_file, 1)), 1, &["cannot make the run directory", "--out"]);
}

#[test]
fn a_run_that_is_being_trained_is_not_trained_twice() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    ok(&strs(&tiny(&dir, 1)));
    let lock = fs::File::open(dir.join(".lock")).unwrap();
    lock.lock().unwrap();
    refused(&["train", "--resume", dir.to_str().unwrap()], 1, &["another process"]);
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_one_before_and_ends_in_the_same_weights() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    ok(&strs(&tiny(&dir, 4)));
    let last = newest(&dir).unwrap();
    let want = state(&last);
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() / 2]).unwrap();
    // what a crash in the middle of a write leaves
    fs::write(dir.join("checkpoints/update-00000009.safetensors.partial"), "x").unwrap();
    refused(&["eval", dir.to_str().unwrap()], 1, &[last.file_name().unwrap().to_str().unwrap()]);
    let out = run(&["train", "--resume", dir.to_str().unwrap()]);
    let said = text(&out.stderr);
    assert!(out.status.success() && said.contains("trying the checkpoint before it"), "{said}");
    assert_eq!(state(&last), want);
    assert!(!dir.join("checkpoints/update-00000009.safetensors.partial").exists());
}

#[test]
fn changed_settings_do_not_continue_a_run_silently() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    ok(&strs(&tiny(&dir, 2)));
    let path = dir.join("config.toml");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("lambda = 0.95", "lambda = 0.5")).unwrap();
    let out = run(&["train", "--resume", dir.to_str().unwrap()]);
    assert!(text(&out.stderr).contains("other settings than config.toml"), "{}", text(&out.stderr));
    fs::write(&path, config.replace("lambda", "lamda")).unwrap();
    refused(&["train", "--resume", dir.to_str().unwrap()], 1, &["config.toml", "lamda"]);
}

#[test]
fn help_explains_every_option_of_training() {
    let help = ok(&["train", "--help"]);
    for word in [
        "--algo",
        "--policy",
        "--trainer",
        "--preset",
        "--envs",
        "--steps",
        "--seed",
        "--threads",
        "--out",
        "--resume",
        "--set",
    ] {
        assert!(help.contains(word), "{word}");
    }
    for default in ["default: trudi", "default: quick", "default: all cores", "default: 1"] {
        assert!(help.contains(default), "{default}");
    }
}

#[test]
fn the_table_of_tasks_has_73_lines_and_says_what_runs() {
    let list: Vec<Value> = serde_json::from_str(&ok(&["tasks", "--json"])).unwrap();
    assert_eq!(list.len(), 73);
    assert_eq!(list.iter().filter(|t| t["status"] == "exact").count(), 23);
    for key in ["name", "suite", "reference", "control_step_s", "episode_steps", "observation_size", "action_size"] {
        assert!(list.iter().all(|t| t.get(key).is_some()), "{key}");
    }
    assert_eq!(ok(&["tasks"]).lines().count(), 74);
}

fn answer(args: &[&str], input: &str) -> Output {
    let mut child =
        phalanx().args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn physics_and_observe_answer_line_by_line() {
    let root = tempfile::tempdir().unwrap();
    let model = root.path().join("pendulum.xml");
    fs::write(
        &model,
        r#"<mujoco><option timestep="0.01"/><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 -1" mass="1"/></body></worldbody></mujoco>"#,
    )
    .unwrap();
    let physics = ["physics", model.to_str().unwrap(), "--precision", "f64"];
    let out = answer(
        &physics,
        "{\"qpos\": [0.0], \"qvel\": [0.0]}\n\n{\"qpos\": [1.5707963267948966], \"qvel\": [0.0], \"ctrl\": []}\n",
    );
    let lines: Vec<Value> = text(&out.stdout).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["qacc"][0].as_f64(), Some(0.0));
    // −m·g·l / (m·l² + ⅖·m·r²)
    assert!((lines[1]["qacc"][0].as_f64().unwrap() + 9.81 / 1.004).abs() < 1e-12, "{}", lines[1]);
    assert_eq!((&lines[1]["ncon"], &lines[1]["act"]), (&0.into(), &Value::Array(vec![])));

    for (line, hint) in [
        ("{\"qpos\": [0.0]}", "qvel"),
        ("nonsense", "qpos"),
        ("{\"qpos\": [0.0, 1.0], \"qvel\": [0.0]}", "qpos has 2 numbers, the model needs 1"),
        ("{\"qpos\": [0.0], \"qvel\": [0.0], \"speed\": 1}", "speed"),
    ] {
        let out = answer(&physics, &format!("{{\"qpos\": [0.0], \"qvel\": [0.0]}}\n{line}\n"));
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1));
        assert!(error.contains("line 2 of standard input") && error.contains(hint), "{line}: {error}");
        assert_eq!(text(&out.stdout).lines().count(), 1, "the first line was answered");
    }
    let out = answer(&["observe", "pendulum-swingup"], "{\"qpos\": [0.0], \"qvel\": [0.5], \"ctrl\": [0.0]}\n");
    let line: Value = serde_json::from_str(&text(&out.stdout)).unwrap();
    assert_eq!(line["observation"], serde_json::json!([1.0, 0.0, 0.5]));
    assert_eq!(line["reward"], 1.0, "upright");

    // the stretched arm's finger is at 0.24 m; a target of 5 cm and the finger of 1 cm overlap at a distance of 4 cm
    let state = |more: &str| format!("{{\"qpos\": [0.0, 0.0], \"qvel\": [0.0, 0.0], \"ctrl\": [0.0, 0.0]{more}}}\n");
    let out = answer(&["observe", "reacher-easy"], &state(", \"target\": [0.2, 0.0]"));
    let line: Value = serde_json::from_str(&text(&out.stdout)).unwrap();
    assert!((line["observation"][2].as_f64().unwrap() + 0.04).abs() < 1e-12, "{line}");
    assert_eq!(line["reward"], 1.0, "within reach");
    for (more, hint) in [
        ("", "add \"target\": [2 numbers]"),
        (", \"target\": [0.2]", "target has 1 numbers, task `reacher-easy` needs 2"),
        (", \"target\": 0.2", "target has 1 numbers"),
        (", \"target\": \"there\"", "target: numbers"),
    ] {
        let out = answer(&["observe", "reacher-easy"], &state(more));
        assert_eq!(out.status.code(), Some(1));
        assert!(text(&out.stderr).contains(hint), "{more}: {}", text(&out.stderr));
    }
}
