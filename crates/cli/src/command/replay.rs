//! `spinney replay`: prints or verifies a tree from its journal alone. Calls no model and no tool.

use std::path::Path;

use anyhow::Result;
use spinney::tree::{Diverged, Verified};
use spinney_host::home::ids::{NamedTree, TreeInHome};
use spinney_host::redaction::{RedactedJournal, redactor_of};
use spinney_host::verification::{RecordedEnd, UnverifiedTree, verify_stored};
use spinney_journal::Journal;
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_terminal::{Terminal, out};
use spinney_view::wording::counted;

use crate::args;
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;
use crate::result::{Failure, Outcome, failed_unseen, label, whole};

const NOT_COMPARED: &str =
    "not compared: only a hash kept elsewhere (--expect) shows whether events were removed here";

pub(super) async fn replay(home: &Path, args: &args::Replay, terminal: Terminal) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    let mut tree = None;
    match print(home, args, style, terminal, &mut tree).await {
        Ok(exit) => Ok(exit),
        Err(error) => Err(failed_unseen(style, home, tree, error).await),
    }
}

/// Reads a journal; `found` is set as soon as the tree is known.
async fn print(
    home: &Path,
    args: &args::Replay,
    style: Style,
    terminal: Terminal,
    found: &mut Option<TreeId>,
) -> Result<Exit> {
    let NamedTree { journal, tree, .. } = NamedTree::in_home(home, args.tree.text()).await?;
    *found = Some(tree);
    let redacted = RedactedJournal::over(&journal, redactor_of(&journal, tree).await?);
    let expect = args.expect.as_deref().map(str::parse).transpose()?;
    let checks = args.verify || expect.is_some();
    // Verifying prints no events, but they give the duration.
    let from = if checks { Seq(u64::MAX) } else { Seq(0) };
    let mut screen = Screen::new(tree, style).on(terminal).from(from);
    if !checks {
        screen.show_stored(&redacted).await?;
    }
    let how = if checks { "verified" } else { "replayed" };
    let verified = verify_stored(&journal, tree, expect).await.map_err(unverified)?;
    let (verified, outside) = match (verified, checks) {
        (Ok(verified), true) => match RecordedEnd::compare(home, &journal, tree).await.map_err(unverified)? {
            RecordedEnd::Differs { found, recorded } => {
                (Err(Diverged::OtherRecord { found, recorded }), None)
            }
            RecordedEnd::Matches { found, recorded } => (Ok(verified), Some(proved(found, recorded))),
            RecordedEnd::Unrecorded if expect.is_some() => (Ok(verified), Some("as expected".to_owned())),
            RecordedEnd::Unrecorded => (Ok(verified), Some(NOT_COMPARED.to_owned())),
        },
        (verified, _) => (verified, None),
    };
    match (verified, style) {
        (Ok(verified), Style::Json) => {
            out::note(&said(&verified, how));
            outside.iter().for_each(|outside| out::note(outside));
            if checks {
                screen.show_stored(&redacted).await?;
            }
            let Verified { snapshot, hash, .. } = verified;
            let snapshot = redacted.redactor().redact_typed(&snapshot)?;
            let outcome = Outcome::read(&snapshot, hash, &redacted, TreeInHome { home, tree }).await;
            let outcome = outcome.took(screen.elapsed_ms());
            outcome.write_json()?;
            // For an unfinished tree, a complete replay is a success.
            Ok(if snapshot.end.is_some() { outcome.exit() } else { Exit::Completed })
        }
        (Ok(verified), Style::Lines | Style::Log) => {
            if !checks {
                out::line("")?;
            }
            let mut verified = verified;
            verified.snapshot = redacted.redactor().redact_typed(&verified.snapshot)?.into_owned();
            write(&verified, &redacted, how, outside.as_deref()).await?;
            Ok(Exit::Completed)
        }
        (Err(diverged), style) => {
            out::complain(&format!("tree {tree} failed verification: {diverged}"));
            if style == Style::Json {
                let failure = Failure::Diverged(&diverged);
                Outcome::without_a_look(home, Some(tree), &failure).await.write_json()?;
            }
            Ok(Exit::Failed)
        }
    }
}

/// What the comparison with what this machine recorded proves.
fn proved(found: u64, recorded: u64) -> String {
    if found == recorded {
        return format!("matches the {} recorded on this machine", counted(recorded, "event"));
    }
    format!("its first {recorded} events match those recorded on this machine; the others are not recorded")
}

fn unverified(error: UnverifiedTree) -> anyhow::Error {
    match error {
        UnverifiedTree::Journal(fault) => fault.into(),
        UnverifiedTree::State(error) => error.into(),
        UnverifiedTree::Grows => error.into(),
    }
}

async fn write(verified: &Verified, journal: &dyn Journal, how: &str, outside: Option<&str>) -> Result<()> {
    let Verified { hash, snapshot, .. } = verified;
    out::line(&said(verified, how))?;
    let hash = hash.map(|hash| hash.to_string()).unwrap_or_default();
    out::line(&format!("  hash    {hash}"))?;
    if let Some(outside) = outside {
        out::line(&format!("  end     {outside}"))?;
    }
    out::line(&format!("  state   {}", snapshot.state.as_str()))?;
    if let Some(end) = &snapshot.end {
        let answer = whole(&end.shown, journal).await;
        let label = label(Exit::of_end(&end.exit));
        for (at, line) in answer.trim_end().lines().enumerate() {
            out::line(format!("  {:<7} {line}", if at == 0 { label } else { "" }).trim_end())?;
        }
    }
    Ok(())
}

fn said(Verified { events, rules, decided, .. }: &Verified, how: &str) -> String {
    let way = if *decided {
        format!("every decision was repeated under rules {rules}, with the same result")
    } else {
        format!(
            "decided under rules {rules}, which this version does not have: the hash chain was checked and the events applied"
        )
    };
    format!("{how}: {events} events; {way}")
}
