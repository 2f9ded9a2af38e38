//! Modular chain: a computation whose length the prompt fixes.

use rollouts::TextTask;

use crate::draw::Draw;
use crate::split::Split;

/// Iterate x → (a·x + c) mod m until 0. The negative control for anything that looks at lengths within a group: every
/// right completion of a prompt is the same text, so lengths differ between prompts only.
///
/// ```text
/// prompt      17*2+3%31        x * a + c % m
/// completion  37,6             a·x + c, then that modulo m
///             15,15
///             33,2
///             ...
///             31,0             ends at 0
/// ```
///
/// Scored 1 if the completion is the whole chain to the character (a line break at its very end is forgiven), else 0.
///
/// m is a prime of 11..=31 and a is 2, 3 or 5; [`Split::Harder`] has m in 37..=47. Only starts that reach 0 are asked:
/// after 1 to 31 steps (16 to 46 in `Harder`), every doubling of the length being equally frequent. Chains of one
/// (a, c, m) share their ends, so a held-out chain can be the tail of one that was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModularChain {
    split: Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instance {
    x: i64,
    a: i64,
    c: i64,
    m: i64,
}

impl ModularChain {
    /// Instances of a split.
    pub fn new(split: Split) -> Self {
        ModularChain { split }
    }

    fn instance(&self, index: u64) -> Instance {
        let harder = self.split == Split::Harder;
        // the length is chosen once, then parameters are drawn until they have it: chains are short otherwise
        let octave = Draw::new(&[0x3A_C5, self.split as u64, index])
            .within(if harder { 4 } else { 0 }, if harder { 5 } else { 4 });
        let make = |draw: &mut Draw| {
            let m = draw.pick(if harder { &[37, 41, 43, 47][..] } else { &[11, 13, 17, 19, 23, 29, 31][..] });
            let a = draw.pick(&[2, 3, 5]);
            let i = Instance { x: draw.within(1, m - 1), a, c: draw.within(1, m - 1), m };
            let steps = chain(i)?.len() as u64;
            (steps.ilog2() as i64 == octave).then_some(i)
        };
        self.split.instance(0x03AC, index, make, |i| [i.x, i.a, i.c, i.m].map(|v| v as u64).to_vec())
    }
}

/// `(a·x + c, that mod m)` of each step until 0; `None` where 0 is not on the cycle of x.
fn chain(Instance { mut x, a, c, m }: Instance) -> Option<Vec<(i64, i64)>> {
    let mut steps = Vec::new();
    // m is prime and a no multiple of it: x → ax + c permutes 0..m, so 0 is met within m steps or never
    for _ in 0..m {
        let value = a * x + c;
        x = value % m;
        steps.push((value, x));
        if x == 0 {
            return Some(steps);
        }
    }
    None
}

impl TextTask for ModularChain {
    fn prompt(&self, index: u64) -> String {
        let Instance { x, a, c, m } = self.instance(index);
        format!("{x}*{a}+{c}%{m}\n")
    }

    fn score(&self, index: u64, completion: &str) -> f32 {
        let text = completion.strip_suffix('\n').unwrap_or(completion);
        f32::from(u8::from(self.solution(index, 0).as_deref() == Some(text)))
    }

    /// There is one; every variant is it.
    fn solution(&self, index: u64, _variant: u64) -> Option<String> {
        let lines: Vec<String> = chain(self.instance(index))?.iter().map(|(v, x)| format!("{v},{x}")).collect();
        Some(lines.join("\n"))
    }
}
