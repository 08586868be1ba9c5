//! The definition of a tree: its roles, models and ceilings. It arrives once, with the request that starts the tree,
//! and is checked whole before anything runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::body::{Body, check_said, check_text};
use crate::budget::{Amounts, Limits, Price, Resource};
use crate::caps::Caps;
use crate::context::{Share, around_tokens, facts_tokens, tool_tokens};
use crate::hash::ByName;
use crate::id::{ModelName, RoleName, ThreadId, ToolName};
use crate::limit;
use crate::output_schema::OutputSchema;
use crate::port::journal::Durability;
use crate::refusal::Refusal;
use crate::turn::Builtin;
use crate::window::WindowSpec;

/// Words that whoever starts a tree gives it, by name: whose it is, what it belongs to. Agents never see them.
pub type Tags = BTreeMap<String, String>;

/// Everything a tree is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What people call it.
    pub name: String,
    /// What the root is to do.
    pub goal: String,
    /// The root's role.
    pub entry: RoleName,
    /// The thread it belongs to; its own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The root's ceilings.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// Bounds of the whole tree.
    #[serde(default)]
    pub limits: TreeLimits,
    /// Models by name.
    pub models: ByName<ModelName, Model>,
    /// Roles by name.
    pub roles: ByName<RoleName, Role>,
    /// Tools by name, those that the kernel itself answers aside.
    #[serde(default, skip_serializing_if = "ByName::is_empty")]
    pub tools: ByName<ToolName, Tool>,
    /// What to do about models without a price under a cost ceiling.
    #[serde(default)]
    pub unpriced: Unpriced,
    /// What its events survive.
    #[serde(default)]
    pub durability: Durability,
    /// Words for whoever watches; shared with every event that is shown.
    #[serde(default, skip_serializing_if = "has_none")]
    pub tags: Arc<Tags>,
}

fn has_none(tags: &Arc<Tags>) -> bool {
    tags.is_empty()
}

/// Bounds of the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreeLimits {
    /// How deep below the root an agent may be.
    pub depth_max: u32,
    /// Live children of one agent.
    pub children_max: u32,
    /// Agents of the tree, ended ones included.
    pub agents_max: u32,
    /// Effects that run at the same time.
    pub parallel_max: u32,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            depth_max: limit::DEPTH_MAX,
            children_max: limit::CHILDREN_MAX,
            agents_max: limit::AGENTS_MAX,
            parallel_max: limit::PARALLEL_MAX,
        }
    }
}

/// A model that agents may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// What it costs; absent if nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The largest output cap one call may ask for; none of its own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_max: Option<u64>,
    /// How many tokens of input and output together it takes, if somebody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Models to try instead when this one fails, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelName>,
    /// What becomes of a call whose end was never recorded.
    pub lost: Lost,
}

/// What becomes of a running effect when the process dies before its end is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The outside may have billed or done it: settle at the full hold. A model call then takes a new hold for its
    /// retry; a tool is reported lost.
    #[default]
    Presumed,
    /// Doing it twice is the same as once: start it again under the same key and the same hold.
    Repeatable,
}

/// A kind of agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The model it calls unless its spawner chose another.
    pub model: ModelName,
    /// What it may do, before its parent's rights narrow it.
    pub caps: Caps,
    /// Its ceilings unless its spawner gave others.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// Whether it may appear again below itself, with another goal.
    #[serde(default)]
    pub recursive: Recursion,
    /// How it takes turns by itself; an agent without is led from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
}

/// How an agent takes turns: its model answers, its tools act, until there is an answer without a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turns {
    /// What its model is told first.
    pub prompt: Body,
    /// The most turns it may take.
    pub turns_max: u32,
    /// The most output tokens of one turn.
    pub output_cap: u64,
    /// How many tokens the kernel's own words in the first message have at most, and the tools that it answers itself,
    /// if somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around_tokens: Option<u64>,
    /// How many tokens it has at most to tell what a child used, or what is left; without, neither is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_tokens: Option<u64>,
    /// Which tools need a person's leave, or are not to be had, for it and everything below it.
    #[serde(skip_serializing_if = "ByName::is_empty")]
    pub approvals: ByName<ToolName, Approval>,
    /// How much it may write into its folder.
    #[serde(skip_serializing_if = "OutputLimits::is_default")]
    pub outputs: OutputLimits,
    /// Fewer live children than the tree allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_max: Option<u32>,
    /// What one call sees of its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpec>,
    /// What its agents know at their birth, unless their spawner says otherwise.
    #[serde(skip_serializing_if = "Share::is_goal")]
    pub share: Share,
    /// What its agents' answers must look like, unless their spawner says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
}

impl Default for Turns {
    fn default() -> Self {
        let (turns_max, output_cap) = (limit::TURNS_MAX, limit::OUTPUT_TOKENS);
        Self {
            prompt: Body::default(),
            turns_max,
            output_cap,
            around_tokens: None,
            facts_tokens: None,
            approvals: ByName::default(),
            outputs: OutputLimits::default(),
            children_max: None,
            window: None,
            share: Share::Goal,
            output_schema: None,
        }
    }
}

impl Turns {
    fn check(&self) -> Result<(), Refusal> {
        self.prompt.checked("prompt")?;
        if self.turns_max == 0 || self.turns_max > limit::TURNS_CAP {
            let (what, count, count_max) =
                ("limits.max_steps".to_owned(), self.turns_max as usize, limit::TURNS_CAP as usize);
            return Err(if count == 0 {
                Refusal::TreeCannotMove
            } else {
                Refusal::TooMany { what, count, count_max }
            });
        }
        Amounts::ZERO.with(Resource::Tokens, self.output_cap).checked()?;
        self.share.check()?;
        bounded("approvals", self.approvals.len())?;
        self.output_schema.as_deref().map_or(Ok(()), OutputSchema::check)?;
        self.window.as_ref().map_or(Ok(()), WindowSpec::check)
    }
}

/// What the outputs of one agent may have at most, in sub-folders too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputLimits {
    /// Files.
    pub files_max: u64,
    /// Bytes of all of them.
    pub bytes_max: u64,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { files_max: limit::OUTPUT_FILES_MAX, bytes_max: limit::OUTPUT_BYTES_MAX }
    }
}

impl OutputLimits {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a tool may be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Yes.
    #[default]
    Allow,
    /// If a person says so, each time.
    Ask,
    /// No.
    Deny,
}

/// A tool that agents may call, as its driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tool {
    /// What it does and when to use it, for the model.
    pub description: String,
    /// What its arguments look like: a JSON Schema, as text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// What becomes of a call whose end was never recorded.
    pub lost: Lost,
    /// The most one call can cost by itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_nanos_max: u64,
    /// How long one call may take; a default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How many bytes of its output are shown whole; a default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_bytes: Option<u32>,
    /// How many tokens it adds at most to what a model reads, if somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Tool {
    fn check(&self, name: &ToolName) -> Result<(), Refusal> {
        if Builtin::named(name).is_some() {
            return Err(Refusal::ToolNameTaken { tool: name.clone() });
        }
        check_text("description of a tool", &self.description, limit::TEXT_BYTES_MAX)?;
        check_text("schema of a tool", &self.schema, limit::TEXT_BYTES_MAX)?;
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

/// Whether a role may appear again on its own ancestor path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recursion {
    /// Never.
    #[default]
    Refused,
    /// With another goal each time.
    Allowed,
}

/// Ceilings as people give them: what is absent is taken from the role, then from the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSpec {
    /// The ceilings that were given.
    pub limit: Limits,
    /// How long the agent may take, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the ceilings are held at every ancestor from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lend: Option<Lend>,
    /// Share of cost and tokens that descendants must leave, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reserve: Option<u8>,
    /// What to do when a model call does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_low: Option<OnLow>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self { limit: Limits::NONE, timeout_ms: None, lend: None, answer_reserve: None, on_low: None }
    }
}

impl BudgetSpec {
    /// Only ceilings.
    #[must_use]
    pub fn of(limit: Limits) -> Self {
        Self { limit, ..Self::default() }
    }

    /// This, and where it says nothing, what `other` says.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let given = self.limit.bounded();
        let limit = other
            .limit
            .bounded()
            .iter()
            .filter(|r| !given.has(*r))
            .fold(self.limit, |limit, r| other.limit.of(r).map_or(limit, |amount| limit.with(r, amount)));
        Self {
            limit,
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
            lend: self.lend.or(other.lend),
            answer_reserve: self.answer_reserve.or(other.answer_reserve),
            on_low: self.on_low.clone().or_else(|| other.on_low.clone()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.limit.checked()?;
        if self.timeout_ms.is_some_and(|ms| ms == 0 || ms > limit::TIMEOUT_MS_MAX) {
            let ms = self.timeout_ms.unwrap_or_default();
            return Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX });
        }
        match self.answer_reserve {
            Some(percent) if percent > limit::ANSWER_RESERVE_PERCENT_MAX => {
                Err(Refusal::BadReserve { percent, percent_max: limit::ANSWER_RESERVE_PERCENT_MAX })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a child's ceilings are promised to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lend {
    /// It shares what its ancestors have.
    #[default]
    No,
    /// They are held at every ancestor until it ends.
    Yes,
}

/// What to do when a model call cannot fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLow {
    /// Stop: the agent ends with what it has, or the tree halts.
    #[default]
    Halt,
    /// Lower the output cap to what fits.
    Shrink,
    /// Call this model instead.
    Downgrade(ModelName),
}

/// What to do about a model without a price under a cost ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unpriced {
    /// Refuse it: unknown is never counted as zero.
    #[default]
    Refuse,
    /// Count its cost as zero, as the file's author says.
    Allow,
}

impl Definition {
    /// The role called `name`, with the name that everyone of this role shares.
    ///
    /// # Errors
    /// Names the role and the ones there are.
    pub fn role(&self, name: &RoleName) -> Result<(&RoleName, &Role), Refusal> {
        let known = || self.roles.keys().cloned().collect();
        self.roles
            .get_key_value(name)
            .ok_or_else(|| Refusal::UnknownRole { role: name.clone(), known: known() })
    }

    /// The model called `name`.
    ///
    /// # Errors
    /// Names the model and the ones there are.
    pub fn model(&self, name: &ModelName) -> Result<&Model, Refusal> {
        let known = || self.models.keys().cloned().collect();
        self.models.get(name).ok_or_else(|| Refusal::UnknownModel { model: name.clone(), known: known() })
    }

    /// The names of all tools: those that the kernel itself answers first.
    pub fn tool_names(&self) -> impl Iterator<Item = ToolName> {
        let builtin = Builtin::ALL.into_iter().map(|builtin| ToolName::of_builtin(builtin.word()));
        builtin.chain(self.tools.keys().cloned())
    }

    /// Has everything counted that stands in it and that a model will read. The kernel never tokenises: whoever makes
    /// the definition brings the counts along, and without them bytes count.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        let facts = facts_tokens(tokens);
        for role in self.roles.values_mut() {
            if let Some(turns) = &mut role.turns {
                turns.prompt.count(tokens);
                turns.around_tokens = Some(around_tokens(&role.caps.tools, tokens));
                turns.facts_tokens = Some(facts);
                turns.output_schema.iter_mut().for_each(|schema| schema.count(tokens));
            }
        }
        for (name, tool) in &mut self.tools {
            tool.tokens = Some(tool_tokens((name.as_str(), &tool.description, &tool.schema), tokens));
        }
    }

    /// Everything that can be wrong with it, before anything runs.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_said("name", &self.name, limit::NOTE_BYTES_MAX)?;
        check_said("goal", &self.goal, limit::TEXT_BYTES_MAX)?;
        check_tags(&self.tags)?;
        self.check_limits()?;
        self.budget.check()?;
        self.role(&self.entry)?;
        bounded("models", self.models.len())?;
        bounded("roles", self.roles.len())?;
        for model in self.models.values() {
            model.price.map(Price::checked).transpose()?;
            bounded("fallback", model.fallback.len())?;
            model.fallback.iter().try_for_each(|name| self.model(name).map(|_| ()))?;
        }
        bounded("tools", self.tools.len())?;
        for (name, tool) in &self.tools {
            tool.check(name)?;
        }
        for role in self.roles.values() {
            if let Some(turns) = &role.turns {
                turns.check()?;
            }
            self.model(&role.model)?;
            role.budget.check()?;
            bounded("caps", role.caps.len())?;
            if let Some(OnLow::Downgrade(model)) = &role.budget.on_low {
                self.model(model)?;
            }
        }
        if let Some(OnLow::Downgrade(model)) = &self.budget.on_low {
            self.model(model)?;
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), Refusal> {
        let limits = &self.limits;
        let bounds = [
            ("limits.depth", limits.depth_max, limit::DEPTH_CAP),
            ("limits.children", limits.children_max, limit::AGENTS_CAP),
            ("limits.agents", limits.agents_max, limit::AGENTS_CAP),
            ("limits.parallel", limits.parallel_max, limit::AGENTS_CAP),
        ];
        for (what, count, count_max) in bounds {
            if count > count_max {
                let (count, count_max) = (count as usize, count_max as usize);
                return Err(Refusal::TooMany { what: what.to_owned(), count, count_max });
            }
        }
        if limits.agents_max == 0 || limits.parallel_max == 0 {
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

/// Refuses a list that nobody would write.
fn bounded(what: &str, count: usize) -> Result<(), Refusal> {
    if count > limit::NAMES_MAX {
        return Err(Refusal::TooMany { what: what.to_owned(), count, count_max: limit::NAMES_MAX });
    }
    Ok(())
}
