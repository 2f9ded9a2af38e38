//! Checks that every [`GroupSizer`] must pass. Call them from your own tests.

use alloc::vec::Vec;

use crate::{GroupReport, GroupSizer};

/// Runs the promises of [`GroupSizer`]; panics with the broken one. `make` builds equal sizers.
pub fn check_group_sizer<S: GroupSizer>(mut make: impl FnMut() -> S) {
    let (mut a, mut b) = (make(), make());
    for step in 0..200u32 {
        let g = a.group_size();
        assert!(g >= 2, "step {step}: a group of {g} has nothing to compare");
        assert_eq!(g, a.group_size(), "step {step}: the size changed without a report");
        assert_eq!(g, b.group_size(), "step {step}: equal reports, different sizes");
        // lengths with a tail that comes and goes
        let tail = if step / 40 % 2 == 0 { 7 } else { 53 };
        let length: Vec<f32> = (0..8 * g as u32)
            .map(|i| if (i * 31 + step * 17) % tail == 0 { 900.0 } else { 80.0 + (i % 9) as f32 })
            .collect();
        let cut: Vec<bool> = length.iter().map(|l| *l == 900.0).collect();
        let mut report = GroupReport::new(g, &length);
        if step % 2 == 0 {
            report = report.with_truncated(&cut);
        }
        if step % 5 > 0 {
            report = report.with_seconds(1.0 + f64::from(step % 7) / 10.0);
        }
        a.observe(&report);
        b.observe(&report);
        let saved = a.save();
        assert!(!saved.contains(['\n', '\r']), "step {step}: the saved state is more than one line");
        assert_eq!(saved, b.save(), "step {step}: equal reports, different states");
        for (g, nothing) in [
            (0, &[1.0][..]),
            (2, &[]),
            (2, &[1.0]),
            (2, &[f32::NAN, 1.0]),
            (2, &[f32::INFINITY, 1.0]),
            (2, &[-1.0, 1.0]),
        ] {
            a.observe(&GroupReport::new(g, nothing).with_seconds(1.0));
            assert_eq!(a.save(), saved, "step {step}: a report of nothing changed something");
        }
        let mut resumed = make();
        resumed.restore(&saved).expect("an equal sizer takes back what was saved");
        assert_eq!(resumed.save(), saved, "step {step}: saving what was restored gave something else");
        let cut_short = &saved[..saved.rfind(' ').unwrap_or(0)];
        let (longer, other) = (alloc::format!("{saved} 1"), alloc::format!("other-{saved}"));
        for foreign in ["", "nonsense", cut_short, &longer, &other] {
            assert!(resumed.restore(foreign).is_err(), "`{foreign}` was restored");
            assert_eq!(resumed.save(), saved, "step {step}: a refused state changed something");
        }
        assert_eq!(resumed.group_size(), a.group_size(), "step {step}: a resumed sizer has another size");
        if step % 3 == 0 {
            a = resumed;
        }
    }
}
