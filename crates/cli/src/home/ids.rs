//! Finds a tree by its id, a unique prefix of it, or `last`.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_journal::{Blocking, CatalogKind, Head, Journal};
use spinney_kernel::words::TreeId;

use crate::hint::{LAST, YOUR_FILE, command};

/// A tree and its home.
#[derive(Clone, Copy)]
pub(crate) struct TreeInHome<'a> {
    /// The home's folder, as the user named it.
    pub(crate) home: &'a Path,
    pub(crate) tree: TreeId,
}

/// Digits of an id that are shown: its start time. Two trees of one home rarely share it.
const SHORT_DIGITS: usize = 12;
const LISTED_MAX: usize = 8;

/// A prefix of an id, long enough to name the tree.
pub(crate) fn short(tree: TreeId) -> String {
    let mut id = tree.to_string();
    id.truncate(SHORT_DIGITS);
    id
}

/// The name in its tree file.
pub(crate) fn name(journal: &dyn Journal, tree: TreeId) -> Result<String> {
    let facts = journal.catalog(CatalogKind::Tree, &tree.to_string()).wait()?;
    Ok(facts.into_iter().next().map(|fact| fact.value).unwrap_or_default())
}

pub(crate) fn find(home: &Path, journal: &dyn Journal, text: &str) -> Result<Head> {
    let mut heads = journal.heads(&[]).wait()?;
    let wanted = text.to_ascii_lowercase();
    if wanted == LAST {
        return match heads.pop() {
            Some(head) => Ok(head),
            None => bail!("this home has no trees yet: `{}` starts one", command(home, &["run", YOUR_FILE])),
        };
    }
    if wanted.is_empty() || wanted.len() > 32 || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let ps = command(home, &["ps"]);
        bail!("`{text}` is not a tree id: use a prefix of one that `{ps}` lists, or `last`");
    }
    let is_empty = heads.is_empty();
    heads.retain(|head| head.tree.to_string().starts_with(&wanted));
    match heads.len() {
        0 if is_empty => bail!("no tree `{text}`: this home has no trees yet"),
        0 => bail!("no tree starts with `{text}`: `{}` lists all trees", command(home, &["ps"])),
        1 => Ok(heads.remove(0)),
        found => {
            let listed: Vec<String> = heads
                .iter()
                .take(LISTED_MAX)
                .map(|head| format!("\n  {} {}", head.tree, head.state))
                .collect();
            let more = if found > LISTED_MAX { "\n  …" } else { "" };
            bail!("{found} trees start with `{text}`: use more characters{}{more}", listed.concat())
        }
    }
}
