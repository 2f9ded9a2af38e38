//! Whatever a file holds, reading ends in a model or an error. From `crates/sim-vec`:
//!
//! ```text
//! cargo +nightly fuzz run mjcf fuzz/corpus/mjcf tests/odd models
//! ```
//!
//! The reader's own files are compiled here instead of the crate: instrumenting the engine's kernels, which are not
//! under test, for every kind of lane takes longer than many runs.
#![no_main]
#![allow(dead_code)]

#[path = "../../src/mjcf/mod.rs"]
mod mjcf;
#[path = "../../src/model/mod.rs"]
mod model;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(model) = mjcf::parse(text, "fuzz.xml") {
        assert_eq!(model.qpos0.len(), model.nq);
    }
});
