//! What a person has seen of the tools of servers: a tool that describes itself differently in a later tree is not used until
//! a person allows it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use spinney_kernel::primitives::{BlobHash, ToolName};

use super::offered::{Offered, one_line};

/// What an error shows of a description, and of how many tools.
const SHOWN_BYTES: usize = 240;
const SHOWN_TOOLS: usize = 3;
/// How much of a hash names a change.
const CODE_BYTES: usize = 16;

/// A tool as it was when it was used first, or allowed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// What it said that it does.
    pub description: String,
    /// Of all that it said.
    pub hash: String,
}

/// Keeps what is known of servers, each by its [allowance](spinney_kernel::definition::ToolServer::allowance). Its functions
/// may block.
pub trait KnownTools: Send + Sync {
    /// The tools of a server that are known.
    ///
    /// # Errors
    /// Why that cannot be said. Then the server is not used.
    fn read(&self, server: &str) -> Result<BTreeMap<ToolName, KnownTool>, String>;

    /// Replaces them.
    ///
    /// # Errors
    /// Why they cannot be kept. They are used all the same.
    fn write(&self, server: &str, tools: &BTreeMap<ToolName, KnownTool>) -> Result<(), String>;
}

/// Compares the tools that a tree uses with those that are known, and keeps them.
///
/// # Errors
/// What has changed and is not allowed.
pub(super) fn check(
    known: &Arc<dyn KnownTools>,
    allowance: &str,
    used: &BTreeMap<ToolName, Offered>,
    is_allowed: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    let before = known.read(allowance)?;
    let of = |offered: &Offered| KnownTool {
        description: offered.spec.description.clone(),
        hash: offered.hash.as_str().to_owned(),
    };
    let now: BTreeMap<ToolName, KnownTool> =
        used.iter().map(|(name, offered)| (name.clone(), of(offered))).collect();
    let changed: Vec<(&ToolName, &KnownTool, &KnownTool)> = now
        .iter()
        .filter_map(|(name, now)| {
            let before = before.get(name)?;
            (before.hash != now.hash).then_some((name, before, now))
        })
        .collect();
    if !changed.is_empty() {
        let code = code(allowance, &changed);
        let changes = in_words(&changed);
        if !is_allowed(&code, &changes) {
            return Err(format!("{changes}\nif you trust it, allow `mcp-tools:{code}`"));
        }
    }
    let mut after = before.clone();
    after.extend(now);
    if after != before
        && let Err(why) = known.write(allowance, &after)
    {
        tracing::warn!("the tools of a server are not remembered: {why}");
    }
    Ok(())
}

/// Names this very change.
fn code(allowance: &str, changed: &[(&ToolName, &KnownTool, &KnownTool)]) -> String {
    let mut text = allowance.to_owned();
    for (name, _, now) in changed {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n{name} {}", now.hash);
    }
    BlobHash::digest(text.as_bytes()).as_str()[..CODE_BYTES].to_owned()
}

fn in_words(changed: &[(&ToolName, &KnownTool, &KnownTool)]) -> String {
    let mut text = String::new();
    for (name, before, now) in changed.iter().take(SHOWN_TOOLS) {
        let shown = |tool: &KnownTool| one_line(&tool.description, SHOWN_BYTES);
        let _ = write!(text, "`{name}` now says something else than when it was used before");
        if before.description == now.description {
            text.push_str(", of its arguments\n");
        } else {
            let _ = write!(text, "\n  before: {}\n  now: {}\n", shown(before), shown(now));
        }
    }
    if changed.len() > SHOWN_TOOLS {
        let _ = writeln!(text, "and {} more", changed.len() - SHOWN_TOOLS);
    }
    text.truncate(text.trim_end().len());
    text
}
