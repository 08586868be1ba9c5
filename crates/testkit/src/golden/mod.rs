//! Golden journals: journals of released versions, stored as files with the state that they lead to. Every later
//! version must read them, apply them, and decide them again if it implements their rules.
//!
//! A journal is a file `NAME.jsonl` with one batch per line, byte for byte as a store keeps it; `NAME.json` beside it
//! names the tree and its end.

mod command;
mod read;
mod scene;
mod write;

pub use read::{GoldenMismatch, check};
pub use scene::SCENES;
pub use write::{Golden, write};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spinney_journal::ChainHash;
use spinney_kernel::budget::Amounts;
use spinney_kernel::context::Contexts;
use spinney_kernel::primitives::{AgentId, TreeId};
use spinney_kernel::record::Exit;
use spinney_kernel::world::World;

/// The state that a golden journal leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The tree.
    pub tree: TreeId,
    /// The tree whose first events it shares, if it is a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<TreeId>,
    /// The rules it was decided by.
    pub rules: u32,
    /// How many events it has.
    pub events: u64,
    /// The hash over all of it.
    pub hash: String,
    /// Its state, as one word.
    pub state: String,
    /// Each agent's state, and what it and everything below it used.
    pub agents: BTreeMap<AgentId, (String, Amounts)>,
    /// Open questions.
    pub questions: Vec<String>,
    /// How it ended, and its answer.
    pub end: Option<(Exit, String)>,
}

impl Ending {
    /// The state of a tree whose first event is that of `seed`.
    pub(crate) fn at(seed: TreeId, world: &World, contexts: &Contexts, rules: u32, hash: ChainHash) -> Self {
        let snapshot = spinney::tree::TreeSnapshot::at(world, contexts);
        Self {
            tree: world.tree(),
            seed: (seed != world.tree()).then_some(seed),
            rules,
            events: snapshot.seq.0,
            hash: hash.to_string(),
            state: snapshot.state.as_str().to_owned(),
            agents: snapshot
                .agents
                .into_iter()
                .map(|view| (view.agent, (view.status.to_string(), view.spent)))
                .collect(),
            questions: snapshot.questions.into_iter().map(|question| question.text).collect(),
            end: snapshot.end.map(|end| (end.exit, end.shown.text)),
        }
    }
}
