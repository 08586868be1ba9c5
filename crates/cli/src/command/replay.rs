//! `spinney replay`: a tree from its journal alone. No model and no tool is called.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use spinney::tree::{Diverged, Verified, verify};
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{ChainHash, Journal};

use super::events;
use crate::args;
use crate::exit::Exit;
use crate::ids::find;
use crate::result::{label, whole};
use crate::screen::{Screen, Style};
use crate::{out, place};

/// How often a tree is read again that grew while it was read.
const TRIES_MAX: u32 = 5;

/// Tells or checks a tree's journal.
pub(super) fn replay(home: &Path, args: &args::Replay) -> Result<Exit> {
    let journal = place::look(home)?;
    let tree = find(home, &journal, &args.id)?.tree;
    let expect = args.expect.as_deref().map(hash).transpose()?;
    let checks = args.verify || expect.is_some();
    if !checks {
        events::show(&journal, tree, &mut Screen::new(tree, Style::Story), (Seq(0), Seq(0)))?;
        out::line("")?;
    }
    match checked(&journal, tree, expect)? {
        Ok(verified) => {
            write(&verified, &journal, if checks { "verified" } else { "replayed" })?;
            Ok(Exit::Completed)
        }
        Err(diverged) => {
            out::complain(&format!("tree {tree} is not what its journal says: {diverged}"));
            Ok(Exit::Failed)
        }
    }
}

/// Checks a journal, again if its tree grew meanwhile.
fn checked(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<Result<Verified, Diverged>> {
    for _ in 0..TRIES_MAX {
        let before = journal.head(tree)?;
        let checked = verify(journal, tree, expect);
        if checked.is_ok() || before == journal.head(tree)? {
            return Ok(checked);
        }
    }
    bail!("the tree is running and grows faster than it can be read: check it when it has stopped")
}

fn write(verified: &Verified, journal: &dyn Journal, how: &str) -> Result<()> {
    let Verified { events, hash, rules, decided, look } = verified;
    let way = if *decided {
        format!("every input was decided again by rules {rules}, and nothing differs")
    } else {
        format!("decided by rules {rules}, which are not ours: the chain was checked and the events applied")
    };
    out::line(&format!("{how}: {events} events; {way}"))?;
    let hash = hash.map(|hash| hash.to_string()).unwrap_or_default();
    out::line(&format!("  hash    {hash}"))?;
    out::line(&format!("  state   {}", look.state.word()))?;
    if let Some(end) = &look.end {
        let answer = whole(&end.shown, journal);
        let label = label(Exit::of_end(&end.exit));
        for (at, line) in answer.trim_end().lines().enumerate() {
            out::line(format!("  {:<7} {line}", if at == 0 { label } else { "" }).trim_end())?;
        }
    }
    Ok(())
}

/// A hash as people copy it.
fn hash(text: &str) -> Result<ChainHash> {
    let wrong = || anyhow!("`{text}` is no hash: write the 64 hex digits of an `event_hash`");
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
    }
    Ok(ChainHash::from_bytes(bytes))
}
