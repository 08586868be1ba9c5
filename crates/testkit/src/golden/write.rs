//! Writes golden journals: the real runtime runs each scene with paused time.

use std::sync::Arc;
use std::time::Duration;

use spinney::clock::Clock;
use spinney::request::Replan;
use spinney::tree::{OpenQuestion, RequestError, verify};
use spinney::{Home, Shutdown, Tree, TreeFile};
use spinney_journal::{Blocking, ChainHash, Journal, mended};
use spinney_kernel::budget::Amounts;
use spinney_kernel::context::Contexts;
use spinney_kernel::definition::{
    Approval, Definition, FolderGrants, Network, RUN_COMMAND, RememberedApproval, SubjectPattern,
};
use spinney_kernel::port::FolderAccess;
use spinney_kernel::primitives::{Actor, FolderPath, Running, Seq, TreeId};
use spinney_kernel::record::{ContinuedAs, PlanChange};
use spinney_kernel::rules::request::{Raise, Redirect};
use spinney_kernel::world::World;

use super::Ending;
use super::command::GoldenCommand;
use super::scene::{Act, Scene, SceneCommands, ScenePlan};
use crate::clock::SteadyClock;
use crate::fixture::parse;
use crate::{TestHome, definition};

/// A golden journal, as its two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// One batch per line, as it is stored.
    pub lines: String,
    /// Its final state, as JSON.
    pub ending: String,
}

/// Runs a scene and writes its journal. Tokio's time must be paused.
///
/// # Errors
/// Why the scene could not be run.
pub async fn write(scene: &Scene) -> Result<Golden, String> {
    let mut stage = TestHome::new(scene.script);
    let mut definition = match scene.plan {
        ScenePlan::Fixture(agents) => definition(agents),
        ScenePlan::File(text) => {
            TreeFile::parse("scene.yaml", text)
                .map_err(|error| format!("{}: {error}", scene.name))?
                .definition
        }
    };
    match scene.commands {
        SceneCommands::None => {}
        SceneCommands::Asked => {
            stage = stage.with_tool(RUN_COMMAND, GoldenCommand);
            grant(&mut definition);
        }
    }
    let clock: Arc<dyn Clock> = Arc::new(SteadyClock::new());
    let mut home = stage.home_on(Arc::clone(&clock));
    let mut tree = home.start(definition).await.map_err(|error| error.to_string())?;
    for act in scene.acts {
        match act {
            Act::Crash => {
                home.shutdown(Shutdown::Kill).await;
                home = stage.home_on(Arc::clone(&clock));
                tree = home.resume(tree.id()).await.map_err(|error| error.to_string())?;
            }
            Act::Continue => {
                tree.ended().await;
                let id = home.draw_id();
                home.continue_ended(id, tree.id(), ContinuedAs::Before)
                    .await
                    .map_err(|error| error.to_string())?;
                tree = home.resume(id).await.map_err(|error| error.to_string())?;
            }
            act => play(&tree, act).await.map_err(|error| format!("{}: {error}", scene.name))?,
        }
    }
    let id = tree.id();
    tree.ended().await;
    shut(home).await;
    written(stage.journal().as_ref(), id)
}

/// What agents of a scene with commands may do.
fn grant(definition: &mut Definition) {
    let book: FolderPath = parse("/srv/book");
    for (name, role) in &mut definition.roles {
        if let Some(turns) = &mut role.turns {
            turns.approvals = [(parse(RUN_COMMAND), Approval::Ask)].into_iter().collect();
        }
        let is_first = *name == definition.entry;
        let access = if is_first { FolderAccess::Write } else { FolderAccess::Read };
        role.caps.folders = Some(FolderGrants::default().with(book.clone(), access));
        let hosts = is_first.then(|| parse("*.example.org"));
        role.caps.network = Network::hosts(hosts);
    }
}

async fn shut(home: Home) {
    home.shutdown(Shutdown::Kill).await;
}

async fn play(tree: &Tree, act: &Act) -> Result<(), RequestError> {
    match *act {
        Act::Crash | Act::Continue => Ok(()),
        Act::Pass(ms) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(())
        }
        Act::Settle => {
            tree.settled().await;
            Ok(())
        }
        Act::Answer(text) => match tree.snapshot().await?.questions.first() {
            Some(question) => tree.answer(question.question, text).await,
            None => Ok(()),
        },
        Act::Always(scope, command) => match tree.snapshot().await?.questions.first() {
            Some(OpenQuestion { question, offers: Some(offers), .. }) => {
                let exact = command.map(|command| SubjectPattern::Exact(command.to_owned()));
                let pattern = exact.unwrap_or_else(|| offers.clone());
                tree.answer_always(*question, RememberedApproval { scope, pattern }).await
            }
            _ => Ok(()),
        },
        Act::Raise(agent, nanos) => {
            tree.raise(Raise { agent: parse(agent), add: Amounts::cost(nanos), add_ms: 0 }).await
        }
        Act::AddTime(agent, add_ms) => {
            tree.raise(Raise { agent: parse(agent), add: Amounts::ZERO, add_ms }).await
        }
        Act::Cancel(agent) => tree.cancel(parse(agent), "no longer needed").await,
        Act::Pause(agent) => tree.pause(parse(agent)).await,
        Act::Unpause(agent) => tree.unpause(parse(agent)).await,
        Act::Send(agent, text) => tree.send(parse(agent), text).await,
        Act::Redirect(agent, instruction, running) => {
            tree.redirect(Redirect {
                agent: parse(agent),
                instruction: instruction.to_owned(),
                tokens: None,
                running,
            })
            .await
        }
        Act::Instruct(text, running) => {
            let change = PlanChange::Instruct { text: text.to_owned(), steps: Vec::new() };
            replan(tree, change, running).await
        }
        Act::Skip(step) => {
            replan(tree, PlanChange::Skip { steps: vec![parse(step)] }, Running::Finishes).await
        }
    }
}

async fn replan(tree: &Tree, change: PlanChange, running: Running) -> Result<(), RequestError> {
    let replan = Replan { agent: parse("pipeline"), change, running };
    tree.request(Actor::PERSON, replan).await.map(drop)
}

fn written(journal: &dyn Journal, tree: TreeId) -> Result<Golden, String> {
    let verified = verify(journal, tree, None).wait().map_err(|error| error.to_string())?;
    let head = journal.head(tree).wait().map_err(|fault| fault.to_string())?;
    let seed = head.map_or(tree, |head| head.seed);
    let (mut world, mut contexts) = (World::new(seed), Contexts::new(seed));
    let (mut hash, mut lines) = (ChainHash::start(seed), String::new());
    loop {
        let page = journal.read(tree, world.seq(), 64).wait().map_err(|fault| fault.to_string())?;
        if page.is_empty() {
            break;
        }
        for mut entry in page {
            for event in &entry.batch.events {
                world.apply(event);
                contexts.apply(event);
            }
            entry.batch.fold();
            let line = serde_json::to_string(&entry.batch).map_err(|error| error.to_string())?;
            hash = next(hash, entry.after, &line, entry.hash)?;
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    let contexts =
        mended(journal, tree, contexts, Contexts::new(seed)).wait().map_err(|fault| fault.to_string())?;
    let ending = Ending::at(seed, &world, &contexts, verified.rules, hash);
    let mut ending = serde_json::to_string_pretty(&ending).map_err(|error| error.to_string())?;
    ending.push('\n');
    Ok(Golden { lines, ending })
}

/// The next hash of the chain, if the line equals what the store holds.
fn next(hash: ChainHash, after: Seq, line: &str, stored: ChainHash) -> Result<ChainHash, String> {
    let next = hash.then(after, line.as_bytes());
    if next == stored {
        Ok(next)
    } else {
        Err(format!("the store keeps another text after event {}", after.0))
    }
}
