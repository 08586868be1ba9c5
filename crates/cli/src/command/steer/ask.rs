//! `spinney ask`: a message to an agent, and its answer.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use spinney::tree::{Stored, stored};
use spinney_host::control::steering::{does_run, has_agent, may_run, meant, stored_state};
use spinney_host::control::{Continues, SteerReply};
use spinney_host::following::rests;
use spinney_host::home::ids::{NamedTree, RedactedTree, TreeInHome};
use spinney_journal::Journal;
use spinney_kernel::primitives::{AgentId, Body, Seq};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_terminal::{Terminal, out};
use spinney_view::agent_answer::AgentAnswers;
use tokio::time::timeout;

use super::send::{Sent, deliver};
use super::whom;
use crate::args;
use crate::command::resume;
use crate::exit::Exit;
use crate::hint::next_step;
use crate::result::{Outcome, answerable, question_texts};

/// How often a tree is taken up whose process ends without an answer.
const TAKE_UPS_MAX: u32 = 8;
/// How often to look whether a process still runs the tree.
const LOOK: Duration = Duration::from_secs(1);

pub(in crate::command) async fn ask(home: &Path, args: args::Ask, terminal: Terminal) -> Result<Exit> {
    check_recipient_lives(home, &args.send).await?;
    let Sent { place, to, past, done, .. } = deliver(home, &args.send).await?;
    let mut is_run_elsewhere = match done {
        SteerReply::Refused { message, .. } | SteerReply::Failed { message } => bail!("{message}"),
        SteerReply::Done { continues, .. } => continues == Continues::Now,
    };
    let resumed = args.resume(place.tree);
    for _ in 0..TAKE_UPS_MAX {
        let answer = match is_run_elsewhere {
            true => awaited(place, &to, past).await?,
            false => match resume::resume(place.home, &resumed, terminal).await {
                Ok(_) => answer(place, &to, past).await?,
                // Another process was first.
                Err(_) if does_run(place).await => None,
                Err(error) => return Err(error),
            },
        };
        if let Some(answer) = answer {
            out::line(&answer.text)?;
            return Ok(Exit::Completed);
        }
        let state = stored_state(place).await?;
        // A person who paused or stopped it wants it so.
        let is_stopped = matches!(state, TreeState::Paused | TreeState::Suspended);
        if state.is_over() || is_stopped || rests(state) {
            break;
        }
        // The process that ran it is gone, or has just begun.
        is_run_elsewhere = does_run(place).await;
    }
    complain(place, &to).await
}

/// A message to an agent that does not exist yet would wait for it, without an answer.
async fn check_recipient_lives(home: &Path, args: &args::Send) -> Result<()> {
    let (tree, to, _) = args.parts()?;
    let name = to.to_string();
    if has_agent(home, tree, &name).await {
        return Ok(());
    }
    let (place, to) = whom(home, tree, Some(to)).await?;
    bail!("no agent is called `{to}` ({})", meant(place, &to).await?)
}

/// What has been answered until now.
async fn answer(place: TreeInHome<'_>, to: &AgentId, past: Seq) -> Result<Option<Body>> {
    let mut answers = AgentAnswers::after(place.tree, to.clone(), past);
    Ok(answers.read(&redacted(place).await?.journal).await?.cloned())
}

async fn redacted(TreeInHome { home, tree }: TreeInHome<'_>) -> Result<RedactedTree> {
    Ok(NamedTree::in_home(home, &tree.to_string()).await?.redacted().await?)
}

/// Says why there is no answer, and how to continue.
async fn complain(place: TreeInHome<'_>, to: &AgentId) -> Result<Exit> {
    let journal = redacted(place).await?.journal;
    let Stored { snapshot, hash } = stored(&journal, place.tree).await?;
    let outcome = Outcome::read(&snapshot, Some(hash), &journal, place).await;
    let state = snapshot.state;
    match outcome.failure() {
        Some(failure) => out::complain(&format!("`{to}` gave no answer: {failure}")),
        None if answerable(&snapshot).is_empty() => {
            let next = next_step(place.home, place.tree, state).await;
            out::complain(&format!("`{to}` gave no answer, the tree is {state}; {next}"));
        }
        None => {
            out::complain(&format!("`{to}` gave no answer, the tree is {state}"));
            question_texts(&outcome, &snapshot, place).iter().for_each(|line| out::note(line));
        }
    }
    Ok(match state {
        TreeState::Halted => Exit::Halted,
        TreeState::Waiting | TreeState::Paused => Exit::Waiting,
        TreeState::Suspended => Exit::Interrupted,
        TreeState::Ended(ExitKind::Cancelled) => Exit::Cancelled,
        _ => Exit::Failed,
    })
}

/// The answer of an agent in a tree that another process runs. None if the tree ends or rests without one, or is not run any
/// more.
async fn awaited(place: TreeInHome<'_>, to: &AgentId, past: Seq) -> Result<Option<Body>> {
    let journal = redacted(place).await?.journal;
    let (mut answers, mut seen) = (AgentAnswers::after(place.tree, to.clone(), past), past);
    loop {
        let changed = timeout(LOOK, journal.changed(place.tree, seen)).await;
        let is_run = changed.is_ok() || may_run(place).await;
        let state = match changed {
            Ok(head) => {
                let head = head?;
                seen = head.seq;
                head.state
            }
            Err(_) => stored_state(place).await?,
        };
        if let Some(answer) = answers.read(&journal).await? {
            return Ok(Some(answer.clone()));
        }
        let is_over = state.is_over() || matches!(state, TreeState::Paused | TreeState::Suspended);
        if !is_run || is_over || rests(state) {
            return Ok(None);
        }
    }
}
