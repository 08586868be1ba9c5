//! A journal of very many events: builds, opens or replays one, and prints the peak memory.
//!
//! `long build HOME EVENTS` · `long resume HOME` · `long verify HOME`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use spinney::Shutdown;
use spinney::tree::verify;
use spinney_journal::{Append, Batch, Blocking, Epoch, Journal};
use spinney_kernel::budget::{Amounts, Used};
use spinney_kernel::definition::OnLost;
use spinney_kernel::primitives::{Actor, Body, CallId, Durability, Time, TreeId};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Charge, Hold, HoldFor, HoldReply, Request, Start};
use spinney_kernel::rules::{Input, InputKind, InputReply, Reply};
use spinney_kernel::world::World;

use spinney_store::{Access, SqliteJournal};
use spinney_testkit::{TestHome, definition};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = match words.as_slice() {
        ["build", home, events] => match events.parse() {
            Ok(events) => build(Path::new(home), events),
            Err(_) => Err(format!("`{events}` is no number")),
        },
        ["resume", home] => resume(Path::new(home)),
        ["verify", home] => replay(Path::new(home)),
        _ => Err("expected `build HOME EVENTS`, `resume HOME` or `verify HOME`".to_owned()),
    };
    match ran {
        Ok(events) => {
            println!("{events} events, {} KiB at most", peak_kib());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("long: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One agent that is charged and calls a tool, again and again: its world does not grow.
fn build(home: &Path, events: u64) -> Result<u64, String> {
    let journal = SqliteJournal::open(home, Access::Write).map_err(|fault| fault.to_string())?;
    let mut builder = Builder { world: World::new(TreeId::new([9; 16])), journal, now: 0 };
    let definition = Arc::new(spinney_kernel::definition::Definition {
        is_kept: false,
        visibility: Default::default(),
        redact: Default::default(),
        durability: Durability::Off,
        ..definition("root")
    });
    builder.ask(Request::Start(Start::new(definition)))?;
    let root = || match "root".parse() {
        Ok(agent) => agent,
        Err(error) => unreachable!("{error}"),
    };
    while builder.world.seq().0 < events {
        builder.ask(Request::Charge(Charge {
            agent: root(),
            amounts: Amounts::cost(3),
            note: "stamps".to_owned(),
        }))?;
        let tool = HoldFor::Tool {
            tool: "note".parse().map_err(|error| format!("{error}"))?,
            args: r#"{"line":"one more line of many"}"#.to_owned(),
            cost_nanos_max: 5,
            lost: OnLost::Repeatable,
        };
        let reply = builder.ask(Request::Hold(Hold { agent: root(), effect: tool }))?;
        let InputReply::Request(Reply::Hold(HoldReply::Started { call })) = reply else {
            return Err(format!("the tool was not called: {reply:?}"));
        };
        builder.done(call)?;
    }
    Ok(builder.world.seq().0)
}

struct Builder {
    world: World,
    journal: SqliteJournal,
    now: u64,
}

impl Builder {
    fn ask(&mut self, request: Request) -> Result<InputReply, String> {
        self.input(InputKind::Request { by: Actor::PERSON, request: Box::new(request) })
    }

    fn done(&mut self, call: CallId) -> Result<InputReply, String> {
        let (used, body) = (Used::CostNanos(2), Body::text("kept"));
        let done = Done::new(call, 1, used, body);
        self.input(InputKind::Report(Report::Done(done)))
    }

    fn input(&mut self, what: InputKind) -> Result<InputReply, String> {
        self.now += 1;
        let after = self.world.seq();
        let input = Input { now: Time(self.now), draw: 0, what };
        let decision = decide(&mut self.world, &input).map_err(|refusal| refusal.to_string())?;
        let append = Append {
            tree: self.world.tree(),
            epoch: Epoch::FIRST,
            after,
            base: None,
            seed: None,
            before: None,
            batch: Batch { input, events: decision.events }.encode().map_err(|fault| fault.to_string())?,
            blobs: Arc::default(),
            catalog: Vec::new(),
            state: self.world.state(),
            durability: Durability::Off,
        };
        // If an append fails, the next one is stale, and the final count shows it.
        self.journal.append(append, Box::new(|_| {}));
        Ok(decision.reply)
    }
}

/// Opens a home and resumes its tree.
fn resume(home: &Path) -> Result<u64, String> {
    let journal = SqliteJournal::open(home, Access::Write).map_err(|fault| fault.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let home = TestHome::on(Arc::new(journal), "rules: [{ say: done }]").home();
        let tree = home
            .journal()
            .heads(&[])
            .wait()
            .map_err(|fault| fault.to_string())?
            .first()
            .map(|head| head.tree);
        let tree = tree.ok_or("there is no tree")?;
        let tree = home.resume(tree).await.map_err(|error| error.to_string())?;
        let snapshot = tree.snapshot().await.map_err(|error| error.to_string())?;
        home.shutdown(Shutdown::Kill).await;
        Ok(snapshot.seq.0)
    })
}

/// Decides every input again.
fn replay(home: &Path) -> Result<u64, String> {
    let journal = SqliteJournal::open(home, Access::ReadOnly).map_err(|fault| fault.to_string())?;
    let head = journal.heads(&[]).wait().map_err(|fault| fault.to_string())?.into_iter().next();
    let head = head.ok_or("there is no tree")?;
    let verified = verify(&journal, head.tree, Some(head.hash)).wait().map_err(|error| error.to_string())?;
    if verified.decided { Ok(verified.events) } else { Err("it was not decided again".to_owned()) }
}

/// The peak resident memory of this process, or 0 if the system does not report it.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}
