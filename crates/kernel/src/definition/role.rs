//! A role: the model, rights, budget and turn settings of a kind of agent.

use serde::{Deserialize, Serialize};

use super::BudgetSpec;
use crate::budget::{Amounts, Resource};
use crate::definition::{
    Allow, BoxSpec, Caps, FolderGrants, HostRequests, ModelSpec, Network, OutputSchema, ProgramSpec,
    QuestionPolicy, RateLimit, Refusal, Share, WindowSpec, bounded,
};
use crate::primitives::{Body, ByName, FolderPath, ModelName, RoleName, TokenCount, ToolName, limit};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The default model; a spawner may choose another.
    pub model: ModelName,
    /// Its rights, before its parent's rights narrow them.
    pub caps: Caps,
    /// Its default ceilings; a spawner may give others.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// Whether it may appear again below itself, with another goal.
    #[serde(default)]
    pub recursive: Recursion,
    /// Model calls of all agents of this role in one tree.
    #[serde(default, skip_serializing_if = "RateLimit::is_none")]
    pub rate: RateLimit,
    /// How it takes turns on its own. Without it, the agent is driven from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// The program that its agents are, in place of a model and turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramSpec>>,
}

impl Role {
    /// A role whose agents are programs: a leaf that has no network and spawns nothing but what its program spawns. Its
    /// model calls come from outside.
    #[must_use]
    pub fn of_program(name: &RoleName, program: ProgramSpec) -> Self {
        let own = Self::new(ModelName::of_none());
        let caps = Caps { spawn: Allow::only([name.clone()]), ..own.caps };
        Self { caps, recursive: Recursion::Allowed, turns: None, program: Some(Box::new(program)), ..own }
    }

    /// A role with the defaults of a tree file: it takes turns, may spawn every role except itself, and has no tools
    /// and no network.
    #[must_use]
    pub fn new(model: ModelName) -> Self {
        let caps = Caps {
            models: Allow::All,
            below: Allow::All,
            tools: Allow::only([]),
            spawn: Allow::All,
            network: Network::Denied,
            host_requests: HostRequests::Refused,
            folders: None,
            depth_max: limit::DEPTH_MAX,
        };
        let (budget, recursive) = (BudgetSpec::default(), Recursion::Refused);
        let turns = Some(Turns::default());
        Self { model, caps, budget, recursive, rate: RateLimit::NONE, turns, program: None }
    }

    /// Sets the prompt, which its model reads first.
    #[must_use]
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.turns.get_or_insert_default().prompt = Body::text(prompt);
        self
    }

    /// Allows exactly these tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.caps.tools = Allow::only(tools);
        self
    }

    /// Grants exactly these folders of the user. Without it, its agents have those of their parents.
    #[must_use]
    pub fn with_folders(mut self, folders: FolderGrants) -> Self {
        self.caps.folders = Some(folders);
        self
    }

    /// What surrounds the commands of its agents.
    #[must_use]
    pub fn sandbox(&self) -> BoxSpec {
        let of_program = self.program.as_ref().map(|program| &program.sandbox);
        let own = self.turns.as_ref().map(|turns| &turns.sandbox).or(of_program);
        own.cloned().unwrap_or_default()
    }

    /// The repository that each of its agents has a copy of.
    #[must_use]
    pub fn working_copy(&self) -> Option<&FolderPath> {
        match (&self.turns, &self.program) {
            (Some(turns), _) => turns.working_copy.as_ref(),
            (None, Some(program)) => program.working_copy.as_ref(),
            (None, None) => None,
        }
    }

    /// How much its agents may write into their folders.
    #[must_use]
    pub fn outputs(&self) -> OutputLimits {
        let of_program = self.program.as_ref().map(|program| program.outputs);
        self.turns.as_ref().map(|turns| turns.outputs).or(of_program).unwrap_or_default()
    }
}

/// How an agent takes turns: its model answers and its tools run, until an answer has no tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turns {
    /// The system prompt.
    pub prompt: Body,
    pub turns_max: u32,
    /// The most output tokens of one turn; depends on the model if absent ([`ModelSpec::output_cap`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cap: Option<u64>,
    /// The tokens of the kernel's own text in the first message and of the built-in tools, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around_tokens: Option<TokenCount>,
    /// The tokens of the facts about usage and remaining budget. Without it, the agent is not shown
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_tokens: Option<TokenCount>,
    /// Tools that need a person's approval or are forbidden, for it and everything below it.
    #[serde(skip_serializing_if = "ByName::is_empty")]
    pub approvals: ByName<ToolName, Approval>,
    #[serde(skip_serializing_if = "OutputLimits::is_default")]
    pub outputs: OutputLimits,
    #[serde(rename = "box", skip_serializing_if = "BoxSpec::is_default")]
    pub sandbox: BoxSpec,
    /// The repository that each of its agents has a copy of. It is not a right: a parent need not have it, and a model
    /// cannot name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_copy: Option<FolderPath>,
    /// How long its agents may work, counted while one of their models or tools runs. Without it, sub-agents have a
    /// default and the root has no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
    /// Lowers the tree's limit on live children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpec>,
    /// Default for what its agents know at their start.
    #[serde(skip_serializing_if = "Share::is_goal")]
    pub share: Share,
    /// Default schema of its agents' answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
    /// What applies to its agents' questions that say nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<Box<QuestionPolicy>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            prompt: Body::default(),
            turns_max: limit::TURNS_MAX,
            output_cap: None,
            around_tokens: None,
            facts_tokens: None,
            approvals: ByName::default(),
            outputs: OutputLimits::default(),
            sandbox: BoxSpec::default(),
            working_copy: None,
            active_ms: None,
            children_max: None,
            window: None,
            share: Share::Goal,
            output_schema: None,
            questions: None,
        }
    }
}

impl Turns {
    /// The most output tokens of one turn with this model.
    #[must_use]
    pub fn output_cap_with(&self, model: &ModelSpec) -> u64 {
        self.output_cap
            .map_or_else(|| model.output_cap(), |cap| cap.min(model.output_max.unwrap_or(u64::MAX)))
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
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
        Amounts::ZERO.with(Resource::Tokens, self.output_cap.unwrap_or_default()).checked()?;
        self.share.check()?;
        if let Some(ms) = self.active_ms.filter(|ms| !(1..=limit::TIMEOUT_MS_MAX).contains(ms)) {
            return Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX });
        }
        bounded("approvals", self.approvals.len())?;
        self.sandbox.check()?;
        self.output_schema.as_deref().map_or(Ok(()), OutputSchema::check)?;
        self.questions.as_deref().map_or(Ok(()), QuestionPolicy::check)?;
        self.window.as_ref().map_or(Ok(()), WindowSpec::check)
    }
}

/// Limits on one agent's output files, sub-folders included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputLimits {
    pub files_max: u64,
    /// Total bytes of all files.
    pub bytes_max: u64,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { files_max: limit::OUTPUT_FILES_MAX, bytes_max: limit::OUTPUT_BYTES_MAX }
    }
}

impl OutputLimits {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    #[default]
    Allow,
    /// If a person approves, each time.
    Ask,
    Deny,
}

/// Whether a role may appear again below itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recursion {
    #[default]
    Refused,
    /// With another goal each time.
    Allowed,
}
