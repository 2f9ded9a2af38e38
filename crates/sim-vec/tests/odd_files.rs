//! Whatever a file holds, reading ends in a model or an error.

use sim_vec::mjcf;
use sim_vec::models::{BUILTIN, builtin};

/// The odd files of `tests/odd`, and the models that ship.
fn corpus() -> Vec<(String, String)> {
    let dir = format!("{}/tests/odd", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let odd = files.iter().map(|f| {
        let text = String::from_utf8_lossy(&std::fs::read(f).unwrap()).into_owned();
        (f.file_name().unwrap().to_string_lossy().into_owned(), text)
    });
    odd.chain(BUILTIN.map(|name| (name.to_string(), builtin(name).unwrap().to_string()))).collect()
}

/// Xorshift, so that every run tries the same files.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

/// One of: a byte changed, a piece cut, a piece moved from another file, an attribute's value or name exchanged.
fn mutate(text: &str, other: &str, dice: &mut Dice) -> String {
    const VALUES: [&str; 14] = [
        "",
        "0",
        "-1",
        "1e308",
        "nan",
        "true",
        "auto",
        "1 2 3",
        "0 0 0 0",
        "mesh",
        "free",
        "affine",
        "99999999999",
        "é",
    ];
    const WORDS: [&str; 12] = [
        "joint", "geom", "body", "site", "tendon", "fixed", "position", "default", "frame", "class", "name", "limited",
    ];
    let bytes = text.as_bytes();
    let piece = |of: &[u8], dice: &mut Dice| {
        let from = dice.roll(of.len());
        from..(from + dice.roll(80)).min(of.len())
    };
    let mut out = bytes.to_vec();
    match dice.roll(5) {
        0 => {
            let at = dice.roll(out.len());
            if let Some(b) = out.get_mut(at) {
                *b = b"<>/\"'= 0-.e\n"[dice.roll(12)];
            }
        }
        1 => drop(out.drain(piece(bytes, dice))),
        2 => {
            let (at, from) = (dice.roll(out.len()), other.as_bytes());
            out.splice(at..at, from[piece(from, dice)].iter().copied());
        }
        choice => {
            // between quotes, or after a space
            let (mark, words): (u8, &[&str]) = if choice == 3 { (b'"', &VALUES) } else { (b' ', &WORDS) };
            let places: Vec<usize> = (0..out.len()).filter(|&i| bytes[i] == mark).collect();
            if let Some(&at) = places.get(dice.roll(places.len())) {
                let end = |b: &u8| matches!(b, b'"' | b'=' | b' ' | b'>' | b'/');
                let length = bytes[at + 1..].iter().position(end).unwrap_or(0);
                out.splice(at + 1..at + 1 + length, words[dice.roll(words.len())].bytes());
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn check(name: &str, text: &str) {
    if let Ok(model) = mjcf::parse(text, name) {
        assert_eq!(model.qpos0.len(), model.nq, "{name}");
        assert!(model.pairs.iter().all(|p| p.geoms.iter().all(|g| *g < model.geoms.len())), "{name}");
    }
}

#[test]
fn odd_files_end_in_a_model_or_an_error() {
    for (name, text) in corpus() {
        check(&name, &text);
        // cut short anywhere
        for end in (0..text.len()).step_by(61).filter(|i| text.is_char_boundary(*i)) {
            check(&name, &text[..end]);
        }
    }
}

#[test]
fn mutated_files_end_in_a_model_or_an_error() {
    let corpus = corpus();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let (name, text) = &corpus[dice.roll(corpus.len())];
        let mut broken = text.clone();
        for _ in 0..=dice.roll(3) {
            let other = dice.roll(corpus.len());
            broken = mutate(&broken, &corpus[other].1, &mut dice);
        }
        check(name, &broken);
    }
}

#[test]
fn deep_files_do_not_exhaust_the_stack() {
    for tag in ["body", "frame", "default", "replicate", "include", "nonsense"] {
        for depth in [150, 250, 20_000] {
            let section = if tag == "default" { "default" } else { "worldbody" };
            let (open, close) = (format!("<{tag} class='c'>").repeat(depth), format!("</{tag}>").repeat(depth));
            check(tag, &format!("<mujoco><{section}>{open}{close}</{section}></mujoco>"));
            let (open, close) = (format!("<{tag}>").repeat(depth), format!("</{tag}>").repeat(depth));
            check(tag, &format!("<mujoco><{section}>{open}{close}</{section}></mujoco>"));
        }
    }
}
