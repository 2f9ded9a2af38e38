//! Sorting by adjacent swaps.

use rollouts::TextTask;

use crate::answer::last_answer;
use crate::draw::Draw;
use crate::split::Split;

/// Sort digits by swapping neighbours, one line per swap. The control with a light tail: a reference solution has as
/// many lines as the prompt has inversions, whatever their order.
///
/// ```text
/// prompt      3142
/// completion  1342             after one swap
///             1324
///             1234
///             =1234            the answer
/// ```
///
/// Scored by the last line alone: 1 for `=` and the prompt's digits in ascending order, else 0.
///
/// Lists have 4 to 6 digits, 7 or 8 in [`Split::Harder`]; digits may repeat, no list is sorted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortingTrace {
    split: Split,
}

impl SortingTrace {
    /// Instances of a split.
    pub fn new(split: Split) -> Self {
        SortingTrace { split }
    }

    fn instance(&self, index: u64) -> Vec<u8> {
        let make = |draw: &mut Draw| {
            let size = if self.split == Split::Harder { draw.within(7, 8) } else { draw.within(4, 6) };
            let digits: Vec<u8> = (0..size).map(|_| draw.within(0, 9) as u8).collect();
            (!digits.is_sorted()).then_some(digits)
        };
        self.split.instance(0x0508, index, make, |digits| digits.iter().map(|&d| u64::from(d)).collect())
    }
}

fn text(digits: &[u8]) -> String {
    digits.iter().map(|&d| char::from(b'0' + d)).collect()
}

impl TextTask for SortingTrace {
    fn prompt(&self, index: u64) -> String {
        text(&self.instance(index)) + "\n"
    }

    fn score(&self, index: u64, completion: &str) -> f32 {
        let mut digits = self.instance(index);
        digits.sort_unstable();
        f32::from(u8::from(last_answer(completion) == Some(text(&digits).as_str())))
    }

    fn solution(&self, index: u64, variant: u64) -> Option<String> {
        let mut draw = Draw::new(&[0x0508_0DE5, index, variant]);
        let mut digits = self.instance(index);
        let mut out = String::new();
        loop {
            let descents: Vec<usize> = (1..digits.len()).filter(|&i| digits[i - 1] > digits[i]).collect();
            if descents.is_empty() {
                return Some(out + "=" + &text(&digits));
            }
            let at = draw.pick(&descents);
            digits.swap(at - 1, at);
            out.push_str(&text(&digits));
            out.push('\n');
        }
    }
}
