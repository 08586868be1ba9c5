//! Open questions for people. A question about a tool shows what a yes permits.

use spinney::tree::OpenQuestion;
use spinney_kernel::definition::SubjectPattern;
use spinney_kernel::primitives::{AgentId, grouped};
use spinney_kernel::world::TreeState;
use spinney_view::approval::{ApprovalExtent, ShownApproval};
use spinney_view::questions::joined;
use spinney_view::wording::{LINE_CHARS_MAX, counted, one_line};

/// Above this many lines, a short form is repeated below, next to the prompt.
const SCREEN_LINES: usize = 16;

/// The line above the open questions of a tree.
pub(crate) fn heading(count: usize, state: TreeState) -> String {
    let questions = counted(count as u64, "question");
    if state.is_sealed() {
        format!("{questions} that cannot be answered here:")
    } else {
        format!("{questions} to answer:")
    }
}

/// A question as lines. `show_all` is the command that shows what a brief extent hides.
pub(crate) fn lines(question: &OpenQuestion, extent: ApprovalExtent, show_all: &str) -> Vec<String> {
    let path = joined(&question.path);
    let Some(ask) = &question.approves else {
        return format!("{path} asks: {}", question.text.trim_end()).lines().map(str::to_owned).collect();
    };
    let ShownApproval { lines: values, hidden_bytes } = ShownApproval::new(ask, extent);
    let agent = question.path.last().map(AgentId::as_str).unwrap_or_default();
    let tool = one_line(&ask.tool, LINE_CHARS_MAX);
    let with = if values.is_empty() { "without arguments" } else { "with this" };
    let what = format!("{path} asks: May `{agent}` call `{tool}` {with}? Answer yes, or say why not.");
    let is_tall = values.len() > SCREEN_LINES;
    let mut lines = vec![what.clone()];
    lines.extend(values.into_iter().map(|value| format!("  {value}")));
    if let Some(offers) = &question.offers {
        // A tool without a subject is approved with all of its values.
        let what = match offers {
            SubjectPattern::Exact(args) if *args == ask.args => {
                "the same call with the same values".to_owned()
            }
            pattern => format!("calls with `{pattern}`, whatever the other values are"),
        };
        lines.push(format!(
            "  `always for this agent` or `always for this tree` allows {what}, from now on; `…: PATTERN` narrows it"
        ));
    }
    if hidden_bytes > 0 {
        let (hidden, all) = (grouped(hidden_bytes as u64), grouped(ask.args.len() as u64));
        lines.push(format!(
            "!! {hidden} OF {all} BYTES ARE HIDDEN. See all of them before you say yes: {show_all}"
        ));
    }
    if is_tall {
        lines.push(what);
    }
    lines
}
