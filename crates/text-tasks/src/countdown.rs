//! Countdown: reach a target from given numbers.

use rollouts::TextTask;

use crate::answer::last_answer;
use crate::draw::Draw;
use crate::expression::evaluate;
use crate::split::Split;

/// How many numbers a countdown gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Three: a search tree of at most 27 leaves.
    Three,
    /// Four: up to 18 first moves, each onto a tree of three numbers.
    Four,
}

/// Combine every given number, each exactly once, with `+`, `-` and `*` into the target.
///
/// ```text
/// prompt      3 7 12=26        numbers = target
/// completion  12-3=9,7         a move: two numbers, result, then the numbers that are left
///             9+7=16           nothing is left and 16 is not 26: the next line is another move from the same numbers
///             9*7=63           … until none is untried, then from one number more
///             12+7=19,3
///             19+3=22
///             ...
///             =12+(7*2)        the expression that was found
/// ```
///
/// Only the last line is scored: 1 if it is `=`, then an expression of `+ - * ( )` over exactly the given numbers whose
/// integer value is the target; else 0. How it was found does not matter: a policy may learn to search, and to search
/// better than the reference does.
///
/// Half of the reference solutions show no working and are the last line alone. A policy that imitates them must guess,
/// and is mostly wrong; whether to work a prompt out is left to reinforcement. The other half are a depth-first search
/// in random order, failures included. At each node the first move tried leads to the target with chance ½ and is random
/// otherwise, so that there is an intuition to learn and room to improve on it; lengths are heavy-tailed. Every value in
/// it is in 1..=99: differences are taken large − small, moves to 0 or beyond 99 are not made. A search longer than 380
/// characters (508 for four numbers) is drawn again in another order, at last without failures.
///
/// Numbers are 1..=20 and targets 10..=99; [`Split::Harder`] has at least one number in 21..=50.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Countdown {
    level: Level,
    split: Split,
}

/// Largest value the reference search writes.
const LARGEST: i64 = 99;
/// Orders tried before a solution without failures is given.
const REDRAWS: u64 = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Instance {
    numbers: Vec<i64>,
    target: i64,
}

impl Countdown {
    /// That level's instances of a split.
    pub fn new(level: Level, split: Split) -> Self {
        Countdown { level, split }
    }

    fn size(&self) -> usize {
        match self.level {
            Level::Three => 3,
            Level::Four => 4,
        }
    }

    fn longest(&self) -> usize {
        match self.level {
            Level::Three => 380,
            Level::Four => 508,
        }
    }

    fn instance(&self, index: u64) -> Instance {
        let size = self.size();
        let make = |draw: &mut Draw| {
            let mut numbers: Vec<i64> = (0..size).map(|_| draw.within(1, 20)).collect();
            if self.split == Split::Harder {
                numbers[draw.below(size)] = draw.within(21, 50);
            }
            // a random way down gives a target that can be reached
            let mut state: Vec<Item> = numbers.iter().map(|&n| Item::given(n)).collect();
            while state.len() > 1 {
                let moves = moves(&state);
                // three numbers of 51 or more may leave no move within bounds
                if moves.is_empty() {
                    return None;
                }
                state = draw.pick(&moves).apply(&state);
            }
            let target = state[0].value;
            (target >= 10).then_some(Instance { numbers, target })
        };
        let key = |i: &Instance| {
            let mut words: Vec<u64> = i.numbers.iter().map(|&n| n as u64).collect();
            words.sort_unstable();
            words.push(i.target as u64);
            words
        };
        self.split.instance(0x0C07 + size as u64, index, make, key)
    }
}

impl TextTask for Countdown {
    fn prompt(&self, index: u64) -> String {
        let Instance { numbers, target } = self.instance(index);
        let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
        format!("{}={target}\n", numbers.join(" "))
    }

    fn score(&self, index: u64, completion: &str) -> f32 {
        f32::from(u8::from(is_right(&self.instance(index), completion)))
    }

    fn solution(&self, index: u64, variant: u64) -> Option<String> {
        let Instance { numbers, target } = self.instance(index);
        let state: Vec<Item> = numbers.iter().map(|&n| Item::given(n)).collect();
        let mut text = String::new();
        if Draw::new(&[0x0C07_0DE6, index, variant]).chance(1, 2) {
            let found = search(&state, target, 2, &mut Draw::new(&[0x0C07_0DE7, index, variant]), &mut text)?;
            return Some(format!("={found}"));
        }
        for redraw in 0..=REDRAWS {
            let guided = if redraw == REDRAWS { 2 } else { 1 };
            text.clear();
            let mut draw = Draw::new(&[0x0C07_0DE5, index, variant, redraw]);
            let found = search(&state, target, guided, &mut draw, &mut text)?;
            text.push('=');
            text.push_str(&found);
            if text.len() <= self.longest() {
                break;
            }
        }
        Some(text)
    }
}

fn is_right(instance: &Instance, completion: &str) -> bool {
    let Some((value, mut used)) = last_answer(completion).and_then(evaluate) else { return false };
    let mut given = instance.numbers.clone();
    used.sort_unstable();
    given.sort_unstable();
    value == instance.target && used == given
}

/// A number at hand and how it came about.
#[derive(Clone, Debug)]
struct Item {
    value: i64,
    text: String,
}

impl Item {
    fn given(value: i64) -> Self {
        Item { value, text: value.to_string() }
    }

    /// As an operand: what was computed stands in parentheses.
    fn operand(&self) -> String {
        if self.text.bytes().all(|b| b.is_ascii_digit()) { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// Combine the items at two places.
#[derive(Clone, Copy, Debug)]
struct Move {
    left: usize,
    right: usize,
    sign: char,
    value: i64,
}

impl Move {
    /// The result first, then what is left.
    fn apply(self, state: &[Item]) -> Vec<Item> {
        let (a, b) = (&state[self.left], &state[self.right]);
        let text = format!("{}{}{}", a.operand(), self.sign, b.operand());
        let rest = (0..state.len()).filter(|&i| i != self.left && i != self.right).map(|i| state[i].clone());
        std::iter::once(Item { value: self.value, text }).chain(rest).collect()
    }
}

/// Every move, equal lines once; none where every result leaves 1..=99.
fn moves(state: &[Item]) -> Vec<Move> {
    let mut found: Vec<Move> = Vec::new();
    for i in 0..state.len() {
        for j in i + 1..state.len() {
            let (a, b) = (state[i].value, state[j].value);
            let (large, small) = if a >= b { (i, j) } else { (j, i) };
            for (left, right, sign, value) in
                [(i, j, '+', a + b), (large, small, '-', (a - b).abs()), (i, j, '*', a * b)]
            {
                let same = |m: &Move| {
                    m.sign == sign
                        && state[m.left].value == state[left].value
                        && state[m.right].value == state[right].value
                };
                if (1..=LARGEST).contains(&value) && !found.iter().any(same) {
                    found.push(Move { left, right, sign, value });
                }
            }
        }
    }
    found
}

fn reachable(state: &[Item], target: i64) -> bool {
    match state {
        [only] => only.value == target,
        _ => moves(state).into_iter().any(|m| reachable(&m.apply(state), target)),
    }
}

/// Writes a depth-first search and returns the expression it finds. With chance `guided`/2 the first move at a node
/// that can reach the target does.
fn search(state: &[Item], target: i64, guided: usize, draw: &mut Draw, out: &mut String) -> Option<String> {
    if let [only] = state {
        return (only.value == target).then(|| only.text.clone());
    }
    let mut order = moves(state);
    draw.shuffle(&mut order);
    if draw.chance(guided, 2)
        && let Some(good) = order.iter().position(|m| reachable(&m.apply(state), target))
    {
        order[..=good].rotate_right(1);
    }
    for m in order {
        let next = m.apply(state);
        out.push_str(&format!("{}{}{}={}", state[m.left].value, m.sign, state[m.right].value, m.value));
        for (k, item) in next[1..].iter().enumerate() {
            out.push(if k == 0 { ',' } else { ' ' });
            out.push_str(&item.value.to_string());
        }
        out.push('\n');
        let found = search(&next, target, guided, draw, out);
        if found.is_some() {
            return found;
        }
    }
    None
}
