//! An event for programs: one object, the same on every face.

use serde_json::{Map, Value, json};
use spinney::bus::TracedEvent;
use spinney_kernel::context::EventContext;
use spinney_kernel::definition::Tags;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, CallId, Seq, TreeId};
use spinney_kernel::record::Event;

/// Ids from the root down, separated by slashes.
#[must_use]
pub fn event_path(context: &EventContext) -> String {
    let ids: Vec<&str> = context.path().iter().map(AgentId::as_str).collect();
    ids.join("/")
}

/// An event as JSON: common fields first, then its context, then its own fields.
#[must_use]
pub fn event_json(tree: TreeId, TracedEvent { recorded, context, .. }: &TracedEvent) -> Value {
    let mut line = Map::new();
    let mut fields = fields(&recorded.event);
    line.insert("type".to_owned(), fields.shift_remove("type").unwrap_or_default());
    line.insert("tree".to_owned(), tree.to_string().into());
    line.insert("seq".to_owned(), recorded.seq.0.into());
    line.insert("at".to_owned(), recorded.at.0.into());
    line.insert("path".to_owned(), event_path(context).into());
    let since = context.since.map(|since| since.0);
    let ended = Some(recorded.at.0).filter(|_| context.is_end);
    let facts = [
        ("topic", Some(context.topic.as_str().into())),
        ("thread", context.thread().map(|thread| thread.as_str().into())),
        ("caller", context.caller.as_ref().map(|caller| caller.as_str().into())),
        ("recipient", context.recipient.as_ref().map(|recipient| recipient.as_str().into())),
        ("message_type", context.message.as_ref().map(|kind| kind.as_str().into())),
        ("correlation", context.correlation.as_ref().map(|correlation| correlation.as_str().into())),
        ("start", since.map(Value::from)),
        ("end", ended.map(Value::from)),
        ("agent", context.agent.as_ref().map(|agent| agent.as_str().into())),
        ("actor", recorded.actor.as_ref().and_then(|actor| serde_json::to_value(actor).ok())),
        ("tags", tags(&context.tags)),
        ("from", context.switch.as_ref().map(|switch| switch.from.as_str().into())),
        ("reason", context.switch.as_ref().map(|switch| switch.reason().into())),
    ];
    line.extend(facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))));
    line.extend(fields);
    Value::Object(line)
}

/// A piece of text that a model or a tool streams now, as a line. It is in no journal and has no number of its own.
pub struct TextPiece<'a> {
    /// The agent: ids from the root down.
    pub path: &'a [AgentId],
    /// The call.
    pub call: CallId,
    /// Which attempt of it: a later one voids the text of an earlier one.
    pub attempt: u32,
    /// Whether it is an answer, reasoning or the output of a tool.
    pub kind: DeltaKind,
    /// Its byte offset in the text of its kind.
    pub offset: usize,
    /// The text.
    pub text: &'a str,
    /// The last event before it.
    pub after: Seq,
}

impl TextPiece<'_> {
    /// For programs.
    #[must_use]
    pub fn json(&self, tree: TreeId) -> Value {
        let kind = match self.kind {
            DeltaKind::Text => "text",
            DeltaKind::Reasoning => "reasoning",
            DeltaKind::Output => "output",
        };
        let path: Vec<&str> = self.path.iter().map(AgentId::as_str).collect();
        json!({
            "type": "text",
            "tree": tree.to_string(),
            "after": self.after.0,
            "path": path.join("/"),
            "agent": path.last(),
            "call": self.call.0,
            "attempt": self.attempt,
            "kind": kind,
            "offset": self.offset,
            "text": self.text,
        })
    }
}

fn tags(tags: &Tags) -> Option<Value> {
    let tags = tags.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Some(Value::Object(tags.collect())).filter(|tags| *tags != Value::Object(Map::new()))
}

fn fields(event: &Event) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => unreachable!("an event is written as an object"),
    }
}
