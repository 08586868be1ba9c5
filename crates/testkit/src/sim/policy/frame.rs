//! A step or a group that runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use spinney_kernel::definition::{GraphNode, NodeKind, OnPartialSuccess};
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::{Exit, NodeEnd, NodeStart, Skip, StartOf};

use super::super::law::{Law, hold};
use super::BoundedValue;
use super::group::Progress;

/// Failures of a step although its agent completed.
const IN_SPITE: [&str; 6] =
    ["bad_undo", "no_answer", "output_mismatch", "shared_full", "too_many", "value_too_large"];

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) start: NodeStart,
    pub(super) agent: Option<AgentId>,
    /// How its agent ends; set when that is decided.
    pub(super) exit: Option<Exit>,
    /// How it must end without an agent or a member.
    pub(super) unrun: Option<NodeEnd>,
    /// What a step's agent must be given.
    pub(super) given: BTreeMap<String, Option<BoundedValue>>,
    /// What a person answered.
    pub(super) answer: Option<String>,
    /// How far a group is.
    pub(super) progress: Option<Progress>,
    /// Values that only its members see.
    pub(super) locals: BTreeMap<String, BoundedValue>,
}

/// What the agent of a step said last.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Whether it fits its schema.
    pub(super) fits: bool,
    /// Whether all of it is in the events.
    pub(super) whole: bool,
}

impl Frame {
    pub(super) fn new(start: &NodeStart, node: &GraphNode) -> Self {
        let is_group = start.of != StartOf::Undo && node.members().is_some();
        Self {
            start: start.clone(),
            agent: None,
            exit: None,
            unrun: None,
            given: BTreeMap::new(),
            answer: None,
            progress: is_group.then(|| Progress::new(start)),
            locals: BTreeMap::new(),
        }
    }

    pub(super) const fn is_group(&self) -> bool {
        self.progress.is_some()
    }

    /// Whether it waits for shared values, or waited for some.
    pub(super) fn waits(&self) -> bool {
        !self.start.waits_for.is_empty()
    }

    /// Judges the end of a step or question.
    pub(super) fn judge_step(
        &self,
        node: &GraphNode,
        end: &NodeEnd,
        is_stopped: bool,
        answer: Option<&Answer>,
    ) -> Law {
        let name = &self.start.name;
        let is = |expected: &NodeEnd| {
            hold(is_same(end, expected), || format!("{name} ended as {end:?}, and not as {expected:?}"))
        };
        if let Some(unrun) = &self.unrun {
            return is(unrun);
        }
        if let NodeKind::Ask(_) = node.kind {
            return match &self.answer {
                Some(_) => is(&NodeEnd::succeeded()),
                None => hold(!end.is_success(), || format!("{name} succeeded without an answer")),
            };
        }
        match (&self.agent, &self.exit) {
            (None, _) if self.waits() && is_stopped => is(&NodeEnd::Cancelled),
            (None, _) if self.waits() && matches!(end, NodeEnd::Skipped { why: Skip::Missing(_) }) => Ok(()),
            // It was refused, or nobody was left who could write what it waited for.
            (None, _) => hold(matches!(end, NodeEnd::Failed { .. }), || {
                format!("{name} had no agent and ended as {end:?}")
            }),
            (Some(agent), None) => Err(format!("{name} ended before {agent}")),
            (Some(_), Some(Exit::Completed)) => {
                let is_spoilt =
                    matches!(end, NodeEnd::Failed { error, .. } if IN_SPITE.contains(&error.code.as_str()));
                if is_spoilt && !(answer.is_some() && is_no_answer(end)) {
                    return Ok(());
                }
                let fits = answer.is_some_and(|answer| answer.fits);
                hold(fits, || format!("{name} succeeded with an answer that does not fit"))?;
                is(&NodeEnd::succeeded())
            }
            (Some(_), Some(Exit::Cancelled { .. })) if is_stopped => is(&NodeEnd::Cancelled),
            (Some(_), Some(exit)) => is(&NodeEnd::from_exit(exit)),
        }
    }

    /// Judges the end of a group.
    pub(super) fn judge_group(
        &self,
        node: &GraphNode,
        end: &NodeEnd,
        is_stopped: bool,
        policy: OnPartialSuccess,
        scope: &Map<String, Value>,
    ) -> Law {
        let Some(progress) = &self.progress else { return Ok(()) };
        let name = &self.start.name;
        // Its own agent was ended from outside, or refused.
        let has_agent =
            node.budget.is_some() && self.start.within.is_some() && self.start.of == StartOf::Node;
        if self.exit.is_some() || (has_agent && self.agent.is_none() && self.unrun.is_none()) {
            return Ok(());
        }
        let expected = match &self.unrun {
            Some(unrun) => unrun.clone(),
            None => progress.end(node, is_stopped, policy, scope).map_err(|law| format!("{name} {law}"))?,
        };
        hold(is_same(end, &expected), || format!("{name} ended as {end:?}, and not as {expected:?}"))
    }
}

fn is_no_answer(end: &NodeEnd) -> bool {
    matches!(end, NodeEnd::Failed { error, .. } if error.code == "no_answer")
}

/// Whether two ends are the same, messages and tasks aside.
pub(super) fn is_same(end: &NodeEnd, expected: &NodeEnd) -> bool {
    match (end, expected) {
        (NodeEnd::Failed { error, .. }, NodeEnd::Failed { error: other, .. }) => error.code == other.code,
        (NodeEnd::Succeeded { winner, .. }, NodeEnd::Succeeded { winner: other, .. }) => winner == other,
        (end, expected) => end == expected,
    }
}
