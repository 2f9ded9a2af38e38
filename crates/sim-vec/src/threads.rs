//! Where work runs: a pool of one's own or the one that calls.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::SimError;

/// Starts a pool of `threads` threads, to be shared by whatever should take turns on them.
///
/// Errors: [`SimError::Threads`] if there are none or the system refuses them.
pub fn pool(threads: usize) -> Result<Arc<ThreadPool>, SimError> {
    let refused = |reason: String| SimError::Threads { threads, reason };
    if threads == 0 {
        return Err(refused("at least one is needed".into()));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("sim-vec {i}")).build();
    Ok(Arc::new(pool.map_err(|e| refused(e.to_string()))?))
}

/// Runs `work` in the pool, if there is one.
pub(crate) fn within<R: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
