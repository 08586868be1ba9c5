//! An agent of an outside program, for `spinney show`: its conversation, or its calls byte for byte.

use std::collections::BTreeMap;

use anyhow::Result;
use spinney_journal::Journal;
use spinney_kernel::primitives::{AgentId, CallId, TreeId};
use spinney_kernel::record::Outcome;
use spinney_server::exec::FoundConversation;
use spinney_terminal::paint::Ink;
use spinney_terminal::{Terminal, out};
use spinney_view::context_message::{MessagePart, MessageSender, MessageView};
use spinney_view::outside_calls::{ProgramCall, ProgramCallEnd, ProgramCallView, end_word, outside_calls};
use spinney_view::wording::{LINE_CHARS_MAX, counted, one_line, short_id};

use super::show::{TEXT_BYTES_MAX, body, line};
use crate::result::whole;

pub(super) struct ShowCalls<'s> {
    pub(super) journal: &'s dyn Journal,
    pub(super) tree: TreeId,
    pub(super) agent: &'s AgentId,
    pub(super) is_json: bool,
    pub(super) is_full: bool,
    pub(super) terminal: Terminal,
}

impl ShowCalls<'_> {
    pub(super) async fn show(&self) -> Result<()> {
        let calls = self.calls().await?;
        if !self.is_json {
            let count = counted(calls.len() as u64, "call");
            let (agent, tree) = (self.agent, short_id(self.tree));
            out::line(&format!("{agent} of tree {tree}: {count} of an outside program"))?;
        }
        for (call, made) in &calls {
            let (sent, answer) = (&made.sent(self.journal).await?, &self.answer(made).await);
            if self.is_json {
                out::json(&line(&ProgramCallView { call: *call, agent: self.agent, made, sent, answer }))?;
                continue;
            }
            out::line("")?;
            out::line(&call_head(*call, made))?;
            self.write("sent", sent)?;
            self.write("got", answer)?;
        }
        Ok(())
    }

    pub(super) async fn show_conversation(&self) -> Result<()> {
        let calls = self.calls().await?;
        let count = counted(calls.len() as u64, "call");
        let agent = format!("{} of tree {}", self.agent, short_id(self.tree));
        let Some(mut found) = FoundConversation::newest(self.journal, &calls).await? else {
            if self.is_json {
                return Ok(());
            }
            let why = match calls.values().next_back() {
                None => "it made no call".to_owned(),
                Some(made) if made.request.is_empty() => {
                    format!("{count}; no requests and responses were kept (--no-bodies)")
                }
                Some(_) => format!(
                    "{count}; the newest requests cannot be shown as a conversation: --calls shows them"
                ),
            };
            out::line(&format!("{agent}: {why}"))?;
            return Ok(());
        };
        let answer = self.answer(found.made).await;
        let is_answered = found.add_answer(&answer);
        if self.is_json {
            return found.messages().try_for_each(|message| Ok(out::json(&line(&message))?));
        }
        let say = |ink: Ink, text: &str| out::text(ink, text, 2, self.terminal);
        say(Ink::Strong, &format!("{agent}: {count} of an outside program"))?;
        let said = counted(found.messages().count() as u64, "message");
        say(Ink::Plain, &format!("{said}, as of call {} ({})", found.call.0, found.made.model))?;
        for message in found.messages() {
            out::line("")?;
            say(Ink::Name, &head(&message))?;
            let parts = message.parts.iter().map(part).collect();
            for line in body(&message, parts, self.is_full, None) {
                out::text(Ink::Plain, format!("    {line}").trim_end(), 4, self.terminal)?;
            }
        }
        if !is_answered {
            out::line("")?;
            say(Ink::Warn, &unanswered(found.made, &answer))?;
        }
        Ok(())
    }

    /// Refuses an agent that does not exist.
    async fn calls(&self) -> Result<BTreeMap<CallId, ProgramCall>> {
        outside_calls(self.journal, self.tree, self.agent).await.map_err(super::show::unrecalled)
    }

    async fn answer(&self, made: &ProgramCall) -> String {
        match made.answer() {
            Some(body) => whole(body, self.journal).await,
            None => String::new(),
        }
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
}

fn call_head(call: CallId, made: &ProgramCall) -> String {
    let end = match &made.ended {
        Some(ProgramCallEnd { outcome, spent, .. }) => format!("{}, spent {spent}", end_word(outcome)),
        None => "not ended".to_owned(),
    };
    format!("call {} · {} · {end}", call.0, made.model)
}

/// Why there is no answer.
fn unanswered(made: &ProgramCall, answer: &str) -> String {
    match made.ended.as_ref().map(|end| &end.outcome) {
        None => "the call has not ended".to_owned(),
        Some(Outcome::Done { .. }) if answer.is_empty() => "the answer was not kept".to_owned(),
        Some(Outcome::Done { .. }) => {
            format!("the answer cannot be shown: {}", one_line(answer, LINE_CHARS_MAX))
        }
        Some(outcome) => format!("the call got no answer: it was {}", end_word(outcome)),
    }
}

/// Number, role, sender, and whether it failed.
fn head(message: &MessageView) -> String {
    let mut words = vec![message.role.to_owned()];
    if let Some(MessageSender::Tool { tool }) = &message.from {
        words.push(format!("from {}", one_line(tool, LINE_CHARS_MAX)));
    }
    if message.is_error {
        words.push("failed".to_owned());
    }
    format!("#{}  {}", message.number, words.join(" · "))
}

fn part(MessagePart { kind, media, bytes, .. }: &MessagePart) -> String {
    let media = media.as_ref().map(|media| format!(" {media}")).unwrap_or_default();
    one_line(&format!("[{kind}{media}, {}]", counted(*bytes, "byte")), LINE_CHARS_MAX)
}
