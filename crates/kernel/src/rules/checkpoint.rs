//! Making checkpoints: the ones that somebody asks for, and those that a decision makes by itself.

use crate::record::Event;
use crate::rules::Draft;
use crate::words::CheckpointKind;
use crate::words::{AgentId, CheckpointName, Seq, limit};

/// Makes the checkpoint where a branch begins.
pub(crate) fn of_branch(draft: &mut Draft<'_>, agent: &AgentId) {
    if !draft.is_over() {
        make(draft, agent.clone(), CheckpointKind::Branch, None, 0);
    }
}

/// Makes the checkpoints that follow a decision by themselves: of every agent that is about to take a turn and has taken
/// so many since the last one. Everything that its tools said is in its context by then. They are the last events of
/// their batch: a branch begins where one ends.
pub(crate) fn follow(draft: &mut Draft<'_>) {
    for ix in draft.take_due() {
        let Some(agent) = draft.agents().living(ix) else { continue };
        let number = agent.progress.turns / limit::CHECKPOINT_EVERY_TURNS;
        make(draft, draft.agent_id(ix).clone(), CheckpointKind::Automatic, None, number);
    }
}

/// Gives an agent's context a name: the one it is to have, or one that is drawn.
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
