//! The arguments of the built-in tools, as models write them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Goal, SharedText};
use crate::definition::{
    AnswerForm, AskTimeout, BudgetKeys, Builtin, OutputSchema, QuestionPolicy, Refusal, Share, TimeSpan,
};
use crate::primitives::{
    AgentId, Correlation, MessageKind, ModelName, RoleName, TokenCount, ToolName, Topic, ValueName, cut,
    limit,
};
use crate::record::{OnTimeout, ToolAsk, WaitNeed};

impl ToolAsk {
    /// Counts everything that a model will read of it, here or in another agent.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        let most = |count: TokenCount| count.at_most(u32::MAX.into());
        self.tokens =
            Some(most([&self.id, &self.tool, &self.args].map(|text| tokens(text)).into_iter().sum()));
        self.told_tokens = passed_tokens(&self.tool, &self.args, tokens).map(most);
    }
}

/// Tokens that a call of the tool `name` adds to another agent's packet: a goal or a message. `None` if it adds
/// nothing, or is malformed and will be refused.
pub(crate) fn passed_tokens(
    name: &str,
    args: &str,
    tokens: &dyn Fn(&str) -> TokenCount,
) -> Option<TokenCount> {
    match Builtin::ALL.into_iter().find(|builtin| builtin.as_str() == name)? {
        Builtin::SpawnAgent => {
            let SpawnArgs { goal, .. } = serde_json::from_str(args).ok()?;
            Some(Goal::tokens(&goal, tokens))
        }
        Builtin::SendMessage => {
            let SendArgs { text, .. } = serde_json::from_str(args).ok()?;
            Some(tokens(&text))
        }
        Builtin::FollowupTask => {
            let FollowupArgs { task, .. } = serde_json::from_str(args).ok()?;
            Some(Goal::tokens(&task, tokens))
        }
        Builtin::DelegateToAgent => {
            let DelegateArgs { task, .. } = serde_json::from_str(args).ok()?;
            Some(Goal::tokens(&task, tokens))
        }
        Builtin::WriteContext => SharedText::in_args(args).map(|written| written.counted(tokens)),
        Builtin::RunPipeline
        | Builtin::WaitAgent
        | Builtin::WaitMessage
        | Builtin::HandBack
        | Builtin::ListAgents
        | Builtin::CancelAgent
        | Builtin::AskHuman
        | Builtin::ReadContext
        | Builtin::ListContext => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnArgs {
    pub(crate) agent: RoleName,
    pub(crate) goal: String,
    pub(crate) id: Option<AgentId>,
    pub(crate) model: Option<ModelName>,
    pub(crate) tools: Option<Vec<ToolName>>,
    #[serde(default)]
    pub(crate) budget: BudgetKeys,
    pub(crate) timeout: Option<TimeSpan>,
    #[serde(default)]
    pub(crate) detach: bool,
    pub(crate) share: Option<Share>,
    pub(crate) output_schema: Option<Box<RawValue>>,
    /// In tokens. Only smaller than what its model and role allow.
    pub(crate) window: Option<u64>,
    /// What it is given to read beside its goal.
    #[serde(default)]
    pub(crate) messages: Vec<String>,
}

/// The keys of a graph; what is in them is checked with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipelineArgs {
    #[serde(rename = "mode")]
    _mode: Option<IgnoredAny>,
    #[serde(rename = "steps")]
    _steps: IgnoredAny,
    #[serde(rename = "on_partial_success")]
    _on_partial_success: Option<IgnoredAny>,
    #[serde(rename = "max_parallel")]
    _max_parallel: Option<IgnoredAny>,
    #[serde(rename = "budget")]
    _budget: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitArgs {
    pub(crate) agents: Vec<AgentId>,
    #[serde(default)]
    pub(crate) need: WaitNeed,
    #[serde(default)]
    pub(crate) sources: bool,
    pub(crate) timeout: Option<TimeSpan>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitMessageArgs {
    pub(crate) timeout: Option<TimeSpan>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowupArgs {
    pub(crate) agent: AgentId,
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) budget: BudgetKeys,
    pub(crate) timeout: Option<TimeSpan>,
    #[serde(default)]
    pub(crate) detach: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DelegateArgs {
    pub(crate) agent: RoleName,
    pub(crate) task: String,
    pub(crate) id: Option<AgentId>,
    pub(crate) turns: Option<u32>,
    #[serde(default)]
    pub(crate) budget: BudgetKeys,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandBackArgs {
    pub(crate) message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendArgs {
    pub(crate) to: AgentId,
    pub(crate) text: String,
    pub(crate) topic: Option<Topic>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<MessageKind>,
    pub(crate) correlation: Option<Correlation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListArgs {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadContextArgs {
    pub(crate) key: ValueName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteContextArgs {
    pub(crate) key: ValueName,
    pub(crate) value: Box<RawValue>,
    pub(crate) expect_version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListContextArgs {
    #[serde(default)]
    pub(crate) prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelArgs {
    pub(crate) agent: AgentId,
    #[serde(default)]
    pub(crate) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskArgs {
    pub(crate) question: String,
    pub(crate) timeout: Option<TimeSpan>,
    pub(crate) default: Option<String>,
    pub(crate) on_timeout: Option<TimeoutPolicy>,
    pub(crate) choices: Option<Vec<String>>,
    pub(crate) answer_schema: Option<Box<RawValue>>,
}

/// What a model wants to happen if no answer comes in time.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimeoutPolicy {
    Fail,
    Default,
    Cancel,
}

impl AskArgs {
    /// Takes from the policy of a role what happens if a question does not say it.
    pub(crate) fn complete(&mut self, policy: &QuestionPolicy) {
        if self.on_timeout.is_none() && self.default.is_none() {
            (self.on_timeout, self.default) = match &policy.on_timeout {
                AskTimeout::Fail => (None, None),
                // A role's answer that this question cannot have does not count for it.
                AskTimeout::Default(answer) if !self.allows(answer) => (None, None),
                AskTimeout::Default(answer) => (Some(TimeoutPolicy::Default), Some(answer.clone())),
                AskTimeout::Cancel => (Some(TimeoutPolicy::Cancel), None),
            };
        }
    }

    /// Whether a text may be an answer: one of the choices, or JSON where there is a schema.
    fn allows(&self, answer: &str) -> bool {
        let is_choice = |choices: &Vec<String>| choices.iter().any(|choice| choice == answer);
        self.choices.as_ref().is_none_or(is_choice)
            && (self.answer_schema.is_none() || serde_json::from_str::<IgnoredAny>(answer).is_ok())
    }

    /// What a person may answer.
    pub(crate) fn form(&mut self) -> Result<AnswerForm, Refusal> {
        let schema = self.answer_schema.take();
        let schema = schema.as_deref().map(OutputSchema::written).transpose()?;
        AnswerForm::of(self.choices.take(), schema).map_err(|reason| bad(&reason))
    }

    /// With a default answer and no explicit policy, the default applies.
    pub(crate) fn on_timeout(&mut self) -> Result<OnTimeout, Refusal> {
        match (self.on_timeout, self.default.take()) {
            (None | Some(TimeoutPolicy::Default), Some(answer)) => Ok(OnTimeout::answer(answer)),
            (None | Some(TimeoutPolicy::Fail), None) => Ok(OnTimeout::Fail),
            (Some(TimeoutPolicy::Cancel), None) => Ok(OnTimeout::Cancel),
            (Some(TimeoutPolicy::Default), None) => Err(bad("`on_timeout: default` needs `default`")),
            (Some(TimeoutPolicy::Fail | TimeoutPolicy::Cancel), Some(_)) => {
                Err(bad("`default` is for `on_timeout: default`; leave one of them out"))
            }
        }
    }
}

/// Arguments of `ask_human` that do not go together.
fn bad(reason: &str) -> Refusal {
    let tool = ToolName::of_builtin(Builtin::AskHuman.as_str());
    Refusal::BadArguments { tool, reason: reason.to_owned() }
}

pub(crate) fn read<'a, T: Deserialize<'a>>(builtin: Builtin, args: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(args).map_err(|error| {
        let reason = cut(&error.to_string(), limit::NOTICE_BYTES_MAX / 2);
        Refusal::BadArguments { tool: ToolName::of_builtin(builtin.as_str()), reason }
    })
}
