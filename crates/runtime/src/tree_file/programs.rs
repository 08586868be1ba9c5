//! `program`: an agent that is a program in place of a model. What only an agent with turns has is refused beside it.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use spinney_kernel::definition::{
    BudgetSpec, KnownProgram, OnLow, ProgramCommand, ProgramSpec, Role, TimeSpan, WrapUp,
};
use spinney_kernel::primitives::{ModelName, RoleName, limit};

use super::definition::Reader;
use super::error::FileError;
use super::keys::AgentKeys;
use super::node::Step;
use super::{TreeFile, nearest, working_copies};

const COMMAND_HELP: &str =
    "write `claude`, `codex` or `opencode`, or a list such as [my-agent, --task, \"{{ goal }}\"]";
/// What names of models begin with that programs call.
const OF_PROGRAMS: [&str; 2] = ["anthropic/", "openai/"];

/// The name of a known program, or a command.
pub(super) enum WrittenProgram {
    Name(String),
    Words(Vec<String>),
}

impl<'de> Deserialize<'de> for WrittenProgram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProgramVisitor)
    }
}

struct ProgramVisitor;

impl<'de> Visitor<'de> for ProgramVisitor {
    type Value = WrittenProgram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a program, or a list with `{{ goal }}`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenProgram, E> {
        Ok(WrittenProgram::Name(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WrittenProgram, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(WrittenProgram::Words)
    }
}

impl Reader<'_> {
    /// The role of an agent that is a program.
    pub(super) fn program_role(
        &self,
        name: &RoleName,
        keys: &AgentKeys,
        written: &WrittenProgram,
        depth_max: u32,
    ) -> Role {
        let agent = [Step::Key("agents"), Step::Key(name.as_str())];
        let at = |key| [agent[0], agent[1], Step::Key(key)];
        self.noted(self.short(&at("prompt"), &keys.prompt, limit::TEXT_BYTES_MAX));
        self.noted(self.template(&at("prompt"), &keys.prompt));
        self.without_turns(name, keys);
        let command = self.program(name, written).unwrap_or(ProgramCommand::Known(KnownProgram::Claude));
        let spec = ProgramSpec {
            prompt: working_copies::program_prompt(keys),
            halt_wait_ms: keys.budget.halt_wait.map(TimeSpan::ms),
            outputs: self.outputs(&agent, &keys.limits.0),
            sandbox: self.sandbox(keys.sandbox.as_ref()),
            ..ProgramSpec::new(command)
        };
        let mut role = Role::of_program(name, spec);
        role.caps.network = self.network(&at("network"), &keys.network);
        role.caps.depth_max = depth_max;
        let budget = self.noted(self.budget(&at("budget"), &keys.budget.keys()));
        // Output caps are fitted to what is free, so that a call starts.
        let on_low = budget.on_low.clone().or(Some(OnLow::Shrink));
        role.budget = BudgetSpec { on_low, wrap_up: Some(WrapUp::Off), answer_reserve: Some(0), ..budget };
        role
    }

    fn program(&self, name: &RoleName, written: &WrittenProgram) -> Option<ProgramCommand> {
        let at = [Step::Key("agents"), Step::Key(name.as_str()), Step::Key("program")];
        match written {
            WrittenProgram::Name(text) => {
                let known = KnownProgram::ALL.into_iter().find(|known| known.as_str() == text);
                if known.is_none() {
                    let near = nearest::help(text, KnownProgram::ALL.map(KnownProgram::as_str), "programs");
                    let error = self.wrong(&at, format!("unknown program `{}`", text.escape_debug()));
                    self.note(error.with_help(format!("{near}; or {COMMAND_HELP}")));
                }
                known.map(ProgramCommand::Known)
            }
            WrittenProgram::Words(words) => match ProgramCommand::words(words) {
                Ok(command) => Some(command),
                Err(error) => {
                    let word = error.word().map(Step::Item);
                    let path: Vec<Step<'_>> = at.into_iter().chain(word).collect();
                    self.note(self.wrong(&path, error.to_string()).with_help(COMMAND_HELP));
                    None
                }
            },
        }
    }

    /// Refuses keys of agents that take turns.
    fn without_turns(&self, name: &RoleName, keys: &AgentKeys) {
        let (limits, budget) = (&keys.limits.0, &keys.budget);
        let written: [(&[&str], bool); 20] = [
            (&["model"], keys.model.is_some()),
            (&["tools"], !keys.tools.is_empty()),
            (&["subagents"], keys.subagents.is_some()),
            (&["subagent_models"], !keys.subagent_models.is_empty()),
            (&["approvals"], keys.approvals.iter().next().is_some()),
            (&["rate"], keys.rate.requests_per_min.is_some() || keys.rate.tokens_per_min.is_some()),
            (&["recursive"], keys.recursive),
            (&["share"], keys.share.is_some()),
            (&["output_schema"], keys.output_schema.is_some()),
            (&["window"], keys.window.is_some()),
            (&["limits", "max_steps"], limits.max_steps.is_some()),
            (&["limits", "max_tokens_per_step"], limits.max_tokens_per_step.is_some()),
            (&["limits", "timeout"], limits.timeout.is_some()),
            (&["limits", "depth"], limits.depth.is_some()),
            (&["limits", "children"], limits.children.is_some()),
            (&["budget", "answer_reserve"], budget.answer_reserve.is_some()),
            (&["budget", "wrap_up"], budget.wrap_up.is_some()),
            (&["budget", "repeats"], budget.repeats.is_some()),
            (&["budget", "retries"], budget.retries.is_some()),
            (&["budget", "tool_calls"], budget.tool_calls.is_some()),
        ];
        let agent = [Step::Key("agents"), Step::Key(name.as_str())];
        for (key, _) in written.into_iter().filter(|(_, is_written)| *is_written) {
            let path: Vec<Step<'_>> = agent.into_iter().chain(key.iter().map(|key| Step::Key(key))).collect();
            let error = self.wrong(&path, format!("an agent that is a program has no `{}`", key.join(".")));
            let help = match key {
                ["limits", "timeout"] => "write `budget: { timeout: … }`",
                _ => "delete it, or write a `model` in place of the `program`",
            };
            self.note(error.with_help(help));
        }
        if let Some(OnLow::Downgrade(_)) = budget.on_low {
            let path = [agent[0], agent[1], Step::Key("budget"), Step::Key("on_low")];
            let error = self.wrong(&path, "a program chooses its own models");
            self.note(error.with_help("write `shrink` or `halt`"));
        }
    }

    /// What only an agent that is a program has.
    pub(super) fn check_programs(&self) {
        for (name, agent) in &self.keys.agents {
            let path = [Step::Key("agents"), Step::Key(name.as_str())];
            if agent.program.is_none() && agent.budget.halt_wait.is_some() {
                let path = [path[0], path[1], Step::Key("budget"), Step::Key("halt_wait")];
                let error = self.wrong(&path, "only an agent that is a program waits at its ceiling");
                self.note(error.with_help("delete it"));
            }
            if agent.program.is_none()
                && agent.model.is_none()
                && !["model", "program"].iter().any(|key| self.is_lost(&["agents", name.as_str(), key]))
            {
                let error = self.wrong(&path, "`model` is missing");
                self.note(error.with_help("write the name of a model, or a `program`"));
            }
        }
        if self.keys.agents.values().any(|agent| agent.program.is_some()) {
            let is_of_programs = |model: &&ModelName| {
                OF_PROGRAMS.iter().any(|beginning| model.as_str().starts_with(beginning))
            };
            if let Some(model) = self.keys.models.keys().find(is_of_programs) {
                let path = [Step::Key("models"), Step::Key(model.as_str())];
                let error = self.wrong(
                    &path,
                    "beside a `program`, names of models cannot begin like those that it calls",
                );
                self.note(error.with_help("rename it"));
            }
        }
    }
}

impl TreeFile {
    /// Replaces words of programs, such as names of files by their whole paths.
    pub fn complete_programs(&mut self, change: &dyn Fn(&str) -> Option<String>) {
        for role in self.definition.roles.values_mut() {
            if let Some(ProgramSpec { command: ProgramCommand::Words(words), .. }) =
                role.program.as_deref_mut()
            {
                *words = words.clone().with_fixed_words(change);
            }
        }
    }

    /// The error for a role whose program cannot be run.
    #[must_use]
    pub fn bad_program(&self, role: &RoleName, reason: impl fmt::Display) -> FileError {
        self.bad_agent(role, "program", reason)
    }
}
