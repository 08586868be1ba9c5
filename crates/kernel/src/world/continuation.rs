//! Keeps the root of a tree that ended, and lets it go on in a tree that continues this one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::World;
use crate::budget::{Ceilings, Terms};
use crate::primitives::{BlobRef, OutputPath};
use crate::record::{ClockKind, TreeContinuation};
use crate::world::{Agent, AgentClock, AgentIx, AgentTerms};

/// A root that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRoot {
    agent: Box<Agent>,
    files: BTreeMap<OutputPath, Option<BlobRef>>,
    left: Ceilings,
}

impl EndedRoot {
    #[must_use]
    pub fn terms(&self) -> &AgentTerms {
        &self.agent.terms
    }

    /// What was left of its ceilings.
    #[must_use]
    pub const fn left(&self) -> Ceilings {
        self.left
    }

    /// Upper bound on the tokens of its context.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.agent.progress.tokens
    }

    /// Whether a message can follow the last one of its context: no tool call is unanswered.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        self.agent.progress.window.can_go_on()
    }

    pub(crate) fn clock(&self, kind: ClockKind) -> Option<&AgentClock> {
        self.agent.clocks.as_deref()?.find(kind)
    }

    pub(crate) fn is_by_the_wall(&self) -> bool {
        self.agent.clocks.as_deref().is_some_and(|clocks| clocks.is_wall)
    }
}

impl World {
    /// The root is about to be retired.
    pub(super) fn keep_root(&mut self, root: AgentIx) {
        let mut agent = Box::new(self.agent(root).clone());
        agent.clocks = agent.clocks.or(self.ended_clocks.take());
        let (files, left) = (self.outputs.of(root), self.ledger.left(agent.account));
        self.ended_root = Some(Box::new(EndedRoot { agent, files, left }));
    }

    pub(super) fn continue_root(
        &mut self,
        TreeContinuation { due, is_kept }: TreeContinuation,
        terms: Terms,
    ) {
        let (Some(root), Some(ended)) = (self.agents.root(), self.ended_root.take()) else {
            unreachable!("only a tree that has ended is continued")
        };
        let EndedRoot { mut agent, files, left: _ } = *ended;
        let account = self.ledger.open(None, terms);
        match self.owners.get_mut(account.place()) {
            Some(owner) => *owner = root,
            None => self.owners.push(root),
        }
        agent.revive(account, &due);
        self.agents.revive_root(agent);
        self.outputs.give(root, files);
        self.wound(root);
        if let Some(definition) = &mut self.definition {
            Arc::make_mut(definition).is_kept = is_kept;
        }
    }
}
