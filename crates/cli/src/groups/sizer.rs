//! From the words of `--group` to a sizer.

use anyhow::{Context, Result, anyhow, bail};
use sagc::baselines::{GreedyChance, PerArmBeta, RandomWithHistogram, Schedule};
use sagc::{Fixed, GroupReport, GroupSizer, Reference, Sagc, SagcConfig, StateError, Status, check_menu};

use super::config::{GroupConfig, ReferenceArg};

/// Every sizer the command line knows.
pub(crate) enum Sizer {
    Fixed(Fixed),
    Sagc(Sagc),
    Greedy(GreedyChance),
    PerArm(PerArmBeta),
    Random(RandomWithHistogram),
    Schedule(Schedule),
}

/// Probability with which the greedy sizer may break the budget.
const GREEDY_DELTA: f64 = 0.1;

impl Sizer {
    /// The sizer that a run asks for. Errors say what to write.
    pub(crate) fn new(config: &GroupConfig) -> Result<Self> {
        let g = &config.group;
        let spec = g.sizer.trim();
        let sizer = parse(spec, config).with_context(|| format!("group.sizer (--group) is `{spec}`"))?;
        Ok(sizer)
    }

    /// Where the controller stands, if it is one.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Sizer::Sagc(s) => Some(s.status()),
            Sizer::Greedy(s) => Some(s.status()),
            Sizer::PerArm(s) => Some(s.status()),
            Sizer::Fixed(_) | Sizer::Random(_) | Sizer::Schedule(_) => None,
        }
    }

    fn inner(&self) -> &dyn GroupSizer {
        match self {
            Sizer::Fixed(s) => s,
            Sizer::Sagc(s) => s,
            Sizer::Greedy(s) => s,
            Sizer::PerArm(s) => s,
            Sizer::Random(s) => s,
            Sizer::Schedule(s) => s,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn GroupSizer {
        match self {
            Sizer::Fixed(s) => s,
            Sizer::Sagc(s) => s,
            Sizer::Greedy(s) => s,
            Sizer::PerArm(s) => s,
            Sizer::Random(s) => s,
            Sizer::Schedule(s) => s,
        }
    }
}

impl GroupSizer for Sizer {
    fn group_size(&self) -> usize {
        self.inner().group_size()
    }
    fn observe(&mut self, seen: &GroupReport<'_>) {
        self.inner_mut().observe(seen);
    }
    fn save(&self) -> String {
        self.inner().save()
    }
    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        self.inner_mut().restore(saved)
    }
}

fn parse(spec: &str, config: &GroupConfig) -> Result<Sizer> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let rollouts = config.trainer.rollouts;
    let menu =
        |sizes: &[usize]| check_menu(rollouts, sizes).context("trainer.rollouts stays the same whatever the size");
    let adaptive = || -> Result<SagcConfig> {
        if !rest.is_empty() {
            bail!("{kind} takes no sizes here; set group.candidates");
        }
        let g = &config.group;
        menu(&g.candidates)?;
        Ok(SagcConfig {
            budget: g.budget,
            threshold: g.threshold,
            reference: match g.reference {
                ReferenceArg::Running => Reference::Running,
                ReferenceArg::Group => Reference::Group,
            },
            weight: g.weight,
            dwell: g.dwell,
            ..SagcConfig::new(&g.candidates)
        })
    };
    Ok(match kind {
        "static" => {
            let size = whole(rest)?;
            menu(&[size])?;
            Sizer::Fixed(Fixed::new(size)?)
        }
        "sagc" => Sizer::Sagc(Sagc::new(adaptive()?)?),
        "greedy" => Sizer::Greedy(GreedyChance::new(adaptive()?, GREEDY_DELTA)?),
        "per-arm" => Sizer::PerArm(PerArmBeta::new(adaptive()?)?),
        "random" => {
            let counts = counts(rest)?;
            menu(&counts.iter().map(|c| c.0).collect::<Vec<_>>())?;
            let weights: Vec<(usize, f64)> = counts.iter().map(|(g, n)| (*g, *n as f64)).collect();
            Sizer::Random(RandomWithHistogram::new(&weights, config.seed)?)
        }
        "schedule" => {
            let counts = counts(rest)?;
            menu(&counts.iter().map(|c| c.0).collect::<Vec<_>>())?;
            let sizes = counts.iter().flat_map(|(g, n)| std::iter::repeat_n(*g, *n)).collect();
            Sizer::Schedule(Schedule::new(sizes)?)
        }
        _ => {
            let known = ["static:8", "sagc", "greedy", "per-arm", "random:4*12,8*30", "schedule:32*10,16*50"];
            bail!("there is no such sizer; write {}", known.join(", "))
        }
    })
}

fn whole(text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| anyhow!("`{text}` is no group size; write a whole number, as static:8"))
}

/// `4*12,8*30`: sizes and how often.
fn counts(text: &str) -> Result<Vec<(usize, usize)>> {
    let part = |p: &str| {
        let (size, times) = p.split_once('*').unwrap_or((p, "1"));
        let times = times.trim().parse::<usize>().ok().filter(|n| (1..=1_000_000).contains(n));
        Ok((whole(size)?, times.ok_or_else(|| anyhow!("`{p}`: write SIZE*TIMES, as 8*30"))?))
    };
    text.split(',').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Algo, Preset};
    use crate::groups::presets::preset;

    fn with(spec: &str) -> Result<Sizer> {
        let mut config = preset(Preset::Quick, Algo::Grpo, None, "countdown").unwrap();
        config.group.sizer = spec.into();
        Sizer::new(&config)
    }

    #[test]
    fn every_sizer_can_be_asked_for() {
        for (spec, first) in [("static:8", 8), ("sagc", 32), ("greedy", 32), ("per-arm", 32), ("schedule:16*2,4", 16)] {
            assert_eq!(with(spec).unwrap().group_size(), first, "{spec}");
        }
        assert!([4, 8].contains(&with("random:4*12,8*30").unwrap().group_size()));
        assert!(with("sagc").unwrap().status().is_some() && with("static:8").unwrap().status().is_none());
    }

    #[test]
    fn a_wrong_spec_is_answered_with_what_would_do() {
        for (spec, hint) in [
            ("static", "static:8"),
            ("static:many", "whole number"),
            ("static:1", "at least 2"),
            ("static:7", "sizes that divide"),
            ("sagc:4,8", "group.candidates"),
            ("random:4*x", "SIZE*TIMES"),
            ("schedule:", "whole number"),
            ("magic", "per-arm"),
        ] {
            let error = with(spec).map(|_| ()).map_err(|e| format!("{e:#}")).unwrap_err();
            assert!(error.contains(hint), "{spec}: {error}");
        }
    }
}
