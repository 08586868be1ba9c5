//! A script, parsed and checked as a whole: text in, a model and its tools out.

use std::sync::Arc;

use serde_saphyr::DuplicateKeyPolicy;
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::model::{ModelAttempt, Purpose};
use spinney_kernel::primitives::ToolName;

use super::file::File;
use super::model::ScriptedModel;
use super::problem::{Problem, ScriptError};
use super::rule::Rule;
use super::template::Templates;
use super::tool::{Part, ScriptedTool};
use super::turn::Turn;
use crate::off_worker::off_worker;

/// Largest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of a script, its arguments included.
pub(super) const DEPTH_MAX: usize = 64;
/// Most values that aliases may repeat: a few lines must not grow into gigabytes.
pub(super) const ALIASED_MAX: usize = 10_000;

/// What a scripted model and its tools answer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Script(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    name: String,
    lost: OnLost,
    rules: Vec<Rule>,
    tools: Vec<(ToolName, Arc<Part>)>,
    templates: Templates,
}

impl Script {
    /// Reads a script. `name` is what messages call it, usually its path.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLarge { name: name.to_owned(), bytes: text.len() });
        }
        let file: File = serde_saphyr::from_str_with_options(text, options())
            .map_err(|error| Problem::from_yaml(&error).named(name))?;
        Self::compile(name, &file).map_err(|problem| problem.named(name))
    }

    /// A model that plays the rules. Each one counts its own calls.
    #[must_use]
    pub fn model(&self) -> ScriptedModel {
        ScriptedModel::new(self.clone())
    }

    /// The tools that it plays, in the order of the file.
    #[must_use]
    pub fn tools(&self) -> Vec<(ToolName, ScriptedTool)> {
        let tool = |(name, part): &(ToolName, Arc<Part>)| {
            (name.clone(), ScriptedTool::new(self.clone(), Arc::clone(part)))
        };
        self.0.tools.iter().map(tool).collect()
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.0.rules
    }

    /// What the first rule that matches does.
    pub(super) async fn play(self, attempt: Arc<ModelAttempt>) -> Turn {
        if self.rule(&attempt).is_some_and(|rule| rule.renders) {
            return off_worker(move || self.turn(&attempt)).await;
        }
        self.turn(&attempt)
    }

    fn rule(&self, attempt: &ModelAttempt) -> Option<&Rule> {
        self.0.rules.iter().find(|rule| rule.when.matches(attempt))
    }

    fn turn(&self, attempt: &ModelAttempt) -> Turn {
        let turn = self.rule(attempt).map(|rule| rule.play(attempt, &self.0.templates, self.0.lost));
        turn.unwrap_or_else(|| {
            let (role, turn) = (&attempt.origin.role, attempt.turn);
            let (what, remedy) = match attempt.purpose {
                Purpose::Turn | Purpose::Continue | Purpose::WrapUp => {
                    ("", "add one that matches, or a last one without `when`")
                }
                Purpose::Summary => ("a summary of ", "add one with `when: { summary: true }`"),
                Purpose::OfTool => ("a tool of ", "add one with `when: { of_tool: true }`"),
            };
            Turn::invalid(format!(
                "{}: no rule for {what}agent `{role}` at turn {turn}: {remedy}",
                self.0.name
            ))
        })
    }

    pub(super) fn lost(&self) -> OnLost {
        self.0.lost
    }

    pub(super) fn templates(&self) -> &Templates {
        &self.0.templates
    }

    fn compile(name: &str, file: &File) -> Result<Self, Problem> {
        if file.rules.is_empty() && file.tools.is_empty() {
            return Err(Problem::new("the script is empty: give it `rules` or `tools`".to_owned()));
        }
        let mut templates = Templates::new();
        let mut rules = Vec::with_capacity(file.rules.len());
        for (at, rule) in file.rules.iter().enumerate() {
            let label = format!("rule {}", at + 1);
            let compiled = Rule::compile(&rule.value, format!("{label} of {name}"), &mut templates);
            rules.push(compiled.map_err(|problem| problem.within(&label, rule.referenced))?);
        }
        let mut tools = Vec::with_capacity(file.tools.len());
        for (tool, text) in &file.tools {
            let label = format!("tool `{tool}`");
            let compiled = Part::compile(&text.value, format!("{label} of {name}"), &mut templates);
            let part = compiled.map_err(|problem| problem.within(&label, text.referenced))?;
            tools.push((tool.clone(), Arc::new(part)));
        }
        let lost = file.lost.unwrap_or(OnLost::Repeatable);
        Ok(Self(Arc::new(Inside { name: name.to_owned(), lost, rules, tools, templates })))
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX },
        duplicate_keys: DuplicateKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_MAX },
        // As in YAML 1.2: `n`, `no` and `off` are texts.
        strict_booleans: true,
        with_snippet: false,
    }
}
