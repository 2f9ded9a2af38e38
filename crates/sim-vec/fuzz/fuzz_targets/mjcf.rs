//! Whatever a file holds, reading ends in a model or an error. From `crates/sim-vec`:
//!
//! ```text
//! cargo +nightly fuzz run mjcf fuzz/corpus/mjcf tests/odd models
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(model) = sim_vec::mjcf::parse(text, "fuzz.xml") {
        assert_eq!(model.qpos0.len(), model.nq);
    }
});
