//! `spinney redirect`: a new instruction for an agent that works. What is done stays.

use std::path::Path;

use anyhow::{Error, Result};
use spinney_host::control::steering::has_agent;
use spinney_host::home::ids::{LAST, NamedTree};
use spinney_kernel::primitives::Running;
use spinney_kernel::rules::request::Redirect;
use spinney_view::agents::AgentPath;

use super::{Next, ask, finish, whom};
use crate::args;
use crate::args::RedirectWords;
use crate::exit::Exit;

pub(in crate::command) async fn redirect(home: &Path, args: args::Redirect) -> Result<Exit> {
    let running = args.running();
    let (tree, agent, text) = match args.words() {
        RedirectWords::Text(text) => (LAST, None, text),
        RedirectWords::One { whom, text } if is_tree(home, whom).await => (whom, None, text),
        RedirectWords::One { whom, text } => (LAST, Some(path(whom)?), text),
        RedirectWords::All { tree, agent, text } => (tree, Some(path(agent)?), text),
    };
    let (place, agent) = whom(home, tree, agent).await?;
    let said = match running {
        Running::Stops => format!("redirected `{agent}`: what it had running is stopped"),
        Running::Finishes => format!("redirected `{agent}`: it reads the instruction before its next turn"),
    };
    let named = [agent.clone()];
    let redirect = Redirect { agent, instruction: text.to_owned(), tokens: None, running };
    let done = ask(place, &named, redirect).await?;
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
