//! The calls of an agent of a program outside, for `spinney show`: such an agent has no context of ours, but what it sent
//! and was answered is in the journal.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use spinney::bus::Tail;
use spinney_journal::{Blocking, Journal};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::record::{Event, Outcome, Work};
use spinney_kernel::words::{AgentId, Body, CallId, ModelName, Time, TreeId};

use crate::history::agents;
use crate::home::ids::short;
use crate::result::whole;
use crate::terminal::out;
use crate::terminal::wording::counted;

/// Bytes of a text that are shown without `--full`.
const TEXT_BYTES_MAX: usize = 600;

/// A call of the agent.
struct Made {
    model: ModelName,
    asked: Time,
    request: Body,
    ended: Option<(Time, Outcome, Amounts)>,
}

pub(super) struct ShowCalls<'s> {
    pub(super) journal: &'s dyn Journal,
    pub(super) tree: TreeId,
    pub(super) agent: &'s AgentId,
    pub(super) is_json: bool,
    pub(super) is_full: bool,
}

impl ShowCalls<'_> {
    pub(super) fn show(&self) -> Result<()> {
        let known = agents::known(self.journal, self.tree)?;
        if !known.contains(self.agent) {
            anyhow::bail!(agents::unknown(self.agent, &known));
        }
        let calls = self.calls()?;
        if self.is_json {
            return calls.iter().try_for_each(|(call, made)| Ok(out::json(&self.line(*call, made))?));
        }
        let count = counted(calls.len() as u64, "call");
        out::line(&format!("{} of tree {}: {count} of a program outside", self.agent, short(self.tree)))?;
        for (call, made) in &calls {
            out::line("")?;
            out::line(&head(*call, made))?;
            for (label, text) in [("sent", self.request(made)), ("got", self.answer(made))] {
                self.write(label, &text)?;
            }
        }
        Ok(())
    }

    fn calls(&self) -> Result<BTreeMap<CallId, Made>> {
        let mut calls = BTreeMap::new();
        let mut tail = Tail::new(self.journal, self.tree);
        while let Some(traced) = tail.next().wait()? {
            let at = traced.recorded.at;
            match &traced.recorded.event {
                Event::CallAsked { call, agent, work: Work::Model(work) } if agent == self.agent => {
                    let request = work.outside.as_ref().map(|outside| outside.request.clone());
                    let request = request.unwrap_or_default();
                    let made = Made { model: work.model.clone(), asked: at, request, ended: None };
                    calls.insert(*call, made);
                }
                Event::CallEnded { call, outcome, spent, .. } => {
                    if let Some(made) = calls.get_mut(call) {
                        made.ended = Some((at, outcome.clone(), *spent));
                    }
                }
                _ => {}
            }
        }
        Ok(calls)
    }

    fn request(&self, made: &Made) -> String {
        let bytes = made.request.parts().iter().map(|part| self.journal.blob(part.blob()).wait());
        let bytes: Vec<u8> = bytes.filter_map(|found| found.ok().flatten()).flatten().collect();
        if bytes.is_empty() {
            made.request.text.clone()
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }

    fn answer(&self, made: &Made) -> String {
        let body = made.ended.as_ref().and_then(|(_, outcome, _)| outcome.body());
        body.map(|body| whole(body, self.journal)).unwrap_or_default()
    }

    fn write(&self, label: &str, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let shown = if self.is_full { text.len() } else { text.floor_char_boundary(TEXT_BYTES_MAX) };
        for (at, line) in text[..shown].lines().enumerate() {
            out::line(format!("    {:<5} {line}", if at == 0 { label } else { "" }).trim_end())?;
        }
        if shown < text.len() {
            out::line(&format!("          … {} more bytes: --full shows them", text.len() - shown))?;
        }
        Ok(())
    }

    fn line(&self, call: CallId, made: &Made) -> String {
        let mut line = json!({
            "call": call,
            "agent": self.agent,
            "model": made.model,
            "asked": made.asked,
            "request": self.request(made),
        });
        if let (Some((at, outcome, spent)), Some(fields)) = (&made.ended, line.as_object_mut()) {
            fields.insert("ended".to_owned(), json!(at));
            fields.insert("end".to_owned(), json!(end_word(outcome)));
            fields.insert("cost_nanos".to_owned(), json!(spent.of(Resource::Cost)));
            fields.insert("tokens".to_owned(), json!(spent.of(Resource::Tokens)));
            fields.insert("response".to_owned(), json!(self.answer(made)));
        }
        line.to_string()
    }
}

fn head(call: CallId, made: &Made) -> String {
    let end = match &made.ended {
        Some((_, outcome, spent)) => format!("{}, spent {spent:#}", end_word(outcome)),
        None => "not ended".to_owned(),
    };
    format!("call {} · {} · {end}", call.0, made.model)
}

const fn end_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done { .. } => "answered",
        Outcome::Failed { .. } => "failed",
        Outcome::Lost => "lost",
        Outcome::Refused { .. } => "refused",
        Outcome::Cancelled => "withdrawn",
        Outcome::Approved
        | Outcome::Answered { .. }
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::Expired { .. } => "over",
    }
}
