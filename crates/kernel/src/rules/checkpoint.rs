//! Makes checkpoints: requested ones, and those that a decision makes automatically.

use crate::primitives::CheckpointKind;
use crate::primitives::{AgentId, CheckpointName, Seq, limit};
use crate::record::Event;
use crate::rules::Draft;

/// Makes the checkpoint at the start of a branch.
pub(crate) fn of_branch(draft: &mut Draft<'_>, agent: &AgentId) {
    if !draft.is_over() {
        make(draft, agent.clone(), CheckpointKind::Branch, None, 0);
    }
}

/// Makes the automatic checkpoints at the end of a decision: of every agent that is about to take a turn and has
/// taken enough since its last one. Its tool results are in its context by then. They are the last events of their
/// batch, because a branch begins where a batch ends.
pub(crate) fn follow(draft: &mut Draft<'_>) {
    for ix in draft.take_due() {
        let Some(agent) = draft.agents().living(ix) else { continue };
        let number = agent.progress.turns / limit::CHECKPOINT_EVERY_TURNS;
        make(draft, draft.agent_id(ix).clone(), CheckpointKind::Automatic, None, number);
    }
}

/// Gives an agent's context the requested or a generated name.
pub(crate) fn make(
    draft: &mut Draft<'_>,
    agent: AgentId,
    kind: CheckpointKind,
    name: Option<CheckpointName>,
    number: u32,
) -> CheckpointName {
    let at = Seq(draft.seq().0 + 1);
    let name = name.unwrap_or_else(|| CheckpointName::drawn(draft.tree(), at, draft.now(), draft.draw()));
    draft.record(Event::CheckpointMade { agent, name: name.clone(), kind, number });
    name
}
