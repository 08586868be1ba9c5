//! What an agent of a program is told about its budget, in a line at the end of its system prompt. It changes in five
//! steps only: with each change a provider has to read the conversation again that it had cached.

use spinney::tree::ScarcestCeiling;
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::grouped;

/// How much is left, in thousandths, from which on a line is used; what to do at the last.
const STEPS: [(u64, &str); 5] = [
    (750, "more than 75 %"),
    (500, "more than 50 %"),
    (250, "more than 25 %"),
    (100, "more than 10 %"),
    (0, "less than 10 %"),
];

/// The line for what is left of a ceiling.
pub(super) fn budget_line(ceiling: &ScarcestCeiling) -> String {
    let left = ceiling.left_permille();
    let (least, part) = STEPS.into_iter().find(|(least, _)| left > *least).unwrap_or(STEPS[STEPS.len() - 1]);
    let limit = match ceiling.resource {
        Resource::Cost => usd(ceiling.limit),
        Resource::Tokens => format!("{} tokens", grouped(ceiling.limit)),
        Resource::Steps => format!("{} model calls", grouped(ceiling.limit)),
        Resource::ToolCalls => format!("{} tool calls", grouped(ceiling.limit)),
        Resource::Retries => format!("{} retries", grouped(ceiling.limit)),
    };
    let end = if least == 0 { " Finish now with what you have." } else { "" };
    format!("Budget: {part} of {limit} is left.{end}")
}

#[cfg(test)]
mod tests {
    use super::super::wire::TOLD_LINE_BYTES_MAX;
    use super::*;

    #[test]
    fn a_line_is_short_and_changes_in_steps() {
        let mut lines: Vec<String> = (0..=1_000).rev().map(|left| line(left, 1_000)).collect();
        lines.dedup();
        assert_eq!(lines.len(), STEPS.len());
        assert_eq!(lines[0], "Budget: more than 75 % of $0.000001 is left.");
        assert!(lines[4].ends_with("left. Finish now with what you have."), "{}", lines[4]);
        for (left, most) in [(u64::MAX, u64::MAX), (0, u64::MAX), (0, 0)] {
            assert!(line(left, most).len() < TOLD_LINE_BYTES_MAX);
        }
    }

    fn line(left: u64, limit: u64) -> String {
        budget_line(&ScarcestCeiling::new(Resource::Cost, limit, left))
    }
}
