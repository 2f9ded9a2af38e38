//! The virtual queue: straggling beyond the budget, not yet made up for.

/// A virtual queue with conditional anti-windup.
///
/// ```text
/// Q ← max(0, Q + s − ε),   or, where the excess s − ε > 0 is withheld:   debt ← debt + (s − ε)
/// Σ(s − ε) ≤ Q + debt      for any sequence of s
/// ```
///
/// Neely 2010, ch. 4.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BudgetQueue {
    /// Q, in groups' share times steps.
    pub queue: f64,
    /// Excess that was withheld.
    pub debt: f64,
}

impl BudgetQueue {
    /// Books a step's excess s − ε over the budget. `withhold`: a positive excess is put into the debt.
    pub fn book(&mut self, excess: f64, withhold: bool) {
        if withhold && excess > 0.0 {
            self.debt += excess;
        } else {
            self.queue = (self.queue + excess).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_is_queued_or_withheld_and_relief_is_never_withheld() {
        let mut q = BudgetQueue::default();
        q.book(0.75, false);
        q.book(-0.25, true);
        q.book(0.5, true);
        assert_eq!(q, BudgetQueue { queue: 0.5, debt: 0.5 });
        q.book(-1.0, false);
        assert_eq!(q, BudgetQueue { queue: 0.0, debt: 0.5 });
    }
}
