//! `spinney shared`: shows the values that the agents of a tree share, also while another process runs the tree and
//! after its end.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney::clock::{Clock, SystemClock};
use spinney::tree::{shared_json, shared_values};
use spinney::tree_file::nearest;
use spinney_host::home;
use spinney_host::home::ids::{LAST, NamedTree, find};
use spinney_host::redaction::RedactedJournal;
use spinney_journal::Journal;
use spinney_kernel::context::SharedValues;
use spinney_kernel::primitives::{TreeId, grouped};
use spinney_terminal::out;
use spinney_view::shared::{author, value_json};
use spinney_view::wording::{LINE_CHARS_MAX, ago, counted, one_line, short_id};

use super::steer::write_value;
use crate::args;
use crate::args::SharedWords;
use crate::error_text::in_words_of;
use crate::exit::Exit;

pub(super) async fn shared(home: &Path, args: &args::Shared) -> Result<Exit> {
    if let Some(set) = &args.set {
        let (tree, key) = match args.words() {
            SharedWords::Both { tree, key } => (tree, key),
            SharedWords::One(key) => (LAST, key),
            SharedWords::None => bail!("name the value to write, as in `KEY --set VALUE`"),
        };
        return write_value(home, tree, key, set, args.expect_version).await;
    }
    let journal = home::open_read_only(home)?;
    let (tree, key) = match args.words() {
        SharedWords::None => (find(home, &journal, LAST).await?.tree, None),
        SharedWords::Both { tree, key } => (find(home, &journal, tree).await?.tree, Some(key)),
        SharedWords::One(word) => {
            let last = find(home, &journal, LAST).await?.tree;
            let is_value = shared_values(&journal, last).await?.all().any(|(name, _)| name.as_str() == word);
            match NamedTree::find(home, word).await {
                _ if is_value => (last, Some(word)),
                Ok(named) => {
                    let named = named.redacted().await?;
                    return show(&named.journal, named.tree, None, args.json).await;
                }
                Err(no_tree) if word.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    bail!("the last tree has no shared value `{word}`, and {}", in_words_of(&no_tree))
                }
                Err(_) => (last, Some(word)),
            }
        }
    };
    let journal = RedactedJournal::of_tree(Arc::new(journal), tree).await?;
    show(&journal, tree, key, args.json).await
}

async fn show(journal: &dyn Journal, tree: TreeId, key: Option<&str>, is_json: bool) -> Result<Exit> {
    let values = shared_values(journal, tree).await?;
    match (key, is_json) {
        (Some(key), is_json) => one(journal, tree, &values, key, is_json).await,
        (None, true) => all_json(journal, &values).await,
        (None, false) => all(tree, &values),
    }
}

/// The JSON of one value, alone on standard output unless `--json` also asks for its header.
async fn one(
    journal: &dyn Journal,
    tree: TreeId,
    values: &SharedValues,
    key: &str,
    is_json: bool,
) -> Result<Exit> {
    let Some((name, value)) = values.all().find(|(name, _)| name.as_str() == key) else {
        let names: Vec<&str> = values.all().map(|(name, _)| name.as_str()).collect();
        bail!("tree {} has no shared value `{key}`: {}", short_id(tree), nearest::help(key, names, "values"))
    };
    let json = shared_json(journal, value).await?;
    if is_json {
        out::json(&value_json(values, name, value, json).to_string())?;
    } else {
        out::verbatim(&json)?;
    }
    Ok(Exit::Completed)
}

async fn all_json(journal: &dyn Journal, values: &SharedValues) -> Result<Exit> {
    for (name, value) in values.all() {
        let json = shared_json(journal, value).await?;
        out::json(&value_json(values, name, value, json).to_string())?;
    }
    Ok(Exit::Completed)
}

fn all(tree: TreeId, values: &SharedValues) -> Result<Exit> {
    let count = values.all().count() as u64;
    if count == 0 {
        out::line(&format!("no shared values in tree {}", short_id(tree)))?;
        return Ok(Exit::Completed);
    }
    let ended =
        if values.is_cleared() { " (the tree has ended, its agents can no longer read them)" } else { "" };
    out::line(&format!("{}{ended}:", counted(count, "shared value")))?;
    let now = SystemClock::new().now_ms();
    for (name, value) in values.all() {
        let (bytes, since) = (grouped(value.bytes()), ago(now.saturating_sub(value.at.0)));
        let head =
            format!("{name}  version {}, {bytes} bytes, by {}, {since}", value.version, author(&value.by));
        out::line(&format!("  {head}"))?;
        let text = value.body.ends().map_or(value.body.text.as_str(), |(head, _)| head);
        out::line(&format!("    {}", one_line(text, LINE_CHARS_MAX)))?;
    }
    Ok(Exit::Completed)
}
