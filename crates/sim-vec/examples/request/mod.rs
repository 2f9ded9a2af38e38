//! What the timing examples share: requests of `key=value` words, answers of one JSON line each.
//!
//! With words on the command line they are the only request. Without, each line of standard input is one, its words
//! set apart by tabs, and is answered before the next is read, so that another program can interleave its own runs
//! with ours in one process.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::str::FromStr;

use serde_json::{Value, json};
use sim_vec::dispatch::{Isa, Precision};

/// Anything that went wrong, as text for the user.
pub type Failure = Box<dyn Error>;

/// Keys with values, all of them known.
pub struct Request(BTreeMap<String, String>);

impl Request {
    /// Errors: a word without `=`, or a key that is not in `keys`.
    fn parse<'a>(words: impl Iterator<Item = &'a str>, keys: &[&str]) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not key=value"))?;
            if !keys.contains(&key) {
                return Err(format!("unknown key `{key}`; use {}", keys.join(", ")).into());
            }
            found.insert(key.to_string(), value.to_string());
        }
        Ok(Request(found))
    }

    /// The value of a key, if it was given.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The number of a key, or `default`.
    pub fn number(&self, key: &str, default: usize) -> Result<usize, Failure> {
        self.value(key).map(|v| v.unwrap_or(default))
    }

    /// Instruction set (`isa`, default the widest there is) and precision (`precision`, default f32).
    pub fn lanes(&self) -> Result<(Isa, Precision), Failure> {
        let precision = match self.word("precision") {
            None | Some("f32") => Precision::F32,
            Some("f64") => Precision::F64,
            Some(other) => return Err(format!("unknown precision `{other}`; use f32 or f64").into()),
        };
        Ok((Isa::choose(self.value("isa")?)?, precision))
    }

    fn value<T: FromStr<Err: Error + 'static>>(&self, key: &str) -> Result<Option<T>, Failure> {
        let parse = |w: &str| w.parse().map_err(|e| format!("{key}={w}: {e}").into());
        self.word(key).map(parse).transpose()
    }
}

/// Answers the command line, or standard input until it ends. An error of a line is answered as `{"error": …}`.
pub fn serve(keys: &[&str], mut answer: impl FnMut(&Request) -> Result<Value, Failure>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.is_empty() {
        return match Request::parse(words.iter().map(String::as_str), keys).and_then(|r| answer(&r)) {
            Ok(value) => {
                println!("{value}");
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("error: {e}");
                ExitCode::FAILURE
            }
        };
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answered = Request::parse(line.split('\t'), keys).and_then(|r| answer(&r));
        let value = answered.unwrap_or_else(|e| json!({ "error": e.to_string() }));
        println!("{value}");
        if std::io::stdout().flush().is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Uniform in [−1, 1) from a hash of environment, step and actuator; `benches/peers` uses the same.
pub fn control(env: usize, step: usize, actuator: usize) -> f64 {
    let mut h = (env as u32).wrapping_mul(0x9E37_79B1)
        ^ (step as u32).wrapping_mul(0x85EB_CA77)
        ^ (actuator as u32).wrapping_mul(0xC2B2_AE3D);
    h ^= h >> 15;
    h = h.wrapping_mul(0x2C1B_3C6D);
    h ^= h >> 12;
    h = h.wrapping_mul(0x297A_2D39);
    h ^= h >> 15;
    (h >> 8) as f64 / 8_388_608.0 - 1.0
}
