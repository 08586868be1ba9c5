//! The answers of a plot's models: which tools they call at which turn, sensible and absurd.

use spinney_kernel::context::{Message, Packet};
use spinney_kernel::port::model::{ModelAttempt, Purpose};
use spinney_kernel::record::ToolAsk;

use super::super::dice::Dice;
use super::super::graphs;
use super::sim_tree::{Mode, ROLES, SCHEMA, SimTree};

/// The agent and its turn.
struct Speaker<'a> {
    plot: &'a SimTree,
    agent: &'a str,
    parent: Option<&'a str>,
    turn: u32,
}

/// A model's answer: its text and tool calls.
pub(super) fn said(plot: &SimTree, attempt: &ModelAttempt) -> (String, Vec<ToolAsk>) {
    let path = &attempt.origin.path;
    let parent = path.len().checked_sub(2).and_then(|at| path.get(at)).map(|agent| agent.as_str());
    let speaker = Speaker { plot, agent: attempt.origin.agent().as_str(), parent, turn: attempt.turn };
    if attempt.purpose == Purpose::Summary {
        return speaker.sums_up(attempt);
    }
    let mut dice = plot.dice(&format!("said/{}/{}", speaker.agent, speaker.turn));
    let first = attempt.turn == 1 && parent.is_none();
    let talks = plot.sums_up(attempt.origin.role.as_str());
    // An agent whose answer does not match answers again, mostly no better.
    let repairs = matches!(attempt.packet.messages.last().map(AsRef::as_ref), Some(Message::Mismatch(_)));
    let answers = repairs || !first && dice.once_in(if talks { 6 } else { 3 });
    let count = if answers { 0 } else { dice.between(1, 3) };
    let asks = (0..count).map(|place| speaker.ask(&mut dice, place)).collect();
    let read = if plot.mode.is_exact() { digest(&attempt.packet) } else { 0 };
    if count == 0 && is_shaped(attempt) {
        let read = format!("{} {} {read:016x}", speaker.agent, speaker.turn);
        let answer = match dice.below(if repairs { 3 } else { 6 }) {
            0 => read,
            1 => format!(r#"{{"said":5,"read":"{read}"}}"#),
            2 => format!("```json\n{{\"said\":\"{read}\"}}\n```"),
            _ => format!(r#"{{"said":"{read}"}}"#),
        };
        return (answer, asks);
    }
    let more = if talks { " and so on".repeat(40) } else { String::new() };
    (format!("{} {} {read:016x}{more}", speaker.agent, speaker.turn), asks)
}

/// Whether an agent has a schema.
fn is_shaped(attempt: &ModelAttempt) -> bool {
    attempt.packet.messages.first().is_some_and(|first| first.text().contains("JSON Schema"))
}

/// A hash of everything that a model was shown: its answer reveals whether it saw the same.
fn digest(packet: &Packet) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let mut take = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    };
    for message in packet.messages.iter() {
        match message.as_ref() {
            Message::System(system) => take(&system.to_string()),
            Message::Heard { from, text, .. } => {
                take(&format!("{from:?}"));
                take(text);
            }
            Message::Said { body, asks } => {
                take(&body.text);
                asks.iter().for_each(|ask| take(&ask.args));
            }
            Message::Result { id, tool, text, is_error, along: _ } => {
                [id.as_ref(), tool, text].into_iter().for_each(&mut take);
                take(if *is_error { "error" } else { "" });
            }
            Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_)
            | Message::Folded(_) => {
                take(&message.text());
            }
        }
        message.parts().for_each(|shown| take(&shown.to_string()));
    }
    hash
}

impl Speaker<'_> {
    /// Mostly a summary; sometimes nothing, or a tool.
    fn sums_up(&self, attempt: &ModelAttempt) -> (String, Vec<ToolAsk>) {
        let mut dice = self.plot.dice(&format!("summary/{}/{}", self.agent, self.turn));
        let asks = if dice.once_in(8) { vec![self.ask(&mut dice, 0)] } else { Vec::new() };
        let read = if self.plot.mode.is_exact() { digest(&attempt.packet) } else { 0 };
        let text = format!("{} before {} {read:016x}", self.agent, self.turn);
        (if dice.once_in(8) { String::new() } else { text }, asks)
    }

    fn ask(&self, dice: &mut Dice, place: u64) -> ToolAsk {
        let (tool, args) = match (self.plot.mode, dice.below(40)) {
            (_, 0..12) => ("spawn_agent", self.spawn(dice, place)),
            (_, 12..14) => ("ask_human", self.question(dice)),
            (_, 14) => ("no_such_tool", "{}".to_owned()),
            (_, 15) => ("spawn_agent", r#"{"agent":"wor"#.to_owned()),
            (_, 16) => ("note", "[1]".to_owned()),
            (Mode::Serial | Mode::Wild, 17..20) => ("send_message", self.message(dice)),
            (Mode::Serial | Mode::Wild, 20..22) => {
                ("wait_agent", format!(r#"{{"agents":["{}"]}}"#, self.child(dice)))
            }
            (Mode::Serial | Mode::Wild, 24 | 25) => {
                ("followup_task", format!(r#"{{"agent":"{}","task":"More of it."}}"#, self.child(dice)))
            }
            (Mode::Serial | Mode::Wild, 22) => {
                ("cancel_agent", format!(r#"{{"agent":"{}"}}"#, self.child(dice)))
            }
            // A crash takes time, so in trees that must end alike no wait ends by its time.
            (Mode::Serial, 33) => ("wait_message", "{}".to_owned()),
            (Mode::Wild, 33) => ("wait_message", r#"{"timeout":5}"#.to_owned()),
            (Mode::Serial, 23) => ("list_agents", "{}".to_owned()),
            (Mode::Serial, 26..29) => ("write_context", self.writing(dice)),
            (Mode::Serial, 29..31) => ("read_context", r#"{"key":"notes"}"#.to_owned()),
            (Mode::Serial, 31) => ("list_context", "{}".to_owned()),
            (Mode::Wild, 23..29) => ("post", self.place(place)),
            (Mode::Wild, 29..31) => {
                ("run_pipeline", graphs::graph(dice, self.plot.graph_parts()).to_string())
            }
            _ => ("note", self.place(place)),
        };
        ToolAsk { id: format!("c{place}"), tool: tool.to_owned(), args, tokens: None, told_tokens: None }
    }

    /// A short value or one that is a blob; sometimes only if there is none yet.
    fn writing(&self, dice: &mut Dice) -> String {
        let long = if dice.once_in(4) { "x".repeat(40_000) } else { String::new() };
        let expect = if dice.once_in(4) { r#","expect_version":0"# } else { "" };
        format!(r#"{{"key":"notes","value":["{}",{},"{long}"]{expect}}}"#, self.agent, self.turn)
    }

    /// Arguments that are unique among all tool calls of an agent.
    fn place(&self, place: u64) -> String {
        format!(r#"{{"at":"{}-{place}"}}"#, self.turn)
    }

    fn spawn(&self, dice: &mut Dice, place: u64) -> String {
        let role = dice.pick(&ROLES).unwrap_or("helper");
        let named = self.plot.mode.is_exact() || dice.once_in(2);
        let id =
            if named { format!(r#","id":"{}-{}{place}""#, self.agent, self.turn) } else { String::new() };
        let detached = dice.once_in(3) && self.plot.mode != Mode::Parallel;
        let detach = if detached { r#","detach":true"# } else { "" };
        let terms = match (self.plot.mode, dice.below(6)) {
            (Mode::Serial, 0) if !self.plot.stops => r#","budget":{"tokens":4500,"lend":true}"#,
            (Mode::Wild, 0) => r#","budget":{"tokens":4500,"lend":true}"#,
            (Mode::Wild, 1 | 2) => r#","timeout":1"#,
            _ => "",
        };
        let goal = dice.below(5);
        let mut own = self.plot.dice(&format!("shape/{}/{}/{place}", self.agent, self.turn));
        let shape = if own.once_in(6) { format!(r#","output_schema":{SCHEMA}"#) } else { String::new() };
        format!(r#"{{"agent":"{role}","goal":"Part {goal}."{id}{detach}{terms}{shape}}}"#)
    }

    fn question(&self, dice: &mut Dice) -> String {
        let terms = match (self.plot.mode, dice.below(3)) {
            (Mode::Wild, 0) => r#","timeout":2,"default":"blue""#,
            (Mode::Wild, 1) if dice.once_in(3) => r#","timeout":1,"on_timeout":"cancel""#,
            (Mode::Wild, 1) => r#","timeout":1"#,
            _ => "",
        };
        let choices = if dice.once_in(3) { r#","choices":["blue","green"]"# } else { "" };
        format!(r#"{{"question":"{} at {}?"{terms}{choices}}}"#, self.agent, self.turn)
    }

    fn message(&self, dice: &mut Dice) -> String {
        let to = match (dice.below(3), self.parent) {
            (0, Some(parent)) => parent.to_owned(),
            (1, _) => self.plot.root().to_string(),
            _ => self.child(dice),
        };
        format!(r#"{{"to":"{to}","text":"hello from {} at {}"}}"#, self.agent, self.turn)
    }

    /// The id of a child that this agent may have spawned.
    fn child(&self, dice: &mut Dice) -> String {
        format!("{}-{}{}", self.agent, dice.between(1, u64::from(self.turn)), dice.below(3))
    }
}
