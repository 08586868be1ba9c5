//! Requests and replies between watchers: a note goes out with a correlation id, and replies with the same id are
//! gathered. The watcher ends with its answer or its timeout, so nothing is left behind.

use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::primitives::{Actor, AgentId, Body, Correlation, Millis, Seq, Topic};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Accepted, Publish, Send, SendReply};

use super::{RequestError, Tree};
use crate::bus::{Note, TracedEvent, Watch, WatchFault, WatchItem, Watcher, reply_topic};

/// How many replies are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// This many, each from another sender.
    First(usize),
    /// The same answer from more than half of this many senders.
    Majority(usize),
    /// One from each of this many senders.
    All(usize),
}

/// The replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replies {
    /// One reply per sender, in order of arrival. A person has no id.
    pub replies: Vec<(Option<AgentId>, String)>,
    /// Whether there were enough in time.
    pub is_complete: bool,
}

/// Why there was no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It timed out.
    #[error("no reply within {}: wait longer, or check who watches the topic", millis(*timeout))]
    TooLong {
        /// The timeout.
        timeout: Duration,
    },
    /// The tree has ended or is no longer run.
    #[error("the tree has ended: there will be no more events")]
    Ended,
    /// The tree could not be watched.
    #[error(transparent)]
    Watch(WatchFault),
    /// The note was not accepted.
    #[error(transparent)]
    Request(RequestError),
}

impl Tree {
    /// Puts a note on the bus. It is durable when this returns. Returns whether its recipient already exists.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn publish(&self, by: Actor, note: Note) -> Result<bool, RequestError> {
        let Note { to, envelope, text } = note;
        let body = Body::text(text);
        match to {
            Some(to) => Ok(self.request(by, Send { to, body, envelope }).await? == SendReply::Delivered),
            None => self.request(by, Publish { body, envelope }).await.map(|Accepted {}| true),
        }
    }

    /// Waits for the first event after `after` with this correlation, under this topic or one below it.
    ///
    /// # Errors
    /// If it times out, the tree ends first, or it cannot be watched.
    pub async fn wait_for(
        &self,
        topic: Topic,
        correlation: &Correlation,
        after: Seq,
        timeout: Duration,
    ) -> Result<Arc<TracedEvent>, ReplyError> {
        let watcher = self.watch(Watch { after, topic: Some(topic), ..Watch::default() });
        until(watcher, correlation, timeout).await
    }

    /// Puts a note on the bus and waits for the first reply.
    ///
    /// # Errors
    /// If the note is refused, it times out, or the tree ends first.
    pub async fn call(
        &self,
        by: Actor,
        note: Note,
        timeout: Duration,
    ) -> Result<Arc<TracedEvent>, ReplyError> {
        let (note, topic, correlation) = self.correlated(note);
        // Watches before sending, so no reply can be missed.
        let watcher = self.watch_replies(topic);
        self.publish(by, note).await.map_err(ReplyError::Request)?;
        until(watcher, &correlation, timeout).await
    }

    /// Puts a note on the bus and gathers replies until there are enough or it times out.
    ///
    /// # Errors
    /// If the note is refused, or the tree cannot be watched.
    pub async fn gather(
        &self,
        by: Actor,
        note: Note,
        need: Quorum,
        timeout: Duration,
    ) -> Result<Replies, ReplyError> {
        let (note, topic, correlation) = self.correlated(note);
        let mut watcher = self.watch_replies(topic);
        self.publish(by, note).await.map_err(ReplyError::Request)?;
        let mut tally = Tally { need, replies: Vec::new() };
        let gathering = async {
            while !tally.is_complete() {
                match watcher.next().await {
                    Some(Ok(WatchItem::Event(traced)))
                        if traced.context.correlation.as_ref() == Some(&correlation) =>
                    {
                        tally.take(&traced);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(fault)) => return Err(ReplyError::Watch(fault)),
                    None => return Ok(()),
                }
            }
            Ok(())
        };
        match tokio::time::timeout(timeout, gathering).await {
            Ok(Err(fault)) => Err(fault),
            Ok(Ok(())) | Err(_) => Ok(tally.end()),
        }
    }

    fn watch_replies(&self, topic: Topic) -> Watcher {
        self.watch(Watch { after: self.status().seq, topic: Some(topic), ..Watch::default() })
    }

    /// Adds a correlation id if the note has none. Also returns the topic of its replies.
    fn correlated(&self, mut note: Note) -> (Note, Topic, Correlation) {
        let correlation = note.envelope.correlation.take().unwrap_or_else(|| self.draw_correlation());
        note.envelope.correlation = Some(correlation.clone());
        let topic = reply_topic(note.envelope.topic.as_ref());
        (note, topic, correlation)
    }
}

async fn until(
    mut watcher: Watcher,
    correlation: &Correlation,
    timeout: Duration,
) -> Result<Arc<TracedEvent>, ReplyError> {
    let waiting = async {
        loop {
            match watcher.next().await {
                Some(Ok(WatchItem::Event(traced)))
                    if traced.context.correlation.as_ref() == Some(correlation) =>
                {
                    return Ok(traced);
                }
                Some(Ok(_)) => {}
                Some(Err(fault)) => return Err(ReplyError::Watch(fault)),
                None => return Err(ReplyError::Ended),
            }
        }
    };
    tokio::time::timeout(timeout, waiting).await.unwrap_or(Err(ReplyError::TooLong { timeout }))
}

fn millis(timeout: Duration) -> Millis {
    Millis(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
}

/// Replies so far, one per sender.
struct Tally {
    need: Quorum,
    replies: Vec<(Option<AgentId>, String)>,
}

impl Tally {
    fn take(&mut self, traced: &TracedEvent) {
        let (Event::MessageSent { body, .. } | Event::MessagePublished { body, .. }) = &traced.recorded.event
        else {
            return;
        };
        let sender = &traced.context.caller;
        if self.replies.iter().all(|(known, _)| known != sender) {
            self.replies.push((sender.clone(), body.text.clone()));
        }
    }

    /// The answer that more than half gave.
    fn majority(&self, of: usize) -> Option<&String> {
        let votes = |text: &String| self.replies.iter().filter(|(_, other)| other == text).count();
        self.replies.iter().map(|(_, text)| text).find(|text| 2 * votes(text) > of)
    }

    fn is_complete(&self) -> bool {
        match self.need {
            Quorum::First(count) | Quorum::All(count) => self.replies.len() >= count,
            Quorum::Majority(of) => self.majority(of).is_some(),
        }
    }

    fn end(mut self) -> Replies {
        let is_complete = self.is_complete();
        if let Quorum::Majority(of) = self.need
            && let Some(answer) = self.majority(of).cloned()
        {
            self.replies.retain(|(_, text)| *text == answer);
        }
        Replies { replies: self.replies, is_complete }
    }
}
