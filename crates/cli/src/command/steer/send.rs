//! `spinney send`: a message to an agent that exists, or that the tree can still get. The kernel keeps messages for any name,
//! because a program may spawn agents from outside; a person who misspells a name must hear of it.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::attachments;
use spinney_host::control::Asked;
use spinney_host::home;
use spinney_host::home::ids::{LAST, NamedTree, TreeInHome};
use spinney_host::home::side_journals;
use spinney_journal::{Blocking, Journal};
use spinney_kernel::definition::Graph;
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Send, SendReply};
use spinney_kernel::words::{AgentId, Body, Envelope, enclose};
use spinney_view::agents;
use spinney_view::expected_agents::can_come;
use spinney_view::wording::counted;

use super::{Next, ask_with, finish, first, whom};
use crate::args;
use crate::exit::Exit;

pub(in crate::command) async fn send(home: &Path, args: args::Send) -> Result<Exit> {
    if let Some(words) = args.words_without_tree() {
        check_complete(home, words)?;
    }
    let (tree, to, text) = args.parts()?;
    let (place, to) = whom(home, tree, Some(to))?;
    check_recipient(place, &to)?;
    let named = [to.clone()];
    let envelope = Envelope { category: args.category.category(), ..Envelope::default() };
    let enclosures = args.files.iter().map(|path| attachments::read(path)).collect::<Result<Vec<_>, _>>()?;
    let (parts, bytes) = enclose(enclosures)?;
    let with = match parts.len() {
        0 => String::new(),
        count => format!(" with {}", counted(count as u64, "file")),
    };
    let send = Send { to, body: Body::text(text).with_parts(parts), envelope };
    let done = ask_with(place, &named, send, bytes).await?;
    let [to] = named;
    let mut said = format!("sent to `{to}`{with}");
    let mut next = Next::Resume;
    if let Asked::Done { reply: SendReply::Queued, .. } = done {
        let known = agents::known(&home::look(home)?, place.tree).await?;
        said += &format!(": no agent has that name yet ({})", agents::meant(&to, &known));
        next = Next::Spawn;
    }
    finish(done, place, &said, next).await
}

/// Refuses a tree and one more word: they would read as an agent and a text.
fn check_complete(home: &Path, [tree, word]: [&str; 2]) -> Result<()> {
    let has_agent = |tree: &str, word: &str| {
        let known = NamedTree::find(home, tree)
            .and_then(|named| Ok(agents::known(&named.journal, named.tree).wait()?));
        known.is_ok_and(|known| known.iter().any(|agent| agent.as_str() == word))
    };
    let is_tree =
        tree.eq_ignore_ascii_case(LAST) || (NamedTree::find(home, tree).is_ok() && !has_agent(LAST, tree));
    if !is_tree {
        return Ok(());
    }
    if has_agent(tree, word) {
        bail!("the text for `{word}` is missing; usage: {}", args::Send::USAGE);
    }
    bail!("`{tree}` is a tree: name an agent and a text after it; usage: {}", args::Send::USAGE)
}

/// Refuses a message that no agent would ever read.
fn check_recipient(TreeInHome { home, tree }: TreeInHome<'_>, to: &AgentId) -> Result<()> {
    let journal = home::look(home)?;
    let is_over = journal.head(tree).wait()?.is_none_or(|head| head.state.is_over());
    // The tree itself says that it has ended.
    if is_over {
        return Ok(());
    }
    if side_journals::is_of_exec(home) {
        bail!("a program that `exec` started does not read messages: use its own way to talk to it");
    }
    let known = agents::known(&journal, tree).wait()?;
    if known.contains(to) {
        return Ok(());
    }
    let definition = first(&journal, tree)?.into_iter().find_map(|event| {
        if let Event::TreeStarted { definition, .. } = event { Some(definition) } else { None }
    });
    if definition.as_ref().is_some_and(|definition| can_come(definition, to)) {
        return Ok(());
    }
    let graph = definition.as_ref().and_then(|definition| definition.graph.as_deref());
    let steps = graph.into_iter().flat_map(Graph::steps);
    let to_come: Vec<AgentId> = steps.filter_map(|(_, node, _)| node.id.as_str().parse().ok()).collect();
    bail!(agents::unknown(to, known.iter().chain(to_come.iter().filter(|step| !known.contains(step)))))
}
