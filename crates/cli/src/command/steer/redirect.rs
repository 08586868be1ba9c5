//! `spinney redirect`: a new instruction for an agent that works, or a change of a pipeline. What is done stays.

use std::path::Path;

use anyhow::{Error, Result, bail};
use spinney_host::control::SteerReply;
use spinney_host::control::steering::has_agent;
use spinney_host::home::ids::{LAST, NamedTree, TreeInHome};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Running};
use spinney_kernel::record::PlanChange;
use spinney_kernel::rules::request::{Redirect, Replan};
use spinney_view::agents::AgentPath;

use super::{Next, ask, finish, whom};
use crate::args;
use crate::args::RedirectWords;
use crate::exit::Exit;

pub(in crate::command) async fn redirect(home: &Path, args: args::Redirect) -> Result<Exit> {
    let running = args.running();
    let (tree, agent, text) = match args.words() {
        RedirectWords::Silent { tree, agent } => (tree, agent.map(path).transpose()?, ""),
        RedirectWords::Text(text) if is_tree(home, text).await => {
            bail!("the instruction is missing; usage: {}", args::Redirect::USAGE)
        }
        RedirectWords::Text(text) => (LAST, None, text),
        RedirectWords::One { whom, text } if is_tree(home, whom).await => (whom, None, text),
        RedirectWords::One { whom, text } => (LAST, Some(path(whom)?), text),
        RedirectWords::All { tree, agent, text } => (tree, Some(path(agent)?), text),
    };
    let (place, agent) = whom(home, tree, agent).await?;
    let named = [agent.clone()];
    if args.end {
        return replan(place, agent, PlanChange::End, running).await;
    }
    if !args.skip.is_empty() {
        return replan(place, agent, PlanChange::Skip { steps: args.skip }, running).await;
    }
    let redirect = Redirect { agent: agent.clone(), instruction: text.to_owned(), tokens: None, running };
    let done = if args.steps.is_empty() { Some(ask(place, &named, redirect).await?) } else { None };
    match done {
        Some(done) if !is_for_a_pipeline(&done) => {
            let said = match running {
                Running::Stops => format!("redirected `{agent}`: what it had running is stopped"),
                Running::Finishes => {
                    format!("redirected `{agent}`: it reads the instruction before its next turn")
                }
            };
            finish(done, place, &said, Next::Resume).await
        }
        Some(_) | None => {
            let change = PlanChange::Instruct { text: text.to_owned(), steps: args.steps };
            replan(place, agent, change, running).await
        }
    }
}

/// Whether a redirect was refused because its agent stands for a pipeline: then it is for the pipeline's steps.
fn is_for_a_pipeline<R>(done: &SteerReply<R>) -> bool {
    let SteerReply::Refused { refusal: Some(refusal), .. } = done else { return false };
    matches!(**refusal, Refusal::StandsForSteps { .. })
}

async fn replan(place: TreeInHome<'_>, agent: AgentId, change: PlanChange, running: Running) -> Result<Exit> {
    let steps: Vec<String> = change.steps().iter().map(|step| format!("`{step}`")).collect();
    let said = match (&change, running) {
        (PlanChange::End, Running::Stops) => {
            format!("`{agent}` ends with what is done; its running steps are stopped")
        }
        (PlanChange::End, Running::Finishes) => {
            format!("`{agent}` ends with what is done once its running steps have finished")
        }
        (PlanChange::Skip { .. }, _) => format!("`{agent}` skips {}", steps.join(", ")),
        (PlanChange::Instruct { .. }, running) => {
            let whom = if steps.is_empty() { format!("the steps of `{agent}`") } else { steps.join(", ") };
            match running {
                Running::Stops => {
                    format!("redirected {whom}: those that run begin again with the instruction")
                }
                Running::Finishes => {
                    format!("redirected {whom}: those that begin from now on read the instruction")
                }
            }
        }
    };
    let named = [agent.clone()];
    let done = ask(place, &named, Replan { agent, change, running }).await?;
    finish(done, place, &said, Next::Resume).await
}

/// Whether a word names a tree, and no agent of the last one.
async fn is_tree(home: &Path, word: &str) -> bool {
    word.eq_ignore_ascii_case(LAST)
        || (!has_agent(home, LAST, word).await && NamedTree::find(home, word).await.is_ok())
}

fn path(word: &str) -> Result<AgentPath> {
    word.parse().map_err(|error| Error::msg(format!("{error}")))
}
