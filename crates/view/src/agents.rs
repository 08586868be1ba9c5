//! Finds agents by id or path: an unknown one gets suggestions.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use spinney::tree_file::nearest;
use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::primitives::{AgentId, IdError, TreeId};
use spinney_kernel::record::Event;

use crate::{TreeFold, fold};

/// The error for an unknown agent, with suggestions.
pub fn unknown<'a>(agent: &AgentId, known: impl IntoIterator<Item = &'a AgentId>) -> String {
    format!("no agent `{agent}` in this tree: {}", meant(agent, known))
}

/// Suggestions for an unknown id.
pub fn meant<'a>(agent: &AgentId, known: impl IntoIterator<Item = &'a AgentId>) -> String {
    nearest::help(agent.as_str(), known.into_iter().map(AgentId::as_str), "agents")
}

/// An agent as a person names it: by its id, or by its path from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPath {
    /// Empty for an id alone.
    pub above: Vec<AgentId>,
    /// The agent's own id.
    pub id: AgentId,
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.above.iter().try_for_each(|above| write!(f, "{above}/"))?;
        write!(f, "{}", self.id)
    }
}

impl FromStr for AgentPath {
    type Err = IdError;

    /// An agent's id, or its path as events show it.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let (above, id) = text.rsplit_once('/').map_or((None, text), |(above, id)| (Some(above), id));
        let above = above.into_iter().flat_map(|above| above.split('/')).map(id_of);
        Ok(Self { above: above.collect::<Result<_, _>>()?, id: id_of(id)? })
    }
}

/// The id of an agent as people write it: that of a step may be written as in a pipeline.
///
/// # Errors
/// If no agent can have it.
pub fn id_of(text: &str) -> Result<AgentId, IdError> {
    agent_of_step(text).as_deref().unwrap_or(text).parse()
}

/// The agent of a step as journals name it: `read-3` for `read[3]`, `draft-r2` for `draft#2`.
fn agent_of_step(name: &str) -> Option<String> {
    let (step, mut rest) = name.split_at(name.find(['[', '#'])?);
    let mut agent = step.to_owned();
    while !rest.is_empty() {
        let (mark, after) = match rest.strip_prefix('[') {
            Some(item) => ("-", item.split_once(']')?),
            None => {
                let round = rest.strip_prefix('#')?;
                ("-r", round.split_at(round.find(['[', '#']).unwrap_or(round.len())))
            }
        };
        let number: u32 = after.0.parse().ok()?;
        agent += &format!("{mark}{number}");
        rest = after.1;
    }
    Some(agent)
}

/// A path that leads to no agent of a tree.
#[derive(Debug, thiserror::Error)]
#[error("no agent `{path}` in this tree: {meant}")]
pub struct WrongAgentPath {
    /// As it was given.
    pub path: AgentPath,
    /// Suggestions.
    pub meant: String,
}

/// The id of the agent at a path. Ids are unique in a tree, so an id alone is not looked up, and the last id of a path may
/// be of an agent that is still to come; what is above it must exist.
///
/// # Errors
/// If the tree cannot be read.
pub async fn at(
    journal: &dyn Journal,
    tree: TreeId,
    path: AgentPath,
) -> Result<Result<AgentId, WrongAgentPath>, JournalFault> {
    if path.above.is_empty() {
        return Ok(Ok(path.id));
    }
    let mut known = Paths::default();
    fold(journal, tree, &mut known).await?;
    let Paths(known) = known;
    let meant = match (known.get(&path.id), path.above.last().and_then(|above| known.get(above))) {
        (Some(real), _) if *real == path.above => return Ok(Ok(path.id)),
        (Some(real), _) => {
            format!("did you mean `{}`?", AgentPath { above: real.clone(), id: path.id.clone() })
        }
        (None, Some(real)) if real[..] == path.above[..path.above.len() - 1] => return Ok(Ok(path.id)),
        (None, _) => {
            let paths = known.into_iter().map(|(id, above)| AgentPath { above, id }.to_string());
            let mut paths: Vec<String> = paths.collect();
            paths.sort();
            nearest::help(&path.to_string(), paths.iter().map(String::as_str), "agents")
        }
    };
    Ok(Err(WrongAgentPath { path, meant }))
}

/// The ids above each agent of a tree, from the root.
#[derive(Default)]
struct Paths(BTreeMap<AgentId, Vec<AgentId>>);

impl TreeFold for Paths {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        for event in &batch.events {
            let Event::AgentSpawned(spawned) = event else { continue };
            let above = spawned.parent.as_ref().map_or_else(Vec::new, |parent| {
                let mut above = self.0.get(parent).cloned().unwrap_or_default();
                above.push(parent.clone());
                above
            });
            self.0.insert(spawned.agent.clone(), above);
        }
        ControlFlow::Continue(())
    }
}

/// Every agent of a tree, living or ended, in spawn order.
///
/// # Errors
/// If the tree cannot be read.
pub async fn known(journal: &dyn Journal, tree: TreeId) -> Result<Vec<AgentId>, JournalFault> {
    let mut spawned = Spawns(Vec::new());
    fold(journal, tree, &mut spawned).await?;
    Ok(spawned.0)
}

struct Spawns(Vec<AgentId>);

impl TreeFold for Spawns {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        self.0.extend(batch.events.iter().filter_map(|event| match event {
            Event::AgentSpawned(spawned) => Some(spawned.agent.clone()),
            _ => None,
        }));
        ControlFlow::Continue(())
    }
}
