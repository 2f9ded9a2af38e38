//! Two panels over time: the rate of straggling groups, and the group size.

use std::fmt::Write;

use crate::replay::Run;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 840.0;
/// Top and bottom of the panels.
const RATE: [f64; 2] = [64.0, 280.0];
const SIZE: [f64; 2] = [330.0, 490.0];
const HEIGHT: f64 = 550.0;
/// Steps that the rate is averaged over.
const WINDOW: usize = 40;

/// Drawn sizers, by name, with legend and colour.
const SHOWN: [(&str, &str, &str); 4] = [
    ("static 4", "static 4", "#9aa0a6"),
    ("static 32", "static 32", "#c9a227"),
    ("random, SAGC's histogram", "random, same sizes", "#4c9f70"),
    ("**SAGC**", "SAGC", "#2f5fb3"),
];

/// A figure of the runs of one seed. `phase`: steps per phase.
pub fn svg(runs: &[(String, Run)], budget: f64, phase: usize) -> String {
    let steps = runs[0].1.rate.len();
    let x = |step: f64| LEFT + (RIGHT - LEFT) * step / steps as f64;
    let rate_y = |r: f64| RATE[1] - (RATE[1] - RATE[0]) * r;
    let smallest = runs.iter().flat_map(|r| &r.1.size).min().copied().unwrap_or(2) as f64;
    let largest = runs.iter().flat_map(|r| &r.1.size).max().copied().unwrap_or(4) as f64;
    let span = (largest / smallest).log2().max(1.0);
    let size_y = |g: f64| SIZE[1] - 10.0 - (SIZE[1] - SIZE[0] - 20.0) * (g / smallest).log2() / span;
    let mut s = String::new();
    let mut put = |line: String| writeln!(s, "{line}").expect("a string takes all");
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" \
         fill=\"#333\">"
    ));
    put(format!("<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"));
    let text = |x: f64, y: f64, anchor: &str, t: &str| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{t}</text>")
    };
    let line = |x0: f64, y0: f64, x1: f64, y1: f64, style: &str| {
        format!("<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x1:.1}\" y2=\"{y1:.1}\" {style}/>")
    };
    let grid = "stroke=\"#e4e4e4\"";
    // axes: rates, sizes that occur, steps
    for k in 0..=5 {
        let r = f64::from(k) / 5.0;
        put(line(LEFT, rate_y(r), RIGHT, rate_y(r), grid));
        put(text(LEFT - 8.0, rate_y(r) + 4.0, "end", &format!("{r:.1}")));
    }
    let mut sizes: Vec<usize> = runs.iter().flat_map(|r| r.1.size.iter().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for g in sizes {
        put(line(LEFT, size_y(g as f64), RIGHT, size_y(g as f64), grid));
        put(text(LEFT - 8.0, size_y(g as f64) + 4.0, "end", &g.to_string()));
    }
    for k in 0..=6 {
        let step = steps as f64 * f64::from(k) / 6.0;
        put(text(x(step), SIZE[1] + 20.0, "middle", &format!("{step:.0}")));
    }
    for step in (phase..steps).step_by(phase) {
        for [top, bottom] in [RATE, SIZE] {
            put(line(x(step as f64), top, x(step as f64), bottom, "stroke=\"#bbb\" stroke-dasharray=\"2 4\""));
        }
    }
    for [top, bottom] in [RATE, SIZE] {
        put(line(LEFT, top, LEFT, bottom, "stroke=\"#555\""));
        put(line(LEFT, bottom, RIGHT, bottom, "stroke=\"#555\""));
    }
    put(text(
        LEFT,
        RATE[0] - 12.0,
        "start",
        &format!("share of groups that straggle, mean of the last {WINDOW} steps"),
    ));
    put(text(LEFT, SIZE[0] - 12.0, "start", "group size that SAGC chose"));
    put(text((LEFT + RIGHT) / 2.0, SIZE[1] + 42.0, "middle", "step"));
    put(line(
        LEFT,
        rate_y(budget),
        RIGHT,
        rate_y(budget),
        "stroke=\"#c0392b\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"",
    ));
    // legend
    let entries = SHOWN.iter().map(|(_, name, colour)| (*name, *colour)).chain([("budget", "#c0392b")]);
    let mut at = LEFT;
    for (name, colour) in entries {
        put(line(at, 22.0, at + 24.0, 22.0, &format!("stroke=\"{colour}\" stroke-width=\"3\"")));
        put(text(at + 30.0, 26.0, "start", name));
        at += 60.0 + 8.0 * name.len() as f64;
    }
    let path = |points: &[(f64, f64)], colour: &str, width: f64| {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"");
        format!("<polyline points=\"{}\" {style}/>", points.join(" "))
    };
    for (key, name, colour) in SHOWN {
        let Some((_, run)) = runs.iter().find(|r| r.0 == key) else { continue };
        let running: Vec<(f64, f64)> = (0..steps)
            .map(|t| {
                let window = &run.rate[(t + 1).saturating_sub(WINDOW)..=t];
                (x(t as f64 + 1.0), rate_y(window.iter().sum::<f64>() / window.len() as f64))
            })
            .collect();
        put(path(&running, colour, if name == "SAGC" { 2.5 } else { 1.5 }));
        if name == "SAGC" {
            // a step holds its size from its beginning to its end
            let ends =
                |(t, g): (usize, &usize)| [(x(t as f64), size_y(*g as f64)), (x(t as f64 + 1.0), size_y(*g as f64))];
            put(path(&run.size.iter().enumerate().flat_map(ends).collect::<Vec<_>>(), colour, 2.0));
        }
    }
    put("</svg>".into());
    s
}
