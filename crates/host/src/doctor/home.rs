//! Whether the home can be used: who may write in it, which schema its journal has, and which process has it open.
//! Nothing in it is changed.

use std::path::Path;

use spinney_store::{Access, OpenHomeError, SqliteJournal};
use spinney_view::wording::counted;

use super::DoctorWords;
use super::report::HomeFinding;
use crate::control::{RunningTrees, running};
use crate::system::files;

impl HomeFinding {
    /// Looks at a home.
    pub async fn look(home: &Path, words: DoctorWords) -> Self {
        let (message, ok) = match state(home, words) {
            Ok(state) => (format!("{state}{}", used_by(home).await), true),
            Err(fault) => (fault, false),
        };
        Self { ok, path: home.display().to_string(), message }
    }
}

/// What state it is in, or why it cannot be used.
fn state(home: &Path, words: DoctorWords) -> Result<&'static str, String> {
    if let Err(error) = home.symlink_metadata()
        && error.kind() == std::io::ErrorKind::NotFound
    {
        let place = home.ancestors().skip(1).find(|place| place.as_os_str().is_empty() || place.exists());
        let place = place.filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return match files::is_writable_folder(place) {
            true => Ok("does not exist yet, the first run creates it"),
            false => Err(format!(
                "cannot be created, because {} is not writable: {}",
                place.display(),
                words.other_home
            )),
        };
    }
    let opened = SqliteJournal::open(home, Access::ReadOnly);
    let state = match opened {
        Ok(_) => "can be written",
        // It exists, so this changes nothing.
        Err(OpenHomeError::NoHome { .. }) => match SqliteJournal::prepare_folder(home) {
            Ok(()) => "has no journal yet, the first run creates it",
            Err(fault) => return Err(fault.to_string()),
        },
        Err(OpenHomeError::Older { .. }) => "has an older journal, the next run brings it up to date",
        Err(fault) => {
            let accept = (words.accept_loss)(home, &fault);
            let accept = accept.map(|accept| format!("; `{accept}` continues with what is left"));
            return Err(format!("{fault}{}", accept.unwrap_or_default()));
        }
    };
    if files::is_writable_folder(home) {
        return Ok(state);
    }
    Err(format!("is not writable: change its permissions, or {}", words.other_home))
}

/// Which process has it open. That is not a fault: another run gets a side journal.
async fn used_by(home: &Path) -> String {
    match running(home).await {
        RunningTrees::Nobody => String::new(),
        RunningTrees::Trees(trees) => {
            format!("; in use: a process runs {} here", counted(trees.len() as u64, "tree"))
        }
        RunningTrees::Silent(pid) => format!("; in use: process {pid} has it open and does not answer"),
        RunningTrees::Unknown => "; it belongs to another user".to_owned(),
    }
}
