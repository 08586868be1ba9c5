//! The outcome of a run: what it spent, by agent, and what the gateway refused.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use spinney::tree::stored;
use spinney_host::exec::program::{NOT_EXECUTABLE, NOT_FOUND};
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{AgentId, TreeId};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::AgentView;
use spinney_view::RunLedger;
use spinney_view::costs::Costs;
use spinney_view::result::{FAILED, ResultError};
use spinney_view::spent::{Dollars, Spent};

use super::ending::RunExit;
use crate::gateway::GatewayReport;

/// The report of a run.
pub struct ExecReport {
    /// `None` if its program was not started.
    pub tree: Option<TreeId>,
    /// The state of its tree; failed if the journal cannot be trusted.
    pub state: &'static str,
    /// How it ended, with the reason.
    pub end: Option<String>,
    /// Its agents; without those, nothing is known to be spent.
    pub agents: Vec<AgentView>,
    /// None if the journal cannot be read.
    pub costs: Option<Costs>,
    /// The ceilings of the run.
    pub budget: Ceilings,
    /// What the program sent to the gateway; none if an earlier process ran it.
    pub requests: Option<u64>,
    /// The gateway's report of the run.
    pub gateway: GatewayReport,
    /// Its outcome.
    pub exit: RunExit,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Why it was not started, or why its journal cannot be trusted.
    pub error: Option<ResultError>,
}

/// What an agent spent itself, without those below it.
pub struct OwnSpending<'r> {
    pub agent: &'r AgentView,
    /// Its own part.
    pub own: Spent,
}

impl ExecReport {
    /// The report of a run that has none, because its program was not started.
    #[must_use]
    pub fn not_started(error: ResultError) -> Self {
        Self {
            tree: None,
            state: FAILED.as_str(),
            end: None,
            agents: Vec::new(),
            costs: None,
            budget: Ceilings::NONE,
            requests: None,
            gateway: GatewayReport::default(),
            exit: RunExit::Failed,
            elapsed_ms: 0,
            error: Some(error),
        }
    }

    /// The report of a run that ended in an earlier process.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub async fn of_ended(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let snapshot = stored(journal, tree).await?.snapshot;
        let (ledger, costs) = (RunLedger::read(journal, tree).await?, Costs::read(journal, tree).await?);
        Ok(Self {
            tree: Some(tree),
            state: snapshot.state.as_str(),
            end: snapshot.end.as_ref().map(|end| end.exit.to_string()),
            exit: snapshot.end.as_ref().map_or(RunExit::Failed, |end| RunExit::of_end(&end.exit)),
            agents: snapshot.agents,
            costs: Some(costs),
            budget: *ledger.budget(),
            requests: None,
            gateway: GatewayReport::default(),
            elapsed_ms: ledger.elapsed_ms(),
            error: None,
        })
    }

    /// What to look at if a program that ran has missed the gateway: most of those fail.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        let has_run = match self.exit {
            RunExit::Completed => true,
            RunExit::Program(code) => !matches!(code, NOT_EXECUTABLE | NOT_FOUND),
            RunExit::Tree(kind) => kind == ExitKind::Completed,
            RunExit::Failed | RunExit::Halted | RunExit::Interrupted => false,
        };
        // One with another key than the run's has found it.
        let is_missed = self.requests == Some(0) && self.gateway.refused.is_empty();
        (has_run && is_missed).then_some(
            "no request reached the gateway: the program may be configured with another address, or it ignores `*_BASE_URL`. docs/exec.md has recipes",
        )
    }

    /// Everything that was spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let root = self.agents.iter().find(|agent| agent.parent.is_none());
        root.map(Spent::from_view).unwrap_or_default()
    }

    /// The agents, each with what it spent itself.
    #[must_use]
    pub fn own_spending(&self) -> Vec<OwnSpending<'_>> {
        let mut below: BTreeMap<&AgentId, Spent> = BTreeMap::new();
        for agent in &self.agents {
            if let Some(parent) = &agent.parent {
                let sum = below.entry(parent).or_default();
                *sum = sum.plus(&Spent::from_view(agent));
            }
        }
        let own = |agent: &AgentView| {
            let below = below.get(&agent.agent).copied().unwrap_or_default();
            Spent::from_view(agent).minus(&below)
        };
        self.agents.iter().map(|agent| OwnSpending { agent, own: own(agent) }).collect()
    }

    /// The same for programs, with the exit code of the process and what helps in the words of a face.
    #[must_use]
    pub fn json<'r>(&'r self, exit_code: u8, remedy: Option<&'r str>) -> impl Serialize + 'r {
        ReportJson { report: self, exit_code, remedy }
    }
}

struct ReportJson<'r> {
    report: &'r ExecReport,
    exit_code: u8,
    remedy: Option<&'r str>,
}

impl Serialize for ReportJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let refused = &report.gateway.refused;
        let refused = refused.last().map(|last| RefusedJson {
            count: refused.count(),
            last: &last.message,
            kinds: refused.kinds().map(|(kind, count)| (kind.as_str(), count)).collect(),
        });
        let outside_bound = report.gateway.outside_bound.iter();
        let outside_bound: BTreeMap<String, u64> =
            outside_bound.map(|(name, calls)| (name.to_string(), *calls)).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "result")?;
        map.serialize_entry("tree", &report.tree)?;
        map.serialize_entry("state", report.state)?;
        map.serialize_entry("exit_code", &self.exit_code)?;
        map.serialize_entry("budget", &RunBudget(&report.budget))?;
        map.serialize_entry("spent", &report.spent())?;
        map.serialize_entry("agents", &report.own_spending())?;
        map.serialize_entry("requests", &report.requests)?;
        map.serialize_entry("refused", &refused)?;
        map.serialize_entry("capped", &report.gateway.capped)?;
        map.serialize_entry("outside_bound", &outside_bound)?;
        map.serialize_entry("elapsed_ms", &report.elapsed_ms)?;
        map.serialize_entry("hint", &report.hint())?;
        if let Some(error) = &report.error {
            map.serialize_entry("error", &error.json(self.remedy))?;
        }
        map.end()
    }
}

impl Serialize for OwnSpending<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("agent", &self.agent.agent)?;
        map.serialize_entry("parent", &self.agent.parent)?;
        map.serialize_entry("own", &self.own)?;
        map.serialize_entry("spent", &Spent::from_view(self.agent))?;
        map.end()
    }
}

#[derive(Serialize)]
struct RefusedJson<'r> {
    count: u64,
    last: &'r str,
    kinds: BTreeMap<&'static str, u64>,
}

/// The ceilings of a run: those that it has, or null.
struct RunBudget<'c>(&'c Ceilings);

impl Serialize for RunBudget<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.bounded().is_empty() {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        for resource in self.0.bounded().iter() {
            let most = self.0.get(resource).unwrap_or_default();
            if resource == Resource::Cost {
                map.serialize_entry("cost_usd", &Dollars(most))?;
                map.serialize_entry("cost_nanos", &most)?;
            } else {
                map.serialize_entry(&resource.to_string(), &most)?;
            }
        }
        map.end()
    }
}
