//! The agents of a program, as its requests name them: each becomes an agent of the tree with an account of its own, below
//! the one that the program calls its parent. They never say that they end, so silent ones are collected.

use std::collections::BTreeMap;
use std::time::Duration;

use spinney::Tree;
use spinney::clock::instant;
use spinney::tree::{Look, RequestError};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::context::Frame;
use spinney_kernel::definition::{BudgetSpec, Refusal};
use spinney_kernel::rules::request::{Collect, Finish, Spawn};
use spinney_kernel::words::{AgentId, Body, By, RoleName};
use spinney_kernel::world::AgentStatus;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::wire::{Caller, GatewayError, GatewayErrorKind, WireId};

/// Digits of an agent's id: enough to tell the agents of a run apart.
const DIGITS: usize = 8;

/// The agents of a run.
pub(super) struct Agents {
    root: AgentId,
    role: RoleName,
    child_cost_nanos: Option<u64>,
    table: Mutex<AgentTable>,
}

#[derive(Default)]
struct AgentTable {
    /// By session and id on the wire.
    by_wire: BTreeMap<WireAgent, Member>,
    /// Ids that agents of the tree have had.
    taken: BTreeMap<AgentId, Life>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Lives,
    Ended,
}

/// An agent as a program names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WireAgent {
    session: Option<WireId>,
    agent: WireId,
}

struct Member {
    agent: AgentId,
    /// The agent of the tree above it.
    above: AgentId,
    /// Whether `agent` is its own. If there was no room for it, its calls are booked at the one above.
    is_own: bool,
    open: usize,
    last_request: Instant,
}

/// Whom a call is booked to. An agent with an open call is not collected.
pub(super) struct Payer {
    pub(super) agent: AgentId,
    wire: Option<WireAgent>,
}

impl Agents {
    /// The agents of a tree, which an earlier process may have begun.
    pub(super) fn new(look: &Look, role: RoleName, child_cost_nanos: Option<u64>) -> Option<Self> {
        let root = look.agents.iter().find(|agent| agent.parent.is_none())?.agent.clone();
        let life = |status| if status_is_over(status) { Life::Ended } else { Life::Lives };
        let taken = look.agents.iter().map(|agent| (agent.agent.clone(), life(&agent.status))).collect();
        let table = Mutex::new(AgentTable { by_wire: BTreeMap::new(), taken });
        Some(Self { root, role, child_cost_nanos, table })
    }

    /// The agent of the tree that a request belongs to; it is spawned if it is new.
    pub(super) async fn payer(&self, tree: &Tree, caller: &Caller) -> Result<Payer, GatewayError> {
        let Some(agent) = caller.agent.clone() else {
            return Ok(Payer { agent: self.root.clone(), wire: None });
        };
        let wire = WireAgent { session: caller.session.clone(), agent };
        let mut table = self.table.lock().await;
        if let Some(member) = table.by_wire.get_mut(&wire) {
            member.open += 1;
            member.last_request = instant();
            return Ok(Payer { agent: member.agent.clone(), wire: Some(wire) });
        }
        let above = caller.parent.clone().and_then(|parent| {
            let parent = WireAgent { session: wire.session.clone(), agent: parent };
            table.by_wire.get(&parent).map(|member| member.agent.clone())
        });
        let above = above.unwrap_or_else(|| self.root.clone());
        let (agent, is_own) = self.spawn(tree, &mut table, &wire, caller, &above).await?;
        let member = Member { agent: agent.clone(), above, is_own, open: 1, last_request: instant() };
        table.by_wire.insert(wire.clone(), member);
        Ok(Payer { agent, wire: Some(wire) })
    }

    /// A call of an agent has ended.
    pub(super) async fn release(&self, payer: Payer) {
        let Some(wire) = payer.wire else { return };
        if let Some(member) = self.table.lock().await.by_wire.get_mut(&wire) {
            member.open = member.open.saturating_sub(1);
            member.last_request = instant();
        }
    }

    /// Ends agents that were silent for long and have nothing below them. One that speaks again gets a new account.
    pub(super) async fn collect(&self, tree: &Tree, silent: Duration) {
        let mut table = self.table.lock().await;
        let is_above = |table: &AgentTable, agent: &AgentId| {
            table.by_wire.values().any(|member| member.above == *agent && member.agent != *agent)
        };
        let silent: Vec<WireAgent> = table
            .by_wire
            .iter()
            .filter(|(_, member)| member.open == 0 && member.last_request.elapsed() >= silent)
            .filter(|(_, member)| !member.is_own || !is_above(&table, &member.agent))
            .map(|(wire, _)| wire.clone())
            .collect();
        for wire in silent {
            let Some(member) = table.by_wire.remove(&wire) else { continue };
            if !member.is_own {
                continue;
            }
            let result = Body::text("it made no call for a long time");
            let finish = Finish { agent: member.agent.clone(), result };
            // An agent that has ended already needs nothing.
            let _ = tree.request(By::Person, finish).await;
            table.taken.insert(member.agent, Life::Ended);
        }
    }

    /// Spawns an agent. Returns who pays: itself, or the one above if the tree has no room for it.
    async fn spawn(
        &self,
        tree: &Tree,
        table: &mut AgentTable,
        wire: &WireAgent,
        caller: &Caller,
        above: &AgentId,
    ) -> Result<(AgentId, bool), GatewayError> {
        let (id, is_new) = table.id_of(wire, caller);
        if !is_new {
            return Ok((id, true));
        }
        let limit = match self.child_cost_nanos {
            Some(nanos) => Ceilings::NONE.with(Resource::Cost, nanos),
            None => Ceilings::NONE,
        };
        let session =
            wire.session.as_ref().map(|session| format!(" of session {session}")).unwrap_or_default();
        let kind = caller.role.as_ref().map(|role| format!(" ({role})")).unwrap_or_default();
        let spawn = Spawn {
            parent: above.clone(),
            role: self.role.clone(),
            goal: format!("agent {}{kind}{session}", wire.agent),
            goal_tokens: None,
            id: Some(id.clone()),
            model: None,
            tools: None,
            budget: BudgetSpec::of(limit),
            collect: Collect::Outside,
            share: None,
            messages: Vec::new(),
            frame: Frame::default(),
        };
        match tree.request(By::Person, spawn).await {
            Ok(_) => {
                table.taken.insert(id.clone(), Life::Lives);
                Ok((id, true))
            }
            // Its calls are held and booked all the same.
            Err(RequestError::Refused(
                Refusal::DepthLimit { .. } | Refusal::AgentsLimit { .. } | Refusal::ChildrenLimit { .. },
            )) => Ok((above.clone(), false)),
            Err(error) => Err(GatewayError::new(GatewayErrorKind::Ended, error.to_string())),
        }
    }
}

impl AgentTable {
    /// The id of an agent, and whether it has to be spawned. It follows from the names on the wire, so a resumed run finds
    /// its agents again.
    fn id_of(&self, wire: &WireAgent, caller: &Caller) -> (AgentId, bool) {
        let kind = caller.role.as_ref().map(|role| slug(role.as_str())).unwrap_or_default();
        let kind = if kind.is_empty() { "agent".to_owned() } else { kind };
        let session = wire.session.as_ref().map(WireId::as_str).unwrap_or_default();
        for turn in 0_u64.. {
            let named = format!("{session}\n{}\n{turn}", wire.agent);
            let digits = &blake3::hash(named.as_bytes()).to_hex()[..DIGITS];
            let Ok(id) = format!("{kind}-{digits}").parse::<AgentId>() else { continue };
            let is_used = self.by_wire.values().any(|member| member.agent == id);
            match self.taken.get(&id) {
                None => return (id, true),
                Some(Life::Lives) if !is_used => return (id, false),
                Some(Life::Lives | Life::Ended) => {}
            }
        }
        unreachable!("a tree has far fewer agents than ids")
    }
}

/// A word of an id: lower case letters, digits and dashes.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = text.chars().take(32).map(plain).collect();
    slug.trim_matches('-').to_owned()
}

const fn status_is_over(status: &AgentStatus) -> bool {
    matches!(status, AgentStatus::Ended(_))
}
