//! Conversations as Qwen models were taught to read them (ChatML).

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sets the rules; only the first message counts as one by the models' own templates.
    System,
    /// Asks.
    User,
    /// Answers.
    Assistant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// What Qwen2.5 is told when nobody tells it anything.
const DEFAULT_SYSTEM: &str = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

fn turn(role: Role, content: &str) -> String {
    format!("<|im_start|>{}\n{content}<|im_end|>\n", role.name())
}

/// A prompt for Qwen2.5: all messages and the start of the answer. A default system message goes first if there is none.
///
/// ```
/// use token_policy::{Role, qwen25_prompt};
/// let prompt = qwen25_prompt(&[(Role::System, "Be brief."), (Role::User, "3+4?")]);
/// assert_eq!(prompt, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n3+4?<|im_end|>\n<|im_start|>assistant\n");
/// ```
pub fn qwen25_prompt(messages: &[(Role, &str)]) -> String {
    let mut prompt = String::new();
    if messages.first().is_none_or(|m| m.0 != Role::System) {
        prompt += &turn(Role::System, DEFAULT_SYSTEM);
    }
    prompt.extend(messages.iter().map(|(role, content)| turn(*role, content)));
    prompt + "<|im_start|>assistant\n"
}

/// A prompt for Qwen3: all messages and the start of the answer. Answers before the last question lose their thoughts;
/// without `thinking` the answer starts with an empty block of them.
///
/// ```
/// use token_policy::{Role, qwen3_prompt};
/// let prompt = qwen3_prompt(&[(Role::User, "3+4?")], false);
/// assert_eq!(prompt, "<|im_start|>user\n3+4?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
/// ```
pub fn qwen3_prompt(messages: &[(Role, &str)], thinking: bool) -> String {
    // what a tool said is no question
    let asks = |m: &(Role, &str)| {
        m.0 == Role::User && !(m.1.starts_with("<tool_response>") && m.1.ends_with("</tool_response>"))
    };
    let last_question = messages.iter().rposition(asks).unwrap_or(messages.len());
    let mut prompt = String::new();
    for (i, &(role, content)) in messages.iter().enumerate() {
        if role != Role::Assistant {
            prompt += &turn(role, content);
            continue;
        }
        let (thoughts, answer) = parted(content);
        if i > last_question && (i + 1 == messages.len() || !thoughts.is_empty()) {
            let thoughts = thoughts.trim_matches('\n');
            prompt += &turn(role, &format!("<think>\n{thoughts}\n</think>\n\n{}", answer.trim_start_matches('\n')));
        } else {
            prompt += &turn(role, answer);
        }
    }
    prompt += "<|im_start|>assistant\n";
    if !thinking {
        prompt += "<think>\n\n</think>\n\n";
    }
    prompt
}

/// Thoughts and answer.
fn parted(content: &str) -> (&str, &str) {
    let Some((_, answer)) = content.rsplit_once("</think>") else { return ("", content) };
    let before = content.split("</think>").next().unwrap_or_default().trim_end_matches('\n');
    let thoughts = before.rsplit("<think>").next().unwrap_or_default().trim_start_matches('\n');
    (thoughts, answer.trim_start_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qwen25_gets_its_default_rules_only_when_it_is_given_none() {
        assert_eq!(
            qwen25_prompt(&[(Role::User, "Hi"), (Role::Assistant, "Yes?"), (Role::User, "3+4?")]),
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n\
             <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n\
             <|im_start|>user\n3+4?<|im_end|>\n<|im_start|>assistant\n"
        );
        assert_eq!(qwen25_prompt(&[(Role::System, "")]), "<|im_start|>system\n<|im_end|>\n<|im_start|>assistant\n");
    }

    #[test]
    fn qwen3_forgets_old_thoughts_and_starts_with_empty_ones_when_told_not_to_think() {
        let messages = [
            (Role::System, "Be brief."),
            (Role::User, "Hi"),
            (Role::Assistant, "<think>\nA greeting.\n</think>\n\nYes?"),
            (Role::User, "3+4?"),
        ];
        let shared = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
                      <|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\n3+4?<|im_end|>\n<|im_start|>assistant\n";
        assert_eq!(qwen3_prompt(&messages, true), shared);
        assert_eq!(qwen3_prompt(&messages, false), format!("{shared}<think>\n\n</think>\n\n"));
        assert_eq!(
            qwen3_prompt(&[(Role::User, "3?"), (Role::Assistant, "<think>\nHm.\n</think>\n\n3.")], true),
            "<|im_start|>user\n3?<|im_end|>\n\
             <|im_start|>assistant\n<think>\nHm.\n</think>\n\n3.<|im_end|>\n<|im_start|>assistant\n"
        );
    }
}
