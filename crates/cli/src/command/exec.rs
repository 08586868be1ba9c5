//! `spinney exec`: runs somebody else's agent program under a budget. Its model calls go through a gateway on this
//! machine, and each becomes a call of a tree in a home of its own.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Rlimit, getrlimit, setrlimit};
use spinney::clock::{Clock as _, SystemClock, instant};
use spinney::draw::Draws;
use spinney::{Drivers, Home, ResumeError, Shutdown, StartError, Tree};
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::record::Failure;
use spinney_kernel::words::{Millis, TreeId};
use spinney_server::gateway::{
    Bodies, ExecBudget, Gateway, GatewayModel, GatewaySettings, ModelRules, PendingCalls, RaiseHint,
    UpstreamKey, UpstreamServer, WaitTimes, exec_definition,
};
use tokio::time::sleep;

use super::run::listen;
use crate::args::{self, ColorChoice};
use crate::events::screen::Style;
use crate::exec::ending::{End, finish, root, settle};
use crate::exec::environment::{AnthropicKey, AskedProgram, UserEnvironment};
use crate::exec::homes;
use crate::exec::notices::{notices, raise_command};
use crate::exec::options::RunOptions;
use crate::exec::program::{Program, ProgramStart, ProgramStreams, base_name, hide_from_programs};
use crate::exec::report::ExecReport;
use crate::exec::signals::{Asked, Signals};
use crate::exec::view::{self, ProgramOutput, RunView};
use crate::exit::Exit;
use crate::history::costs::Costs;
use crate::home;
use crate::home::ids::{self, short};
use crate::result::{Outcome, failed};
use crate::terminal::{Terminal, out};

/// How long calls may take to end after the program has: the provider's last word says what they cost.
const LAST_CALLS: Duration = Duration::from_secs(60);
/// The same after an interrupt.
const LAST_CALLS_INTERRUPTED: Duration = Duration::from_secs(5);
/// A wait for them that is shorter is not worth a line.
const NOTED_AFTER: Duration = Duration::from_secs(1);
/// Two interrupts within this time end everything at once.
const TWICE: Duration = Duration::from_secs(5);

/// The open files of a gateway with 2,048 connections, each with one to the provider, and of everything else here.
const OPEN_FILES: u64 = 2 * 2_048 + 256;

/// A tree that is ready for its program.
struct Ready {
    /// The home that people name.
    home: PathBuf,
    /// The home of the run, below it.
    path: PathBuf,
    opened: Arc<Home>,
    tree: Tree,
    pending_calls: Arc<PendingCalls>,
}

pub(super) async fn exec(home: &Path, args: args::Exec, colour: ColorChoice) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    // Without a terminal to draw on, the program runs as without the option.
    let view_on = args.live.then(|| view::terminal(colour)).flatten();
    let ended = run(home, args, view_on).await;
    ended.map_err(|error| failed(style, |failure| Outcome::without_a_look(home, None, failure), error))
}

async fn run(home: &Path, mut args: args::Exec, view_on: Option<Terminal>) -> Result<Exit> {
    let resumed = args.resume.as_deref().map(|id| run_home(home, id)).transpose()?;
    let user = UserEnvironment::read();
    let options = match &resumed {
        Some(path) if args.program.is_empty() => {
            let (options, program) = RunOptions::read(path)?;
            args.program = program;
            options
        }
        Some(_) | None => RunOptions::of(&args, user.keys()),
    };
    let Some((program, program_args)) = args.program.split_first() else {
        bail!("name a program after `--`")
    };
    hide_from_programs()?;
    let asked = AskedProgram::read(program, program_args)?;
    let open_files = allow_many_connections();
    let ready = match resumed {
        Some(path) => resume(path).await?,
        None => start(home, &args, &options, &user).await?,
    };
    let listening = listen(&ready.path)?;
    let given_up = Arc::new(AtomicBool::new(false));
    let settings = settings(&ready, &options, &user);
    let notices =
        notices(ready.home.clone(), ready.tree.id(), options.on_limit(), view_on, Arc::clone(&given_up));
    let gateway =
        Gateway::start(ready.tree.clone(), Arc::clone(&ready.pending_calls), settings, notices).await?;
    let server = listening.serve(Arc::clone(&ready.opened), ready.tree.clone());
    let (tree, at) = (ready.tree.id(), gateway.address());
    if !args.json {
        out::note(&head(&args, tree, at));
    }
    let start = asked.start(at, gateway.key().text(), &user, &ready.path);
    let began = SystemClock::new().now_ms();
    let mut signals = Signals::listen()?;
    let view = view_on.map(|terminal| RunView::start(&ready.tree, &ready.path, terminal)).transpose()?;
    let end = match start.with_context(|| cannot_start(program)) {
        Ok(start) => play(start, view_on, open_files, &ready.tree, &mut signals).await,
        Err(error) => Err(error),
    };
    let patience = if matches!(end, Ok(End::Program(_))) { LAST_CALLS } else { LAST_CALLS_INTERRUPTED };
    let requests = gateway.requests();
    let refused = gateway.close(time_for_last_calls(patience, &mut signals, args.json)).await;
    if let Some(view) = view {
        view.end().await;
    }
    // An ended agent has no ceiling any more.
    let limit = root(&ready.tree).await.and_then(|root| root.limit?.of(Resource::Cost));
    let is_given_up = given_up.load(Ordering::Relaxed);
    let exit = match end {
        Ok(end) => settle(&ready.tree, &end, is_given_up).await,
        Err(error) => {
            finish(
                &ready.tree,
                Err(Failure { code: "not_started".to_owned(), message: format!("{error:#}") }),
            )
            .await;
            server.close().await;
            ready.opened.shutdown(Shutdown::Stop).await;
            return Err(error);
        }
    };
    server.close().await;
    ready.opened.shutdown(Shutdown::Stop).await;
    let look = ready.tree.look().await.map_err(|error| anyhow!("{error}"))?;
    let elapsed_ms = SystemClock::new().now_ms().saturating_sub(began);
    let costs = Costs::read(ready.opened.journal().as_ref(), tree)?;
    let report = ExecReport {
        home: &ready.home,
        tree,
        look: &look,
        costs: &costs,
        limit,
        requests,
        refused,
        exit,
        elapsed_ms,
    };
    if args.json {
        report.write_json()?;
    } else {
        report.write_plain();
    }
    Ok(exit)
}

/// Each call takes two connections, and the usual limit of open files is 1,024. If it cannot be raised, more calls wait.
/// Returns the limit as it was, for the program.
fn allow_many_connections() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(rustix::process::Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(rustix::process::Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    current
}

/// Starts the tree of a new run.
async fn start(
    home: &Path,
    args: &args::Exec,
    options: &RunOptions,
    user: &UserEnvironment,
) -> Result<Ready> {
    let tree = Draws::fresh().tree_id(SystemClock::new().now_ms());
    let path = homes::home_of(home, tree);
    homes::make(home)?;
    let (opened, pending_calls) = open(&path)?;
    let budget = ExecBudget {
        cost_nanos: args.budget_usd.map(|usd| usd.nanos()),
        tokens: args.tokens,
        steps: args.steps,
        timeout_ms: args.timeout.map(|span| span.ms()),
        parallel: args.max_parallel,
        on_low: args.on_low.on_low(),
    };
    options.keep(&path)?;
    let name = args.program.first().map(|program| base_name(program)).unwrap_or_default();
    let definition = exec_definition(&name, &goal(&args.program, user), &budget)?;
    let tree = match opened.start_as(tree, definition).await {
        Ok(tree) => tree,
        Err(StartError::Journal(fault)) => return Err(fault.into()),
        Err(error) => return Err(error.into()),
    };
    Ok(Ready { home: home.to_owned(), path, opened, tree, pending_calls })
}

/// The home of an earlier run.
fn run_home(home: &Path, id: &str) -> Result<PathBuf> {
    let path = homes::find(home, id)?;
    if !homes::is_of_exec(&path) {
        ids::find(home, &home::look(home)?, id)?;
        bail!(
            "`{id}` was not started by `exec`: continue it with `{}`",
            crate::hint::command(home, &["resume", id])
        );
    }
    Ok(path)
}

/// Continues the tree of an earlier run.
async fn resume(path: PathBuf) -> Result<Ready> {
    let (opened, pending_calls) = open(&path)?;
    let head = ids::find(&path, opened.journal().as_ref(), "last")?;
    let tree = match opened.resume(head.tree).await {
        Ok(tree) => tree,
        Err(ResumeError::Journal(fault)) => return Err(fault.into()),
        Err(ResumeError::Ended { tree, state }) => {
            bail!("run {} has ended ({state}): start a new one", short(tree))
        }
        Err(error) => return Err(error.into()),
    };
    let home = homes::above(&path).to_owned();
    Ok(Ready { home, path, opened, tree, pending_calls })
}

fn open(path: &Path) -> Result<(Arc<Home>, Arc<PendingCalls>)> {
    let journal = home::write(path)?;
    let pending_calls = Arc::new(PendingCalls::new());
    let driver = Arc::new(GatewayModel::new(Arc::clone(&pending_calls)));
    let opened = Home::open(Arc::new(journal), Drivers::new().with_any_model(driver));
    Ok((Arc::new(opened), pending_calls))
}

/// What was started, for people. A key of the user in it is hidden.
fn goal(program: &[OsString], user: &UserEnvironment) -> String {
    const GOAL_CHARS_MAX: usize = 2_000;
    let words: Vec<String> = program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let goal = user.keys().fold(words.join(" "), |goal, key| goal.replace(key, "[key]"));
    goal.chars().take(GOAL_CHARS_MAX).collect()
}

fn settings(ready: &Ready, options: &RunOptions, user: &UserEnvironment) -> GatewaySettings {
    let (home, tree) = (ready.home.clone(), ready.tree.id());
    GatewaySettings {
        anthropic: UpstreamServer {
            base_url: user.anthropic_base_url.clone(),
            key: user.anthropic_key.clone().map(|key| match key {
                AnthropicKey::ApiKey(text) => UpstreamKey::ApiKey(text),
                AnthropicKey::AuthToken(text) => UpstreamKey::Bearer(text),
            }),
            key_variable: "ANTHROPIC_API_KEY",
        },
        open_ai: UpstreamServer {
            base_url: user.open_ai_base_url.clone(),
            key: user.open_ai_key.clone().map(UpstreamKey::Bearer),
            key_variable: "OPENAI_API_KEY",
        },
        models: ModelRules {
            allowed: options.models.clone(),
            prices: options.prices.clone(),
            prices_of: options.prices_of.clone(),
        },
        child_cost_nanos: options.child_cost_nanos,
        on_limit: options.on_limit(),
        bodies: if options.no_bodies { Bodies::Dropped } else { Bodies::Kept },
        waiting: WaitTimes::default(),
        upstream: Default::default(),
        raise_hint: RaiseHint::new(move |account, short| raise_command(&home, tree, account, short)),
    }
}

/// Says what runs where.
fn head(args: &args::Exec, tree: TreeId, at: SocketAddr) -> String {
    let budget = args.budget_usd.map(|most| format!(" · at most {}", usd(most.nanos()))).unwrap_or_default();
    let name = args.program.first().map(|program| base_name(program)).unwrap_or_default();
    format!("spinney: {name} · tree {}{budget} · gateway on {at}", short(tree))
}

fn cannot_start(program: &OsStr) -> String {
    format!("cannot start {}", base_name(program))
}

/// How long the last calls may take to end: for this time, or until one more signal comes.
async fn time_for_last_calls(patience: Duration, signals: &mut Signals, is_quiet: bool) {
    let time = async {
        sleep(NOTED_AFTER).await;
        if !is_quiet {
            let most = Millis(patience.as_millis() as u64);
            out::note(&format!(
                "spinney: waiting for the last calls to end, to know what they cost (at most {most:#})"
            ));
        }
        sleep(patience.saturating_sub(NOTED_AFTER)).await;
    };
    tokio::select! {
        () = time => {}
        () = signals.again() => {}
    }
}

/// Runs the program to its end, and to the end of everything that it started and wrote.
async fn play(
    start: ProgramStart,
    view_on: Option<Terminal>,
    open_files: Option<u64>,
    tree: &Tree,
    signals: &mut Signals,
) -> Result<End> {
    let (output, streams) = match view_on {
        Some(terminal) => {
            let (output, to) = ProgramOutput::start(terminal.stream)?;
            (Some(output), ProgramStreams::Piped(to))
        }
        None => (None, ProgramStreams::Inherited),
    };
    let running = Program::start(&start, streams, open_files);
    let mut running = running.with_context(|| cannot_start(&start.program))?;
    let end = follow(&mut running, tree, signals).await;
    match end {
        Ok(End::Program(_)) | Err(_) => running.kill().await,
        Ok(End::Tree | End::Interrupted) => running.end().await,
    }
    if let Some(output) = output {
        tokio::select! {
            () = output.end() => {}
            () = signals.again() => {}
        }
    }
    // The file with the run's key.
    drop(start.settings);
    end
}

/// Waits until the run is over.
async fn follow(program: &mut Program, tree: &Tree, signals: &mut Signals) -> Result<End> {
    let mut last: Option<tokio::time::Instant> = None;
    loop {
        tokio::select! {
            // A signal of the terminal may have ended the program, too: the signal says why.
            biased;
            signal = signals.next() => {
                let is_second = last.is_some_and(|last| last.elapsed() < TWICE);
                last = Some(instant());
                match (signal, is_second) {
                    (_, true) => {
                        program.kill().await;
                        return Ok(End::Interrupted);
                    }
                    (Asked::Terminated, false) => return Ok(End::Interrupted),
                    // It ends, or handles it and goes on.
                    (Asked::Interrupted, false) => program.interrupt(),
                }
            }
            status = program.wait() => return Ok(End::Program(status?)),
            _ = tree.ended() => return Ok(End::Tree),
        }
    }
}
