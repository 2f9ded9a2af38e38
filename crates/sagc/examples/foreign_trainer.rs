//! A trainer that knows nothing of this workspace sizes its groups by the seconds its completions took.
//!
//! ```sh
//! cargo run -p sagc --example foreign_trainer
//! ```

use sagc::{GroupReport, GroupSizer, Sagc, SagcConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizer = Sagc::new(SagcConfig::new(&[4, 8, 16]))?;
    let mut seed = 1u64;
    for step in 0..120 {
        let g = sizer.group_size();
        // 64 completions; from step 60 on one in eight takes five times as long
        let seconds: Vec<f32> = (0..64)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let u = (seed >> 40) as f32 / (1u64 << 24) as f32;
                if step >= 60 && u < 0.125 { 5.0 } else { 0.8 + 0.4 * u }
            })
            .collect();
        sizer.observe(&GroupReport::new(g, &seconds));
        if step % 20 == 19 {
            println!("{}", sizer.status());
        }
    }
    Ok(())
}
