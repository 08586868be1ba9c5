//! What a run of `spinney exec` came to: what it spent, by agent, and how to look at it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use spinney::tree::Look;
use spinney_kernel::budget::{Amounts, Resource, usd};
use spinney_kernel::words::{AgentId, Millis, TreeId, grouped};
use spinney_kernel::world::AgentView;
use spinney_server::gateway::RefusedRequests;

use crate::exit::Exit;
use crate::hint::{about, command};
use crate::history::costs::{Costs, Sums};
use crate::home::ids::short;
use crate::result::Spent;
use crate::terminal::out::{self, Unwritten};
use crate::terminal::wording::counted;

/// Most agents that are listed, the most expensive first.
const LISTED_MAX: usize = 20;

pub(crate) struct ExecReport<'r> {
    pub(crate) home: &'r Path,
    pub(crate) tree: TreeId,
    pub(crate) look: &'r Look,
    pub(crate) costs: &'r Costs,
    /// The cost ceiling of the run.
    pub(crate) limit: Option<u64>,
    /// What the program sent to the gateway.
    pub(crate) requests: u64,
    /// What the gateway refused of it, or could not pass on.
    pub(crate) refused: Option<RefusedRequests>,
    pub(crate) exit: Exit,
    pub(crate) elapsed_ms: u64,
}

impl ExecReport<'_> {
    /// For people, beside the output of the program.
    pub(crate) fn write_plain(&self) {
        let spent = self.spent();
        let of = self.limit.map(|limit| format!(" of {}", usd(limit))).unwrap_or_default();
        let calls = call_count(&self.costs.total);
        let tokens = grouped(spent.of(Resource::Tokens));
        // How it ended, with the reason.
        let end = match &self.look.end {
            Some(end) => end.exit.to_string(),
            None => self.look.state.word().to_owned(),
        };
        out::note(&format!(
            "spinney: {end} after {:#} · spent {}{of} · {calls} · {tokens} tokens",
            Millis(self.elapsed_ms),
            usd(spent.of(Resource::Cost)),
        ));
        if self.requests == 0 && matches!(self.exit, Exit::Completed) {
            out::note(
                "spinney: no request came to the gateway: does the program's own configuration name another address?",
            );
        }
        if let Some(RefusedRequests { count, last }) = &self.refused {
            let requests = counted(*count, "request");
            let which = if *count == 1 { "" } else { ", the last" };
            let message = last.message.trim_start_matches("spinney: ");
            out::note(&format!("spinney: {requests} got an error of the gateway{which}: {message}"));
        }
        let mut agents = self.agents();
        agents.sort_by_key(|(_, own)| std::cmp::Reverse(own.of(Resource::Cost)));
        if agents.len() > 1 {
            for (agent, own) in agents.iter().take(LISTED_MAX) {
                let (name, cost) = (agent.agent.as_str(), usd(own.of(Resource::Cost)));
                let calls = call_count(&self.costs.by_agent.of(name));
                out::note(&format!("spinney:   {name:<28} {cost} · {calls}"));
            }
            if agents.len() > LISTED_MAX {
                out::note(&format!("spinney:   … and {} more", agents.len() - LISTED_MAX));
            }
        }
        out::note(&format!("spinney: look at it with: {}", about(self.home, "events", self.tree, &[])));
        if matches!(self.exit, Exit::Halted | Exit::Interrupted) {
            let resume = command(self.home, &["exec", "--resume", &short(self.tree)]);
            out::note(&format!("spinney: go on with the same budget with: {resume}"));
        }
    }

    pub(crate) fn write_json(&self) -> Result<(), Unwritten> {
        let amounts = |spent: &Amounts| serde_json::to_value(Spent(spent)).unwrap_or_default();
        let agent = |(agent, own): &(&AgentView, Amounts)| {
            json!({
                "agent": agent.agent,
                "parent": agent.parent,
                "own": amounts(own),
                "spent": amounts(&agent.spent),
            })
        };
        let agents: Vec<_> = self.agents().iter().map(agent).collect();
        let refused = self
            .refused
            .as_ref()
            .map(|refused| json!({ "count": refused.count, "last": refused.last.message }));
        let result = json!({
            "type": "result",
            "tree": self.tree,
            "state": self.look.state.word(),
            "exit_code": self.exit.code(),
            "spent": amounts(&self.spent()),
            "agents": agents,
            "refused": refused,
            "elapsed_ms": self.elapsed_ms,
        });
        out::json(&result.to_string())
    }

    fn root(&self) -> Option<&AgentView> {
        self.look.agents.iter().find(|agent| agent.parent.is_none())
    }

    fn spent(&self) -> Amounts {
        self.root().map(|root| root.spent).unwrap_or_default()
    }

    /// The agents, each with what it spent itself, without those below it.
    fn agents(&self) -> Vec<(&AgentView, Amounts)> {
        let mut below: BTreeMap<&AgentId, Amounts> = BTreeMap::new();
        for agent in &self.look.agents {
            if let Some(parent) = &agent.parent {
                let sum = below.entry(parent).or_default();
                *sum = sum.plus(&agent.spent);
            }
        }
        let own = |agent: &AgentView| {
            let below = below.get(&agent.agent).copied().unwrap_or_default();
            agent.spent.minus(&below)
        };
        self.look.agents.iter().map(|agent| (agent, own(agent))).collect()
    }
}

/// How many calls there were, and how many of them got no answer: one that was cut off may have been billed, and is booked
/// at its hold.
fn call_count(Sums { count, cut_off, failed, .. }: &Sums) -> String {
    let mut calls = counted(*count, "call");
    for (part, what) in [(cut_off, "cut off"), (failed, "failed")] {
        match *part {
            0 => {}
            part if part == *count => calls += &format!(", {what}"),
            part => calls += &format!(", {part} {what}"),
        }
    }
    calls
}
