//! Which events of a tree are wanted.

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::context::EventContext;
use spinney_kernel::primitives::{AgentId, Topic, TreeId};

use crate::agents::{self, AgentPath, WrongAgentPath};
use crate::topics::{self, TopicError};

/// Events about one agent, of one topic, or both.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only events about this agent.
    pub agent: Option<AgentId>,
    /// Only this topic and those below it.
    pub topic: Option<Topic>,
}

/// Why a filter would match nothing.
#[derive(Debug, thiserror::Error)]
pub enum EventFilterError {
    /// The tree cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// The path leads to no agent.
    #[error(transparent)]
    Path(#[from] WrongAgentPath),
    /// No agent has the id: the words for it, with suggestions.
    #[error("{0}")]
    Agent(String),
    /// No event has the topic.
    #[error(transparent)]
    Topic(TopicError),
}

impl EventFilter {
    /// A filter that some event can match: another one would wait forever, or look like a tree in which nothing happened.
    ///
    /// # Errors
    /// If nothing can match it, or the tree cannot be read.
    pub async fn checked(
        journal: &dyn Journal,
        tree: TreeId,
        agent: Option<AgentPath>,
        topic: Option<Topic>,
    ) -> Result<Self, EventFilterError> {
        let mut filter = Self { agent: None, topic };
        if let Some(path) = agent {
            let agent = agents::at(journal, tree, path).await??;
            let known = agents::known(journal, tree).await?;
            if !known.contains(&agent) {
                return Err(EventFilterError::Agent(agents::unknown(&agent, &known)));
            }
            filter.agent = Some(agent);
        }
        if let Some(topic) = &filter.topic {
            topics::check(journal, tree, topic).await.map_err(|error| match error {
                TopicError::Journal(fault) => EventFilterError::Journal(fault),
                unknown @ TopicError::Unknown { .. } => EventFilterError::Topic(unknown),
            })?;
        }
        Ok(filter)
    }

    /// Whether an event is wanted.
    #[must_use]
    pub fn has_text_of(&self, path: &[AgentId]) -> bool {
        self.topic.is_none() && self.agent.as_ref().is_none_or(|agent| path.last() == Some(agent))
    }

    /// Whether an event is wanted.
    #[must_use]
    pub fn has(&self, context: &EventContext) -> bool {
        let agent = self.agent.is_none() || context.agent == self.agent;
        agent && self.topic.as_ref().is_none_or(|topic| topic.covers(&context.topic))
    }
}
