//! `spinney exec`: runs another agent program under a budget. Its model calls go through a gateway on this
//! machine, and each becomes a call of a tree in its own home.

use std::ffi::OsStr;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use spinney::Tree;
use spinney::clock::{Clock as _, SystemClock, instant};
use spinney::tree::{Stopped, TreeSnapshot};
use spinney_drivers::processes::hide_from_programs;
use spinney_host::caller_trace;
use spinney_host::defaults::{OptionSource, Sourced};
use spinney_host::exec::OwnSandbox;
use spinney_host::exec::boxed::ProgramBox;
use spinney_host::exec::codex::WebSearch;
use spinney_host::exec::options::RunOptions;
use spinney_host::exec::other_keys;
use spinney_host::exec::prepared_run::PreparedRun;
use spinney_host::exec::program::{BoxedStart, Program, ProgramStart, ProgramStreams, base_name, known_as};
use spinney_host::explain::{Explanation, ProgramRequest};
use spinney_host::home::ids::TreeInHome;
use spinney_host::notify::Notifier;
use spinney_host::trust::foreign_home::{self, OldTreeTrust};
use spinney_host::user::configuration::NotifyCommand;
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{Millis, TreeId};
use spinney_kernel::record::{Failure, FailureCode};
use spinney_kernel::world::Halt;
use spinney_server::exec::{
    CeilingReached, ExecReport, GivenUpCalls, LastInterrupt, ProgramConnections, RunEnd, RunExit, RunTree,
    StartRun, StoredRun, allow_many_connections, finish, follow_ledger, gateway_settings, home_of_run,
    on_limit, root, settle,
};
use spinney_server::gateway::{Gateway, GatewaySocket};
use spinney_terminal::out::{self, Unwritten};
use spinney_terminal::relay::{self, TerminalRelay};
use spinney_terminal::{Colours, Terminal};
use spinney_view::RunLedger;
use spinney_view::costs::Costs;
use spinney_view::remedy::Remedy;
use spinney_view::result::{FAILED, ResultError};
use spinney_view::wording::short_id;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::run::listen;
use crate::args;
use crate::error_text::{in_words, of_prepared_run, of_run_tree};
use crate::exec::allowed_fields;
use crate::exec::ended_run::report_ended;
use crate::exec::notices::notices;
use crate::exec::report::{ShownReport, write_not_started};
use crate::exec::signals::{Signals, StopSignal};
use crate::exec::view::{self, ProgramOutput, RunView};
use crate::exit::Exit;
use crate::explain;
use crate::permission::trust_home;

/// How long calls may take to end after the program has: the provider's last word says what they cost.
const LAST_CALLS: Duration = Duration::from_secs(60);
/// The same after an interrupt.
const LAST_CALLS_INTERRUPTED: Duration = Duration::from_secs(5);
/// A wait for them that is shorter is not worth a line.
const NOTED_AFTER: Duration = Duration::from_secs(1);
/// Two interrupts within this time end everything at once.
const TWICE: Duration = Duration::from_secs(5);

/// Hosts that a box refused and that are named at the end.
const NAMED_HOSTS_MAX: usize = 5;

/// How long a signal of the terminal may take to be seen here after it ended the program.
const SIGNALS_LATE: Duration = Duration::from_millis(20);

pub(super) async fn exec(home: Sourced<&Path>, args: args::Exec, colour: Colours) -> Result<Exit> {
    if args.explain {
        return explain(&home, &args, Terminal::of_output(colour));
    }
    let (home, is_json) = (home.value, args.json);
    // Without a terminal to draw on, the program runs as without the option.
    let view_on = args.live.then(|| view::terminal(colour)).flatten();
    match run(home, args, view_on).await {
        Err(error) if is_json && !error.is::<Unwritten>() => match write_not_started(home, &error).await {
            Ok(()) => Err(error),
            Err(unwritten) => Err(unwritten.into()),
        },
        ended => ended,
    }
}

/// Starts or resumes the tree, if the person trusts its home.
async fn tree(
    prepared: &PreparedRun,
    home: &Path,
    resumed: Option<StoredRun>,
    args: &args::Exec,
) -> Result<RunTree> {
    let PreparedRun { program, user, options, starts, .. } = prepared;
    let (given, parallel) = (args.given_ceilings(), args.max_parallel);
    let ready = match resumed {
        Some(stored) => {
            if let OldTreeTrust::Ask(question) = stored.trust(options, starts).await? {
                trust_home(*question, args.trusted.trust())?;
            }
            stored.resume(options, &given, parallel).await
        }
        None => {
            if let Some(question) = foreign_home::for_new_tree(home, starts).await? {
                trust_home(question, args.trusted.trust())?;
            }
            let (ceilings, trace) = (prepared.ceilings(&given), caller_trace());
            let tags = args.tag.iter().cloned().collect();
            RunTree::start(StartRun { home, program, options, user, ceilings, parallel, tags, trace }).await
        }
    };
    ready.map_err(|error| of_run_tree(home, error))
}

async fn run(home: &Path, args: args::Exec, view_on: Option<Terminal>) -> Result<Exit> {
    let mut resumed = None;
    if let Some(id) = args.resume.as_deref() {
        let unresumed = |error| of_run_tree(home, error);
        let path = home_of_run(home, id).await.map_err(unresumed)?;
        if let Some(exit) = report_ended(&path, &args).await? {
            return Ok(exit);
        }
        resumed = Some(StoredRun::read(path).await.map_err(unresumed)?);
    }
    hide_from_programs()?;
    let kept = match &resumed {
        Some(stored) => Some(stored.options().await?),
        None => None,
    };
    let prepared = PreparedRun::read(home, kept, &args.run_options()).map_err(of_prepared_run)?;
    let boxed = prepared_box(&prepared, home).await?;
    let sandbox = if boxed.is_some() { OwnSandbox::Off } else { OwnSandbox::AsSet };
    let open_files = allow_many_connections();
    let socket = GatewaySocket::bind(prepared.options.listen).await?;
    let ready = tree(&prepared, home, resumed, &args).await?;
    let PreparedRun { configuration, user, options, asked, .. } = prepared;
    let program = asked.program().to_owned();
    let program = program.as_os_str();
    let listening = listen(&ready.path)?;
    let ledger = follow_ledger(&ready.tree);
    let given_up = GivenUpCalls::default();
    let known_as = known_as(program);
    let ask = allowed_fields::asked_at_terminal(&known_as, view_on.is_some());
    let settings = gateway_settings(&options, &configuration, &user, &known_as, ask)?;
    let search = WebSearch::from_permitted(&settings.permitted);
    let notices = notices(ready.home.clone(), ready.tree.id(), on_limit(&options), view_on, given_up.clone());
    let gateway =
        Gateway::start(ready.tree.clone(), Arc::clone(&ready.pending_calls), settings, notices, socket)
            .await?;
    let server = listening.serve_program(Arc::clone(&ready.opened), ready.tree.clone());
    let (tree, at) = (ready.tree.id(), gateway.address());
    let budget = root(&ready.tree).await.and_then(|root| root.limit).unwrap_or(Ceilings::NONE);
    if !args.json {
        out::note(&head(program, tree, &budget, at));
    }
    note_missing_budget(&budget);
    let hidden = hidden_keys(&options);
    let notify = args.told.or(configuration.notify());
    let notifier = watch_for_user(notify.as_ref(), &ready, program);
    let start = asked.start(at, gateway.key().text(), &user, hidden, &ready.path, search, sandbox);
    let began = SystemClock::new().now_ms();
    let mut signals = Signals::listen()?;
    let view = view_on.map(|terminal| RunView::start(&ready.tree, &ready.path, terminal)).transpose()?;
    let connections = connections_of(boxed.is_some(), &ready.tree).await;
    let boxed = boxed.map(|prepared| to_start(prepared, at, connections.as_ref()));
    let end = match start.with_context(|| cannot_start(program)) {
        Ok(start) => {
            let to_play = ToPlay { start, boxed, view_on, open_files };
            play(to_play, &ready.tree, &gateway, &mut signals).await
        }
        Err(error) => Err(error),
    };
    finish_connections(connections).await;
    if end.is_ok() && view_on.is_none() {
        out::below_a_program();
    }
    let patience = if matches!(end, Ok(RunEnd::Program(_))) { LAST_CALLS } else { LAST_CALLS_INTERRUPTED };
    let requests = gateway.requests();
    let ceiling = CeilingReached::new(&given_up, &gateway);
    let report = gateway.close(time_for_last_calls(patience, &mut signals, args.json)).await;
    if let Some(view) = view {
        view.end().await;
    }
    // An ended agent has no ceiling any more.
    let budget = root(&ready.tree).await.and_then(|root| root.limit).unwrap_or(budget);
    let exit = match end {
        Ok(end) => settle(&ready.tree, &end, ceiling).await,
        Err(error) => {
            let failure = Failure { code: FailureCode::NotStarted, message: in_words(&error) };
            finish(&ready.tree, Err(failure)).await;
            server.close().await;
            ready.close().await?;
            notifier.end().await;
            return Err(error);
        }
    };
    server.close().await;
    let elapsed_ms = SystemClock::new().now_ms().saturating_sub(began);
    let report = ExecReport {
        tree: Some(tree),
        state: FAILED.as_str(),
        end: None,
        agents: Vec::new(),
        costs: None,
        budget,
        requests: Some(requests),
        gateway: report,
        exit,
        elapsed_ms,
        error: None,
    };
    let exit = conclude(&ready, ledger, report, given_up.last(), args.json).await?;
    notifier.end().await;
    Ok(exit)
}

/// Starts the user's command when the tree waits, halts or ends.
fn watch_for_user(command: Option<&NotifyCommand>, ready: &RunTree, program: &OsStr) -> Notifier {
    Notifier::watch(command, &ready.tree, ready.past, &base_name(program), &ready.home)
}

/// The box of a run that should have one, before anything is started.
async fn prepared_box(prepared: &PreparedRun, home: &Path) -> Result<Option<ProgramBox>> {
    let Some(options) = &prepared.options.boxed else { return Ok(None) };
    Ok(Some(ProgramBox::prepare(options, prepared.asked.program(), home).await?))
}

fn to_start(prepared: ProgramBox, gateway: SocketAddr, to: Option<&ProgramConnections>) -> BoxedStart {
    let connections = to.map(ProgramConnections::log).unwrap_or_default();
    BoxedStart { prepared, gateway, terminal_size: relay::size(), connections }
}

async fn finish_connections(connections: Option<ProgramConnections>) {
    if let Some(connections) = connections {
        connections.finish().await;
    }
}

/// Those of a program in a box.
async fn connections_of(is_boxed: bool, tree: &Tree) -> Option<ProgramConnections> {
    let root = if is_boxed { root(tree).await } else { None };
    Some(ProgramConnections::record(tree.clone(), root?.agent))
}

/// Stops the tree of a run and reports it, from its journal if that can be trusted.
async fn conclude(
    ready: &RunTree,
    ledger: JoinHandle<RunLedger>,
    mut report: ExecReport,
    given_up: Option<Halt>,
    is_json: bool,
) -> Result<Exit> {
    let read = match ready.close().await {
        Ok(()) => read_whole(ready).await,
        Err(stopped) => Err(stopped.into()),
    };
    match read {
        Ok((snapshot, costs)) => {
            report.end = snapshot.end.as_ref().map(|end| end.exit.to_string());
            (report.state, report.agents, report.costs) =
                (snapshot.state.as_str(), snapshot.agents, Some(costs));
        }
        Err(error) => {
            report.agents = ledger.await?.agents_at_resume();
            let code = if matches!(error.downcast_ref(), Some(Stopped::Bug)) { "bug" } else { "journal" };
            let (code, message) = (code.to_owned(), in_words(&error));
            report.error = Some(ResultError { code, message, remedy: Remedy::FixCause, numbers: None });
            report.exit = RunExit::Failed;
        }
    }
    let place = TreeInHome { home: &ready.home, tree: ready.tree.id() };
    ShownReport { place, report: &report, given_up }.write(is_json)?;
    Ok(Exit::of_run(report.exit))
}

async fn read_whole(ready: &RunTree) -> Result<(TreeSnapshot, Costs)> {
    let snapshot = ready.tree.snapshot().await.map_err(|error| anyhow!("{error}"))?;
    Ok((snapshot, Costs::read(ready.opened.journal().as_ref(), ready.tree.id()).await?))
}

/// Shows every option of a run and starts nothing.
fn explain(home: &Sourced<&Path>, args: &args::Exec, terminal: Terminal) -> Result<Exit> {
    let on_limit = args.on_limit.map_or(OptionSource::Default, |_| OptionSource::CommandLine);
    let request = ProgramRequest {
        run: args.run_options(),
        ceilings: args.given_ceilings(),
        max_parallel: args.max_parallel,
        on_limit,
    };
    explain::write(&Explanation::of_program(home, &request)?, args.json, terminal)?;
    Ok(Exit::Completed)
}

/// Says what runs where.
fn head(program: &OsStr, tree: TreeId, budget: &Ceilings, at: SocketAddr) -> String {
    let most = |resource: Resource| Some(format!("{:#}", resource.amount(budget.get(resource)?)));
    let most: Vec<String> = Resource::ALL.into_iter().filter_map(most).collect();
    let budget = if most.is_empty() { String::new() } else { format!(" · at most {}", most.join(", ")) };
    format!("spinney: {} · tree {}{budget} · gateway on {at}", base_name(program), short_id(tree))
}

fn note_missing_budget(budget: &Ceilings) {
    if budget.bounded().is_empty() {
        out::note(
            "spinney: no budget: this run may spend any amount. Set a ceiling with --budget-usd, --tokens or --steps",
        );
    }
}

/// The keys of other providers that the program must not find. Those that it finds are listed.
fn hidden_keys(options: &RunOptions) -> Vec<String> {
    let keys = other_keys::in_environment();
    if options.hide_keys || keys.is_empty() {
        return keys;
    }
    let names = keys.join(", ");
    out::note(&format!(
        "spinney: the program can see other providers' keys: {names}. Calls made with them are outside this budget; --hide-keys removes them"
    ));
    Vec::new()
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

/// A program with everything that it is started with.
struct ToPlay {
    start: ProgramStart,
    boxed: Option<BoxedStart>,
    view_on: Option<Terminal>,
    open_files: Option<u64>,
}

/// Runs the program to its end, and to the end of everything that it started and wrote.
async fn play(
    ToPlay { start, boxed, view_on, open_files }: ToPlay,
    tree: &Tree,
    gateway: &Gateway,
    signals: &mut Signals,
) -> Result<RunEnd> {
    let (output, streams) = match view_on {
        Some(terminal) => {
            let (output, to) = ProgramOutput::start(terminal.stream)?;
            (Some(output), ProgramStreams::Piped(to))
        }
        None => (None, ProgramStreams::Inherited),
    };
    let running: Result<Program> = match boxed {
        Some(boxed) => Program::start_boxed(&start, streams, open_files, boxed).map_err(Into::into),
        None => Program::start(&start, streams, open_files).map_err(Into::into),
    };
    let mut running = running.with_context(|| cannot_start(&start.program))?;
    let mut relay = match running.take_terminal() {
        Some(terminal) => terminal.terminal().await?.map(TerminalRelay::start).transpose()?,
        None => None,
    };
    let end = follow(&mut running, tree, gateway, signals).await;
    match end {
        Ok(RunEnd::Program(_)) | Err(_) => running.kill().await,
        Ok(RunEnd::Tree | RunEnd::Interrupted) => running.end().await,
    }?;
    let shown = async {
        if let Some(output) = output {
            output.end().await;
        }
        if let Some(relay) = &mut relay {
            relay.end().await;
        }
    };
    tokio::select! {
        () = shown => {}
        () = signals.again() => {}
    }
    drop(relay);
    note_refused(&running);
    if let Some(changes) = running.changes().await {
        out::note(&format!("spinney: {changes}"));
    }
    // The file with the run's key.
    drop(start.settings);
    end
}

/// The connections that a box refused, each host once.
fn note_refused(program: &Program) {
    let (refused, more) = program.refused_connections();
    let mut named: Vec<String> = Vec::new();
    for connection in refused.iter().filter(|connection| !connection.host.is_empty()) {
        let name = format!("{}:{}", connection.host, connection.port);
        if !named.contains(&name) {
            named.push(name);
        }
    }
    if named.is_empty() {
        return;
    }
    let others = named.len().saturating_sub(NAMED_HOSTS_MAX);
    named.truncate(NAMED_HOSTS_MAX);
    let others = if others > 0 || more > 0 { " and others" } else { "" };
    let first = &named[0];
    out::note(&format!(
        "spinney: the box refused connections to {}{others}; allow one with --allow-host {first}",
        named.join(", ")
    ));
}

/// Waits until a moment, or forever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Waits until the run is over.
async fn follow(
    program: &mut Program,
    tree: &Tree,
    gateway: &Gateway,
    signals: &mut Signals,
) -> Result<RunEnd> {
    let mut last: Option<LastInterrupt> = None;
    loop {
        tokio::select! {
            // A signal of the terminal may also have ended the program: the signal says why.
            biased;
            signal = signals.next() => {
                let is_second = last.is_some_and(|last| last.age(instant()) < TWICE);
                last = Some(LastInterrupt::new(instant()));
                match (signal, is_second) {
                    (_, true) => {
                        program.kill().await?;
                        return Ok(RunEnd::Interrupted);
                    }
                    (StopSignal::Terminated, false) => return Ok(RunEnd::Interrupted),
                    // It ends, or handles it and continues.
                    (StopSignal::Interrupted, false) => program.interrupt(),
                }
            }
            () = at(last.and_then(LastInterrupt::counts_at)) => {
                if let Some(last) = &mut last {
                    last.count(gateway.calls_asked());
                }
            }
            status = program.wait() => {
                let (status, now) = (status?, instant());
                let was_asked = last.is_some_and(|last| last.is_cause(now, gateway.calls_asked()));
                let is_interrupted = was_asked
                    || (program.may_precede_signals() && signals.came_within(SIGNALS_LATE).await);
                return Ok(if is_interrupted { RunEnd::Interrupted } else { RunEnd::Program(status) });
            }
            _ = tree.ended() => return Ok(RunEnd::Tree),
        }
    }
}
