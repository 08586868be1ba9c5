//! `spinney run`: reads a tree file, starts the tree and follows it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use spinney::clock::{Clock as _, SystemClock};
use spinney::rng::Rng;
use spinney::tree::Stopped;
use spinney::{Home, StartError};
use spinney_journal::Journal;
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{Seq, Time};

use super::detach;
use super::mcp_install::check_installed;
use crate::display::Display;
use crate::error_text::setting;
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::follow::{Follow, follow};
use crate::interrupt::Interrupts;
use crate::permission::{agree_to_boxes, agree_to_egress, ask_about_changes, trust_home};
use crate::result::failed_unseen;
use crate::{args, explain};
use spinney_host::caller_trace;
use spinney_host::defaults::Sourced;
use spinney_host::explain::Explanation;
use spinney_host::home::side_journals::{self, JournalToStart};
use spinney_host::notify::Notifier;
use spinney_host::prepared::{PreparedTree, StartRequest};
use spinney_host::project::UsersSetting;
use spinney_host::tree_file::providers::Scripted;
use spinney_host::trust::foreign_home;
use spinney_host::{OpenHome, OwnDrivers};
use spinney_server::control::Listening;
use spinney_server::programs::ProgramGateways;
use spinney_terminal::{Terminal, out};
use spinney_view::boxes::WeakBox;
use spinney_view::wording::{counted, one_line, short_id};

/// Runs a tree file to its end.
pub(super) async fn run(home: Sourced<&Path>, args: args::Run, terminal: Terminal) -> Result<Exit> {
    if args.explain {
        return explain(&home, &args.file, &args.given, args.json, terminal);
    }
    if args.detach {
        return detach::start_apart(home.value).await;
    }
    let (path, style) = (home.value, if args.json { Style::Json } else { Style::Lines });
    let display =
        Display::for_terminal(terminal, style, args.plain).with_text(args.text).as_chat(args.is_chat);
    match start(path, args, style, display).await {
        Ok(started) => follow(started).await,
        Err(error) => Err(failed_unseen(style, path, None, error).await),
    }
}

/// Starts the tree of a file.
async fn start(path: &Path, args: args::Run, style: Style, display: Display) -> Result<Follow> {
    let request = StartRequest { trace: caller_trace(), ..start_request(&args.file, &args.given) };
    let now = Time(SystemClock::new().now_ms());
    let mut prepared = PreparedTree::read(path, &request, &OwnDrivers::default(), now)?;
    if args.keep {
        prepared.keep()?;
    }
    check_installed(&prepared.definition, &args.file)?;
    agree_to_egress(&prepared.source.text, &prepared.egress, &prepared.allowed)?;
    agree_to_boxes(&prepared.source.text, &prepared.box_needs, &prepared.allowed_boxes)?;
    if let Some(question) = foreign_home::for_new_tree(path, &prepared.does()).await? {
        trust_home(question, args.trusted.trust())?;
    }
    prepared.check_program_keys()?;
    prepared.permit_boxes();
    ask_about_changes(&prepared.source.boxed.servers);
    let id = Rng::fresh().tree_id(now.0);
    let JournalToStart { folder: path, journal } = match args.detached {
        // Nobody else needs the home's own journal for it, and its log goes with it.
        true => side_journals::make(path, id).await?,
        false => side_journals::open_to_start(path, id).await?,
    };
    let listening = listen(&path)?;
    let open = open_home(&path, Arc::new(journal), display);
    let (name, scripted) = (prepared.definition.name.clone(), prepared.source.scripted());
    note_boxes(&WeakBox::all(&prepared.definition));
    note_servers(&prepared.definition);
    let command = args.told.or(prepared.defaults.configuration.notify());
    // Before anything is called: from then on an interrupt stops cleanly.
    let interrupts_of = if args.detached { Interrupts::detached } else { Interrupts::listen };
    let interrupts = interrupts_of(Arc::clone(open.home()), &path, id)?;
    let tree = open.start_own(id, prepared, request.trace).await.map_err(|error| {
        let error = match error {
            StartError::Journal(fault) => anyhow::Error::new(fault),
            StartError::Shutdown => return Stopped::Shutdown.into(),
            other => other.into(),
        };
        error.context(args.file.display().to_string())
    })?;
    if !args.detached {
        let what = format!("{} · tree {}", one_line(&name, 60), short_id(tree.id()));
        // The tree runs: if the output has no reader, the follower notices and stops the tree cleanly.
        let _ = head(style, display, &what, &scripted);
    }
    if args.detached {
        detach::leave(&path, tree.id())?;
    }
    let notifier = Notifier::watch(command.as_ref(), &tree, Seq(0), &name, &path);
    let stays = args.detached;
    Ok(Follow { open, path, tree, style, past: Seq(0), listening, interrupts, display, notifier, stays })
}

/// A home for trees with programs, and with their text from the start where it is shown.
pub(super) fn open_home(path: &Path, journal: Arc<dyn Journal>, display: Display) -> Arc<OpenHome> {
    let set = |home: Home| {
        let home = home.with_programs(Arc::new(ProgramGateways::default()));
        if display.uses_text() { home.with_first_text() } else { home }
    };
    Arc::new(OpenHome::new_with(path, journal, set))
}

/// Shows every option of a run and starts nothing.
pub(super) fn explain(
    home: &Sourced<&Path>,
    file: &Path,
    given: &args::Given,
    is_json: bool,
    terminal: Terminal,
) -> Result<Exit> {
    let request = start_request(file, given);
    let explanation = Explanation::of_tree(home, &request, &OwnDrivers::default())?;
    explain::write(&explanation, is_json, terminal)?;
    Ok(Exit::Completed)
}

/// What a command line says about the start of a tree file.
pub(super) fn start_request<'a>(file: &'a Path, given: &'a args::Given) -> StartRequest<'a> {
    StartRequest {
        given: given.values(),
        scripts: given.scripts(),
        hosts: &given.allowed.allow_host,
        boxes: &given.boxes.allow_box,
        setting: run_setting,
        ..StartRequest::new(file)
    }
}

/// The command that changes a setting, in a sentence.
fn run_setting(change: &UsersSetting) -> String {
    format!("run `{}`", setting(change))
}

/// Says what runs, and whether no model is called. JSON has the rest of this in its events.
pub(super) fn head(style: Style, display: Display, what: &str, scripted: &Scripted) -> Result<()> {
    if display.is_silent {
        return Ok(());
    }
    if display.is_live {
        // The live view has the rest.
        return Ok(scripted.note().map_or(Ok(()), |note| out::line(&format!("{note}\n")))?);
    }
    match (style, scripted.note()) {
        (Style::Json, None) => {}
        (Style::Json, Some(note)) => out::note(&note),
        (Style::Lines | Style::Log, None) => out::line(&format!("{what}\n"))?,
        (Style::Lines | Style::Log, Some(note)) => out::line(&format!("{what}\n{note}\n"))?,
    }
    Ok(())
}

/// Says which commands run in a weaker box, or in none.
pub(super) fn note_boxes(weak: &[WeakBox]) {
    weak.iter().for_each(|weak| out::note(&format!("WEAK BOX: {weak}")));
}

/// Says which servers of tools are started, because the tree waits for them.
fn note_servers(definition: &Definition) {
    let names: Vec<&str> = definition.used_servers().map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        out::note(&format!(
            "starting {} of tools: {}",
            counted(names.len() as u64, "server"),
            names.join(", ")
        ));
    }
}

/// Opens the socket by which other processes steer this one.
pub(super) fn listen(path: &Path) -> Result<Listening> {
    Listening::bind(path).with_context(|| format!("cannot listen for requests in {}", path.display()))
}
