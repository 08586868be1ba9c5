//! Loops: an agent that calls the same tool with the same arguments and gets the same result again and again is warned
//! so, and ends if it continues. Messages that it has not read may change that, so they come first.

use crate::definition::Repeats;
use crate::record::{Event, Exit, FailureCode};
use crate::rules::{Draft, agent};
use crate::world::AgentIx;

/// Warns an agent about its row of identical calls, or ends it. Returns whether it ended. A warned agent gets a
/// turn to act on it, however many equal calls its last answer had.
pub(super) fn ends(draft: &mut Draft<'_>, ix: AgentIx) -> bool {
    let agent = draft.agent(ix);
    let Repeats { notice, end } = agent.terms.repeats;
    let Some(row) = agent.progress.row().filter(|_| agent.inbox.is_empty()) else { return false };
    let (tool, count) = (row.tool.to_owned(), row.count);
    if notice > 0 && !row.is_noticed {
        if count >= notice {
            let agent = draft.agent_id(ix).clone();
            draft.record(Event::RepeatsNoticed { agent, tool, count, count_max: end });
        }
        return false;
    }
    if end == 0 || count < end {
        return false;
    }
    agent::end(draft, ix, looped(&tool, count), None);
    true
}

fn looped(tool: &str, count: u32) -> Exit {
    let message = format!(
        "it called `{tool}` {count} times in a row with the same arguments, and the result was the same each time: say in its prompt what to do instead, or raise `budget.repeats`"
    );
    Exit::failed(FailureCode::LoopDetected, message)
}
