//! Opens the journal of a home, for writing or reading, with errors that say what to do.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use spinney_journal::{Journal, JournalFault};
use spinney_store::{Access, Loss, SqliteJournal};

use super::{private_files, tree_copies};
use crate::hint::command_in;
use crate::terminal::out;

/// Opens a home for reading, beside any number of readers and one writer.
pub(crate) fn look(home: &Path) -> Result<SqliteJournal> {
    if !home.exists() {
        bail!("no home at {}: run a tree first, or set --home or SPINNEY_HOME", home.display());
    }
    let opened = SqliteJournal::open(home, Access::Look);
    opened.map_err(|fault| unopened(home, &format!("cannot read {}", home.display()), fault))
}

/// Opens a home to run trees, and creates it if needed.
pub(crate) fn write(home: &Path) -> Result<SqliteJournal> {
    let journal = opened(home, SqliteJournal::open(home, Access::Write))?;
    keep_out_of_git(home);
    Ok(journal)
}

/// A home is often below a folder under version control, and nobody wants journals in there.
fn keep_out_of_git(home: &Path) {
    match private_files::write(&home.join(".gitignore"), b"*\n") {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            out::complain(&format!("could not write {}: {error}", home.join(".gitignore").display()));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Opens a home to remove a tree, also on a full disk.
pub(crate) fn write_to_remove(home: &Path) -> Result<SqliteJournal> {
    opened(home, SqliteJournal::open_to_remove(home))
}

fn opened(home: &Path, opened: Result<SqliteJournal, JournalFault>) -> Result<SqliteJournal> {
    let journal = opened.map_err(|fault| {
        // That one names the option itself.
        let option =
            if let JournalFault::Locked { .. } = fault { "" } else { " (use --home for another one)" };
        unopened(home, &format!("cannot open {}{option}", home.display()), fault)
    })?;
    settle(home, &journal);
    Ok(journal)
}

/// Why a home could not be opened, with the command that accepts a loss if that is the reason.
fn unopened(home: &Path, what: &str, fault: JournalFault) -> Error {
    let what = match accepts(home, &fault) {
        Some(accept) => format!("{what}; `{accept}` continues with what is left"),
        None => what.to_owned(),
    };
    Error::new(fault).context(what)
}

/// The command that accepts a loss, if the fault is one.
pub(crate) fn accepts(home: &Path, fault: &JournalFault) -> Option<String> {
    let is_loss = matches!(fault, JournalFault::Lost { .. } | JournalFault::UnknownLoss { .. });
    is_loss.then(|| command_in(home, &["ps", "--accept-loss"]))
}

/// Finishes what processes left half done. A failure is reported and tried again the next time.
pub(crate) fn settle(home: &Path, journal: &dyn Journal) {
    if let Err(error) = tree_copies::settle(home, journal) {
        out::complain(&format!("could not clean up after an earlier process in this home: {error:#}"));
    }
}

/// Opens a home for writing, unless another process has it open.
pub(crate) fn write_if_free(home: &Path) -> Result<Option<SqliteJournal>> {
    match SqliteJournal::open(home, Access::Write) {
        Ok(journal) => {
            settle(home, &journal);
            Ok(Some(journal))
        }
        Err(JournalFault::Locked { .. }) => Ok(None),
        Err(fault) => Err(unopened(home, &format!("cannot open {}", home.display()), fault)),
    }
}

/// Accepts that confirmed commits are missing, and reports it.
pub(crate) fn accept_loss(home: &Path) -> Result<()> {
    let accepted = SqliteJournal::accept_loss(home);
    match accepted.with_context(|| format!("cannot open {}", home.display()))? {
        None => out::note("no confirmed commit is missing: --accept-loss changed nothing"),
        Some(Loss { fault, set_aside }) => {
            let what = match fault {
                JournalFault::Lost { found, confirmed, .. } => {
                    format!("gave up commits {} to {confirmed}", found + 1)
                }
                _ => "continued without knowing whether commits are missing".to_owned(),
            };
            out::note(&format!("{what}; the journal as it was found is kept in {}", set_aside.display()));
        }
    }
    Ok(())
}
