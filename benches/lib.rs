//! Benchmarks of the workspace; see the `[[bench]]` targets.
