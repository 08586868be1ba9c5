//! The result of a run, as one JSON object or as text.

mod steps;

use spinney_kernel::record::{self, ExitKind};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use spinney::tree::{Diverged, Look, OpenQuestion, Stopped};

use spinney_journal::{Blocking, ChainHash, Journal, JournalFault};
use spinney_kernel::budget::{Amounts, Resource, Shortfall, usd};
use spinney_kernel::words::{AgentId, Body, Millis, TreeId, grouped};
use spinney_kernel::world::TreeState;

use self::steps::StepResults;
use crate::asking::approval::Extent;
use crate::asking::questions;
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::hint::{YOUR_ANSWER, YOUR_FILE, about, command, go_on};
use crate::home;
use crate::home::ids::TreeInHome;
use crate::home::tree_copies;
use crate::terminal::out::{self, Unwritten};
use crate::terminal::wording::counted;
use crate::tree_file::providers::Scripted;

pub(crate) struct Outcome {
    home: PathBuf,
    /// `None` if there is no tree.
    tree: Option<TreeId>,
    state: TreeState,
    exit: Exit,
    output: String,
    /// What it spent and how many agents it had; `None` if that could not be read.
    usage: Option<(Amounts, usize)>,
    elapsed_ms: u64,
    event_hash: String,
    error: Option<Trouble>,
    questions: Vec<OpenQuestion>,
    steps: StepResults,
    /// Which of its models answer from a file; none if unknown.
    scripted: Option<Scripted>,
}

/// Why it did not complete, and what to do.
struct Trouble {
    code: String,
    message: String,
    remedy: String,
    numbers: Option<(AgentId, Shortfall)>,
}

impl Trouble {
    /// The reason for people. Programs have the numbers beside the message.
    fn why(&self) -> String {
        let Some((account, short)) = &self.numbers else { return self.message.clone() };
        let show = |shown| format!("{:#}", short.resource.amount(shown));
        let spent = if short.resource == Resource::Cost { usd(short.spent) } else { grouped(short.spent) };
        let mut why = format!("`{account}` has spent {spent} of its {}", show(short.limit));
        for (amount, words) in [
            (short.held, "are held for calls that run"),
            (short.lent, "are lent to its agents"),
            (short.reserve, "are kept for its own answer"),
        ] {
            if amount > 0 {
                why += &format!(", {} {words}", show(amount));
            }
        }
        if short.asked > 0 {
            why += &format!(", and its next call may need {}", show(short.asked));
        }
        why
    }
}

impl Outcome {
    /// The result of a tree that is no longer run.
    pub(crate) fn of(
        look: &Look,
        hash: Option<ChainHash>,
        journal: &dyn Journal,
        place: TreeInHome<'_>,
    ) -> Self {
        let (mut state, exit) = state(look);
        if look.state == TreeState::Paused && is_paused_by_a_person(journal, place.tree) {
            state = TreeState::Paused;
        }
        let root = look.agents.first();
        // A halted tree shows its progress; one that waits or was stopped is not finished.
        let halted = look.so_far.as_ref().filter(|_| state == TreeState::Halted);
        let output = look.end.as_ref().map(|end| &end.shown).or(halted);
        let output = output.map(|body| whole(body, journal)).unwrap_or_default();
        Self {
            home: place.home.to_owned(),
            tree: Some(place.tree),
            state,
            exit,
            output,
            usage: Some((root.map(|root| root.spent).unwrap_or_default(), look.agents.len())),
            elapsed_ms: 0,
            event_hash: hash.map(|hash| hash.to_string()).unwrap_or_default(),
            error: trouble(look, place),
            questions: look.questions.clone(),
            steps: steps(look, journal, place),
            scripted: tree_copies::scripted(place.home, place.tree),
        }
    }

    /// The result if there is no tree, or it cannot be read.
    pub(crate) fn without_a_look(home: &Path, tree: Option<TreeId>, failure: &Failure<'_>) -> Self {
        let none = Self {
            home: home.to_owned(),
            tree,
            state: FAILED,
            exit: Exit::Failed,
            output: String::new(),
            usage: tree.is_none().then(Default::default),
            elapsed_ms: 0,
            event_hash: String::new(),
            error: None,
            questions: Vec::new(),
            steps: StepResults::default(),
            scripted: tree.and_then(|tree| tree_copies::scripted(home, tree)),
        };
        none.failed(failure)
    }

    /// Adds a failure that is not the tree's own: the tree may have got further, or continue later.
    pub(crate) fn failed(mut self, failure: &Failure<'_>) -> Self {
        (self.state, self.exit) = (FAILED, failure.exit());
        self.error = Some(failure.trouble(&self.home, self.tree));
        self.questions.clear();
        self
    }

    /// From the first event to the last.
    pub(crate) const fn took(mut self, elapsed_ms: u64) -> Self {
        self.elapsed_ms = elapsed_ms;
        self
    }

    /// After an interrupt: a tree that has not ended is stopped, whatever it waits for. One that a person paused
    /// stays paused.
    pub(crate) fn interrupted(mut self) -> Self {
        match self.exit {
            Exit::Completed | Exit::Failed | Exit::Cancelled => {}
            Exit::Interrupted if self.state == TreeState::Paused => {}
            _ => {
                (self.state, self.exit, self.error) = (TreeState::Suspended, Exit::Interrupted, None);
            }
        }
        self
    }

    pub(crate) const fn state(&self) -> TreeState {
        self.state
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn write_json(&self) -> Result<(), Unwritten> {
        out::json(&serde_json::to_string(self).unwrap_or_else(|_| unreachable!("a result can be written")))
    }

    /// How it ended, and after how long.
    pub(crate) fn headline(&self) -> String {
        format!("{} after {:#}", self.state, Millis(self.elapsed_ms))
    }

    pub(crate) fn write_plain(&self) -> Result<(), Unwritten> {
        let looks = self.tree.map(|tree| about(&self.home, "events", tree, &[]));
        out::line(&self.headline())?;
        let blocks = self.blocks(Vec::new(), looks.as_slice());
        blocks.iter().try_for_each(|(label, text)| block(label, text))
    }

    /// The result in labelled texts, with more of them in the middle, and commands that show more.
    pub(crate) fn blocks(
        &self,
        more: Vec<(&'static str, String)>,
        looks: &[String],
    ) -> Vec<(&'static str, String)> {
        let mut blocks = Vec::new();
        if !self.output.trim().is_empty() {
            blocks.push((label(self.exit), self.output.clone()));
        }
        let StepResults { succeeded, failed, skipped, cancelled, files, .. } = &self.steps;
        for (label, names) in [
            ("done", succeeded),
            ("failed", failed),
            ("skipped", skipped),
            ("stopped", cancelled),
            ("files", files),
        ] {
            if !names.is_empty() {
                blocks.push((label, few(names)));
            }
        }
        if let Some(trouble) = &self.error {
            blocks.push(("why", trouble.why()));
            blocks.push(("remedy", trouble.remedy.clone()));
        }
        blocks.extend(more);
        if let Some((amounts, agents)) = &self.usage {
            let spent = Resource::ALL.map(|resource| format!("{:#}", resource.amount(amounts.of(resource))));
            blocks.push(("spent", spent.join(" · ")));
            blocks.push(("agents", agents.to_string()));
        }
        let Some(tree) = self.tree else { return blocks };
        blocks.push(("tree", tree.to_string()));
        blocks.push(("look", looks.join("\n")));
        if self.exit == Exit::Interrupted {
            blocks.push(("go on", go_on(&self.home, tree, self.state)));
            blocks.push(("give up", about(&self.home, "cancel", tree, &[])));
        }
        blocks
    }
}

/// A tree that a ceiling stopped has failed too: its error says how.
const FAILED: TreeState = TreeState::Ended(ExitKind::Failed);

/// Why there is no result of a tree.
pub(crate) enum Failure<'a> {
    Error(&'a anyhow::Error),
    /// The journal failed verification.
    Diverged(&'a Diverged),
}

impl Failure<'_> {
    fn exit(&self) -> Exit {
        match self {
            Self::Error(error) => Exit::of_error(error),
            Self::Diverged(_) => Exit::Failed,
        }
    }

    fn cause(&self) -> Cause {
        let error = match self {
            Self::Diverged(_) => return Cause::Diverged,
            Self::Error(error) => error,
        };
        if matches!(error.downcast_ref(), Some(JournalFault::Locked { .. })) {
            Cause::Locked
        } else if matches!(error.downcast_ref(), Some(Stopped::Bug)) {
            Cause::Bug
        } else if self.exit() == Exit::Usage {
            Cause::Usage
        } else {
            Cause::Journal
        }
    }

    fn trouble(&self, home: &Path, tree: Option<TreeId>) -> Trouble {
        let message = match self {
            Self::Error(error) => format!("{error:#}"),
            Self::Diverged(diverged) => diverged.to_string(),
        };
        let again = match tree {
            Some(tree) => format!("then: {}", about(home, "resume", tree, &[])),
            None => "then run it again".to_owned(),
        };
        let fault = match self {
            Self::Error(error) => error.downcast_ref::<JournalFault>(),
            Self::Diverged(_) => None,
        };
        let accept = fault.and_then(|fault| home::accepts(home, fault));
        let (code, remedy) = match self.cause() {
            Cause::Journal if let Some(accept) = accept => {
                ("journal", format!("restore the home from a copy, or continue with what is left: {accept}"))
            }
            Cause::Diverged => ("diverged", "restore the home from a copy".to_owned()),
            Cause::Locked => {
                ("locked", "stop that process, use another --home, or use a read-only command".to_owned())
            }
            Cause::Bug => ("bug", format!("please report it; {again}")),
            Cause::Usage => ("usage", format!("fix what the message names, {again}")),
            Cause::Journal => ("journal", format!("fix what the message names, {again}")),
        };
        Trouble { code: code.to_owned(), message, remedy, numbers: None }
    }
}

/// The kind of failure, for programs.
enum Cause {
    Diverged,
    Locked,
    Bug,
    /// The user's request cannot be done.
    Usage,
    Journal,
}

/// Ends the output of a failed command: with `--json` the last line is always a result. Returns the error, for
/// people.
pub(crate) fn failed(
    style: Style,
    outcome: impl FnOnce(&Failure<'_>) -> Outcome,
    error: anyhow::Error,
) -> anyhow::Error {
    if style != Style::Json || error.is::<Unwritten>() {
        return error;
    }
    match outcome(&Failure::Error(&error)).write_json() {
        Ok(()) => error,
        Err(unwritten) => unwritten.into(),
    }
}

/// Whether a person paused the tree: older versions paused a tree to stop it, and its head said `stopped` then.
fn is_paused_by_a_person(journal: &dyn Journal, tree: TreeId) -> bool {
    journal.head(tree).wait().is_ok_and(|head| head.is_some_and(|head| head.state == TreeState::Paused))
}

/// The label of a tree's text: only a completed tree has an answer.
pub(crate) fn label(exit: Exit) -> &'static str {
    if exit == Exit::Completed { "answer" } else { "so far" }
}

/// Names in a row, as many as people read.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() <= SHOWN { shown } else { format!("{shown} and {} more", names.len() - SHOWN) }
}

/// A label with its text; further lines are indented.
fn block(label: &str, text: &str) -> Result<(), Unwritten> {
    for (at, line) in text.trim_end().lines().enumerate() {
        let label = if at == 0 { label } else { "" };
        out::line(format!("  {label:<7} {line}").trim_end())?;
    }
    Ok(())
}

fn state(look: &Look) -> (TreeState, Exit) {
    match (&look.end, look.state) {
        (Some(end), _) => match &end.exit {
            record::Exit::Completed => (TreeState::Ended(ExitKind::Completed), Exit::of_end(&end.exit)),
            record::Exit::Cancelled { .. } => {
                (TreeState::Ended(ExitKind::Cancelled), Exit::of_end(&end.exit))
            }
            record::Exit::Failed { .. } | record::Exit::Exhausted { .. } => (FAILED, Exit::of_end(&end.exit)),
        },
        (None, TreeState::Halted) => (TreeState::Halted, Exit::Halted),
        (None, TreeState::Waiting) => (TreeState::Waiting, Exit::Waiting),
        (
            None,
            TreeState::New
            | TreeState::Running
            | TreeState::Paused
            | TreeState::Suspended
            | TreeState::Ended(_),
        ) => (TreeState::Suspended, Exit::Interrupted),
    }
}

fn trouble(look: &Look, place: TreeInHome<'_>) -> Option<Trouble> {
    if let Some(end) = &look.end {
        return match &end.exit {
            record::Exit::Completed | record::Exit::Cancelled { .. } => None,
            record::Exit::Failed { error } => Some(Trouble {
                code: error.code.clone(),
                message: error.message.clone(),
                remedy: remedy(&error.code, place),
                numbers: None,
            }),
            record::Exit::Exhausted { account, short } => Some(Trouble {
                code: "exhausted".to_owned(),
                message: short.describe(account),
                remedy: "give the tree a larger budget and run it again".to_owned(),
                numbers: Some((account.clone(), *short)),
            }),
        };
    }
    let halt = look.halted.as_ref()?;
    Some(Trouble {
        code: "ceiling".to_owned(),
        message: halt.short.describe(&halt.account),
        remedy: raise(&halt.short, place),
        numbers: Some((halt.account.clone(), halt.short)),
    })
}

/// The commands that raise a ceiling by what is missing and resume the tree.
fn raise(numbers: &Shortfall, TreeInHome { home, tree }: TreeInHome<'_>) -> String {
    let missing = missing(numbers);
    let (flag, missing) = match numbers.resource {
        Resource::Cost => ("--add-usd", usd(missing).trim_start_matches('$').to_owned()),
        Resource::Tokens => ("--add-tokens", missing.to_string()),
        Resource::Steps => ("--add-steps", missing.to_string()),
        Resource::ToolCalls => ("--add-tool-calls", missing.to_string()),
        Resource::Retries => ("--add-retries", missing.to_string()),
    };
    let (budget, resume) = (about(home, "budget", tree, &[flag, &missing]), about(home, "resume", tree, &[]));
    format!("raise it by at least this: {budget} && {resume}")
}

/// The smallest raise that lets the call start. A reserve grows with its ceiling.
fn missing(numbers: &Shortfall) -> u64 {
    let Shortfall { limit, reserve, spent, held, lent, asked, .. } = *numbers;
    let need = u128::from(spent) + u128::from(held) + u128::from(lent) + u128::from(asked);
    let free = u128::from(limit.saturating_sub(reserve)).max(1);
    let whole = if reserve == 0 { need } else { (need * u128::from(limit)).div_ceil(free) };
    u64::try_from(whole.saturating_sub(u128::from(limit))).unwrap_or(u64::MAX).max(1)
}

fn remedy(code: &str, TreeInHome { home, tree }: TreeInHome<'_>) -> String {
    match code {
        "timeout" => {
            "give it more time with `budget.timeout` or `limits.timeout` and run it again; while a tree runs, the command `budget` adds time with `--add-time`"
                .to_owned()
        }
        "output_mismatch" => {
            "say in the prompt or the goal what is wanted, or ask for less in `output_schema`, and run it again"
                .to_owned()
        }
        "bad_output_schema" => "write a valid `output_schema` and run it again".to_owned(),
        "output_truncated" => {
            "raise `limits.max_tokens_per_step` of the agent, or ask for a shorter answer, and run it again"
                .to_owned()
        }
        "loop_detected" => {
            "say in the agent's prompt what to do instead of calling the tool again, or raise `budget.repeats` (0 turns it off), and run it again"
                .to_owned()
        }
        "max_steps" => "raise `limits.max_steps` of the agent and run it again".to_owned(),
        "model_lost" => {
            "the process that ran the tree died during one model call more often than `attempts_lost_max` of its model allows (8 by default): find out what kills it, or raise that, and run the tree again"
                .to_owned()
        }
        "model_auth" => "give the model a valid key and run it again".to_owned(),
        "model_out_of_credit" => {
            "add credit to the provider's account, or give the model a `fallback`, and run it again".to_owned()
        }
        "model_context_too_long" => {
            "set the model's `context` to what it takes, or give the agent a smaller `window.size`, and run it again"
                .to_owned()
        }
        "model_content_filter" | "model_declined" => {
            "change the prompt or the goal, or give the model a `fallback`, and run it again".to_owned()
        }
        "model_rate_limit" | "model_overloaded" | "model_cut" => {
            "try again later, or give the model a `fallback`".to_owned()
        }
        "model_server" | "model_timeout" => {
            let doctor = command(home, &["doctor", YOUR_FILE]);
            format!("try again later, or give the model a `fallback`; does its server answer? {doctor}")
        }
        _ => format!("see what led to it: {}", about(home, "events", tree, &[])),
    }
}

/// What its steps came to. A result without it is better than none.
fn steps(look: &Look, journal: &dyn Journal, place: TreeInHome<'_>) -> StepResults {
    StepResults::of(journal, place, look.end.is_some()).unwrap_or_else(|error| {
        out::complain(&format!("the result does not list what the steps came to: {error:#}"));
        StepResults::default()
    })
}

/// The whole text, from its blob if the event has only a preview.
pub(crate) fn whole(body: &Body, journal: &dyn Journal) -> String {
    let Some(rest) = body.rest() else { return body.text.clone() };
    match journal.blob(rest).wait() {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => body.text.clone(),
        Err(fault) => {
            out::complain(&format!("only the start of the answer can be shown: {fault}"));
            body.text.clone()
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "result")?;
        map.serialize_entry("tree", &self.tree)?;
        map.serialize_entry("state", self.state.word())?;
        map.serialize_entry("output", &self.output)?;
        let steps = &self.steps;
        map.serialize_entry("outputs", &steps.outputs)?;
        map.serialize_entry("succeeded", &steps.succeeded)?;
        map.serialize_entry("failed", &steps.failed)?;
        map.serialize_entry("skipped", &steps.skipped)?;
        if !steps.cancelled.is_empty() {
            map.serialize_entry("cancelled", &steps.cancelled)?;
        }
        if !steps.files.is_empty() {
            map.serialize_entry("files", &steps.files)?;
        }
        map.serialize_entry("spent", &self.usage.as_ref().map(|(amounts, _)| Spent(amounts)))?;
        map.serialize_entry("agents", &self.usage.as_ref().map(|(_, agents)| agents))?;
        map.serialize_entry("elapsed_ms", &self.elapsed_ms)?;
        map.serialize_entry("event_hash", &self.event_hash)?;
        let scripted = self.scripted.as_ref().map(Scripted::models);
        if let Some(models) = scripted.filter(|models| !models.is_empty()) {
            map.serialize_entry("scripted", models)?;
        }
        if let Some(error) = &self.error {
            map.serialize_entry("error", error)?;
        }
        if !self.questions.is_empty() {
            let questions: Vec<Value> = self.questions.iter().map(questions::json).collect();
            map.serialize_entry("questions", &questions)?;
        }
        map.end()
    }
}

pub(crate) struct Spent<'a>(pub(crate) &'a Amounts);

impl Serialize for Spent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = self.0.of(Resource::Cost);
        // Written from its digits, without floats.
        let dollars = RawValue::from_string(usd(nanos).trim_start_matches('$').to_owned());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cost_usd", &dollars.map_err(serde::ser::Error::custom)?)?;
        map.serialize_entry("cost_nanos", &nanos)?;
        map.serialize_entry("tokens", &self.0.of(Resource::Tokens))?;
        map.serialize_entry("steps", &self.0.of(Resource::Steps))?;
        map.serialize_entry("tool_calls", &self.0.of(Resource::ToolCalls))?;
        map.serialize_entry("retries", &self.0.of(Resource::Retries))?;
        map.end()
    }
}

impl Serialize for Trouble {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("remedy", &self.remedy)?;
        if let Some((account, short)) = &self.numbers {
            map.serialize_entry("account", account)?;
            map.serialize_entry("resource", &short.resource)?;
            let numbers = [
                ("limit", short.limit),
                ("reserve", short.reserve),
                ("spent", short.spent),
                ("held", short.held),
                ("lent", short.lent),
                ("asked", short.asked),
            ];
            for (name, number) in numbers {
                map.serialize_entry(name, &number)?;
            }
        }
        map.end()
    }
}

/// Prints what to do about open questions.
pub(crate) fn write_questions(look: &Look, state: TreeState, place: TreeInHome<'_>) -> Vec<String> {
    let TreeInHome { home, tree } = place;
    let mut lines = vec![format!("{} to answer:", counted(look.questions.len() as u64, "question"))];
    let show_all = about(home, "questions", tree, &[]);
    for question in &look.questions {
        let shown = questions::lines(question, Extent::Brief, &show_all);
        let indent =
            |(at, line): (usize, String)| if at == 0 { format!("  {line}") } else { format!("    {line}") };
        lines.extend(shown.into_iter().enumerate().map(indent));
        let number = question.question.0.to_string();
        let answer = about(home, "answer", tree, &[&number, YOUR_ANSWER]);
        lines.push(format!("    {answer}"));
    }
    lines.push(format!("then: {}", go_on(home, tree, state)));
    lines
}
