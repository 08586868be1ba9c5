//! `spinney replay`: prints or verifies a tree from its journal alone. Calls no model and no tool.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use spinney::tree::{Diverged, Verified, verify};
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_host::trust::tree_marks;
use spinney_journal::{Blocking, ChainHash, Journal};
use spinney_kernel::words::{Seq, TreeId};
use spinney_view::wording::counted;

use crate::args;
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;
use crate::result::{Failure, Outcome, failed, label, whole};
use crate::terminal::{Terminal, out};

/// How often a journal is read again because it grew meanwhile.
const TRIES_MAX: u32 = 5;

pub(super) fn replay(home: &Path, args: &args::Replay, terminal: Terminal) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    let mut tree = None;
    tell(home, args, style, terminal, &mut tree)
        .map_err(|error| failed(style, |failure| Outcome::without_a_look(home, tree, failure), error))
}

/// Reads a journal; `found` is set as soon as the tree is known.
fn tell(
    home: &Path,
    args: &args::Replay,
    style: Style,
    terminal: Terminal,
    found: &mut Option<TreeId>,
) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree.text())?.tree;
    *found = Some(tree);
    let expect = args.expect.as_deref().map(hash).transpose()?;
    let checks = args.verify || expect.is_some();
    // Verifying prints no events, but they give the duration.
    let from = if checks { Seq(u64::MAX) } else { Seq(0) };
    let mut screen = Screen::new(tree, style).on(terminal).from(from);
    if !checks {
        screen.show_stored(&journal)?;
    }
    let how = if checks { "verified" } else { "replayed" };
    let verified = checked(&journal, tree, expect)?;
    let (verified, outside) = match (verified, checks) {
        (Ok(verified), true) => {
            let end = End::of(home, &journal, tree, expect)?;
            (end.differs.map_or(Ok(verified), Err), Some(end.proved))
        }
        (verified, _) => (verified, None),
    };
    match (verified, style) {
        (Ok(verified), Style::Json) => {
            out::note(&said(&verified, how));
            outside.iter().for_each(|outside| out::note(outside));
            if checks {
                screen.show_stored(&journal)?;
            }
            let Verified { look, hash, .. } = verified;
            let outcome =
                Outcome::of(&look, hash, &journal, TreeInHome { home, tree }).took(screen.elapsed_ms());
            outcome.write_json()?;
            // For an unfinished tree, a complete replay is a success.
            Ok(if look.end.is_some() { outcome.exit() } else { Exit::Completed })
        }
        (Ok(verified), Style::Lines | Style::Log) => {
            if !checks {
                out::line("")?;
            }
            write(&verified, &journal, how, outside.as_deref())?;
            Ok(Exit::Completed)
        }
        (Err(diverged), style) => {
            out::complain(&format!("tree {tree} failed verification: {diverged}"));
            if style == Style::Json {
                Outcome::without_a_look(home, Some(tree), &Failure::Diverged(&diverged)).write_json()?;
            }
            Ok(Exit::Failed)
        }
    }
}

/// What is known outside a journal about its end. Nothing inside it can show that its last events were removed.
struct End {
    differs: Option<Diverged>,
    /// What the comparison proves, for people.
    proved: String,
}

impl End {
    fn of(home: &Path, journal: &dyn Journal, tree: TreeId, expect: Option<ChainHash>) -> Result<Self> {
        // One that was only started says nothing about its end.
        let mark = tree_marks::find(home, tree)?.filter(|mark| mark.events() > 0);
        let Some((mark, head)) = mark.zip(journal.head(tree).wait()?) else {
            let proved = match expect {
                Some(_) => "as expected",
                None => {
                    "not compared: only a hash kept elsewhere (--expect) shows whether events were removed here"
                }
            };
            return Ok(Self { differs: None, proved: proved.to_owned() });
        };
        let (found, recorded) = (head.seq.0, mark.events());
        let differs = !mark.is_in(journal, &head)?;
        let differs = differs.then_some(Diverged::OtherRecord { found, recorded });
        let proved = if found == recorded {
            format!("matches the {} recorded on this machine", counted(recorded, "event"))
        } else {
            format!(
                "its first {recorded} events match those recorded on this machine; the others are not recorded"
            )
        };
        Ok(Self { differs, proved })
    }
}

/// Verifies a journal, again if it grew meanwhile.
fn checked(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<Result<Verified, Diverged>> {
    for _ in 0..TRIES_MAX {
        let before = journal.head(tree).wait()?;
        let checked = verify(journal, tree, expect).wait();
        if checked.is_ok() || before == journal.head(tree).wait()? {
            return Ok(checked);
        }
    }
    bail!("the tree is running and grows faster than it can be verified: try again when it has stopped")
}

fn write(verified: &Verified, journal: &dyn Journal, how: &str, outside: Option<&str>) -> Result<()> {
    let Verified { hash, look, .. } = verified;
    out::line(&said(verified, how))?;
    let hash = hash.map(|hash| hash.to_string()).unwrap_or_default();
    out::line(&format!("  hash    {hash}"))?;
    if let Some(outside) = outside {
        out::line(&format!("  end     {outside}"))?;
    }
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

fn said(Verified { events, rules, decided, .. }: &Verified, how: &str) -> String {
    let way = if *decided {
        format!("every input was decided again under rules {rules}, with the same result")
    } else {
        format!(
            "decided under rules {rules}, which this version does not have: the hash chain was checked and the events applied"
        )
    };
    format!("{how}: {events} events; {way}")
}

fn hash(text: &str) -> Result<ChainHash> {
    let wrong = || anyhow!("`{text}` is not a hash: expected the 64 hex digits of an `event_hash`");
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
    }
    Ok(ChainHash::from_bytes(bytes))
}
