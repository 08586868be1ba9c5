//! What the agents of one role are, may do and may use, as lines and as JSON.

use std::collections::BTreeSet;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use spinney::tree_file::CallBound;
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::definition::{
    Allow, Approval, BudgetSpec, FolderGrants, HostRequests, Lend, OnLow, Role, Share,
};
use spinney_kernel::primitives::{ByName, Millis, ModelName, RoleName, ToolName, grouped};

use super::listed;
use crate::wording::counted;

/// The agents of one role.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AgentOutline {
    /// The role.
    pub name: RoleName,
    /// The model that they use.
    pub model: ModelName,
    /// The program that they are in place of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The tools that they may call.
    pub tools: Vec<ToolName>,
    /// The folders of the user that they may use, if the role lists some; otherwise those of their parents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folders: Option<FolderGrants>,
    /// The hosts that their tools may connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Whether they may ask a person for other hosts.
    #[serde(skip_serializing_if = "HostRequests::is_refused")]
    pub host_requests: HostRequests,
    /// The tools that need a person's approval or are forbidden.
    pub approvals: Option<ByName<ToolName, Approval>>,
    /// The roles that they can spawn.
    pub spawns: Option<BTreeSet<RoleName>>,
    /// Whether they can be started at all.
    pub can_start: bool,
    /// What they know at their start beside their goal.
    pub share: Option<Share>,
    /// Whether their answers have a schema.
    pub output_schema: bool,
    /// Their ceilings.
    pub budget: BudgetOutline,
    /// The most that one of their calls uses.
    pub call: Option<CallOutline>,
    /// Most turns of one of them.
    pub turns: Option<u32>,
    /// The same for people.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// Ceilings and a timeout, by the names of the resources.
#[derive(Clone, Debug)]
pub struct BudgetOutline(BudgetSpec);

/// The most that one call uses.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct CallOutline {
    /// What fits into its window, if that is known.
    pub input_tokens: Option<u64>,
    /// Its longest answer.
    pub output_tokens: u64,
    /// What both cost, if that is known.
    pub cost_nanos: Option<u64>,
}

/// A role, and what the whole definition says about it.
pub(super) struct OutlinedRole<'p> {
    pub(super) name: &'p RoleName,
    pub(super) role: &'p Role,
    pub(super) is_root: bool,
    /// Whether its agents can be started.
    pub(super) can_start: bool,
    /// The roles that its agents can spawn.
    pub(super) spawns: Option<&'p BTreeSet<RoleName>>,
    pub(super) call: Option<&'p CallBound>,
    /// The folders that its agents have, if they are not their parents'.
    pub(super) folders: Option<&'p FolderGrants>,
}

impl OutlinedRole<'_> {
    pub(super) fn outline(&self) -> AgentOutline {
        let Self { name, role, spawns, call, .. } = self;
        let turns = role.turns.as_ref();
        let call_outline = |call: &CallBound| CallOutline {
            input_tokens: call.input,
            output_tokens: call.output,
            cost_nanos: call.cost,
        };
        AgentOutline {
            name: (*name).clone(),
            model: role.model.clone(),
            program: role.program.as_ref().map(|program| program.command.shown()),
            tools: match &role.caps.tools {
                Allow::Only(tools) => tools.iter().cloned().collect(),
                Allow::All => Vec::new(),
            },
            folders: self.folders.cloned(),
            network: role.caps.network.rules().map(ToString::to_string).collect(),
            host_requests: role.caps.host_requests,
            approvals: turns.map(|turns| turns.approvals.clone()),
            spawns: spawns.cloned(),
            can_start: self.can_start,
            share: turns.map(|turns| turns.share),
            output_schema: self.has_schema(),
            budget: BudgetOutline(role.budget.clone()),
            call: call.map(call_outline),
            turns: call.and_then(|call| call.turns),
            lines: self.lines(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Self { role, spawns, call, .. } = self;
        let root = if self.is_root { ", the root" } else { "" };
        let what = match &role.program {
            Some(program) => format!("the program {}", program.command),
            None => format!("on {}", role.model),
        };
        let mut lines = vec![format!("{what}{root}")];
        if let Allow::Only(tools) = &role.caps.tools
            && !tools.is_empty()
        {
            lines.push(format!("tools: {}", listed(tools.iter())));
        }
        lines.extend(self.folders.map(|folders| format!("folders: {folders}")));
        if !role.caps.network.is_denied() {
            lines.push(format!("connects to: {}", listed(role.caps.network.rules())));
        }
        if role.caps.host_requests == HostRequests::Ask {
            lines.push("asks a person for other hosts".to_owned());
        }
        for (approval, words) in [(Approval::Ask, "asks a person before"), (Approval::Deny, "may not call")] {
            let tools: Vec<&ToolName> = self.approvals(approval).collect();
            if !tools.is_empty() {
                lines.push(format!("{words}: {}", listed(tools.into_iter())));
            }
        }
        if let Some(children) = spawns.filter(|children| !children.is_empty()) {
            lines.push(format!("may spawn: {}", listed(children.iter())));
        }
        lines.extend(self.share().map(|share| format!("share: {share}")));
        if self.has_schema() {
            lines.push("answers with JSON that matches its output schema".to_owned());
        }
        lines.extend(budget_words(&role.budget).map(|budget| format!("budget: {budget}")));
        lines.extend(call.map(|call| self.one_call(call)));
        lines
    }

    fn approvals(&self, wanted: Approval) -> impl Iterator<Item = &ToolName> {
        let all = self.role.turns.iter().flat_map(|turns| &turns.approvals);
        all.filter(move |(_, approval)| **approval == wanted).map(|(tool, _)| tool)
    }

    /// What its agents know at their start beside their goal, as a file says it.
    fn share(&self) -> Option<String> {
        match self.role.turns.as_ref()?.share {
            Share::Goal => None,
            Share::Briefing => Some("briefing".to_owned()),
            Share::Thread => Some("thread".to_owned()),
            Share::Fork(turns) => Some(format!("fork of {}", counted(turns.into(), "turn"))),
        }
    }

    fn has_schema(&self) -> bool {
        self.role.turns.as_ref().is_some_and(|turns| turns.output_schema.is_some())
    }

    fn one_call(&self, call: &CallBound) -> String {
        let output = grouped(call.output);
        let turns = call.turns.map(|turns| {
            let given =
                call.turns_unless_given.map(|own| format!(", {own} unless its spawner gives it a budget"));
            format!("; at most {}{}", counted(u64::from(turns), "turn"), given.unwrap_or_default())
        });
        let turns = turns.unwrap_or_default();
        match (call.input, call.cost) {
            (Some(input), Some(cost)) => {
                let (input, cost) = (grouped(input), usd(cost));
                format!("one call: {cost} with a full window, {input} tokens in and {output} out{turns}")
            }
            (Some(input), None) => format!("one call: {} tokens in and {output} out{turns}", grouped(input)),
            (None, _) => format!("one call: at most {output} tokens out{turns}"),
        }
    }
}

/// `at most $0.10, 5 steps · within 1 minute`; nothing if it says nothing.
fn budget_words(budget: &BudgetSpec) -> Option<String> {
    let mut said = Vec::new();
    said.extend(ceilings(budget).map(|most| format!("at most {most}")));
    said.extend(budget.timeout_ms.map(|ms| format!("within {}", Millis(ms))));
    said.extend((budget.lend == Some(Lend::Yes)).then(|| "lent at its start".to_owned()));
    said.extend(budget.on_low.as_ref().map(|on_low| match on_low {
        OnLow::Halt => "halts when it is low".to_owned(),
        OnLow::Shrink => "shorter answers when it is low".to_owned(),
        OnLow::Downgrade(model) => format!("{model} when it is low"),
    }));
    (!said.is_empty()).then(|| said.join(" · "))
}

/// `$0.10, 5 steps`.
pub(super) fn ceilings(budget: &BudgetSpec) -> Option<String> {
    let bounded = budget.limit.bounded();
    let amount = |resource: Resource| Some(format!("{:#}", resource.amount(budget.limit.get(resource)?)));
    let most: Vec<String> = bounded.iter().filter_map(amount).collect();
    (!most.is_empty()).then(|| most.join(", "))
}

impl Serialize for BudgetOutline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(budget) = self;
        let mut map = serializer.serialize_map(None)?;
        for resource in Resource::ALL {
            if let Some(most) = budget.limit.get(resource) {
                let name = resource.to_string();
                map.serialize_entry(if resource == Resource::Cost { "cost_nanos" } else { &name }, &most)?;
            }
        }
        if let Some(ms) = budget.timeout_ms {
            map.serialize_entry("timeout_ms", &ms)?;
        }
        map.end()
    }
}
