//! What the user allowed at the terminal for one text of a tree file:
//!
//! ```text
//! <state>/files/<hash>.json      the file's path when it was asked about, the hosts with the variables that were shown, and what boxes lack
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spinney_drivers::http::HostName;
use spinney_kernel::primitives::BlobHash;

use super::boxes::covers;
use super::egress::{Egress, SentVariables};
use crate::user::box_allowance::BoxAllowance;
use crate::user::folders;
use crate::user::state_files::{self, StateFileError};

const FOLDER: &str = "files";

/// What the user allowed for one text.
pub struct FileAnswers {
    name: String,
    kept: KeptAnswers,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptAnswers {
    /// For people.
    file: String,
    allowed: Vec<AllowedEgress>,
    /// What the boxes of its commands may be without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    boxes: Vec<String>,
}

/// What was shown and allowed.
#[derive(Debug, Serialize, Deserialize)]
struct AllowedEgress {
    host: String,
    variables: SentVariables,
}

impl FileAnswers {
    /// Those for a text.
    pub fn read(text: &BlobHash) -> Result<Self, StateFileError> {
        let name = format!("{}.json", text.as_str());
        let path: Option<PathBuf> = folders::state().ok().map(|state| state.join(FOLDER).join(&name));
        let kept = path.map(|path| state_files::read(&path)).transpose()?.flatten().unwrap_or_default();
        Ok(Self { name, kept })
    }

    /// Whether every variable was shown for this host.
    pub(super) fn allow(&self, host: &HostName, variables: &SentVariables) -> bool {
        let covers = |allowed: &AllowedEgress| {
            allowed.host == host.to_string()
                && variables.iter().all(|(variable, sent_as)| {
                    allowed.variables.get(variable).is_some_and(|shown| sent_as.is_subset(shown))
                })
        };
        self.kept.allowed.iter().any(covers)
    }

    /// Whether this was shown, or more.
    pub(super) fn allow_box(&self, need: &BoxAllowance) -> bool {
        let allowed = self.kept.boxes.iter().filter_map(|allowed| BoxAllowance::remembered(allowed));
        allowed.into_iter().any(|allowed| covers(&allowed, need))
    }

    pub(super) fn add_box<'a>(
        &mut self,
        shown: impl Iterator<Item = &'a BoxAllowance>,
        file: &str,
    ) -> Result<(), StateFileError> {
        self.kept.boxes.extend(shown.map(ToString::to_string));
        self.write(file)
    }

    pub(super) fn add(&mut self, shown: &[&Egress], file: &str) -> Result<(), StateFileError> {
        let allowed = shown.iter().map(|egress| AllowedEgress {
            host: egress.host().to_string(),
            variables: egress.variables.clone(),
        });
        self.kept.allowed.extend(allowed);
        self.write(file)
    }

    fn write(&mut self, file: &str) -> Result<(), StateFileError> {
        file.clone_into(&mut self.kept.file);
        state_files::write(&state_files::make_folder(FOLDER)?.join(&self.name), &self.kept)
    }
}
