//! Which sizes hold the batch.

use alloc::vec::Vec;

use crate::ConfigError;

/// Checks that every candidate divides the number of rollouts per step, so that P·G = N holds with a whole number of
/// prompts P whatever the size.
///
/// A size of N itself leaves one prompt per step and a rate of 0 or 1; it is allowed.
///
/// Errors: [`ConfigError::GroupTooSmall`] for a candidate below 2; [`ConfigError::Menu`] names the candidates that do not
/// divide N and all sizes that do.
///
/// ```
/// assert!(sagc::check_menu(128, &[4, 8, 16, 32]).is_ok());
/// let error = sagc::check_menu(12, &[4, 8]).unwrap_err();
/// assert_eq!(error.to_string(), "12 rollouts cannot be split into groups of 8; sizes that divide them: 2,3,4,6,12");
/// ```
pub fn check_menu(rollouts: usize, candidates: &[usize]) -> Result<(), ConfigError> {
    if let Some(&g) = candidates.iter().find(|g| **g < 2) {
        return Err(ConfigError::GroupTooSmall(g));
    }
    let misfits: Vec<usize> =
        candidates.iter().copied().filter(|g| rollouts == 0 || !rollouts.is_multiple_of(*g)).collect();
    if misfits.is_empty() {
        return Ok(());
    }
    let fits = (2..=rollouts).filter(|g| rollouts.is_multiple_of(*g)).collect();
    Err(ConfigError::Menu { rollouts, misfits, fits })
}
