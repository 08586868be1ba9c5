//! The laws of hosts that a person allows: a call has those of its own question or those that were remembered for its tool,
//! and only of an agent that may ask. What its agent has never changes.

use std::collections::{BTreeMap, BTreeSet};

use spinney_kernel::definition::{ApprovalScope, HostRequests, SubjectPattern};
use spinney_kernel::primitives::{AgentId, CallId, HostRule, ToolName};
use spinney_kernel::record::{Event, Outcome, Work};

use super::law::{Law, hold};

#[derive(Clone, Debug, Default)]
pub(super) struct AllowedHosts {
    may_ask: BTreeSet<AgentId>,
    /// Open questions about hosts.
    asked: BTreeMap<CallId, Asked>,
    /// The question that a person said yes to just now.
    answered: Option<Asked>,
    /// For an agent, or for every one.
    remembered: BTreeSet<(Option<AgentId>, String, HostRule)>,
}

#[derive(Clone, Debug)]
struct Asked {
    agent: AgentId,
    tool: String,
    hosts: Vec<HostRule>,
}

impl AllowedHosts {
    /// Reads one event.
    pub(super) fn see(&mut self, event: &Event) -> Law {
        match event {
            Event::AgentSpawned(spawned) if spawned.caps.host_requests == HostRequests::Ask => {
                self.may_ask.insert(spawned.agent.clone());
            }
            Event::QuestionAsked { call, agent, question, .. } if !question.network.is_denied() => {
                hold(self.may_ask.contains(agent), || format!("{agent} asked for hosts and may not"))?;
                let tool = question.approves.as_ref().map(|ask| ask.tool.clone()).unwrap_or_default();
                let hosts = question.network.rules().cloned().collect();
                self.asked.insert(*call, Asked { agent: agent.clone(), tool, hosts });
            }
            Event::ApprovalRemembered { agent, tool, scope, pattern: SubjectPattern::Hosts(hosts) } => {
                let shown = |asked: &Asked| {
                    asked.agent == *agent && asked.tool == tool.as_str() && hosts.iter().eq(&asked.hosts)
                };
                hold(self.asked.values().any(shown), || format!("hosts that were not shown: {hosts:?}"))?;
                let agent = matches!(scope, ApprovalScope::Agent).then(|| agent.clone());
                let each = hosts.iter().map(|host| (agent.clone(), tool.to_string(), host.clone()));
                self.remembered.extend(each);
            }
            Event::CallEnded { call, outcome, .. } => {
                self.answered = self.asked.remove(call).filter(|_| *outcome == Outcome::Approved);
            }
            Event::CallAsked { agent, work: Work::Tool(work), .. } if !work.network.is_denied() => {
                hold(self.may_ask.contains(agent), || format!("{agent} has hosts that it may not ask for"))?;
                for host in work.network.rules() {
                    let is_allowed = self.is_allowed(agent, &work.tool, host);
                    hold(is_allowed, || format!("{agent} has {host}, which no person allowed"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_allowed(&self, agent: &AgentId, tool: &ToolName, host: &HostRule) -> bool {
        let now = self
            .answered
            .iter()
            .any(|asked| asked.agent == *agent && asked.tool == tool.as_str() && asked.hosts.contains(host));
        let before = |agent: Option<&AgentId>| {
            self.remembered.contains(&(agent.cloned(), tool.to_string(), host.clone()))
        };
        now || before(None) || before(Some(agent))
    }
}
