//! The scripted tools: they answer from the `tools` of a script and call nothing outside.

use std::future::pending;
use std::sync::Arc;

use minijinja::{Value, context};
use spinney_kernel::budget::Used;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{Fault, FaultKind};

use super::fail::Fail;
use super::file::ToolText;
use super::problem::{Problem, check_millis};
use super::script::Script;
use super::template::{Template, Templates};
use super::turn::pause;
use crate::off_worker::off_worker;

/// What a tool's templates know.
const NAMES: [&str; 4] = ["args", "agent", "attempt", "key"];

/// A tool that answers from a [`Script`].
#[derive(Clone, Debug)]
pub struct ScriptedTool {
    script: Script,
    part: Arc<Part>,
}

/// A tool's part in a script.
#[derive(Debug)]
pub(super) struct Part {
    /// Its place for messages: ``tool `search` of x.script.yaml``.
    source: String,
    spec: Spec,
    think_ms: u64,
    fail: Option<Fail>,
    answer: Reply,
    /// Whether answering renders a template with markup.
    renders: bool,
}

/// What it answers once it does not fail.
#[derive(Debug)]
enum Reply {
    Says(Template),
    Complains(Template),
    Hangs,
    /// Every attempt fails.
    Never,
}

impl ScriptedTool {
    pub(super) const fn new(script: Script, part: Arc<Part>) -> Self {
        Self { script, part }
    }
}

impl Tool for ScriptedTool {
    fn spec(&self) -> Spec {
        self.part.spec.clone()
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let Self { script, part } = self.clone();
        Box::pin(async move {
            pause(part.think_ms).await;
            let renders = part.renders;
            let play = move || part.play(&attempt, script.templates());
            match if renders { off_worker(play).await } else { play() } {
                Some(end) => end,
                None => pending().await,
            }
        })
    }
}

impl Part {
    /// Checks what was written.
    pub(super) fn compile(
        text: &ToolText,
        source: String,
        templates: &mut Templates,
    ) -> Result<Self, Problem> {
        check_millis("think_ms", text.think_ms)?;
        let marked_before = templates.marked();
        let answer = match (&text.say, &text.error, text.hang) {
            (Some(say), None, false) => Reply::Says(
                templates
                    .add(&say.value, &NAMES)
                    .map_err(|problem| Problem::at(say.referenced, format!("`say`: {problem}")))?,
            ),
            (None, Some(error), false) => Reply::Complains(
                templates
                    .add(&error.value, &NAMES)
                    .map_err(|problem| Problem::at(error.referenced, format!("`error`: {problem}")))?,
            ),
            (None, None, true) => Reply::Hangs,
            (None, None, false) if text.fail.is_some_and(|fail| fail.is_final()) => Reply::Never,
            (None, None, false) => {
                return Err(Problem::new(
                    "the tool answers nothing: give it `say`, `error` or `hang`".to_owned(),
                ));
            }
            (Some(_), Some(_), _) | (Some(_), _, true) | (_, Some(_), true) => {
                return Err(Problem::new(
                    "the tool answers twice: keep one of `say`, `error` and `hang`".to_owned(),
                ));
            }
        };
        let lost = if text.repeatable { OnLost::Repeatable } else { OnLost::Presumed };
        let spec = Spec { description: text.description.clone(), lost, ..Spec::default() };
        let renders = templates.marked() > marked_before;
        Ok(Self { source, spec, think_ms: text.think_ms, fail: text.fail, answer, renders })
    }

    /// How this attempt ends, if it ends: a pure function.
    fn play(&self, attempt: &ToolAttempt, templates: &Templates) -> Option<Result<ToolAnswer, AttemptError>> {
        if let Some(fail) = self.fail.filter(|fail| fail.hits(attempt.attempt)) {
            let fault = fail.fault(attempt.attempt, &self.source);
            return Some(Err(AttemptError { fault, used: Used::NOTHING }));
        }
        let (template, is_error) = match &self.answer {
            Reply::Says(template) => (template, false),
            Reply::Complains(template) => (template, true),
            Reply::Hangs | Reply::Never => return None,
        };
        let text = templates.render(template, &context(attempt));
        let answer = text.map(if is_error { ToolAnswer::failed } else { ToolAnswer::text });
        Some(answer.map_err(|problem| {
            let message = format!("{}: {problem}", self.source);
            AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Invalid) }, used: Used::NOTHING }
        }))
    }
}

/// What templates see of an attempt: the arguments as JSON, or as text if they are none.
fn context(attempt: &ToolAttempt) -> Value {
    let args = serde_json::from_str::<Value>(&attempt.args);
    let args = args.unwrap_or_else(|_| Value::from(attempt.args.as_str()));
    context! {
        args => args,
        agent => attempt.origin.role.as_str(),
        attempt => attempt.attempt,
        key => attempt.key.as_str(),
    }
}
