//! Children in the fold: how their parent reads that they ended, and what is kept of those that it may give another
//! task.

use super::super::text::{child_text, shown, wait_text};
use super::{Context, Contexts, End, Reader};
use crate::budget::Amounts;
use crate::context::known::Returned;
use crate::context::{Along, Facts, Finding, Late, Message};
use crate::definition::Builtin;
use crate::record::{ChildEnd, Exit, Outcome, WaitFor};
use crate::words::{AgentId, Body, By, Category, Seq, answer_digest, limit};

impl Contexts {
    pub(super) fn ended(&mut self, agent: &AgentId, exit: &Exit, result: Option<&Body>, spent: &Amounts) {
        // Swapping changes the order of the map, and nobody asks for that.
        let Some(context) = self.agents.swap_remove(agent) else { return };
        self.summaries.remove(agent);
        self.last_calls.remove(agent);
        self.finished.remove(agent);
        self.answers.remove(agent);
        let body = result.or_else(|| Some(context.said()?.0)).cloned().unwrap_or_default();
        let [.., parent, _] = context.origin.path.as_ref() else {
            self.end = Some(End { exit: exit.clone(), shown: body, spent: *spent });
            return;
        };
        let answer = answer_digest(&body);
        let (seq, text) = (self.seq, child_text(agent.as_str(), exit, shown(body)));
        let Some(above) = self.agents.get_mut(parent) else { return };
        if *exit == Exit::Completed && above.brief.may_call(Builtin::WaitAgent) {
            self.answers.entry(parent.clone()).or_default().insert(agent.clone(), answer);
        }
        match context.reader {
            Reader::Call => drop(above.unread().results.insert(seq, Returned { text, used: *spent })),
            Reader::Parent => {
                let used = above.brief.tells_facts.then_some(*spent);
                let (from, category, along) =
                    (By::Agent(agent.clone()), Category::Output, Along::telling(Facts { used, left: None }));
                above.unread().letters.push((seq, Message::Heard { from, text, category, along }));
            }
            Reader::Nobody => {}
        }
        let follows = above.brief.may_call(Builtin::FollowupTask);
        let is_asking = context.messages.last().is_none_or(|last| last.asks());
        if follows && *exit == Exit::Completed && !is_asking {
            self.finish(&parent.clone(), agent, context);
        }
    }

    /// Keeps what a child knew; for that the one goes that ended first, if there are too many. The world does the same.
    fn finish(&mut self, parent: &AgentId, agent: &AgentId, context: Context) {
        let all = self.finished.entry(parent.clone()).or_default();
        if all.len() == limit::FINISHED_KEPT_MAX {
            all.remove(0);
        }
        all.push((agent.clone(), context));
    }

    /// What an agent knows, or knew that can be given another task.
    pub(super) fn knows(&self, agent: &AgentId) -> Option<&Context> {
        let finished =
            || self.finished.values().flatten().find(|(of, _)| of == agent).map(|(_, known)| known);
        self.agents.get(agent).or_else(finished)
    }

    /// The end of a call that waited for children, as its agent reads it; none if it did not.
    pub(super) fn returned(
        &mut self,
        agent: &AgentId,
        wait: Option<&WaitFor>,
        outcome: &Outcome,
    ) -> Option<(String, bool, Facts)> {
        let (Outcome::Children { ended } | Outcome::Expired { ended }) = outcome else { return None };
        let is_late = matches!(outcome, Outcome::Expired { .. });
        let context = self.agents.get_mut(agent)?;
        let answers = self.answers.get(agent);
        let tells = context.brief.tells_facts;
        let mut finding = |end: &ChildEnd| {
            let known = || Returned::of(format!("{} {}, as you know", end.agent, end.state));
            let Returned { text, used } = context.taken(end.seq).unwrap_or_else(known);
            let (agent, state) = (end.agent.clone(), end.state.clone());
            let used = Some(used).filter(|used| tells && !used.is_zero());
            let answer = answers.and_then(|answers| answers.get(&agent)).copied();
            Finding { agent, state, text, used, answer }
        };
        let mut findings: Vec<Finding> = ended.iter().map(&mut finding).collect();
        let Some(WaitFor::Children { agents, need, sources }) = wait else {
            // The call that spawned it.
            let finding = findings.pop().filter(|_| !is_late)?;
            let is_error = !finding.is_completed();
            return Some((finding.text, is_error, Facts { used: finding.used, left: None }));
        };
        let late = if is_late { Late::Yes } else { Late::No };
        // One that is shown alone has no mark that says what it used.
        let alone = findings.first().filter(|one| agents.iter().all(|agent| *agent == one.agent));
        let facts = Facts { used: alone.and_then(|one| one.used), left: None };
        let is_error = is_late || !findings.iter().any(Finding::is_completed);
        Some((wait_text(agents, *need, *sources, findings, late), is_error, facts))
    }
}

impl Context {
    /// What an event brought, if nobody has read it.
    pub(super) fn taken(&mut self, seq: Seq) -> Option<Returned> {
        let unread = self.unread.as_mut()?;
        if let Some(returned) = unread.results.remove(&seq) {
            return Some(returned);
        }
        let is_it =
            |(letter, message): &(Seq, Message)| *letter == seq && matches!(message, Message::Heard { .. });
        let place = unread.letters.iter().position(is_it)?;
        let (_, letter) = unread.letters.remove(place);
        let used = letter.facts().and_then(|facts| facts.used).unwrap_or_default();
        Some(Returned { text: letter.text().into_owned(), used })
    }
}
