//! When a rule matches, and which parts of an attempt it reads.

use std::borrow::Cow;

use serde::Deserialize;
use serde_saphyr::Spanned;
use spinney_kernel::context::Message;
use spinney_kernel::port::model::{ModelAttempt, Purpose};
use spinney_kernel::primitives::RoleName;

/// Every condition that is there must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct When {
    /// The agent's role.
    pub(super) agent: Option<Spanned<RoleName>>,
    turn: Option<u32>,
    goal_contains: Option<String>,
    /// In the text of the last message.
    last_contains: Option<String>,
    /// In a tool result that came after the model last spoke.
    tool_result_contains: Option<String>,
    /// Below the root, which is at 0.
    depth: Option<usize>,
    /// Whether a summary is asked for, and no turn.
    pub(super) summary: bool,
    /// Whether a tool asks, and no turn.
    pub(super) of_tool: bool,
    /// Whether it is the agent's last turn; either if absent.
    wrap_up: Option<bool>,
}

impl When {
    pub(super) fn matches(&self, attempt: &ModelAttempt) -> bool {
        let Self { agent, turn, goal_contains, last_contains, tool_result_contains, depth, .. } = self;
        let Self { summary, of_tool, wrap_up, .. } = self;
        let origin = &attempt.origin;
        *summary == (attempt.purpose == Purpose::Summary)
            && *of_tool == (attempt.purpose == Purpose::OfTool)
            && holds(wrap_up.as_ref(), |wrap_up| *wrap_up == (attempt.purpose == Purpose::WrapUp))
            && holds(agent.as_ref(), |role| role.value == origin.role)
            && holds(turn.as_ref(), |turn| *turn == attempt.turn)
            && holds(depth.as_ref(), |depth| *depth == origin.depth())
            && holds(goal_contains.as_ref(), |part| origin.goal.contains(part.as_str()))
            && holds(last_contains.as_ref(), |part| last(attempt).contains(part.as_str()))
            && holds(tool_result_contains.as_ref(), |part| {
                results(attempt).any(|text| text.contains(part.as_str()))
            })
    }
}

/// The text of the last message; empty if there is none. The last-call notice does not count.
pub(super) fn last(attempt: &ModelAttempt) -> Cow<'_, str> {
    let notes = usize::from(attempt.purpose == Purpose::WrapUp);
    attempt.packet.messages.iter().rev().nth(notes).map_or(Cow::Borrowed(""), |message| message.text())
}

/// The tool results since the model last spoke, the newest first.
fn results(attempt: &ModelAttempt) -> impl Iterator<Item = Cow<'_, str>> {
    let since = attempt.packet.messages.iter().rev();
    let since = since.take_while(|message| !matches!(message.as_ref(), Message::Said { .. }));
    since.filter(|message| matches!(message.as_ref(), Message::Result { .. })).map(|message| message.text())
}

fn holds<T: ?Sized>(condition: Option<&T>, test: impl Fn(&T) -> bool) -> bool {
    condition.is_none_or(test)
}
