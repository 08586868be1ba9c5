//! `spinney send`: a message to an agent that exists, or that the tree can still get.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use spinney_host::attachments;
use spinney_host::control::SteerReply;
use spinney_host::control::steering::{UnreadMessage, ask_about, check_recipient, has_agent, meant};
use spinney_host::home::ids::{LAST, NamedTree};
use spinney_kernel::primitives::{Body, Envelope, enclose};
use spinney_kernel::rules::request::{Send, SendReply};
use spinney_view::wording::counted;

use super::{Next, finish, whom};
use crate::args;
use crate::exit::Exit;

pub(in crate::command) async fn send(home: &Path, args: args::Send) -> Result<Exit> {
    if let Some(words) = args.words_without_tree() {
        check_complete(home, words).await?;
    }
    let (tree, to, text) = args.parts()?;
    let (place, to) = whom(home, tree, Some(to)).await?;
    check_recipient(place, &to).await.map_err(|error| match error {
        UnreadMessage::Tree(error) => anyhow::Error::from(error),
        UnreadMessage::OfProgram => {
            anyhow!("a program that `exec` started does not read messages: use its own interface")
        }
        UnreadMessage::Unknown(_) => error.into(),
    })?;
    let named = [to.clone()];
    let envelope = Envelope { category: args.category.category(), ..Envelope::default() };
    let enclosures = args.files.iter().map(|path| attachments::read(path)).collect::<Result<Vec<_>, _>>()?;
    let (parts, bytes) = enclose(enclosures)?;
    let with = match parts.len() {
        0 => String::new(),
        count => format!(" with {}", counted(count as u64, "file")),
    };
    let send = Send { to, body: Body::text(text).with_parts(parts), envelope };
    let done = ask_about(place, &named, send, bytes).await?;
    let [to] = named;
    let mut said = format!("sent to `{to}`{with}");
    let mut next = Next::Resume;
    if let SteerReply::Done { reply: SendReply::Queued, .. } = done {
        said += &format!(": no agent has that name yet ({})", meant(place, &to).await?);
        next = Next::Spawn;
    }
    finish(done, place, &said, next).await
}

/// Refuses a tree and one more word: they would read as an agent and a text.
async fn check_complete(home: &Path, [tree, word]: [&str; 2]) -> Result<()> {
    let is_tree = tree.eq_ignore_ascii_case(LAST)
        || (NamedTree::find(home, tree).await.is_ok() && !has_agent(home, LAST, tree).await);
    if !is_tree {
        return Ok(());
    }
    if has_agent(home, tree, word).await {
        bail!("the text for `{word}` is missing; usage: {}", args::Send::USAGE);
    }
    bail!("`{tree}` is a tree: name an agent and a text after it; usage: {}", args::Send::USAGE)
}
