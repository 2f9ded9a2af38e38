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
        let report = GroupReport::new(g, &length);
        a.observe(&report);
        b.observe(&report);
        let size = a.group_size();
        for nothing in [&[][..], &[1.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0], &[-1.0, 1.0]] {
            a.observe(&GroupReport::new(2, nothing));
            assert_eq!(a.group_size(), size, "step {step}: a report of nothing changed the size");
        }
        let saved = a.save();
        let mut resumed = make();
        resumed.restore(&saved).expect("an equal sizer takes back what was saved");
        assert_eq!(resumed.save(), saved, "step {step}: saving what was restored gave something else");
        assert!(resumed.restore("nonsense").is_err(), "nonsense was restored");
        assert_eq!(resumed.save(), saved, "step {step}: a refused state changed something");
        if step % 3 == 0 {
            a = resumed;
        }
    }
}
