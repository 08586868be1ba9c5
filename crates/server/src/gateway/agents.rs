//! The agents of a program, as its requests name them: each becomes an agent of the tree with its own account, below
//! the one that the program calls its parent. They never say that they end, so silent ones are collected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spinney::Tree;
use spinney::clock::instant;
use spinney::tree::{RequestError, TreeSnapshot};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::context::Frame;
use spinney_kernel::definition::{BudgetSpec, Refusal};
use spinney_kernel::primitives::{Actor, AgentId, Body, RoleName};
use spinney_kernel::rules::request::{Collect, Finish, Spawn};
use spinney_kernel::world::{AgentStatus, AgentView};
use spinney_view::wording::counted;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::definition::AGENTS_MAX;
use super::wire::{Caller, GatewayError, GatewayErrorKind, WireId};

/// Digits of an agent's id: enough to tell the agents of a run apart.
const DIGITS: usize = 8;
/// Most agents without an account that are remembered, so those below them are booked at the same one. Beyond that,
/// agents whose parent is not remembered are booked at the root.
const WITHOUT_ACCOUNT_MAX: usize = 1_000;
const WIRE_AGENTS_MAX: usize = AGENTS_MAX as usize + WITHOUT_ACCOUNT_MAX;

/// The agents of a run.
pub(super) struct Agents {
    root: AgentId,
    /// What the ids of its agents are made from besides their names on the wire: two programs of one tree use the same names.
    salt: String,
    role: RoleName,
    terms: AgentTerms,
    table: Mutex<AgentTable>,
}

/// What a person decides about the agents of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AgentTerms {
    /// The cost ceiling of each agent below the root; what is left if absent.
    pub(super) cost_nanos: Option<u64>,
    /// Most agents of the run, the root among them, ended ones as well.
    pub(super) agents_max: Option<u32>,
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
    /// It is in the tree, and no request has named it in this process.
    Unnamed,
    /// It has a name on the wire.
    Named,
    Ended,
    /// It is in the tree and none of the program's: nothing that the program says leads to it.
    Stranger,
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
    pub(super) fn new(snapshot: &TreeSnapshot, role: RoleName, terms: AgentTerms) -> Option<Self> {
        let root = snapshot.agents.iter().find(|agent| agent.parent.is_none())?.agent.clone();
        Some(Self::with_salt(snapshot, root, String::new(), role, terms))
    }

    /// The agents of a program that is this agent of the tree.
    pub(super) fn below(snapshot: &TreeSnapshot, root: AgentId, role: RoleName, terms: AgentTerms) -> Self {
        let salt = format!("{root}\n");
        Self::with_salt(snapshot, root, salt, role, terms)
    }

    fn with_salt(
        snapshot: &TreeSnapshot,
        root: AgentId,
        salt: String,
        role: RoleName,
        terms: AgentTerms,
    ) -> Self {
        let members = members(snapshot, &root);
        let life = |agent: &AgentView| match agent.status {
            _ if !members.contains(&agent.agent) => Life::Stranger,
            AgentStatus::Ended(_) => Life::Ended,
            _ => Life::Unnamed,
        };
        let taken = snapshot.agents.iter().map(|agent| (agent.agent.clone(), life(agent))).collect();
        let table = Mutex::new(AgentTable { by_wire: BTreeMap::new(), taken });
        Self { root, salt, role, terms, table }
    }

    /// The agent that is the program itself.
    pub(super) const fn root(&self) -> &AgentId {
        &self.root
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
        let parent = caller.parent.clone();
        let parent = parent.map(|parent| WireAgent { session: wire.session.clone(), agent: parent });
        let parent = parent.filter(|parent| table.by_wire.contains_key(parent));
        let above = parent.as_ref().and_then(|parent| table.by_wire.get(parent));
        let above = above.map_or_else(|| self.root.clone(), |member| member.agent.clone());
        let (agent, is_own) = self.spawn(tree, &mut table, &wire, caller, &above).await?;
        if !is_own && table.by_wire.len() >= WIRE_AGENTS_MAX {
            // The call counts as one of the agent above, which is not collected meanwhile.
            if let Some(member) = parent.as_ref().and_then(|parent| table.by_wire.get_mut(parent)) {
                member.open += 1;
            }
            return Ok(Payer { agent, wire: parent });
        }
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
        let ended = self.table.lock().await.take_silent(silent);
        // Not under the lock: calls of other agents do not wait for it.
        for agent in ended {
            let finish = Finish { agent, result: Body::text("it made no call for a long time") };
            // An agent that has ended already needs nothing.
            let _ = tree.request(Actor::GATEWAY, finish).await;
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
        loop {
            let (id, is_new) = table.id_of(&self.salt, wire, caller);
            if !is_new {
                table.taken.insert(id.clone(), Life::Named);
                return Ok((id, true));
            }
            self.check_room(table, wire)?;
            match tree.request(Actor::GATEWAY, self.new_agent(id.clone(), wire, caller, above)).await {
                Ok(_) => {
                    table.taken.insert(id.clone(), Life::Named);
                    return Ok((id, true));
                }
                // Another agent of the tree has got it meanwhile.
                Err(RequestError::Refused(Refusal::DuplicateId { agent })) => {
                    table.taken.insert(agent, Life::Stranger);
                }
                // Its calls are held and booked anyway.
                Err(RequestError::Refused(
                    Refusal::DepthLimit { .. } | Refusal::AgentsLimit { .. } | Refusal::ChildrenLimit { .. },
                )) => return Ok((above.clone(), false)),
                Err(error) => return Err(GatewayError::new(GatewayErrorKind::Ended, error.to_string())),
            }
        }
    }

    fn new_agent(&self, id: AgentId, wire: &WireAgent, caller: &Caller, above: &AgentId) -> Spawn {
        let limit = match self.terms.cost_nanos {
            Some(nanos) => Ceilings::NONE.with(Resource::Cost, nanos),
            None => Ceilings::NONE,
        };
        let session =
            wire.session.as_ref().map(|session| format!(" of session {session}")).unwrap_or_default();
        let kind = caller.role.as_ref().map(|role| format!(" ({role})")).unwrap_or_default();
        Spawn {
            parent: above.clone(),
            role: self.role.clone(),
            goal: format!("agent {}{kind}{session}", wire.agent),
            goal_tokens: None,
            id: Some(id),
            model: None,
            tools: None,
            budget: BudgetSpec::with_limit(limit),
            collect: Collect::Outside,
            share: None,
            messages: Vec::new(),
            talks: false,
            frame: Frame::default(),
        }
    }
}

impl Agents {
    /// Refuses an agent beyond the most that the user allows. What refuses it is a text that its program shows: the agent
    /// that wanted help reads it and can continue without.
    fn check_room(&self, table: &AgentTable, wire: &WireAgent) -> Result<(), GatewayError> {
        match self.terms.agents_max {
            Some(most) if table.taken.len() >= most as usize => {
                let message = format!(
                    "spinney: this run may have {}, and agent {} would be one more: continue without it",
                    counted(u64::from(most), "agent"),
                    wire.agent
                );
                Err(GatewayError::new(GatewayErrorKind::Refused, message))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl AgentTable {
    /// Forgets agents without children that were silent for long, and returns those that have an account.
    fn take_silent(&mut self, silent: Duration) -> Vec<AgentId> {
        // Also those whose calls are booked at it: they have no account of their own.
        let above: BTreeSet<AgentId> = self.by_wire.values().map(|member| member.above.clone()).collect();
        let is_silent = |member: &Member| member.open == 0 && member.last_request.elapsed() >= silent;
        let is_over =
            |member: &Member| is_silent(member) && !(member.is_own && above.contains(&member.agent));
        let mut ended = Vec::new();
        self.by_wire.retain(|_, member| {
            let is_over = is_over(member);
            if is_over && member.is_own {
                ended.push(member.agent.clone());
            }
            !is_over
        });
        for agent in &ended {
            self.taken.insert(agent.clone(), Life::Ended);
        }
        ended
    }

    /// The id of an agent, and whether it has to be spawned. It follows from the names on the wire, so a resumed run finds
    /// its agents again.
    fn id_of(&self, salt: &str, wire: &WireAgent, caller: &Caller) -> (AgentId, bool) {
        let kind = caller.role.as_ref().map(|role| slug(role.as_str())).unwrap_or_default();
        let kind = if kind.is_empty() { "agent".to_owned() } else { kind };
        let session = wire.session.as_ref().map(WireId::as_str).unwrap_or_default();
        for turn in 0_u64.. {
            let named = format!("{salt}{session}\n{}\n{turn}", wire.agent);
            let digits = &blake3::hash(named.as_bytes()).to_hex()[..DIGITS];
            let Ok(id) = format!("{kind}-{digits}").parse::<AgentId>() else { continue };
            match self.taken.get(&id) {
                None => return (id, true),
                Some(Life::Unnamed) => return (id, false),
                Some(Life::Named | Life::Ended | Life::Stranger) => {}
            }
        }
        unreachable!("a tree has far fewer agents than ids")
    }
}

/// A program and everything that is below it already.
pub(super) fn members(snapshot: &TreeSnapshot, program: &AgentId) -> BTreeSet<AgentId> {
    let mut members: BTreeSet<AgentId> = [program.clone()].into();
    // Parents come before their children.
    for agent in &snapshot.agents {
        if agent.parent.as_ref().is_some_and(|parent| members.contains(parent)) {
            members.insert(agent.agent.clone());
        }
    }
    members
}

/// A word of an id: lower case letters, digits and dashes.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = text.chars().take(32).map(plain).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spinney::{Drivers, Home, MemoryJournal};
    use tokio::time::advance;

    use super::super::definition::{ExecBudget, exec_definition};
    use super::super::driver::GatewayModel;
    use super::super::pending_calls::PendingCalls;
    use super::super::wire::AgentProgram;
    use super::*;

    const SILENT: Duration = Duration::from_secs(1_800);

    struct Program {
        _home: Home,
        tree: Tree,
        agents: Agents,
    }

    impl Program {
        async fn start() -> Self {
            let driver = Arc::new(GatewayModel::new(Arc::new(PendingCalls::new())));
            let home = Home::open(Arc::new(MemoryJournal::new()), Drivers::new().with_any_model(driver));
            let definition = exec_definition("program", "program", &ExecBudget::default()).unwrap();
            let tree = home.start(definition).await.unwrap();
            let agents =
                Agents::new(&tree.snapshot().await.unwrap(), "agent".parse().unwrap(), AgentTerms::default())
                    .unwrap();
            Self { _home: home, tree, agents }
        }

        async fn asks(&self, agent: &str, parent: Option<&str>) -> Payer {
            let caller = Caller {
                program: AgentProgram::ClaudeCode,
                session: WireId::new("s"),
                agent: WireId::new(agent),
                parent: parent.and_then(WireId::new),
                role: None,
                name: None,
            };
            self.agents.payer(&self.tree, &caller).await.unwrap()
        }

        /// A whole call. Returns who paid.
        async fn calls(&self, agent: &str, parent: Option<&str>) -> AgentId {
            let payer = self.asks(agent, parent).await;
            let paid = payer.agent.clone();
            self.agents.release(payer).await;
            paid
        }

        async fn remembered(&self) -> usize {
            self.agents.table.lock().await.by_wire.len()
        }

        async fn alive(&self) -> usize {
            let snapshot = self.tree.snapshot().await.unwrap();
            snapshot.agents.iter().filter(|agent| !matches!(agent.status, AgentStatus::Ended(_))).count()
        }
    }

    /// A program that names a new agent with every call: 10,000 of them have accounts, the root's among them. The others
    /// are booked at the agent above, and what is remembered of them has a bound.
    #[tokio::test(start_paused = true)]
    async fn ten_thousand_agents_have_accounts_and_the_rest_is_booked_above() {
        let program = Program::start().await;
        let parent = program.calls("a0", None).await;
        for at in 1..AGENTS_MAX - 1 {
            assert_eq!(program.calls(&format!("a{at}"), None).await.as_str().len(), "agent-01234567".len());
        }
        assert_eq!(program.alive().await, AGENTS_MAX as usize);
        assert_eq!(program.calls("late", None).await, program.agents.root);
        assert_eq!(program.calls("below", Some("a0")).await, parent);
        assert_eq!(program.calls("further", Some("below")).await, parent);
        for at in 0..WITHOUT_ACCOUNT_MAX {
            program.calls(&format!("more{at}"), Some("a0")).await;
        }
        assert_eq!(program.remembered().await, WIRE_AGENTS_MAX);
        // One that is not remembered is booked at the agent above, which stays while the call runs.
        let open = program.asks("new", Some("a0")).await;
        assert_eq!(open.agent, parent);
        advance(SILENT).await;
        let ended = program.agents.table.lock().await.take_silent(SILENT);
        assert_eq!((program.remembered().await, ended.len()), (1, AGENTS_MAX as usize - 2));
        program.agents.release(open).await;
        advance(SILENT).await;
        assert_eq!(program.agents.table.lock().await.take_silent(SILENT), [parent]);
    }

    /// Agents below the deepest level have no accounts: while they speak, the one that they are booked at is not ended.
    #[tokio::test(start_paused = true)]
    async fn an_agent_that_pays_for_others_is_not_collected_while_they_speak() {
        let program = Program::start().await;
        let mut parent: Option<String> = None;
        for depth in 1..=17 {
            program.calls(&format!("a{depth}"), parent.as_deref()).await;
            parent = Some(format!("a{depth}"));
        }
        let deepest = program.calls("a16", None).await;
        advance(SILENT).await;
        assert_eq!(program.calls("a17", None).await, deepest);
        program.agents.collect(&program.tree, SILENT).await;
        assert_eq!(program.alive().await, 17);
        assert_eq!(program.calls("a17", None).await, deepest);
        // Then each goes when it has no children.
        for left in (1..=17).rev() {
            advance(SILENT).await;
            program.agents.collect(&program.tree, SILENT).await;
            assert_eq!(program.alive().await, left);
        }
    }

    /// Two programs of one tree use the same names: each has its own agents, and books at none of the other's, whichever names
    /// it thinks up.
    #[tokio::test(start_paused = true)]
    async fn the_agents_of_one_program_are_not_those_of_another() {
        let Program { _home, tree, agents } = Program::start().await;
        let both = Program { _home, tree, agents };
        let (one, two) = (both.calls("one", None).await, both.calls("two", None).await);
        let role = || "agent".parse().unwrap();
        let below = async |root: &AgentId| {
            let snapshot = both.tree.snapshot().await.unwrap();
            Agents::below(&snapshot, root.clone(), role(), AgentTerms::default())
        };
        let asks = async |agents: &Agents, name: &str| {
            let caller = Caller {
                program: AgentProgram::ClaudeCode,
                session: WireId::new("s"),
                agent: WireId::new(name),
                parent: None,
                role: None,
                name: None,
            };
            let payer = agents.payer(&both.tree, &caller).await.unwrap();
            let agent = payer.agent.clone();
            agents.release(payer).await;
            agent
        };
        let parent = async |agent: &AgentId| {
            let snapshot = both.tree.snapshot().await.unwrap();
            snapshot.agents.iter().find(|seen| seen.agent == *agent).unwrap().parent.clone().unwrap()
        };
        // The second begins when the first one's agent is there already, and when it is not.
        let (of_one, early) = (below(&one).await, below(&two).await);
        let first = asks(&of_one, "x").await;
        let late = below(&two).await;
        assert_eq!(parent(&first).await, one);
        for of_two in [early, late] {
            let second = asks(&of_two, "x").await;
            assert_eq!((parent(&second).await, second != first), (two.clone(), true));
        }
        // The tree's own table has an id that the program thinks up: it gets another one.
        let mut table = of_one.table.lock().await;
        let wire = WireAgent { session: None, agent: WireId::new("y").unwrap() };
        let caller = Caller {
            program: AgentProgram::ClaudeCode,
            session: None,
            agent: None,
            parent: None,
            role: None,
            name: None,
        };
        let (taken, _) = table.id_of(&of_one.salt, &wire, &caller);
        table.taken.insert(taken.clone(), Life::Stranger);
        let (other, is_new) = table.id_of(&of_one.salt, &wire, &caller);
        assert!(other != taken && is_new);
    }

    /// A resumed run finds its agents again, and ends none that it has not seen.
    #[tokio::test(start_paused = true)]
    async fn an_agent_of_an_earlier_process_keeps_its_account() {
        let program = Program::start().await;
        let first = program.calls("a", None).await;
        let snapshot = program.tree.snapshot().await.unwrap();
        let agents = Agents::new(&snapshot, "agent".parse().unwrap(), AgentTerms::default()).unwrap();
        let resumed = Program { agents, ..program };
        advance(SILENT).await;
        resumed.agents.collect(&resumed.tree, SILENT).await;
        assert_eq!(resumed.calls("a", None).await, first);
        assert_eq!(resumed.calls("a", None).await, first);
        assert_eq!(resumed.alive().await, 2);
    }
}
