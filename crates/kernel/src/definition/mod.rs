//! The definition of a tree: its roles, models and ceilings. It arrives with the request that starts the tree, and is
//! validated as a whole before anything runs.

mod answer_form;
mod arguments;
mod box_spec;
mod budget;
mod builtin;
mod cache_time;
mod caps;
mod command_template;
mod expression;
mod folder_grants;
mod graph;
mod literals;
mod model_provider;
mod network;
mod output_schema;
mod program;
mod questions;
mod rate_limit;
mod refusal;
mod refusal_rules_6;
mod repeats;
mod role;
mod share;
mod shared_access;
mod shares;
mod subject;
mod thinking;
mod tool_server;
mod visibility;
mod wanted_hosts;
mod window_spec;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Amounts, Price};
use crate::primitives::{
    AgentId, ByName, Durability, ModelName, RoleName, ServerName, ThreadId, TokenCount, ToolName, ValueName,
    limit,
};

pub use answer_form::AnswerForm;
pub use box_spec::{BoxSpec, BoxWalls, RUN_COMMAND, WeakerBoxBelow};
pub use budget::{BudgetSpec, Lend, OnLow, WrapUp};
pub use builtin::Builtin;
pub use cache_time::{CacheTime, NotCacheTime};
pub use caps::{Allow, Caps};
pub use command_template::{CommandFillError, CommandTemplate, CommandTemplateError};
pub use expression::{Condition, Expression, ExpressionError, ExpressionFault, Template, Values};
pub use folder_grants::{FolderAccess, FolderGrants};
pub(crate) use graph::flow;
pub use graph::{
    AskStep, AskTimeout, Graph, GraphNode, GraphPlaces, GraphProblem, GraphStep, GraphSurroundings,
    InputSource, Majority, Members, Missing, NodeIx, NodeKind, OnMaxRounds, OnMissing, OnPartialSuccess,
    OnTie, PathStep, ProblemCode, SharedSurroundings, StepInput, Undo, VoteRule,
};
pub use literals::{
    BudgetKeys, ByteSize, Count, Percent, PriceKeys, SpanOrOff, TimeSpan, Timeout, Usd, WrittenError,
};
pub use model_provider::ModelProvider;
pub use network::Network;
pub use output_schema::{FieldMismatch, Mismatch, MismatchKind, OutputSchema};
pub use program::{KnownProgram, ProgramCommand, ProgramCommandError, ProgramSpec};
pub use questions::QuestionPolicy;
pub use rate_limit::RateLimit;
pub use refusal::Refusal;
pub(crate) use refusal::{check_said, check_text};
pub use repeats::Repeats;
pub use role::{Approval, OutputLimits, Recursion, Role, Turns};
pub use share::{GivenMessage, Share};
pub use shared_access::{SharedAccess, ValueAccess};
pub use shares::{Preset, Shares};
pub use subject::{ApprovalScope, NotPattern, RememberedApproval, SubjectKind, SubjectPattern, ToolSubject};
pub use thinking::Thinking;
pub use tool_server::{
    HttpAddress, ServerAddress, ServerAuth, ServerBeyond, ServerBeyondRole, ServerScope, ToolServer,
};
pub use visibility::{RedactionSpec, RoleVisibility, Visibility};
pub use wanted_hosts::{FETCH, HostRequests, HostsArgument, HostsKind};
pub(crate) use window_spec::check_size;
pub use window_spec::{Compact, WindowSpec};

/// Labels that the caller gives a tree, such as its owner or project. Agents never see them.
pub type Tags = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub name: String,
    /// The root's goal.
    pub goal: String,
    pub entry: RoleName,
    /// The thread it belongs to; a new one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    #[serde(default)]
    pub budget: BudgetSpec,
    #[serde(default)]
    pub limits: TreeLimits,
    pub models: ByName<ModelName, ModelSpec>,
    pub roles: ByName<RoleName, Role>,
    /// Tools by name, without the built-in ones.
    #[serde(default, skip_serializing_if = "ByName::is_empty")]
    pub tools: ByName<ToolName, ToolSpec>,
    /// The tools, by the names in its roles, that run commands of the tree file in the box of their agent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub command_tools: BTreeSet<ToolName>,
    /// Servers whose tools its roles may name, as `server__tool`.
    #[serde(default, skip_serializing_if = "ByName::is_empty")]
    pub servers: ByName<ServerName, ToolServer>,
    /// Which roles may read and write which shared values; every agent with the tools if it says nothing.
    #[serde(default, skip_serializing_if = "SharedAccess::is_empty")]
    pub shared: SharedAccess,
    /// How to treat models without a price under a cost ceiling.
    #[serde(default)]
    pub unpriced: Unpriced,
    #[serde(default)]
    pub durability: Durability,
    /// The steps that the tree runs instead of an agent. `entry` is then the role of graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Arc<Graph>>,
    /// Named values that exist from the start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<ValueName, serde_json::Value>,
    /// Folders of the user for the root, unless its role lists some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<FolderGrants>,
    /// Whether the root waits for a person after each answer, until it is concluded.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub is_kept: bool,
    /// Labels for watchers. Shared by reference with every event that is shown.
    #[serde(default, skip_serializing_if = "has_none")]
    pub tags: Arc<Tags>,
    /// How much of the agents of a role watchers are shown; everything if it is not here.
    #[serde(default, skip_serializing_if = "ByName::is_empty")]
    pub visibility: ByName<RoleName, RoleVisibility>,
    /// What is redacted of it.
    #[serde(default, skip_serializing_if = "RedactionSpec::is_default")]
    pub redact: RedactionSpec,
}

fn has_none(tags: &Arc<Tags>) -> bool {
    tags.is_empty()
}

/// Limits of the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeLimits {
    /// Depth below the root.
    pub depth_max: u32,
    /// Live children of one agent.
    pub children_max: u32,
    /// All agents of the tree, ended ones included.
    pub agents_max: u32,
    /// Effects that run at the same time.
    pub parallel_max: u32,
    /// Model calls of all its agents.
    #[serde(skip_serializing_if = "RateLimit::is_none")]
    pub rate: RateLimit,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            depth_max: limit::DEPTH_MAX,
            children_max: limit::CHILDREN_MAX,
            agents_max: limit::AGENTS_MAX,
            parallel_max: limit::PARALLEL_MAX,
            rate: RateLimit::NONE,
        }
    }
}

/// A model that agents may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSpec {
    /// Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The largest output cap of one call; no limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_max: Option<u64>,
    /// Context length: the most tokens of input and output together, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Models to try in order when this one fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelName>,
    /// How long a call waits at most for another one that has the same long prompt prefix, so the provider bills
    /// it as cached; [`CACHE_WAIT_MS`](crate::primitives::limit::CACHE_WAIT_MS) if absent, not at all if 0. Only if the
    /// model's price has a lower rate for cached input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_wait_ms: Option<u64>,
    /// Calls of all trees of this process that use it with the same key.
    #[serde(skip_serializing_if = "RateLimit::is_none")]
    pub rate: RateLimit,
    /// How to treat a call whose end was never recorded.
    pub lost: OnLost,
    /// How often one call is restarted because its process died; [`LOSSES_MAX`](crate::primitives::limit::LOSSES_MAX) if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses_max: Option<u32>,
    #[serde(skip_serializing_if = "TokenCounter::is_exact")]
    pub counter: TokenCounter,
}

/// What the driver of a model knows about its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCounter {
    /// Its tokenizer is known: one count serves holds and windows.
    #[default]
    Exact,
    /// It is not: the count of a text is a bound for holds and an estimate for windows.
    Estimate,
}

impl TokenCounter {
    const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact)
    }

    /// A count as windows use it: without its own estimate where counts are exact.
    pub(crate) const fn count(self, tokens: TokenCount) -> TokenCount {
        match self {
            Self::Exact => TokenCount::exact(tokens.bound()),
            Self::Estimate => tokens,
        }
    }
}

impl ModelSpec {
    /// The output cap of one call if it is not set: what the model can write, and at most a part of its context.
    #[must_use]
    pub fn output_cap(&self) -> u64 {
        let part = self.context.map(|context| context / limit::OUTPUT_CONTEXT_PART);
        [self.output_max, part].into_iter().flatten().fold(limit::OUTPUT_TOKENS, u64::min)
    }
}

/// How to treat a running effect whose process died before its end was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// It may have been billed or done: settle at the full hold. A model call then takes a new hold for its retry; a
    /// tool is reported lost.
    #[default]
    Presumed,
    /// Idempotent: start it again under the same key and the same hold.
    Repeatable,
}

/// A tool that agents may call, as its driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSpec {
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, as text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// How to treat a call whose end was never recorded.
    pub lost: OnLost,
    /// If it is set, only calls whose subject begins with this are repeatable: a tool that acts below a folder of its agent,
    /// which the journal restores, and also elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeatable_below: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_nanos_max: u64,
    /// How long one call may take; has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How many bytes of its output are shown whole; has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_bytes: Option<u32>,
    /// The tokens that it adds to a packet, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCount>,
    /// What a person approves of its calls, if that is one of its arguments; otherwise all of them as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<ToolSubject>,
    /// Which argument names the hosts that a call connects to, for which a person can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsArgument>,
}

impl ToolSpec {
    /// How to treat this call if its end is never recorded.
    pub(crate) fn on_lost(&self, args: &str) -> OnLost {
        let Some(beginning) = &self.repeatable_below else { return self.lost };
        let subject = self.subject.as_ref().and_then(|subject| subject.of_call(args));
        let is_below = subject.is_some_and(|subject| subject.starts_with(beginning.as_str()));
        if is_below { self.lost } else { OnLost::Presumed }
    }

    fn check(&self, name: &ToolName, rules: u32) -> Result<(), Refusal> {
        if Builtin::named_under(rules, name).is_some() {
            return Err(Refusal::ToolNameTaken { tool: name.clone() });
        }
        check_text("description of a tool", &self.description, limit::TEXT_BYTES_MAX)?;
        check_text("schema of a tool", &self.schema, limit::TEXT_BYTES_MAX)?;
        if let Some(subject) = &self.subject {
            check_text("subject of a tool", &subject.argument, limit::NAME_BYTES_MAX)?;
        }
        if let Some(hosts) = &self.hosts {
            check_text("hosts of a tool", &hosts.argument, limit::NAME_BYTES_MAX)?;
        }
        if let Some(beginning) = &self.repeatable_below {
            check_text("where a tool is repeatable", beginning, limit::NAME_BYTES_MAX)?;
        }
        Amounts::cost(self.cost_nanos_max).checked()?;
        match self.timeout_ms {
            Some(ms) if ms == 0 || ms > limit::TIMEOUT_MS_MAX => {
                Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX })
            }
            _ => Ok(()),
        }
    }
}

const fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

/// How to treat a model without a price under a cost ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpriced {
    /// Refuse it: an unknown cost never counts as zero.
    #[default]
    Refuse,
    /// Count its cost as zero, because the author of the file said so.
    Allow,
}

impl Definition {
    /// A definition without models, roles and ceilings. A tree can start once `entry` is one of its roles.
    #[must_use]
    pub fn new(name: impl Into<String>, goal: impl Into<String>, entry: RoleName) -> Self {
        Self {
            is_kept: false,
            name: name.into(),
            goal: goal.into(),
            entry,
            thread: None,
            budget: BudgetSpec::default(),
            limits: TreeLimits::default(),
            models: ByName::default(),
            roles: ByName::default(),
            tools: ByName::default(),
            shared: SharedAccess::default(),
            unpriced: Unpriced::default(),
            durability: Durability::default(),
            graph: None,
            inputs: BTreeMap::new(),
            folders: None,
            command_tools: BTreeSet::new(),
            servers: ByName::default(),
            tags: Arc::default(),
            visibility: ByName::default(),
            redact: RedactionSpec::default(),
        }
    }

    #[must_use]
    pub fn with_model(mut self, name: ModelName, model: ModelSpec) -> Self {
        self.models.insert(name, model);
        self
    }

    #[must_use]
    pub fn with_role(mut self, name: RoleName, role: Role) -> Self {
        self.roles.insert(name, role);
        self
    }

    /// The budget of the root: the tree's, and where that says nothing, that of the root's role or of the pipeline.
    #[must_use]
    pub fn root_budget(&self) -> BudgetSpec {
        let of_graph = self.graph.as_deref().and_then(|graph| graph.nodes().first()?.budget.as_deref());
        let of_role = self.roles.get(&self.entry).map(|role| &role.budget);
        of_graph.or(of_role).map_or_else(|| self.budget.clone(), |own| self.budget.or(own))
    }

    /// The folders of the root: those of its role, and if that lists none, those of the tree.
    #[must_use]
    pub fn root_folders(&self) -> Option<&FolderGrants> {
        let of_role = self.roles.get(&self.entry).and_then(|role| role.caps.folders.as_ref());
        of_role.or(self.folders.as_ref())
    }

    /// Every host that a role lists.
    #[must_use]
    pub fn all_hosts(&self) -> Network {
        self.roles.values().fold(Network::Denied, |all, role| all.with(&role.caps.network))
    }

    /// Whether a role may ask a person for hosts.
    #[must_use]
    pub fn host_requests(&self) -> HostRequests {
        self.roles.values().map(|role| role.caps.host_requests).max().unwrap_or_default()
    }

    /// Every folder that the tree or a role lists.
    #[must_use]
    pub fn all_folders(&self) -> FolderGrants {
        let roles = self.roles.values().filter_map(|role| role.caps.folders.as_ref());
        let mut all = FolderGrants::default();
        for (path, access) in roles.chain(&self.folders).flat_map(FolderGrants::iter) {
            all.add(path.clone(), access);
        }
        all
    }

    /// Sets the root's ceilings.
    #[must_use]
    pub fn with_budget(mut self, budget: BudgetSpec) -> Self {
        self.budget = budget;
        self
    }

    /// The role and its shared name.
    ///
    /// # Errors
    /// Names the role and the existing ones.
    pub fn role(&self, name: &RoleName) -> Result<(&RoleName, &Role), Refusal> {
        let known = || self.roles.keys().cloned().collect();
        self.roles
            .get_key_value(name)
            .ok_or_else(|| Refusal::UnknownRole { role: name.clone(), known: known() })
    }

    /// # Errors
    /// Names the model and the existing ones.
    pub fn model(&self, name: &ModelName) -> Result<&ModelSpec, Refusal> {
        let known = || self.models.keys().cloned().collect();
        self.models.get(name).ok_or_else(|| Refusal::UnknownModel { model: name.clone(), known: known() })
    }

    #[must_use]
    pub fn price(&self, model: &ModelName) -> Option<&Price> {
        self.models.get(model)?.price.as_ref()
    }

    /// How the windows of a tree count. Every text is counted for all models, so one model whose tokens are estimated
    /// makes all counts estimates.
    pub(crate) fn counter(&self) -> TokenCounter {
        let is_estimated = self.models.values().any(|model| model.counter == TokenCounter::Estimate);
        if is_estimated { TokenCounter::Estimate } else { TokenCounter::Exact }
    }

    /// What a person approves of a call: an argument of its tool, or all of them as they are. `None` if it is unclear.
    #[must_use]
    pub fn subject(&self, tool: &ToolName, args: &str) -> Option<String> {
        match self.tools.get(tool).and_then(|spec| spec.subject.as_ref()) {
            Some(subject) => subject.of_call(args),
            None => Some(args.to_owned()),
        }
    }

    /// The widest pattern that an approval of this call can be remembered with. `None` if it can only be approved once.
    #[must_use]
    pub fn offered(&self, tool: &str, args: &str) -> Option<SubjectPattern> {
        let tool: ToolName = tool.parse().ok()?;
        let kind = self.tools.get(&tool).and_then(|spec| spec.subject.as_ref()).map(|subject| subject.kind);
        // What a person cannot see on a line is not approved for more than once.
        let subject = self.subject(&tool, args).filter(|subject| subject::is_visible(subject))?;
        let offered = SubjectPattern::offered(kind, &subject);
        (offered.len() <= limit::APPROVAL_BYTES_MAX).then_some(offered)
    }

    /// The names of all tools of a tree under these rules, built-in ones first.
    pub fn tool_names(&self, rules: u32) -> impl Iterator<Item = ToolName> {
        let builtin = Builtin::under(rules).map(|builtin| ToolName::of_builtin(builtin.as_str()));
        builtin.chain(self.tools.keys().cloned())
    }

    /// Validates the whole definition.
    pub(crate) fn check(&self, rules: u32) -> Result<(), Refusal> {
        check_said("name", &self.name, limit::NOTE_BYTES_MAX)?;
        check_said("goal", &self.goal, limit::TEXT_BYTES_MAX)?;
        check_tags(&self.tags)?;
        self.limits.check()?;
        self.budget.check()?;
        self.check_inputs()?;
        match &self.graph {
            Some(graph) => self.check_graph(graph)?,
            None => drop(self.role(&self.entry)?),
        }
        bounded("models", self.models.len())?;
        bounded("roles", self.roles.len())?;
        self.models.values().try_for_each(|model| self.check_spec(model))?;
        self.shared.check(self)?;
        self.folders.as_ref().map_or(Ok(()), FolderGrants::check)?;
        bounded("tools", self.tools.len())?;
        for (name, tool) in &self.tools {
            tool.check(name, rules)?;
        }
        bounded("servers", self.servers.len())?;
        self.servers.values().try_for_each(ToolServer::check)?;
        for role in self.roles.values() {
            if let Some(turns) = &role.turns {
                turns.check()?;
            }
            match &role.program {
                Some(program) if role.turns.is_none() => program.check()?,
                Some(_) => {
                    return Err(Refusal::BadProgram {
                        reason: "an agent is a program or takes turns".to_owned(),
                    });
                }
                None => drop(self.model(&role.model)?),
            }
            role.budget.check()?;
            role.rate.check()?;
            bounded("caps", role.caps.len())?;
            role.caps.folders.as_ref().map_or(Ok(()), FolderGrants::check)?;
            role.caps.network.check()?;
            if let Some(OnLow::Downgrade(model)) = &role.budget.on_low {
                self.model(model)?;
            }
        }
        if let Some(OnLow::Downgrade(model)) = &self.budget.on_low {
            self.model(model)?;
        }
        Ok(())
    }

    fn check_spec(&self, model: &ModelSpec) -> Result<(), Refusal> {
        model.price.as_ref().map_or(Ok(()), check_price)?;
        model.rate.check()?;
        bounded("fallback", model.fallback.len())?;
        model.fallback.iter().try_for_each(|name| self.model(name).map(|_| ()))
    }

    /// Whether a model may be added: its name is new, and it is valid beside the others.
    pub(crate) fn check_added(&self, name: &ModelName, model: &ModelSpec) -> Result<(), Refusal> {
        if self.models.contains_key(name) {
            return Err(Refusal::ModelExists { model: name.clone() });
        }
        bounded("models", self.models.len() + 1)?;
        self.check_spec(model)
    }

    fn check_inputs(&self) -> Result<(), Refusal> {
        let (count, count_max) = (self.inputs.len(), limit::VALUES_MAX);
        if count > count_max {
            return Err(Refusal::TooMany { what: "inputs".to_owned(), count, count_max });
        }
        let mut all = 0;
        for (name, value) in &self.inputs {
            let bytes = value.to_string().len();
            all += bytes;
            if bytes > limit::VALUE_BYTES_MAX || all > limit::VALUES_BYTES_MAX || name.is_reserved() {
                let bytes_max = limit::VALUE_BYTES_MAX as u64;
                return Err(Refusal::ValueTooLarge { name: name.clone(), bytes: bytes as u64, bytes_max });
            }
        }
        Ok(())
    }

    pub(crate) fn check_graph(&self, graph: &Graph) -> Result<(), Refusal> {
        for (_, _, step) in graph.steps() {
            self.role(&step.agent_id)?;
            step.undo.as_ref().map_or(Ok(()), |undo| self.role(&undo.agent_id).map(drop))?;
        }
        if let Some(role) = self.roles.keys().find(|role| role.is_of_graphs()) {
            return Err(Refusal::ReservedId { agent: AgentId::of_role(role) });
        }
        let (agents, agents_max) = (graph.agents_min().saturating_add(1), u64::from(self.limits.agents_max));
        if agents > agents_max {
            return Err(Refusal::GraphTooLarge { agents, agents_max });
        }
        Ok(())
    }
}

impl TreeLimits {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let bounds = [
            ("limits.depth", self.depth_max, limit::DEPTH_CAP),
            ("limits.children", self.children_max, limit::AGENTS_CAP),
            ("limits.agents", self.agents_max, limit::AGENTS_CAP),
            ("limits.parallel", self.parallel_max, limit::AGENTS_CAP),
        ];
        for (what, count, count_max) in bounds {
            if count > count_max {
                let (count, count_max) = (count as usize, count_max as usize);
                return Err(Refusal::TooMany { what: what.to_owned(), count, count_max });
            }
        }
        self.rate.check()?;
        if self.agents_max == 0 || self.parallel_max == 0 {
            return Err(Refusal::TreeCannotMove);
        }
        Ok(())
    }
}

fn check_tags(tags: &Tags) -> Result<(), Refusal> {
    if tags.len() > limit::TAGS_MAX {
        let (what, count, count_max) = ("tags".to_owned(), tags.len(), limit::TAGS_MAX);
        return Err(Refusal::TooMany { what, count, count_max });
    }
    tags.iter().try_for_each(|(name, value)| {
        check_said("name of a tag", name, limit::TAG_NAME_BYTES_MAX)?;
        check_text("tag", value, limit::TAG_BYTES_MAX)
    })
}

fn check_price(price: &Price) -> Result<(), Refusal> {
    price.check()?;
    let (count, count_max) = (price.rates_count(), limit::PRICE_RATES_MAX);
    if count > count_max {
        return Err(Refusal::TooMany { what: "rates of a price".to_owned(), count, count_max });
    }
    Ok(())
}

fn bounded(what: &str, count: usize) -> Result<(), Refusal> {
    if count > limit::NAMES_MAX {
        return Err(Refusal::TooMany { what: what.to_owned(), count, count_max: limit::NAMES_MAX });
    }
    Ok(())
}
