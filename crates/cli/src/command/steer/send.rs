//! `spinney send`: a message to an agent that exists, or that the tree can still get.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use spinney_host::attachments;
use spinney_host::continuing;
use spinney_host::control::SteerReply;
use spinney_host::control::steering::{
    UnreadMessage, ask_about, check_recipient, has_agent, meant, stored_state,
};
use spinney_host::home::ids::{LAST, NamedTree, TreeInHome};
use spinney_host::home::open_read_only;
use spinney_journal::Journal;
use spinney_kernel::primitives::{AgentId, Body, Envelope, Seq, enclose};
use spinney_kernel::record::ContinuedAs;
use spinney_kernel::rules::request::{Send, SendReply};
use spinney_view::wording::{counted, short_id};

use super::{Next, finish, whom};
use crate::args;
use crate::exit::Exit;

pub(in crate::command) async fn send(home: &Path, args: args::Send) -> Result<Exit> {
    let Sent { place, to, done, words, .. } = deliver(home, &args).await?;
    let mut said = format!("sent to `{to}`{words}");
    let mut next = Next::Resume;
    if let SteerReply::Done { reply: SendReply::Queued, .. } = done {
        said += &format!(": no agent has that name yet ({})", meant(place, &to).await?);
        next = Next::Spawn;
    }
    finish(done, place, &said, next).await
}

/// A message, and what came of it.
pub(super) struct Sent<'h> {
    pub(super) place: TreeInHome<'h>,
    pub(super) to: AgentId,
    /// The last event of its tree before it.
    pub(super) past: Seq,
    pub(super) done: SteerReply<SendReply>,
    /// What was attached, and where it went if that is another tree.
    words: String,
}

pub(super) async fn deliver<'h>(home: &'h Path, args: &args::Send) -> Result<Sent<'h>> {
    if let Some(words) = args.words_without_tree() {
        check_complete(home, words).await?;
    }
    let (tree, to, text) = args.parts()?;
    // Before anything is made for the message.
    let enclosures = args.files.iter().map(|path| attachments::read(path)).collect::<Result<Vec<_>, _>>()?;
    let (parts, bytes) = enclose(enclosures)?;
    let (place, to) = whom(home, tree, Some(to)).await?;
    let (place, continued) = continue_if_over(place, &to).await?;
    check_recipient(place, &to).await.map_err(|error| match error {
        UnreadMessage::Tree(error) => anyhow::Error::from(error),
        UnreadMessage::OfProgram => {
            anyhow!("a program that `exec` started does not read messages: use its own interface")
        }
        UnreadMessage::Unknown(_) => error.into(),
    })?;
    let named = [to.clone()];
    let envelope = Envelope { category: args.category.category(), ..Envelope::default() };
    let with = match parts.len() {
        0 => String::new(),
        count => format!(" with {}", counted(count as u64, "file")),
    };
    let send = Send { to: to.clone(), body: Body::text(text).with_parts(parts), envelope };
    let past = open_read_only(place.home)?.head(place.tree).await?.map_or(Seq(0), |head| head.seq);
    let done = ask_about(place, &named, send, bytes).await?;
    Ok(Sent { place, to, past, done, words: with + &continued })
}

/// The root of a tree that has ended reads its messages in the tree that continues it. Returns that tree, and words for it.
async fn continue_if_over<'h>(place: TreeInHome<'h>, to: &AgentId) -> Result<(TreeInHome<'h>, String)> {
    let (_, root) = whom(place.home, &place.tree.to_string(), None).await?;
    if root != *to || !stored_state(place).await?.is_over() {
        return Ok((place, String::new()));
    }
    let open = continuing::open(place, ContinuedAs::Before).await?;
    let [from, to] = [place.tree, open.place.tree].map(short_id);
    Ok((open.place, format!(" in tree {to}, which continues {from}")))
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
