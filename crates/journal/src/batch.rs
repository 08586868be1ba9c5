//! A batch: one input with the events that it decided. A journal stores batches, and a replay checks them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spinney_kernel::primitives::limit::BATCH_BYTES_MAX;

use spinney_kernel::primitives::{Body, SourceFiles, StoredFile, Time};
use spinney_kernel::record::{AgentSnapshot, Event, Outcome, ToolAsk};
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::Request;
use spinney_kernel::rules::{Input, InputKind};

use crate::JournalFault;
use crate::json::{self, Unwritable};

/// Enough for most batches.
const BATCH_BYTES: usize = 1_024;
/// Typical size of an event.
const EVENT_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub input: Input,
    pub events: Vec<Event>,
}

/// A batch in its stored form. It is made once: what is appended again is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedBatch {
    bytes: Arc<Vec<u8>>,
    events: u64,
    now: Time,
}

impl EncodedBatch {
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many events it has.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// When its input arrived.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// A batch that another journal has stored in these bytes.
    ///
    /// # Errors
    /// If it is not a batch, or larger than one may be.
    pub fn from_stored(bytes: Vec<u8>) -> Result<Self, JournalFault> {
        if bytes.len() > BATCH_BYTES_MAX {
            let (what, size, max) = ("a batch in bytes", bytes.len(), BATCH_BYTES_MAX);
            return Err(JournalFault::TooLarge { what, size, max });
        }
        let batch = Batch::decode(&bytes)
            .map_err(|error| JournalFault::Failed { reason: format!("this is not a batch: {error}") })?;
        Ok(Self { events: batch.events.len() as u64, now: batch.input.now, bytes: Arc::new(bytes) })
    }

    /// # Errors
    /// Never for what [`Batch::encode`] made.
    pub fn decode(&self) -> serde_json::Result<Batch> {
        Batch::decode(&self.bytes)
    }
}

impl Batch {
    /// The stored form: JSON, with texts shared by input and event stored once. It is made here, for every store: the code
    /// that writes and reads all events is compiled once.
    ///
    /// # Errors
    /// If it is too large, or contains a type that no journal holds.
    pub fn encode(mut self) -> Result<EncodedBatch, JournalFault> {
        self.fold();
        let (now, events) = (self.input.now, self.events.len() as u64);
        let room = BATCH_BYTES.max(self.events.len() * EVENT_BYTES).min(BATCH_BYTES_MAX);
        let bytes = json::to_vec(&self, room)
            .map_err(|error: Unwritable| JournalFault::Failed { reason: error.to_string() })?;
        if bytes.len() > BATCH_BYTES_MAX {
            let (what, size, max) = ("a batch in bytes", bytes.len(), BATCH_BYTES_MAX);
            return Err(JournalFault::TooLarge { what, size, max });
        }
        Ok(EncodedBatch { bytes: Arc::new(bytes), events, now })
    }

    /// Reads what [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// If it is not a batch.
    pub fn decode(bytes: &[u8]) -> serde_json::Result<Self> {
        let mut batch: Self = serde_json::from_slice(bytes)?;
        batch.unfold();
        Ok(batch)
    }

    /// Removes texts from the input that an event contains too, so they are stored once.
    pub fn fold(&mut self) {
        if let Some((done, body, asks, files)) = done_twice(self) {
            if done.body == *body {
                done.body = Body::default();
            }
            if done.asks == *asks {
                done.asks.clear();
            }
            if done.files == *files {
                done.files.clear();
            }
        }
        if let Some((standing, copy)) = stood_twice(self)
            && standing.as_deref() == Some(copy)
        {
            *standing = None;
        }
        if let Some((sources, copy)) = sources_twice(self)
            && sources == copy
        {
            *sources = SourceFiles::default();
        }
        if let Some((text, copy)) = twice(&mut self.input, &self.events)
            && text == copy
        {
            text.clear();
        }
    }

    /// Restores what [`fold`](Self::fold) removed.
    pub fn unfold(&mut self) {
        if let Some((done, body, asks, files)) = done_twice(self) {
            if done.body.is_empty() {
                done.body.clone_from(body);
            }
            if done.asks.is_empty() {
                done.asks.clone_from(asks);
            }
            if done.files.is_empty() {
                done.files.clone_from(files);
            }
        }
        if let Some((standing, copy)) = stood_twice(self)
            && standing.is_none()
        {
            *standing = Some(Box::new(copy.clone()));
        }
        if let Some((sources, copy)) = sources_twice(self)
            && sources.is_empty()
        {
            sources.clone_from(copy);
        }
        if let Some((text, copy)) = twice(&mut self.input, &self.events)
            && text.is_empty()
        {
            text.clone_from(copy);
        }
    }
}

/// The report of a completed effect, and the event fields that repeat it.
fn done_twice(batch: &mut Batch) -> Option<(&mut Done, &Body, &Vec<ToolAsk>, &Vec<StoredFile>)> {
    let InputKind::Report(Report::Done(done)) = &mut batch.input.what else { return None };
    match batch.events.first() {
        Some(Event::CallEnded { outcome: Outcome::Done { body, asks, files, .. }, .. }) => {
            Some((done, body, asks, files))
        }
        Some(_) | None => None,
    }
}

/// A rollback's agent state in the request, and its copy in the event.
fn stood_twice(batch: &mut Batch) -> Option<(&mut Option<Box<AgentSnapshot>>, &AgentSnapshot)> {
    let InputKind::Request { request, .. } = &mut batch.input.what else { return None };
    let Request::Rollback(rollback) = request.as_mut() else { return None };
    match batch.events.first() {
        Some(Event::ContextRestored(restored)) => Some((&mut rollback.standing, &restored.standing)),
        Some(_) | None => None,
    }
}

/// What a tree is resumed from, in the request and in the event.
fn sources_twice(batch: &mut Batch) -> Option<(&mut SourceFiles, &SourceFiles)> {
    let InputKind::Request { request, .. } = &mut batch.input.what else { return None };
    match (request.as_mut(), batch.events.first()) {
        (Request::Start(start), Some(Event::TreeStarted { sources, .. })) => {
            Some((&mut start.sources, sources))
        }
        (Request::Adjust(adjust), Some(Event::TreeAdjusted(adjusted))) => {
            Some((&mut adjust.sources, &adjusted.sources))
        }
        _ => None,
    }
}

/// The text that an input and one of its events share. Verbs that are missing here store it twice, which only costs
/// space.
fn twice<'a>(input: &'a mut Input, events: &'a [Event]) -> Option<(&'a mut String, &'a String)> {
    let text = match &mut input.what {
        InputKind::Report(_) => return None,
        InputKind::Request { request, .. } => match request.as_mut() {
            Request::Spawn(spawn) => &mut spawn.goal,
            Request::Followup(followup) => &mut followup.task,
            Request::Send(send) => &mut send.body.text,
            Request::Publish(publish) => &mut publish.body.text,
            Request::Answer(answer) => &mut answer.answer.text,
            Request::Finish(finish) => &mut finish.result.text,
            Request::Redirect(redirect) => &mut redirect.instruction,
            _ => return None,
        },
    };
    events.iter().find_map(copied).map(|copy| (text, copy))
}

/// The text that an event copies from its input, if it does.
fn copied(event: &Event) -> Option<&String> {
    match event {
        Event::CallEnded { outcome: Outcome::Answered { answer, .. }, .. } => Some(&answer.text),
        Event::AgentSpawned(spawned) => Some(&spawned.goal),
        Event::MessageSent { body, .. } | Event::MessagePublished { body, .. } => Some(&body.text),
        Event::AgentEnding { result, .. } | Event::AgentEnded { result, .. } => {
            result.as_ref().map(|body| &body.text)
        }
        Event::AgentRedirected { instruction, .. } => Some(instruction),
        _ => None,
    }
}
