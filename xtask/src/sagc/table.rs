//! From runs to tables: means over seeds, and the least and largest beside them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::runs::{COMMON, Record};

/// Ways of batching, as the metrics call them.
const MODES: [(&str, &str); 3] =
    [("padded_groups", "padded, group by group"), ("padded_wave", "padded, one wave"), ("continuous", "continuous")];
/// What stands above the tables.
pub struct Head {
    lines: Vec<String>,
}

impl Head {
    /// Command, commit, machine.
    pub fn new(root: &Path, commit: &str, quick: bool, seeds: u64, updates: u64) -> Result<Self> {
        let dirty = !crate::output(root, &["git", "status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(": unknown");
        let command = format!(
            "cargo xtask bench sagc{} --seeds {seeds} --updates {updates}",
            if quick { " --quick" } else { "" }
        );
        Ok(Head {
            lines: vec![
                format!("command  {command}"),
                format!("commit   {commit}{}", if dirty { " with changes" } else { "" }),
                format!("machine  {}, each run on one thread", model.trim_start_matches([' ', '\t', ':'])),
                format!("settings countdown, {}", COMMON.join(" ")),
            ],
        })
    }
}

/// One algorithm and arm over its seeds.
struct Cell<'a> {
    algo: &'a str,
    arm: &'a str,
    runs: Vec<&'a Record>,
}

/// Mean, least and largest.
#[derive(Clone, Copy)]
struct Spread([f64; 3]);

impl Spread {
    fn of(x: &[f64]) -> Self {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let fold = |f: fn(f64, f64) -> f64| x.iter().copied().reduce(f).unwrap_or(f64::NAN);
        Spread([mean, fold(f64::min), fold(f64::max)])
    }

    fn text(self, digits: usize) -> String {
        let [mean, low, high] = self.0;
        if mean.is_nan() { "-".into() } else { format!("{mean:.digits$} ({low:.digits$} to {high:.digits$})") }
    }
}

impl Record {
    /// A metric of every update that has it.
    fn series(&self, key: &str) -> Vec<f64> {
        self.lines.iter().filter_map(|l| l[key].as_f64()).collect()
    }

    fn mean(&self, key: &str) -> f64 {
        let x = self.series(key);
        x.iter().sum::<f64>() / x.len() as f64
    }

    /// Seconds from the start to the end of every update, were batches written that way.
    fn clock(&self, mode: &str) -> Vec<f64> {
        let mut total = 0.0;
        let of = |l: &Value, key: &str| l[key].as_f64().unwrap_or(0.0);
        self.lines
            .iter()
            .map(|l| {
                total += of(l, &format!("seconds_{mode}")) + of(l, "seconds_score") + of(l, "seconds_update");
                total
            })
            .collect()
    }

    /// Share of held-out prompts solved after that many seconds, between evaluations by straight lines.
    fn held_out_at(&self, mode: &str, seconds: f64) -> f64 {
        let clock = self.clock(mode);
        let points: Vec<(f64, f64)> =
            self.lines.iter().zip(&clock).filter_map(|(l, t)| Some((*t, l["held_out"].as_f64()?))).collect();
        let Some(after) = points.iter().position(|p| p.0 >= seconds) else {
            return points.last().map_or(f64::NAN, |p| p.1);
        };
        if after == 0 {
            return points[0].1;
        }
        let ((t0, a), (t1, b)) = (points[after - 1], points[after]);
        a + (b - a) * (seconds - t0) / (t1 - t0)
    }
}

fn cells(data: &[Record]) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell> = Vec::new();
    for r in data {
        match cells.iter_mut().find(|c| c.algo == r.algo && c.arm == r.arm) {
            Some(cell) => cell.runs.push(r),
            None => cells.push(Cell { algo: r.algo, arm: &r.arm, runs: vec![r] }),
        }
    }
    cells.sort_by_key(|c| c.algo != "grpo");
    cells
}

impl Cell<'_> {
    fn over(&self, f: impl Fn(&Record) -> f64) -> Spread {
        Spread::of(&self.runs.iter().map(|r| f(r)).collect::<Vec<_>>())
    }
}

type Column<'a> = (&'a str, Box<dyn Fn(&Cell) -> String + 'a>);

fn table(title: &str, cells: &[Cell], columns: &[Column], to: &mut String) {
    let mut rows = vec![["algo", "group size"].iter().map(|s| s.to_string()).collect::<Vec<_>>()];
    rows[0].extend(columns.iter().map(|c| c.0.to_string()));
    for cell in cells {
        let mut row = vec![cell.algo.to_string(), cell.arm.to_string()];
        row.extend(columns.iter().map(|c| (c.1)(cell)));
        rows.push(row);
    }
    let width: Vec<usize> =
        (0..rows[0].len()).map(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0)).collect();
    let _ = writeln!(to, "\n{title}\n");
    for row in rows {
        let line: Vec<String> = row.iter().zip(&width).map(|(c, w)| format!("{c:w$}")).collect();
        let _ = writeln!(to, "{}", line.join("  ").trim_end());
    }
}

fn column<'a>(name: &'a str, digits: usize, f: impl Fn(&Record) -> f64 + 'a) -> Column<'a> {
    (name, Box::new(move |cell| cell.over(&f).text(digits)))
}

fn changes(r: &Record) -> f64 {
    r.series("group_size").windows(2).filter(|w| w[0] != w[1]).count() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64
}

/// Sizes chosen, as size×updates, over all seeds.
fn histogram(cell: &Cell) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for g in cell.runs.iter().flat_map(|r| r.series("group_size")) {
        *counts.entry(g as u64).or_insert(0) += 1;
    }
    counts.iter().map(|(g, n)| format!("{g}×{n}")).collect::<Vec<_>>().join(" ")
}

/// Writes the tables to `out` and their figures to the same name with `.json`.
pub fn write(out: &Path, head: &Head, data: &[Record], replay: &str) -> Result<()> {
    let cells = cells(data);
    let mut text = String::from("Group size control in training: means over seeds (least to largest)\n\n");
    for line in &head.lines {
        let _ = writeln!(text, "{line}");
    }
    let end = |r: &Record| r.eval["sample"]["pass_at_1"].as_f64().unwrap_or(f64::NAN);
    table(
        "Stragglers and sizes (late: longer than the threshold times the running median)",
        &cells,
        &[
            column("straggling", 3, |r| r.mean("stragglers")),
            column("in-group ratio", 3, |r| r.mean("stragglers_in_group")),
            column("debt", 2, |r| r.series("sizer_debt").last().copied().unwrap_or(f64::NAN)),
            column("queue", 2, |r| r.series("sizer_queue").last().copied().unwrap_or(f64::NAN)),
            column("mean G", 1, |r| r.mean("group_size")),
            column("changes", 0, changes),
            ("sizes×updates", Box::new(histogram)),
        ],
        &mut text,
    );
    table(
        "Lengths in tokens, and what groups taught",
        &cells,
        &[
            column("p50", 0, |r| r.mean("length_p50")),
            column("p95", 0, |r| r.mean("length_p95")),
            column("p99", 0, |r| r.mean("length_p99")),
            column("max", 0, |r| r.mean("length_max")),
            column("right", 0, |r| r.mean("length_right")),
            column("wrong", 0, |r| r.mean("length_wrong")),
            column("truncated", 3, |r| r.mean("truncated")),
            column("no signal", 3, |r| r.mean("degenerate")),
            column("gradient", 3, |r| r.mean("grad_norm")),
            column("its variance", 4, |r| variance(&r.series("grad_norm"))),
        ],
        &mut text,
    );
    let mut seconds: Vec<Column> = Vec::new();
    for (mode, name) in MODES {
        let key = format!("seconds_{mode}");
        seconds.push(column(name, 3, move |r| r.mean(&key)));
    }
    seconds.push(column("score", 3, |r| r.mean("seconds_score")));
    seconds.push(column("update", 3, |r| r.mean("seconds_update")));
    table(
        "Seconds an update: generation in each way of batching, then the rest, which is the same",
        &cells,
        &seconds,
        &mut text,
    );
    let mut stepped: Vec<Column> =
        vec![column("rollouts", 0, |r| r.mean("rollouts")), column("useful", 0, |r| r.mean("tokens_useful"))];
    for (mode, name) in MODES {
        let key = format!("tokens_{mode}");
        stepped.push(column(name, 2, move |r| r.mean(&key) / r.mean("tokens_useful")));
    }
    table("Tokens an update, and tokens decoded per useful one in each way of batching", &cells, &stepped, &mut text);
    let mut learned: Vec<Column> = vec![
        column("first", 3, |r| r.series("held_out").first().copied().unwrap_or(f64::NAN)),
        column("at equal rollouts", 3, end),
    ];
    let mut limits = Vec::new();
    for algo in ["grpo", "dapo"] {
        for (mode, _) in MODES {
            let ends = data.iter().filter(|r| r.algo == algo).filter_map(|r| r.clock(mode).last().copied());
            limits.push((algo, mode, ends.fold(f64::INFINITY, f64::min)));
        }
    }
    for (mode, name) in MODES {
        let limits = limits.clone();
        learned.push((
            name,
            Box::new(move |cell| {
                let limit = limits.iter().find(|l| l.0 == cell.algo && l.1 == mode).map_or(f64::NAN, |l| l.2);
                cell.over(|r| r.held_out_at(mode, limit)).text(3)
            }),
        ));
    }
    table(
        "Share of held-out prompts solved: at the end of all updates, and after as many seconds as the fastest run of the algorithm took",
        &cells,
        &learned,
        &mut text,
    );
    for (algo, mode, limit) in &limits {
        if limit.is_finite() {
            let _ = writeln!(text, "{}{algo}, {mode}: {limit:.0} s", if *mode == MODES[0].0 { "\n" } else { "" });
        }
    }
    let _ =
        writeln!(text, "\nRecorded lengths of static 32 (grpo, seed 1) replayed through every controller\n\n{replay}");
    fs::write(out, &text).with_context(|| out.display().to_string())?;
    let runs: Vec<Value> = data
        .iter()
        .map(|r| json!({ "algo": r.algo, "arm": r.arm, "seed": r.seed, "eval": r.eval, "updates": columns(&r.lines) }))
        .collect();
    let figures = json!({ "head": head.lines, "runs": runs });
    let path = out.with_extension("json");
    fs::write(&path, serde_json::to_string(&figures)? + "\n").with_context(|| path.display().to_string())
}

/// Lines of objects as one object of lists, numbers to five digits.
fn columns(lines: &[Value]) -> Value {
    let mut all = serde_json::Map::new();
    let keys: Vec<&String> = lines.last().and_then(Value::as_object).map_or(Vec::new(), |o| o.keys().collect());
    for key in keys {
        let short =
            |v: &Value| v.as_f64().map_or(Value::Null, |x| json!(format!("{x:.4e}").parse::<f64>().unwrap_or(x)));
        all.insert(key.clone(), lines.iter().map(|l| short(&l[key])).collect());
    }
    Value::Object(all)
}
