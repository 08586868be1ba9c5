//! `spinney run`: reads a tree file, keeps a copy, starts the tree and follows it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use spinney::tree_file::{InputError, Severity};
use spinney::{Home, StartError};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::Definition;
use spinney_kernel::words::Seq;

use crate::control::Listening;
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::follow::shown::Display;
use crate::follow::{Follow, follow};
use crate::home::ids::short;
use crate::home::tree_copies;
use crate::result::{Outcome, failed};
use crate::terminal::wording::one_line;
use crate::terminal::{Terminal, out};
use crate::tree_file::problems::Problems;
use crate::tree_file::providers::Scripted;
use crate::tree_file::source;
use crate::tree_file::source::{Scripts, Source};
use crate::{args, home};

/// Runs a tree file to its end.
pub(super) async fn run(path: &Path, args: args::Run, terminal: Terminal) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    let display = Display::of(terminal, style, args.plain);
    match start(path, args, style, display).await {
        Ok(started) => follow(started).await,
        Err(error) => Err(failed(style, |failure| Outcome::without_a_look(path, None, failure), error)),
    }
}

/// Starts the tree of a file.
async fn start(path: &Path, args: args::Run, style: Style, display: Display) -> Result<Follow> {
    let scripts = if args.given.allow_outside { Scripts::Anywhere } else { Scripts::Below };
    let source = source::read(&args.file, path, scripts)?;
    let definition = adjusted(&source, &args.given).map_err(|errors| {
        let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!("{}: {}", args.file.display(), said.join("\n"))
    })?;
    if definition.goal.trim().is_empty() {
        bail!("{} has no goal: add a `goal`, or use --goal", args.file.display());
    }
    let problems = source.file.check(&definition);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(Problems::errors_of(path, &args.file, problems).into());
    }
    let journal = home::write(path)?;
    let listening = listen(path)?;
    let home = Arc::new(Home::open(Arc::new(journal), source.drivers.clone()));
    let id = home.draw_id();
    tree_copies::keep(path, id, &source)?;
    let name = definition.name.clone();
    let started = home.start_as(id, definition).await;
    home::settle(path, home.journal().as_ref());
    let tree = match started {
        Ok(tree) => tree,
        Err(error) => {
            let error = match error {
                StartError::Journal(fault) => anyhow::Error::new(fault),
                other => other.into(),
            };
            return Err(error.context(args.file.display().to_string()));
        }
    };
    let scripted = source.scripted();
    head(style, display, &format!("{} · tree {}", one_line(&name, 60), short(tree.id())), &scripted)?;
    Ok(Follow { home, path: path.to_owned(), tree, style, past: Seq(0), listening, display })
}

/// The definition of a file with what the command line says: inputs, and values that stand in place of the file's.
pub(super) fn adjusted(source: &Source, given: &args::Given) -> Result<Definition, Vec<InputError>> {
    let mut definition = source.file.clone().with_inputs(&given.set, &variable)?.definition;
    override_with(&mut definition, given);
    Ok(definition)
}

pub(super) fn override_with(definition: &mut Definition, given: &args::Given) {
    if let Some(goal) = &given.goal {
        definition.goal.clone_from(goal);
    }
    if let Some(most) = given.budget_usd {
        definition.budget.limit = definition.budget.limit.with(Resource::Cost, most.nanos());
    }
}

/// A variable of the environment that the file names as an input.
#[expect(clippy::disallowed_methods, reason = "the file asks for it by name")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Says what runs, and whether no model is called. JSON has the rest of this in its events.
pub(super) fn head(style: Style, display: Display, what: &str, scripted: &Scripted) -> Result<()> {
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

/// Opens the socket by which other processes steer this one.
pub(super) fn listen(path: &Path) -> Result<Listening> {
    Listening::bind(path).with_context(|| format!("cannot listen for requests in {}", path.display()))
}
