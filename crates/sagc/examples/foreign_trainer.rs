//! A trainer that knows nothing of this workspace sizes its groups by the seconds its completions took.
//!
//! ```sh
//! cargo run -p sagc --example foreign_trainer
//! ```

use sagc::{GroupReport, GroupSizer, Sagc, SagcConfig, check_menu};

/// Somebody else's trainer: it hands back what it measured.
struct Trainer {
    seed: u64,
    step: u32,
}

/// What it says of a completion.
struct Completion {
    seconds: f32,
    hit_the_limit: bool,
}

const LIMIT_S: f32 = 5.0;
const COMPLETIONS: usize = 64;

impl Trainer {
    fn uniform(&mut self) -> f32 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Generates `prompts` groups of `members`, one after the other. From step 60 on one completion in eight runs into
    /// the limit, from step 120 on nearly all do.
    fn generate_and_learn(&mut self, prompts: usize, members: usize) -> Vec<Completion> {
        let looping = [0.0, 0.125, 0.95][self.step as usize / 60];
        self.step += 1;
        (0..prompts * members)
            .map(|_| {
                let hit_the_limit = self.uniform() < looping;
                let seconds = if hit_the_limit { LIMIT_S } else { 0.8 + 0.4 * self.uniform() };
                Completion { seconds, hit_the_limit }
            })
            .collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let candidates = [4, 8, 16];
    check_menu(COMPLETIONS, &candidates)?;
    let mut sizer = Sagc::new(SagcConfig::new(&candidates))?;
    let mut trainer = Trainer { seed: 1, step: 0 };
    let mut checkpoint = String::new();
    for step in 1..=180 {
        let g = sizer.group_size();
        let completions = trainer.generate_and_learn(COMPLETIONS / g, g);
        let seconds: Vec<f32> = completions.iter().map(|c| c.seconds).collect();
        let cut: Vec<bool> = completions.iter().map(|c| c.hit_the_limit).collect();
        sizer.observe(&GroupReport::new(g, &seconds).with_truncated(&cut));
        if step % 20 == 0 {
            println!("{}", sizer.status());
            checkpoint = sizer.save();
        }
    }
    println!("\na checkpoint keeps one line:\n{checkpoint}");
    let mut resumed = Sagc::new(SagcConfig::new(&candidates))?;
    resumed.restore(&checkpoint)?;
    println!("resumed: {}", resumed.status());
    Ok(())
}
