//! One process of the kill campaign: starts or resumes a tree of fifty agents in a home, prints a line for every
//! durable event, and is killed by its parent process at any moment.
//!
//! `campaign HOME OUTSIDE SEED`: effects are recorded in the folder `OUTSIDE`, as an outside world would do. The file
//! `starts` gets a line for every tool call that began; a keyed effect is a file named after its key, created once.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program, and lines are what it is for"
)]

use spinney_journal::Blocking;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use spinney::bus::Watch;
use spinney::{Drivers, Home, Tree};
use spinney_kernel::budget::{Price, Usage, Used};
use spinney_kernel::context::Message;
use spinney_kernel::definition::{
    BudgetSpec, Caps, Definition, ModelSpec, OnLost, Role, ToolSpec as Spec, TreeLimits, Turns, Unpriced,
};
use spinney_kernel::port::model::{AttemptError, Deltas, Model};
use spinney_kernel::port::tool::Tool;
use spinney_kernel::port::{Pending, model, tool};
use spinney_kernel::primitives as id;
use spinney_kernel::primitives::Body;
use spinney_kernel::record::{Event, ToolAsk};
use spinney_store::{Access, SqliteJournal};

/// One lead, its workers and their helpers: fifty agents.
const WORKERS: u64 = 7;
const HELPERS: u64 = 6;
/// Concurrent effects: few enough that each makes progress between two kills.
const PARALLEL_MAX: u32 = 8;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [home, outside, seed] = words.as_slice() else {
        eprintln!("campaign: expected HOME OUTSIDE SEED");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed.parse() else {
        eprintln!("campaign: `{seed}` is no seed");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let ran = match runtime {
        Ok(runtime) => runtime.block_on(run(Path::new(home), Path::new(outside), seed)),
        Err(error) => Err(error.to_string()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: &Path, outside: &Path, seed: u64) -> Result<(), String> {
    let journal = SqliteJournal::open(folder, Access::Write).map_err(|fault| fault.to_string())?;
    let driver = |lost| Arc::new(SeededDriver { outside: outside.to_path_buf(), seed, lost });
    let drivers = Drivers::new()
        .with_model(name("calm"), driver(OnLost::Repeatable))
        .with_model(name("billed"), driver(OnLost::Presumed))
        .with_tool(name("note"), driver(OnLost::Repeatable))
        .with_tool(name("post"), driver(OnLost::Presumed));
    let home = Home::open(Arc::new(journal), drivers);
    let known = home.journal().heads(&[]).wait().map_err(|fault| fault.to_string())?;
    let tree = match known.first() {
        None => home.start(definition()).await.map_err(|error| error.to_string())?,
        Some(head) => match home.resume(head.tree).await {
            Ok(tree) => tree,
            Err(spinney::ResumeError::Ended { .. }) => {
                println!("ended");
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        },
    };
    follow(&tree).await
}

/// Prints a line for every durable event and answers every question.
async fn follow(tree: &Tree) -> Result<(), String> {
    let snapshot = tree.snapshot().await.map_err(|error| error.to_string())?;
    println!("up");
    for question in &snapshot.questions {
        answer(tree, question.question).await;
    }
    let mut events = tree.watch(Watch::after(snapshot.seq));
    while let Some(traced) = events.next_event().await {
        let traced = traced.map_err(|fault| fault.to_string())?;
        let recorded = &traced.recorded;
        println!("{}", recorded.seq.0);
        if let Event::QuestionAsked { call, .. } = recorded.event {
            answer(tree, call).await;
        }
    }
    let status = tree.ended().await;
    match status.stopped {
        Some(stopped) => Err(stopped.to_string()),
        None => {
            println!("ended");
            Ok(())
        }
    }
}

async fn answer(tree: &Tree, question: id::CallId) {
    // A question that was answered before the last kill needs no second answer.
    let _ = tree.answer(question, "yes").await;
}

fn definition() -> Definition {
    let model = |name: &str| {
        (self::name(name), ModelSpec { price: Some(Price::flat(0, 1_000_000)), ..ModelSpec::default() })
    };
    let role = |model: &str| Role {
        model: name(model),
        caps: Caps::all(2),
        budget: BudgetSpec::default(),
        recursive: Default::default(),
        rate: Default::default(),
        program: None,
        turns: Some(Turns { prompt: Body::text("You work."), turns_max: 6, ..Turns::default() }),
    };
    Definition {
        is_kept: false,
        visibility: Default::default(),
        redact: Default::default(),
        name: "campaign".to_owned(),
        goal: "Be killed and come through.".to_owned(),
        entry: name("lead"),
        thread: None,
        budget: BudgetSpec::default(),
        limits: TreeLimits { parallel_max: PARALLEL_MAX, ..TreeLimits::default() },
        models: [model("calm"), model("billed")].into_iter().collect(),
        roles: [
            (name("lead"), role("billed")),
            (name("worker"), role("billed")),
            (name("helper"), role("calm")),
        ]
        .into_iter()
        .collect(),
        tools: Default::default(),
        shared: Default::default(),
        unpriced: Unpriced::Refuse,
        durability: Default::default(),
        graph: None,
        inputs: Default::default(),
        command_tools: Default::default(),
        servers: Default::default(),
        folders: None,
        tags: Default::default(),
    }
}

/// A model or a tool. What it does is a pure function of the seed and the agent.
struct SeededDriver {
    outside: PathBuf,
    seed: u64,
    lost: OnLost,
}

impl SeededDriver {
    fn throw(&self, place: &str) -> u64 {
        let mut hash = self.seed ^ 0xCBF2_9CE4_8422_2325;
        for byte in place.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        hash ^ (hash >> 29)
    }

    fn asks(&self, role: &str, agent: &str, parent: &str, turn: u32) -> Vec<(&'static str, String)> {
        let spawn = |role: &str, number: u64| {
            (
                "spawn_agent",
                format!(r#"{{"agent":"{role}","goal":"Part {number}.","id":"{agent}-{number}"}}"#),
            )
        };
        let note = || ("note", format!(r#"{{"at":"{turn}"}}"#));
        match (role, turn) {
            ("lead", 1) => (0..WORKERS).map(|number| spawn("worker", number)).collect(),
            ("worker", 1) => (0..HELPERS).map(|number| spawn("helper", number)).chain([note()]).collect(),
            ("helper", 1) => {
                let mut asks = vec![note()];
                if self.throw(&format!("{agent}/ask")).is_multiple_of(3) {
                    asks.push(("ask_human", format!(r#"{{"question":"May {agent} go on?"}}"#)));
                }
                asks
            }
            ("helper", 2) => vec![
                ("send_message", format!(r#"{{"to":"{parent}","text":"{agent} was here"}}"#)),
                ("post", format!(r#"{{"by":"{agent}"}}"#)),
                note(),
            ],
            _ => Vec::new(),
        }
    }
}

/// An agent's result: all its messages, in an order that does not depend on timing. Results of tools that cannot be
/// repeated are left out, because a kill may have cut them off.
fn summary(packet: &spinney_kernel::context::Packet) -> String {
    let mut heard: Vec<&str> = packet
        .messages
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::Heard { text, .. } => Some(text.as_str()),
            Message::Result { tool, text, .. } if **tool != *"post" => Some(text),
            Message::System(_)
            | Message::Said { .. }
            | Message::Result { .. }
            | Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_)
            | Message::Folded(_) => None,
        })
        .collect();
    heard.sort_unstable();
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in heard.iter().flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    format!("{} things {hash:016x}", heard.len())
}

impl Model for SeededDriver {
    fn call(
        &self,
        attempt: Arc<model::ModelAttempt>,
        _deltas: Deltas,
    ) -> Pending<Result<model::ModelAnswer, AttemptError>> {
        let path = &attempt.origin.path;
        let agent = attempt.origin.agent().as_str();
        let parent = path.len().checked_sub(2).and_then(|at| path.get(at)).map_or("", |id| id.as_str());
        let asks = self.asks(attempt.origin.role.as_str(), agent, parent, attempt.turn);
        let asks: Vec<ToolAsk> = asks
            .into_iter()
            .zip(0..)
            .map(|((tool, args), number): (_, u32)| ToolAsk {
                id: format!("c{number}"),
                tool: tool.to_owned(),
                args,
                tokens: None,
                told_tokens: None,
            })
            .collect();
        let text = format!("{agent} {} {}", attempt.turn, summary(&attempt.packet));
        let output = text.len() as u64;
        let used = Used::Tokens(Usage { input: attempt.packet.tokens, output, ..Usage::default() });
        let ms = self.throw(&format!("{agent}/{}", attempt.turn)) % 3;
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(model::ModelAnswer::text(text).with_asks(asks).with_used(used))
        })
    }

    fn lost(&self) -> OnLost {
        self.lost
    }
}

impl Tool for SeededDriver {
    fn spec(&self) -> Spec {
        Spec { description: "acts outside".to_owned(), lost: self.lost, ..Spec::default() }
    }

    fn call(&self, attempt: tool::ToolAttempt) -> Pending<Result<tool::ToolAnswer, AttemptError>> {
        let (outside, ms) = (self.outside.clone(), self.throw(&attempt.args) % 3);
        Box::pin(async move {
            let acted = act(&outside, &attempt);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(match acted {
                Ok(()) => tool::ToolAnswer::text(format!("done: {}", attempt.args)),
                Err(error) => tool::ToolAnswer::failed(error.to_string()),
            })
        })
    }
}

/// Acts on the outside world, which recognises known keys.
fn act(outside: &Path, attempt: &tool::ToolAttempt) -> std::io::Result<()> {
    let mut starts = OpenOptions::new().create(true).append(true).open(outside.join("starts"))?;
    starts.write_all(format!("{} {}\n", attempt.tool, attempt.key).as_bytes())?;
    let file = outside.join(format!("{}-{}", attempt.tool, attempt.key.replace('/', "-")));
    match OpenOptions::new().create_new(true).write(true).open(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn name<T: std::str::FromStr<Err = id::IdError>>(text: &str) -> T {
    match text.parse() {
        Ok(name) => name,
        Err(error) => unreachable!("{error}"),
    }
}
