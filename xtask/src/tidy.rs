//! What no compiler checks: the shape of the workspace.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::output;

/// Which of our crates each crate may depend on (docs/ARCHITECTURE.md).
const ARROWS: [(&str, &[&str]); 10] = [
    ("sagc", &[]),
    ("rollouts", &[]),
    ("sim-vec", &["rollouts"]),
    ("onpolicy", &["rollouts"]),
    ("diffusion-policy", &["onpolicy"]),
    ("text-tasks", &["rollouts"]),
    ("token-policy", &["onpolicy", "rollouts"]),
    ("trust-region", &["onpolicy", "rollouts"]),
    ("grpo", &["onpolicy", "rollouts", "sagc"]),
    ("xtask", &[]),
];
/// May depend on everything; nothing depends on them.
const TOPS: [&str; 2] = ["phalanx", "benches"];
/// May not see tensors, whatever it is called by.
const WITHOUT_TENSORS: [&str; 5] = ["sagc", "rollouts", "sim-vec", "text-tasks", "xtask"];
/// Keep an empty list of dependencies.
const WITHOUT_ANY: [&str; 2] = ["sagc", "rollouts"];
/// Longest source file, in lines.
const LONGEST: usize = 600;

/// Runs all checks; errors with every finding.
pub fn check(root: &Path) -> Result<()> {
    let metadata = metadata(root)?;
    let mut findings = arrows(&metadata);
    findings.extend(unfit_to_publish(&metadata));
    for file in tracked(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        findings.extend(contents(&file, &text));
        if file.ends_with(".md") {
            findings.extend(paths(root, &file, &text));
        }
    }
    if findings.is_empty() {
        println!("tidy: nothing to mend");
        return Ok(());
    }
    bail!("tidy found {}:\n{}", findings.len(), findings.join("\n"))
}

fn metadata(root: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&output(root, &["cargo", "metadata", "--format-version", "1", "--no-deps"])?)?)
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    Ok(output(root, &["git", "ls-files"])?.lines().map(String::from).collect())
}

/// Arrows that the architecture does not have. Development dependencies may cross between policies and trainers.
fn arrows(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |v: &Value| v["name"].as_str().unwrap_or_default().to_string();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let mut findings = Vec::new();
    for package in packages {
        let from = name(package);
        if TOPS.contains(&from.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|a| a.0 == from) else {
            findings.push(format!(
                "{from} has no line in ARROWS (xtask/src/tidy.rs); add it there and in the architecture"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name(dependency);
            let dev = dependency["kind"] == "dev";
            if TOPS.contains(&to.as_str()) {
                findings.push(format!("{from} depends on {to}; nothing does"));
            } else if !dev && ours.contains(&to) && !allowed.contains(&to.as_str()) {
                findings.push(format!("{from} depends on {to}; docs/ARCHITECTURE.md has no such arrow"));
            }
            if to.starts_with("candle") && WITHOUT_TENSORS.contains(&from.as_str()) {
                findings.push(format!("{from} depends on {to}; it must not see tensors"));
            }
            if !dev && WITHOUT_ANY.contains(&from.as_str()) {
                findings.push(format!("{from} depends on {to}; its [dependencies] stay empty"));
            }
        }
    }
    findings
}

/// Packages without what a registry asks for; those with `publish = false` need nothing.
fn unfit_to_publish(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        for field in ["license", "description", "readme"] {
            if package[field].as_str().is_none_or(str::is_empty) {
                let name = package["name"].as_str().unwrap_or_default();
                findings.push(format!("{name} has no {field}; write one in its Cargo.toml, or publish = false"));
            }
        }
    }
    findings
}

/// Lengths, and paths of somebody's machine.
fn contents(file: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if file.ends_with(".rs") && text.lines().count() > LONGEST {
        findings.push(format!("{file} has {} lines; split it below {LONGEST}", text.lines().count()));
    }
    // randomness that no seed reaches
    for word in [["thread", "_rng"], ["Tensor::", "rand"], ["from_os", "_rng"], ["OsR", "ng"]].map(|w| w.concat()) {
        if let Some(line) = text.lines().position(|l| file.ends_with(".rs") && l.contains(&word)) {
            findings.push(format!("{file}:{}: {word} follows from no seed; use a seeded generator", line + 1));
        }
    }
    for top in ["home", "root", "work", "opt", "Users"] {
        let path = format!("/{top}/");
        if let Some(line) = text.lines().position(|l| l.contains(&path)) {
            findings.push(format!("{file}:{}: names {path}, a path of one machine", line + 1));
        }
    }
    findings
}

/// Paths that do not exist, in links and among the words in backticks, blocks of commands included.
fn paths(root: &Path, file: &str, text: &str) -> Vec<String> {
    let folders = ["crates/", "docs/", "benches/", "xtask/", ".ci/", ".github/", ".cargo/"];
    let dir = Path::new(file).parent().unwrap_or(Path::new(""));
    // what a command writes (after >) need not be there yet
    let quoted = text.split('`').skip(1).step_by(2).filter_map(|q| q.split('>').next());
    let named = quoted.flat_map(str::split_whitespace).filter(|q| folders.iter().any(|f| q.starts_with(f)));
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let missing = |q: &&str| !root.join(q).exists() && !root.join(dir).join(q).exists();
    let found: BTreeSet<&str> = named
        .chain(linked.filter(|l| !l.is_empty() && !l.contains("://")))
        .filter(|q| !q.contains(['*', '{', '<', '…', '$']))
        .filter(missing)
        .collect();
    found.into_iter().map(|q| format!("{file}: `{q}` does not exist")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let list: Vec<Value> = dependencies.iter().map(|(n, k)| json!({ "name": n, "kind": k })).collect();
        json!({ "name": name, "dependencies": list })
    }

    #[test]
    fn arrows_against_the_architecture_are_found() {
        let packages = |list: Vec<Value>| json!({ "packages": list });
        let bad = packages(vec![
            package("sim-vec", &[("onpolicy", None), ("rayon", None)]),
            package("onpolicy", &[("candle-core", None)]),
            package("trust-region", &[("diffusion-policy", None)]),
            package("diffusion-policy", &[]),
            package("sagc", &[("serde", None)]),
            package("rollouts", &[("candle-core", Some("dev"))]),
        ]);
        let findings = arrows(&bad);
        assert_eq!(findings.len(), 4, "{findings:?}");
        let good = packages(vec![
            package("trust-region", &[("onpolicy", None), ("diffusion-policy", Some("dev"))]),
            package("diffusion-policy", &[("onpolicy", None)]),
            package("onpolicy", &[]),
            package("phalanx", &[("onpolicy", None), ("trust-region", None), ("candle-core", None)]),
        ]);
        assert_eq!(arrows(&good), Vec::<String>::new());
    }

    #[test]
    fn a_crate_without_arrows_and_a_library_on_top_of_the_program_are_found() {
        let of = |p: Value| arrows(&json!({ "packages": [p] })).concat();
        assert!(of(package("newcomer", &[])).contains("newcomer has no line"));
        assert!(of(package("onpolicy", &[("phalanx", Some("dev"))])).contains("nothing does"));
    }

    #[test]
    fn a_package_without_a_description_is_found_unless_it_stays_here() {
        let mut bare = json!({ "name": "a", "publish": null, "license": "MIT", "readme": "README.md" });
        let of = |p: &Value| unfit_to_publish(&json!({ "packages": [p] }));
        assert_eq!(of(&bare).len(), 1);
        assert!(of(&bare)[0].starts_with("a has no description"));
        bare["publish"] = json!([]);
        assert!(of(&bare).is_empty());
    }

    #[test]
    fn machine_paths_and_long_files_are_found() {
        let path = ["see /", "home", "/me/x"].concat();
        assert_eq!(contents("a.md", &path).len(), 1);
        assert_eq!(contents("a.rs", &"\n".repeat(LONGEST + 1)).len(), 1);
        assert_eq!(contents("a.rs", &["rand::thread", "_rng()"].concat()).len(), 1);
        assert!(contents("a.rs", "fine").is_empty());
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = "`xtask/src/main.rs` and `crates/nowhere`, `python docs/none.py > docs/made.csv` and [a](docs/none.md#b), [c](#d)";
        let missing = ["crates/nowhere", "docs/none.md", "docs/none.py"];
        assert_eq!(paths(root, "README.md", text), missing.map(|m| format!("README.md: `{m}` does not exist")));
    }
}
