//! Whether the home can be used: who may write in it, which schema its journal has, and which process has it open.
//! Nothing in it is changed.

use std::path::Path;

use rustix::fs::{Access as Allowed, access};
use spinney_journal::JournalFault;
use spinney_store::{Access, SqliteJournal};

use super::report::HomeFinding;
use crate::control::{Running, running};
use crate::home;
use crate::terminal::wording::counted;

pub(super) async fn look(home: &Path) -> HomeFinding {
    let (message, ok) = match state(home) {
        Ok(state) => (format!("{state}{}", used_by(home).await), true),
        Err(fault) => (fault, false),
    };
    HomeFinding { ok, path: home.display().to_string(), message }
}

/// What state it is in, or why it cannot be used.
fn state(home: &Path) -> Result<&'static str, String> {
    if let Err(error) = home.symlink_metadata()
        && error.kind() == std::io::ErrorKind::NotFound
    {
        let place = home.ancestors().skip(1).find(|place| place.as_os_str().is_empty() || place.exists());
        let place = place.filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return match is_writable(place) {
            true => Ok("does not exist yet, the first run creates it"),
            false => Err(format!(
                "cannot be created, because {} cannot be written: use --home for another one",
                place.display()
            )),
        };
    }
    let opened = SqliteJournal::open(home, Access::Look);
    let state = match opened {
        Ok(_) => "can be written",
        // It exists, so this changes nothing.
        Err(JournalFault::NoHome { .. }) => match SqliteJournal::prepare_folder(home) {
            Ok(()) => "has no journal yet, the first run creates it",
            Err(fault) => return Err(fault.to_string()),
        },
        Err(JournalFault::Older { .. }) => "has an older journal, the next run brings it up to date",
        Err(fault) => {
            let accept = home::accepts(home, &fault);
            let accept = accept.map(|accept| format!("; `{accept}` continues with what is left"));
            return Err(format!("{fault}{}", accept.unwrap_or_default()));
        }
    };
    if is_writable(home) {
        return Ok(state);
    }
    Err("cannot be written: change who may write it, or use --home for another one".to_owned())
}

fn is_writable(folder: &Path) -> bool {
    access(folder, Allowed::WRITE_OK | Allowed::EXEC_OK).is_ok()
}

/// Which process has it open. That is no fault: everything but running another tree works.
async fn used_by(home: &Path) -> String {
    match running(home).await {
        Running::Nobody => String::new(),
        Running::Trees(trees) => {
            format!("; in use: a process runs {} here", counted(trees.len() as u64, "tree"))
        }
        Running::Silent(pid) => format!("; in use: process {pid} has it open and does not answer"),
        Running::Unknown => "; it is another user's".to_owned(),
    }
}
