//! Numbers a trainer reports, and who takes them.

/// Named scalars, in a fixed order.
pub trait Scalars {
    /// Calls `f` once for each.
    fn each(&self, f: &mut dyn FnMut(&'static str, f64));
}

/// Takes one report per update: a progress bar, a file, a test.
pub trait Recorder {
    /// `update` counts from 0.
    fn record(&mut self, update: u64, report: &dyn Scalars);
}
