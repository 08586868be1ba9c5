//! The result of a run: what became of the tree, as one JSON object or as a block of words.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;
use spinney::tree::{Look, OpenQuestion, Status};
use spinney_kernel::agent;
use spinney_kernel::body::Body;
use spinney_kernel::budget::{Amounts, Resource, Shortfall, usd};
use spinney_kernel::id::{AgentId, TreeId};
use spinney_kernel::port::journal::Journal;
use spinney_kernel::world::TreeState;

use crate::exit::Exit;
use crate::hint::command;
use crate::ids::short;
use crate::out::{self, Unwritten};
use crate::wording::{counted, printable, spent, took};

/// What became of a tree.
pub(crate) struct Outcome {
    home: PathBuf,
    tree: TreeId,
    state: &'static str,
    exit: Exit,
    output: String,
    spent: Amounts,
    agents: usize,
    elapsed_ms: u64,
    event_hash: String,
    error: Option<Trouble>,
    questions: Vec<OpenQuestion>,
}

/// Why it is not completed, and what to do.
struct Trouble {
    code: String,
    message: String,
    remedy: String,
    numbers: Option<(AgentId, Shortfall)>,
}

impl Outcome {
    /// What became of a tree of a home that is no longer run.
    pub(crate) fn of(
        look: &Look,
        status: &Status,
        journal: &dyn Journal,
        (home, tree): (&Path, TreeId),
    ) -> Self {
        let (state, exit) = state(look);
        let root = look.agents.first();
        // What a halted tree has said so far is kept; one that waits or was stopped is under way.
        let halted = look.so_far.as_ref().filter(|_| state == "halted");
        let output = look.end.as_ref().map(|end| &end.shown).or(halted);
        let output = output.map(|body| whole(body, journal)).unwrap_or_default();
        Self {
            home: home.to_owned(),
            tree,
            state,
            exit,
            output,
            spent: root.map(|root| root.spent).unwrap_or_default(),
            agents: look.agents.len(),
            elapsed_ms: 0,
            event_hash: status.hash.map(|hash| hash.to_string()).unwrap_or_default(),
            error: trouble(look, (home, tree)),
            questions: look.questions.clone(),
        }
    }

    /// From the first event to the last.
    pub(crate) const fn took(mut self, elapsed_ms: u64) -> Self {
        self.elapsed_ms = elapsed_ms;
        self
    }

    /// The same after somebody made us stop: a tree that has not ended is stopped, whatever it waits for.
    pub(crate) fn interrupted(mut self) -> Self {
        match self.exit {
            Exit::Completed | Exit::Failed | Exit::Cancelled => {}
            Exit::Usage | Exit::Halted | Exit::Waiting | Exit::Interrupted | Exit::Closed => {
                (self.state, self.exit, self.error) = ("stopped", Exit::Interrupted, None);
            }
        }
        self
    }

    /// How the process ends.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// As one line of JSON.
    pub(crate) fn write_json(&self) -> Result<(), Unwritten> {
        out::line(&serde_json::to_string(self).unwrap_or_else(|_| unreachable!("a result can be written")))
    }

    /// As a block of words.
    pub(crate) fn write_plain(&self) -> Result<(), Unwritten> {
        let to = |verb: &str| command(&self.home, &format!("{verb} {}", short(self.tree)));
        out::line(&format!("{} after {}", self.state, took(self.elapsed_ms)))?;
        if !self.output.trim().is_empty() {
            block(label(self.exit), &self.output)?;
        }
        if let Some(trouble) = &self.error {
            block("why", &trouble.message)?;
            block("remedy", &trouble.remedy)?;
        }
        block("spent", &spent(&self.spent))?;
        block("agents", &self.agents.to_string())?;
        block("tree", &self.tree.to_string())?;
        block("look", &to("events"))?;
        if self.exit == Exit::Interrupted {
            block("go on", &to("resume"))?;
            block("give up", &to("cancel"))?;
        }
        Ok(())
    }
}

/// What the text of a tree is that ended so: only one that completed has answered.
pub(crate) fn label(exit: Exit) -> &'static str {
    if exit == Exit::Completed { "answer" } else { "so far" }
}

/// A label and what stands beside it; further lines are indented.
fn block(label: &str, text: &str) -> Result<(), Unwritten> {
    for (at, line) in printable(text.trim_end()).lines().enumerate() {
        let label = if at == 0 { label } else { "" };
        out::line(format!("  {label:<7} {line}").trim_end())?;
    }
    Ok(())
}

fn state(look: &Look) -> (&'static str, Exit) {
    match (&look.end, look.state) {
        (Some(end), _) => match &end.exit {
            agent::Exit::Completed => ("completed", Exit::of_end(&end.exit)),
            agent::Exit::Cancelled { .. } => ("cancelled", Exit::of_end(&end.exit)),
            agent::Exit::Failed { .. } | agent::Exit::Exhausted { .. } => ("failed", Exit::of_end(&end.exit)),
        },
        (None, TreeState::Halted) => ("halted", Exit::Halted),
        (None, TreeState::Waiting) => ("waiting", Exit::Waiting),
        (None, TreeState::New | TreeState::Running | TreeState::Paused | TreeState::Ended(_)) => {
            ("stopped", Exit::Interrupted)
        }
    }
}

fn trouble(look: &Look, tree: (&Path, TreeId)) -> Option<Trouble> {
    if let Some(end) = &look.end {
        return match &end.exit {
            agent::Exit::Completed | agent::Exit::Cancelled { .. } => None,
            agent::Exit::Failed { error } => Some(Trouble {
                code: error.code.clone(),
                message: error.message.clone(),
                remedy: remedy(&error.code, tree),
                numbers: None,
            }),
            agent::Exit::Exhausted { account, short } => Some(Trouble {
                code: "exhausted".to_owned(),
                message: short.told(account),
                remedy: "give the tree a larger budget and run it again".to_owned(),
                numbers: Some((account.clone(), *short)),
            }),
        };
    }
    let halt = look.halted.as_ref()?;
    Some(Trouble {
        code: "ceiling".to_owned(),
        message: halt.short.told(&halt.account),
        remedy: raise(&halt.short, tree),
        numbers: Some((halt.account.clone(), halt.short)),
    })
}

/// How a ceiling is raised by what is missing, and the tree taken up again.
fn raise(numbers: &Shortfall, (home, tree): (&Path, TreeId)) -> String {
    let (id, missing) = (short(tree), missing(numbers));
    let flag = match numbers.resource {
        Resource::Cost => format!("--add-usd {}", usd(missing).trim_start_matches('$')),
        Resource::Tokens => format!("--add-tokens {missing}"),
        Resource::Steps => format!("--add-steps {missing}"),
        Resource::ToolCalls => format!("--add-tool-calls {missing}"),
        Resource::Retries => format!("--add-retries {missing}"),
    };
    let (budget, resume) =
        (command(home, &format!("budget {id} {flag}")), command(home, &format!("resume {id}")));
    format!("raise it by at least this: {budget} && {resume}")
}

/// The least raise that lets the call start. A reserve grows with its ceiling.
fn missing(numbers: &Shortfall) -> u64 {
    let Shortfall { limit, reserve, spent, held, lent, asked, .. } = *numbers;
    let need = u128::from(spent) + u128::from(held) + u128::from(lent) + u128::from(asked);
    let free = u128::from(limit.saturating_sub(reserve)).max(1);
    let whole = if reserve == 0 { need } else { (need * u128::from(limit)).div_ceil(free) };
    u64::try_from(whole.saturating_sub(u128::from(limit))).unwrap_or(u64::MAX).max(1)
}

fn remedy(code: &str, (home, tree): (&Path, TreeId)) -> String {
    match code {
        "timeout" => "give it more time with `budget.timeout` and run it again".to_owned(),
        "output_mismatch" => {
            "say in the prompt or the goal what is wanted, or ask for less in `output_schema`, and run it again"
                .to_owned()
        }
        "bad_output_schema" => "write a valid `output_schema` and run it again".to_owned(),
        "output_truncated" => {
            "raise `limits.max_tokens_per_step` of the agent, or ask for a shorter answer, and run it again"
                .to_owned()
        }
        "max_steps" => "raise `limits.max_steps` of the agent and run it again".to_owned(),
        "model_auth" => "give the model a valid key and run it again".to_owned(),
        "model_rate_limit" | "model_server" | "model_timeout" | "model_cut" => {
            "try again later, or give the model a `fallback`".to_owned()
        }
        _ => format!("see what led to it: {}", command(home, &format!("events {}", short(tree)))),
    }
}

/// The whole text, from its blob if the event has only a preview.
pub(crate) fn whole(body: &Body, journal: &dyn Journal) -> String {
    let Some(rest) = body.rest() else { return body.text.clone() };
    match journal.blob(rest) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => body.text.clone(),
        Err(fault) => {
            out::complain(&format!("only the beginning of the answer can be shown: {fault}"));
            body.text.clone()
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Steps of a pipeline will stand in these; a tree without one has none.
        let none: [(); 0] = [];
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "result")?;
        map.serialize_entry("tree", &self.tree)?;
        map.serialize_entry("state", self.state)?;
        map.serialize_entry("output", &self.output)?;
        map.serialize_entry("outputs", &serde_json::Map::new())?;
        for list in ["succeeded", "failed", "skipped"] {
            map.serialize_entry(list, &none)?;
        }
        map.serialize_entry("spent", &Spent(&self.spent))?;
        map.serialize_entry("agents", &self.agents)?;
        map.serialize_entry("elapsed_ms", &self.elapsed_ms)?;
        map.serialize_entry("event_hash", &self.event_hash)?;
        if let Some(error) = &self.error {
            map.serialize_entry("error", error)?;
        }
        if !self.questions.is_empty() {
            let questions: Vec<Asked<'_>> = self.questions.iter().map(Asked).collect();
            map.serialize_entry("questions", &questions)?;
        }
        map.end()
    }
}

struct Asked<'a>(&'a OpenQuestion);

impl Serialize for Asked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let OpenQuestion { question, path, text } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("question", question)?;
        map.serialize_entry("path", &joined(path))?;
        map.serialize_entry("text", text)?;
        map.end()
    }
}

/// Ids from the root down, as events show them.
fn joined(path: &[AgentId]) -> String {
    let path: Vec<&str> = path.iter().map(AgentId::as_str).collect();
    path.join("/")
}

struct Spent<'a>(&'a Amounts);

impl Serialize for Spent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = self.0.of(Resource::Cost);
        // Written from its digits: no float is near it.
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

/// What a person is to do about open questions.
pub(crate) fn write_questions(look: &Look, (home, tree): (&Path, TreeId)) -> Vec<String> {
    let id = short(tree);
    let mut lines = vec![format!("{} to answer:", counted(look.questions.len() as u64, "question"))];
    for question in &look.questions {
        let text = printable(question.text.trim_end()).replace('\n', "\n    ");
        lines.push(format!("  {} asks: {text}", joined(&question.path)));
        let answer = command(home, &format!("answer {id} {} TEXT", question.question.0));
        lines.push(format!("    {answer}"));
    }
    lines.push(format!("then: {}", command(home, &format!("resume {id}"))));
    lines
}
