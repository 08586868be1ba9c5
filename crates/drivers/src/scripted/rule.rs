//! One rule: checked and compiled when the script is read, and what it does for an attempt.

use minijinja::{Value, context};
use spinney_kernel::budget::{Ceilings, Resource, Usage, Used};
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::model::{AttemptError, ModelAttempt};
use spinney_kernel::primitives::limit;
use spinney_kernel::record::{StopReason, ToolAsk};

use super::call::Call;
use super::fail::{Fail, FailKind};
use super::file::{CutText, RuleText, UsageText};
use super::problem::{Problem, check_millis};
use super::template::{Template, Templates};
use super::turn::{End, Turn, capped, tokens};
use super::when::{self, When};

/// What a model's templates know.
const NAMES: [&str; 6] = ["agent", "goal", "turn", "path", "last", "remaining"];

/// A rule whose templates are compiled.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) when: When,
    /// Its place for messages: `rule 2 of x.script.yaml`.
    source: String,
    think_ms: u64,
    chunk_ms: u64,
    /// What the model thinks before it says anything.
    think: String,
    say: Option<Template>,
    pub(super) calls: Vec<Call>,
    usage: UsageText,
    fail: Option<Fail>,
    hangs: bool,
    /// Whether playing it renders templates with markup.
    pub(super) renders: bool,
    cut: Option<CutText>,
}

impl Rule {
    /// Checks what was written.
    pub(super) fn compile(
        text: &RuleText,
        source: String,
        templates: &mut Templates,
    ) -> Result<Self, Problem> {
        check(text)?;
        let marked_before = templates.marked();
        let say = text.say.as_ref().map(|say| {
            let compiled = templates.add(&say.value, &NAMES);
            compiled.map_err(|problem| Problem::at(say.referenced, format!("`say`: {problem}")))
        });
        let say = say.transpose()?;
        let calls = text.call.iter().enumerate().map(|(at, call)| {
            let compiled = Call::compile(call, &NAMES, templates);
            compiled.map_err(|problem| Problem::new(format!("`call` {}: {problem}", at + 1)))
        });
        let calls = calls.collect::<Result<_, _>>()?;
        Ok(Self {
            when: text.when.clone(),
            source,
            think_ms: text.think_ms,
            chunk_ms: text.chunk_ms,
            think: text.think.clone(),
            say,
            calls,
            usage: text.usage,
            fail: text.fail,
            hangs: text.hang,
            renders: templates.marked() > marked_before,
            cut: text.cut,
        })
    }

    /// What it does at this attempt: a pure function. `lost` says whether a provider is played that bills what it
    /// could not finish.
    pub(super) fn play(&self, attempt: &ModelAttempt, templates: &Templates, lost: OnLost) -> Turn {
        self.turn(attempt, templates, lost)
            .unwrap_or_else(|problem| Turn::invalid(format!("{}: {problem}", self.source)))
    }

    fn turn(&self, attempt: &ModelAttempt, templates: &Templates, lost: OnLost) -> Result<Turn, String> {
        let context = context(attempt);
        let said = || {
            let said =
                self.say.as_ref().map_or_else(|| Ok(String::new()), |say| templates.render(say, &context));
            said.map_err(|problem| format!("`say`: {problem}"))
        };
        let only_said = || said().map(|text| capped(text, Vec::new(), attempt.output_cap).0);
        let turn = |text, end| Turn { think_ms: self.think_ms, chunk_ms: self.chunk_ms, text, end };
        if let Some(fail) = self.fail.filter(|fail| fail.hits(attempt.attempt)) {
            let fault = fail.fault(attempt.attempt, &self.source);
            let (text, used) = match fail.kind {
                FailKind::RateLimit
                | FailKind::Server
                | FailKind::Overloaded
                | FailKind::Auth
                | FailKind::OutOfCredit
                | FailKind::Invalid
                | FailKind::ContextTooLong => (String::new(), Used::Tokens(Usage::default())),
                FailKind::Timeout => (String::new(), self.used_unfinished(attempt, 0, lost)),
                FailKind::Cut | FailKind::ContentFilter | FailKind::Declined => {
                    let text = only_said()?;
                    let output = tokens(&text);
                    (text, self.used_unfinished(attempt, output, lost))
                }
            };
            return Ok(turn(text, End::Misses(AttemptError { fault, used })));
        }
        if self.hangs {
            return Ok(turn(only_said()?, End::Hangs));
        }
        let reasoning = self.think.clone();
        // An output cap also limits reasoning.
        let thought = tokens(&reasoning).min(attempt.output_cap);
        let asks = self.asks(attempt, templates, &context)?;
        let (text, asks, stop) = capped(said()?, asks, attempt.output_cap - thought);
        let stop = self.cut.map_or(stop, |CutText::OutputCap| StopReason::OutputCap);
        let said = tokens(&text) + asks.iter().map(|ask| tokens(&ask.args)).sum::<u64>();
        let used = Usage { reasoning: thought, ..self.used(attempt, said) };
        Ok(turn(text, End::Answers { asks, reasoning, used: Used::Tokens(used), stop }))
    }

    fn asks(
        &self,
        attempt: &ModelAttempt,
        templates: &Templates,
        context: &Value,
    ) -> Result<Vec<ToolAsk>, String> {
        let ask = |(at, call): (usize, &Call)| {
            let id = format!("call_{}_{}", attempt.turn, at + 1);
            call.ask(id, templates, context).map_err(|problem| format!("`call` {}: {problem}", at + 1))
        };
        self.calls.iter().enumerate().map(ask).collect()
    }

    /// What was written, or else what was counted.
    fn used(&self, attempt: &ModelAttempt, output: u64) -> Usage {
        let input = self.usage.input.unwrap_or(attempt.packet.tokens);
        Usage { input, output: self.usage.output.unwrap_or(output), ..Usage::default() }
    }

    /// What an attempt used that reached the model and did not come back whole.
    fn used_unfinished(&self, attempt: &ModelAttempt, output: u64, lost: OnLost) -> Used {
        match lost {
            OnLost::Presumed if self.usage == UsageText::default() => Used::Unknown,
            OnLost::Presumed | OnLost::Repeatable => Used::Tokens(self.used(attempt, output)),
        }
    }
}

/// Refuses keys without an effect, and absurd numbers.
fn check(text: &RuleText) -> Result<(), Problem> {
    check_millis("think_ms", text.think_ms)?;
    check_millis("chunk_ms", text.chunk_ms)?;
    let UsageText { input, output } = text.usage;
    let usage = Usage { input: input.unwrap_or(0), output: output.unwrap_or(0), ..Usage::default() };
    usage.checked().map_err(|error| Problem::new(format!("`usage`: {error}")))?;
    let calls = text.call.len();
    if calls > limit::ASKS_MAX {
        return Err(Problem::new(format!("`call` has {calls} entries, at most {}", limit::ASKS_MAX)));
    }
    let is_final = text.fail.is_some_and(|fail| fail.is_final());
    let does_something = text.say.is_some() || calls > 0 || is_final || text.hang;
    let problem = if !does_something {
        "the rule answers nothing: give it `say`, `call` or `hang`"
    } else if is_final && text.hang {
        "the rule always fails and never hangs: say how many `times` it fails, or drop `hang`"
    } else if text.cut.is_some() && (is_final || text.hang) {
        "a rule that never answers is never cut: drop `cut`"
    } else if text.hang && calls > 0 {
        "a rule that hangs never calls: drop `hang` or `call`"
    } else {
        return Ok(());
    };
    Err(Problem::new(problem.to_owned()))
}

/// What templates see of an attempt.
fn context(attempt: &ModelAttempt) -> Value {
    let path: Vec<&str> = attempt.origin.path.iter().map(|id| id.as_str()).collect();
    context! {
        agent => attempt.origin.role.as_str(),
        goal => &*attempt.origin.goal,
        turn => attempt.turn,
        path => path.join("/"),
        last => when::last(attempt),
        remaining => remaining(&attempt.remaining),
    }
}

/// What is left of each resource, by name; none where nothing bounds it.
fn remaining(limits: &Ceilings) -> Value {
    let left = |resource| limits.get(resource).map_or_else(|| Value::from(()), Value::from);
    context! {
        cost_nanos => left(Resource::Cost),
        tokens => left(Resource::Tokens),
        steps => left(Resource::Steps),
        tool_calls => left(Resource::ToolCalls),
        retries => left(Resource::Retries),
    }
}
