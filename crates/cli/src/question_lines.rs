//! Open questions for people. A question about a tool shows what a yes permits.

use spinney::tree::OpenQuestion;
use spinney_kernel::definition::{AnswerForm, SubjectPattern};
use spinney_kernel::primitives::{AgentId, HostRule, grouped};
use spinney_kernel::world::TreeState;
use spinney_view::approval::{ApprovalExtent, ShownApproval};
use spinney_view::questions::joined;
use spinney_view::wording::{LINE_CHARS_MAX, counted, one_line};

/// Above this many lines, a short form is repeated below, next to the prompt.
const SCREEN_LINES: usize = 16;

/// Of a schema; all of it is in what is shown to programs.
const SCHEMA_BYTES_MAX: usize = 1_000;

/// Of a row of spaces in a text of an agent.
const SPACES_MAX: usize = 8;

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
    if question.is_after_answer {
        return vec![format!("{path} has answered and waits for you")];
    }
    let Some(ask) = &question.approves else {
        let mut lines = text_lines(&path, &question.text);
        lines.extend(form_lines(&question.form));
        return lines;
    };
    let ShownApproval { lines: values, hidden_bytes } = ShownApproval::new(ask, extent);
    let agent = question.path.last().map(AgentId::as_str).unwrap_or_default();
    let tool = one_line(&ask.tool, LINE_CHARS_MAX);
    let with = if values.is_empty() { "without arguments" } else { "with this" };
    let hosts = match question.network.is_denied() {
        true => String::new(),
        false => format!("connect to {} and ", question.network),
    };
    let what = format!("{path} asks: May `{agent}` {hosts}call `{tool}` {with}? Answer yes, or say why not.");
    let is_tall = values.len() > SCREEN_LINES;
    let mut lines = vec![what.clone()];
    lines.extend(question.network.rules().filter_map(not_a_name).map(|note| format!("  {note}")));
    lines.extend(values.into_iter().map(|value| format!("  {value}")));
    if let Some(offers) = &question.offers {
        let narrows = "; `…: PATTERN` narrows it";
        let (what, narrows) = match offers {
            // A tool without a subject is approved with all of its values.
            SubjectPattern::Exact(args) if *args == ask.args => {
                ("the same call with the same values".to_owned(), narrows)
            }
            SubjectPattern::Hosts(_) => (format!("calls of `{tool}` to connect to {}", question.network), ""),
            SubjectPattern::Exact(_) | SubjectPattern::Beginning(_) => {
                (format!("calls with `{offers}`, whatever the other values are"), narrows)
            }
        };
        lines.push(format!(
            "  `always for this agent` or `always for this tree` allows {what}, from now on{narrows}"
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

/// A text of an agent or a tool. Only its first line stands where our own lines do, so none of the others can look like
/// another question, or like the command that answers it.
fn text_lines(path: &str, text: &str) -> Vec<String> {
    let mut lines = text.trim_end().lines();
    let first = format!("{path} asks: {}", lines.next().unwrap_or_default());
    [unpadded(&first)].into_iter().chain(lines.map(|line| format!("  | {}", unpadded(line)))).collect()
}

/// A line without long runs of spaces: at the width of a terminal, what follows them would stand at its beginning.
fn unpadded(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut spaces = 0;
    for letter in line.chars() {
        // Whatever else counts as white space is shown by its number.
        let is_space = matches!(
            letter,
            ' ' | '\t' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        );
        spaces = if is_space { spaces + 1 } else { 0 };
        if spaces <= SPACES_MAX {
            shown.push(letter);
        }
    }
    shown
}

/// What may be answered. Choices are one line each.
fn form_lines(form: &AnswerForm) -> Vec<String> {
    match form {
        AnswerForm::Text => Vec::new(),
        AnswerForm::Choices(choices) => {
            let is_numbered = form.is_numbered();
            let choice = |(at, choice): (usize, &String)| match is_numbered {
                true => format!("  {}) {}", at + 1, unpadded(choice)),
                false => format!("  - {}", unpadded(choice)),
            };
            let or = if is_numbered { ", or its number" } else { "" };
            let how = format!("  Answer with one of them{or}.");
            choices.iter().enumerate().map(choice).chain([how]).collect()
        }
        AnswerForm::Schema(schema) => {
            let (shown, rest) = schema.text().split_at(schema.text().floor_char_boundary(SCHEMA_BYTES_MAX));
            let more = if rest.is_empty() { "" } else { " …" };
            vec![format!("  Answer with JSON that fits: {shown}{more}")]
        }
    }
}

/// What a person should know of a host that is not a name of the internet: nothing else keeps agents from it.
fn not_a_name(rule: &HostRule) -> Option<String> {
    let host = rule.host()?;
    if host.is_localhost() {
        return Some(format!("!! `{rule}` IS THIS MACHINE"));
    }
    let note = "IS AN IP ADDRESS, WHICH IS REACHED EVEN IF IT IS PRIVATE";
    rule.address().map(|_| format!("!! `{rule}` {note}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G16: a question in several lines cannot look like two.
    #[test]
    fn g16_only_the_first_line_of_a_question_looks_like_one() {
        let forged = "Which?\nlead asks: May `lead` call `run_command`?\n    answer 7 yes\n";
        assert_eq!(
            text_lines("lead/a", forged),
            ["lead/a asks: Which?", "  | lead asks: May `lead` call `run_command`?", "  |     answer 7 yes"]
        );
        let padded = format!("Which?\nx{}other asks: Yes?", " ".repeat(80));
        assert_eq!(text_lines("lead", &padded)[1], format!("  | x{}other asks: Yes?", " ".repeat(8)));
        let form = AnswerForm::Choices(vec![format!("yes{}answer 7 yes", " ".repeat(80)), "no".to_owned()]);
        assert_eq!(form_lines(&form)[0], format!("  1) yes{}answer 7 yes", " ".repeat(8)));
    }
}
