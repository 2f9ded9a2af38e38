//! What a completion answers: its last line.

/// The text after `=` of a completion's last line; `None` where that line does not begin with `=`. One line break at
/// the very end is forgiven, nothing else is.
pub(crate) fn last_answer(completion: &str) -> Option<&str> {
    let text = completion.strip_suffix('\n').unwrap_or(completion);
    text.rsplit('\n').next()?.strip_prefix('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_last_line_that_begins_with_the_marker_answers() {
        assert_eq!(last_answer("1+2=3\n=7"), Some("7"));
        assert_eq!(last_answer("=7\n"), Some("7"));
        assert_eq!(last_answer("=="), Some("="));
        for text in ["", "\n", "1+2=3", "=7\n\n", "=7\n8", " =7"] {
            assert_eq!(last_answer(text), None, "{text:?}");
        }
    }
}
