//! Addition on paper, with a second look.

use rollouts::TextTask;

use crate::answer::last_answer;
use crate::draw::Draw;
use crate::split::Split;

/// Add two numbers of equally many digits, column by column, and check as often as it seems worth it.
///
/// ```text
/// prompt      47+85=
/// completion  7+5+0=13         columns from the right: digit + digit + carry = sum
///             4+8+1=13
///             ?133             the result so far, and a wish to check it: the columns again
///             7+5+0=12
///             4+8+1=13
///             =132             the answer
/// ```
///
/// Scored by the last line alone: 1 for `=` and the exact sum without leading zeros, else 0.
///
/// In reference solutions the first pass has a wrong column with chance ¼ (as above) and is then always checked; a right
/// pass is checked again with chance ½, up to six passes in all. So the number of passes is geometric, within a prompt
/// as much as between prompts, and a policy that errs gains by longer answers, one that does not by shorter.
///
/// Numbers have 2 to 4 digits; 5 or 6 in [`Split::Harder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    split: Split,
}

/// Passes over the columns in a reference solution, at most.
const PASSES: usize = 6;

impl Addition {
    /// Instances of a split.
    pub fn new(split: Split) -> Self {
        Addition { split }
    }

    fn instance(&self, index: u64) -> [i64; 2] {
        let make = |draw: &mut Draw| {
            let digits = if self.split == Split::Harder { draw.within(5, 6) } else { draw.within(2, 4) };
            let low = 10i64.pow(digits as u32 - 1);
            Some([0; 2].map(|_| draw.within(low, 10 * low - 1)))
        };
        self.split.instance(0x0ADD, index, make, |&[a, b]| vec![a.min(b) as u64, a.max(b) as u64])
    }
}

impl TextTask for Addition {
    fn prompt(&self, index: u64) -> String {
        let [a, b] = self.instance(index);
        format!("{a}+{b}=\n")
    }

    fn score(&self, index: u64, completion: &str) -> f32 {
        let [a, b] = self.instance(index);
        f32::from(u8::from(last_answer(completion) == Some((a + b).to_string().as_str())))
    }

    fn solution(&self, index: u64, variant: u64) -> Option<String> {
        let [a, b] = self.instance(index);
        let mut draw = Draw::new(&[0x0ADD_0DE5, index, variant]);
        let columns = a.to_string().len();
        let mut wrong = draw.chance(1, 4).then(|| draw.below(columns));
        let mut text = String::new();
        for pass in 1.. {
            let off = if draw.chance(1, 2) { 1 } else { -1 };
            let result = write_pass(a, b, wrong.map(|column| (column, off)), &mut text);
            let again = wrong.take().is_some() || (pass < PASSES && draw.chance(1, 2));
            text.push_str(&format!("{}{result}", if again { '?' } else { '=' }));
            if !again {
                break;
            }
            text.push('\n');
        }
        Some(text)
    }
}

/// Writes the columns, one of them off by ±1, and returns the result that they give.
fn write_pass(a: i64, b: i64, wrong: Option<(usize, i64)>, out: &mut String) -> String {
    let digits = |n: i64| n.to_string().bytes().rev().map(|d| i64::from(d - b'0')).collect::<Vec<_>>();
    let (a, b) = (digits(a), digits(b));
    let mut carry = 0;
    let mut result = String::new();
    for column in 0..a.len() {
        let right = a[column] + b[column] + carry;
        let sum = match wrong {
            // 0 − 1 is no column's sum
            Some((at, off)) if at == column => right + if right == 0 { 1 } else { off },
            _ => right,
        };
        out.push_str(&format!("{}+{}+{carry}={sum}\n", a[column], b[column]));
        let written = if column + 1 == a.len() { sum } else { sum % 10 };
        result.insert_str(0, &written.to_string());
        carry = sum / 10;
    }
    result
}
