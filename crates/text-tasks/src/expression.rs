//! Integer expressions, evaluated exactly.

/// Longest expression that is read, in bytes; it bounds the recursion.
const LONGEST: usize = 64;

/// Value of an expression and the numbers it names, in their order; `None` unless the whole text is one.
///
/// ```text
/// sum = product (("+" | "-") product)*;   product = factor ("*" factor)*;   factor = number | "(" sum ")"
/// ```
///
/// Numbers are decimal without sign or leading zero. No blanks, no unary minus, at most 64 bytes; a value beyond i64
/// gives `None`.
pub(crate) fn evaluate(text: &str) -> Option<(i64, Vec<i64>)> {
    if text.len() > LONGEST {
        return None;
    }
    let mut parser = Parser { rest: text.as_bytes(), numbers: Vec::new() };
    let value = parser.sum()?;
    parser.rest.is_empty().then_some((value, parser.numbers))
}

struct Parser<'a> {
    rest: &'a [u8],
    numbers: Vec<i64>,
}

impl Parser<'_> {
    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(found)..];
        found
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.take(b'+') {
                value = value.checked_add(self.product()?)?;
            } else if self.take(b'-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while self.take(b'*') {
            value = value.checked_mul(self.factor()?)?;
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        if self.take(b'(') {
            let value = self.sum()?;
            return self.take(b')').then_some(value);
        }
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        if number.len() > 1 && number[0] == b'0' {
            return None;
        }
        let value = std::str::from_utf8(number).ok()?.parse().ok()?;
        self.rest = rest;
        self.numbers.push(value);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_bind_before_sums_and_sums_go_from_the_left() {
        assert_eq!(evaluate("2+3*4"), Some((14, vec![2, 3, 4])));
        assert_eq!(evaluate("(2+3)*4"), Some((20, vec![2, 3, 4])));
        assert_eq!(evaluate("10-4-3"), Some((3, vec![10, 4, 3])));
        assert_eq!(evaluate("10-(4-3)"), Some((9, vec![10, 4, 3])));
        assert_eq!(evaluate("((0))"), Some((0, vec![0])));
    }

    #[test]
    fn whatever_is_no_expression_has_no_value() {
        for text in [
            "",
            "+",
            "-3",
            "3+",
            "3++4",
            "3--4",
            "(3",
            "3)",
            "()",
            "3 + 4",
            "03",
            "00",
            "3.0",
            "3/1",
            "2(3)",
            "3=3",
            "٣",
            "9223372036854775808",
            "9223372036854775807+1",
            "9999999999*9999999999",
        ] {
            assert_eq!(evaluate(text), None, "{text:?}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000)), None);
        assert_eq!(evaluate(&format!("{}1{}", "(".repeat(31), ")".repeat(31))), Some((1, vec![1])));
    }
}
