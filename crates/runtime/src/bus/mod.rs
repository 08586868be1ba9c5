//! The bus: subscriptions to a tree's events, as the tail of its journal. A watcher starts after any event, sees
//! every event that it asked for once and in order, and delays no other. One that is too slow reads the journal until
//! it has caught up. Only deltas, which no journal holds, can be missed, and then it learns how many.

mod delta;
mod hub;
mod index;
mod line;
mod note;
mod recent;
mod recorded_event;
mod tail;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use spinney_journal::JournalFault;
use spinney_kernel::context::EventContext;
use spinney_kernel::primitives::{AgentId, Seq, Topic};

pub use delta::Delta;
pub(crate) use hub::{EndOnDrop, Hub};
pub(crate) use note::reply_topic;
pub use note::{Note, reply};
pub(crate) use recorded_event::actor_of;
pub use recorded_event::{RecordedEvent, recorded_events};
pub use tail::Tail;
pub use watcher::{Watcher, WatcherCount};

/// Default number of events that wait for a watcher before it has to read the journal.
const ROOM: usize = 1_024;

/// What a watcher wants to see of a tree. The default is every event.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Only events after this one.
    pub after: Seq,
    /// Only events about this agent.
    pub agent: Option<AgentId>,
    /// Only this topic and those below it.
    pub topic: Option<Topic>,
    /// Only events of this type: `agent_spawned`, `call_ended` and so on.
    pub kind: Option<String>,
    /// Also text as models stream it.
    pub deltas: bool,
    /// What happens if it is too slow.
    pub overflow: Overflow,
    /// How many events may wait for it; 1,024 by default.
    pub room: Option<usize>,
}

/// What happens to a watcher that is too slow. It never affects other watchers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The oldest deltas are dropped, and it learns how many. It reads events from the journal, so none is lost.
    #[default]
    DropDeltas,
    /// The tree takes no further input until there is room. A watcher that takes longer than this is disconnected.
    /// Deltas are dropped as above.
    Wait(Duration),
    /// It is disconnected.
    Disconnect,
}

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// A durable event.
    Event(Arc<TracedEvent>),
    /// Text that a model streams now. It is void if the call is retried.
    Delta(Arc<Delta>),
    /// This many deltas were dropped here.
    Missed(u64),
}

/// An event with its context.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedEvent {
    /// The event with its position and time.
    pub recorded: RecordedEvent,
    /// The agent it is about, its cause, and when that began.
    pub context: EventContext,
}

/// Why a watcher ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchFault {
    /// It was too slow and asked to be disconnected.
    #[error("this watcher was too slow and is disconnected: watch again after event {}", seen.0)]
    TooSlow {
        /// The last event that it took.
        seen: Seq,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(JournalFault),
}

impl Watch {
    /// Every event after this one.
    #[must_use]
    pub fn after(after: Seq) -> Self {
        Self { after, ..Self::default() }
    }

    fn wants(&self, TracedEvent { recorded, context }: &TracedEvent) -> bool {
        let agent = recorded.seq > self.after && (self.agent.is_none() || self.agent == context.agent);
        let topic = self.topic.as_ref().is_none_or(|topic| topic.covers(&context.topic));
        agent && topic && self.kind.as_deref().is_none_or(|kind| kind == recorded.event.as_str())
    }

    fn room(&self) -> usize {
        self.room.unwrap_or(ROOM).max(1)
    }
}
