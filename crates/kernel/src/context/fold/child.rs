//! Children in the fold: how their parent sees that they ended, and what is kept for another task.

use super::super::text::{child_text, shown, wait_text};
use super::{Context, Contexts, End, Reader};
use crate::budget::Amounts;
use crate::context::agent_context::Returned;
use crate::context::program_past::{ProgramArgs, ProgramRecord};
use crate::context::{Attachments, Facts, Finding, Message, TimedOut};
use crate::definition::Builtin;
use crate::primitives::{Actor, AgentId, Body, Category, answer_digest};
use crate::record::{ChildEnd, Exit, Outcome, WaitFor};

impl Contexts {
    pub(super) fn ended(
        &mut self,
        agent: &AgentId,
        exit: &Exit,
        result: Option<&Body>,
        spent: &Amounts,
        presumed: &Amounts,
    ) {
        // Swapping changes the map's order, which is not used.
        let Some(context) = self.agents.swap_remove(agent) else { return };
        self.summaries.remove(agent);
        self.last_calls.remove(agent);
        self.kept.forget(agent);
        let body = result.or_else(|| Some(context.said()?.0)).cloned().unwrap_or_default();
        let [.., parent, _] = context.origin.path.as_ref() else {
            self.end = Some(End { exit: exit.clone(), shown: body, spent: *spent, presumed: *presumed });
            self.ended_root = Some((agent.clone(), context));
            return;
        };
        let answer = answer_digest(&body);
        let (seq, text) = (self.seq, child_text(agent.as_str(), exit, shown(body)));
        let Some(above) = self.agents.get_mut(parent) else { return };
        if *exit == Exit::Completed && above.brief.may_call(Builtin::WaitAgent) {
            self.kept.answered(parent.clone(), agent.clone(), answer);
        }
        match context.reader {
            Reader::Call => drop(above.unread().results.insert(seq, Returned { text, used: *spent })),
            Reader::Parent => {
                let used = above.brief.tells_facts.then_some(*spent);
                let (from, category, along) = (
                    Actor::Agent(agent.clone()),
                    Category::Output,
                    Attachments::telling(Facts { used, left: None }),
                );
                above.letter(seq, Message::Heard { from, text, category, along });
            }
            Reader::Nobody => {}
        }
        let can_go_on = match context.program {
            Some(_) => self.briefs.rules() >= 8,
            None => context.list.can_go_on(),
        };
        if above.follows_up && *exit == Exit::Completed && can_go_on {
            self.kept.finish(parent.clone(), agent.clone(), context);
        }
    }

    /// The tree that ended is continued: its root lives again.
    pub(super) fn continue_root(&mut self) {
        self.end = None;
        self.agents.extend(self.ended_root.take());
    }

    /// An agent is a program, perhaps one with a follow-up of a completed child.
    pub(super) fn program_asked(&mut self, agent: &AgentId, args: &str) {
        let args = ProgramArgs::read(args);
        let past = args.continues.as_ref().and_then(|of| {
            let before = self.knows(of, agent)?.program.as_ref()?;
            Some(before.continued(of.clone()).into())
        });
        if let Some(context) = self.agents.get_mut(agent) {
            context.program = Some(Box::new(ProgramRecord::new(&args, past)));
        }
    }

    /// The context of an agent, or of a completed child that gets another task.
    pub(super) fn knows(&self, agent: &AgentId, to: &AgentId) -> Option<&Context> {
        let finished = || match self.agents.get(to)?.origin.path.as_ref() {
            [.., parent, _] => self.kept.finished(parent, agent),
            _ => None,
        };
        self.agents.get(agent).or_else(finished)
    }

    /// The result of a call that waited for children; `None` if it waited for something else.
    pub(super) fn returned(
        &mut self,
        agent: &AgentId,
        wait: Option<&WaitFor>,
        outcome: &Outcome,
    ) -> Option<(String, bool, Facts)> {
        let (Outcome::Children { ended } | Outcome::Expired { ended }) = outcome else { return None };
        let is_late = matches!(outcome, Outcome::Expired { .. });
        let context = self.agents.get_mut(agent)?;
        let kept = &self.kept;
        let tells = context.brief.tells_facts;
        let mut finding = |end: &ChildEnd| {
            let known = || Returned::new(format!("{} {}, as you know", end.agent, end.state));
            let Returned { text, used } = context.taken(end.seq).unwrap_or_else(known);
            let answer = kept.answer(agent, &end.agent).copied();
            let (agent, state) = (end.agent.clone(), end.state);
            let used = Some(used).filter(|used| tells && !used.is_zero());
            Finding { agent, state, text, used, answer }
        };
        let mut findings: Vec<Finding> = ended.iter().map(&mut finding).collect();
        let Some(WaitFor::Children { agents, need, sources }) = wait else {
            // The call that spawned it.
            let finding = findings.pop().filter(|_| !is_late)?;
            let is_error = !finding.is_completed();
            return Some((finding.text, is_error, Facts { used: finding.used, left: None }));
        };
        let late = if is_late { TimedOut::Yes } else { TimedOut::No };
        // A single one has no heading that shows what it used.
        let alone = findings.first().filter(|one| agents.iter().all(|agent| *agent == one.agent));
        let facts = Facts { used: alone.and_then(|one| one.used), left: None };
        let is_error = is_late || !findings.iter().any(Finding::is_completed);
        Some((wait_text(agents, *need, *sources, findings, late, self.briefs.rules()), is_error, facts))
    }
}
