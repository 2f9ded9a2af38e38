//! Lengths from a seeded generator, and runs over them.

#![allow(dead_code)] // every test file uses its own part

use sagc::{GroupReport, GroupSizer, Reference, Sagc, SagcConfig, Straggling};

pub const CANDIDATES: [usize; 4] = [4, 8, 16, 32];

/// Draws lengths.
pub struct Lengths {
    pub state: u64,
}

impl Lengths {
    pub fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Pareto lengths: no prompt matters, a power law does.
    pub fn pareto(&mut self, rollouts: usize, shape: f64) -> Vec<f32> {
        (0..rollouts).map(|_| (100.0 * self.uniform().powf(-1.0 / shape)) as f32).collect()
    }

    /// Log-normal lengths with a between-prompt part τ and a within-prompt part σ, of median 200.
    pub fn log_normal(&mut self, rollouts: usize, g: usize, tau: f64, sigma: f64) -> Vec<f32> {
        (0..rollouts / g)
            .flat_map(|_| {
                let prompt = tau * self.normal();
                (0..g).map(|_| (200.0 * (prompt + sigma * self.normal()).exp()) as f32).collect::<Vec<_>>()
            })
            .collect()
    }
}

pub fn sagc(change: impl FnOnce(&mut SagcConfig)) -> Sagc {
    let mut config = SagcConfig::new(&CANDIDATES);
    change(&mut config);
    Sagc::new(config).unwrap()
}

/// Counts as the definition says, next to whatever the sizer counts: κ = 2.5, running median or own median.
pub struct Counter {
    pub own: bool,
    pub median: Option<f64>,
}

impl Counter {
    pub fn rate(&mut self, seen: &GroupReport<'_>) -> f64 {
        let latest = sagc::straggler::median(seen.length);
        let normal = if self.own { None } else { Some(self.median.unwrap_or(latest)) };
        self.median = Some(self.median.map_or(latest, |m| 0.9 * m + (1.0 - 0.9) * latest));
        Straggling::count(seen, 2.5, normal).unwrap().rate()
    }

    pub fn of(reference: Reference) -> Self {
        Counter { own: reference == Reference::Group, median: None }
    }
}

/// Lets `sizer` see that many steps of `draw(group size)`; returns the sizes and the counted rates.
pub fn run(
    sizer: &mut dyn GroupSizer,
    counter: &mut Counter,
    steps: usize,
    mut draw: impl FnMut(usize) -> Vec<f32>,
) -> (Vec<usize>, Vec<f64>) {
    (0..steps)
        .map(|_| {
            let g = sizer.group_size();
            let length = draw(g);
            let seen = GroupReport::new(g, &length);
            let rate = counter.rate(&seen);
            sizer.observe(&seen);
            (g, rate)
        })
        .unzip()
}

pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}
