//! What is redacted of a tree before people and programs are shown it: what looks like a key, and the values of variables
//! that its definition and the user's configuration name, or that providers' keys are in. What models, tools and the journal
//! get is another matter.

use std::collections::BTreeSet;
use std::sync::Arc;

use spinney::redaction::{Redactor, VALUE_BYTES_MIN};
use spinney_drivers::wire::key_shapes;
use spinney_journal::{Batch, Entry, Journal, JournalFault, JournalLayer, Reading, StoredEntry};
use spinney_kernel::definition::RedactionSpec;
use spinney_kernel::primitives::{BlobRef, Seq, TreeId};
use spinney_view::TreeBeginning;

use crate::exec::environment::KEY_VARIABLES;
use crate::exec::other_keys;
use crate::user::configuration::{Configuration, ConfigurationError};
use crate::user::variables::{Variables, VariablesError};

/// Why it is not known what to redact. Then nothing is shown.
#[derive(Debug, thiserror::Error)]
pub enum RedactionError {
    /// The user's configuration cannot be read.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// The tree cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// What redacts a tree with this definition.
///
/// # Errors
/// If the user's configuration or variables cannot be read.
pub fn redactor(spec: &RedactionSpec) -> Result<Redactor, RedactionError> {
    let configuration = match Configuration::read() {
        // Who looks with the variables of another user has none of their secrets either.
        Err(ConfigurationError::Untrusted(unread)) if unread.is_out_of_reach() => Configuration::default(),
        read => read?,
    };
    let variables = Variables::read(&configuration)?;
    warn_of_short(configuration.redact_env(), &variables);
    let mut names: BTreeSet<String> = spec.variables.iter().cloned().collect();
    names.extend(configuration.redact_env().map(str::to_owned));
    names.extend(KEY_VARIABLES.map(str::to_owned));
    names.extend(other_keys::in_environment());
    let values = names.into_iter().filter_map(|name| Some((variables.get(&name)?, name)));
    let long = values.filter(|(value, _)| value.len() >= VALUE_BYTES_MIN);
    Ok(Redactor::new(
        long.flat_map(|(value, name)| key_shapes(value).into_iter().map(move |shape| (name.clone(), shape))),
    ))
}

/// Says which of these variables have values that are too short to be told from ordinary words.
pub(crate) fn warn_of_short<'n>(names: impl Iterator<Item = &'n str>, variables: &Variables) {
    for name in names {
        if variables.get(name).is_some_and(|value| value.len() < VALUE_BYTES_MIN) {
            tracing::warn!("the value of {name} has less than {VALUE_BYTES_MIN} bytes and is not redacted");
        }
    }
}

/// What redacts a stored tree.
///
/// # Errors
/// If it is not known what to redact.
pub async fn redactor_of(journal: &dyn Journal, tree: TreeId) -> Result<Redactor, RedactionError> {
    let definition = TreeBeginning::read(journal, tree).await?.definition;
    redactor(&definition.map(|definition| definition.redact.clone()).unwrap_or_default())
}

/// A journal as people and programs are shown it: texts and blobs are redacted, ids and names are as they are. Stored bytes
/// and hashes are those of the journal itself.
pub struct RedactedJournal<'j> {
    journal: JournalBelow<'j>,
    redactor: Redactor,
}

enum JournalBelow<'j> {
    Shared(Arc<dyn Journal>),
    Borrowed(&'j dyn Journal),
}

impl RedactedJournal<'static> {
    /// A journal that is opened to show this tree.
    ///
    /// # Errors
    /// If it is not known what to redact.
    pub async fn of_tree(journal: Arc<dyn Journal>, tree: TreeId) -> Result<Self, RedactionError> {
        let redactor = redactor_of(journal.as_ref(), tree).await?;
        Ok(Self { journal: JournalBelow::Shared(journal), redactor })
    }
}

impl<'j> RedactedJournal<'j> {
    /// A journal that others use as it is.
    #[must_use]
    pub fn over(journal: &'j dyn Journal, redactor: Redactor) -> Self {
        Self { journal: JournalBelow::Borrowed(journal), redactor }
    }

    /// What redacts it.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl JournalLayer for RedactedJournal<'_> {
    fn inner(&self) -> &dyn Journal {
        match &self.journal {
            JournalBelow::Shared(journal) => journal.as_ref(),
            JournalBelow::Borrowed(journal) => *journal,
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        let (stored, redactor) = (self.inner().read_stored(tree, after, batches_max), self.redactor.clone());
        Box::pin(async move { stored.await?.into_iter().map(|stored| redacted(&redactor, stored)).collect() })
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        let (read, redactor) = (self.inner().blob(blob), self.redactor.clone());
        Box::pin(async move {
            let bytes = read.await?;
            Ok(bytes.map(|bytes| redactor.redact_bytes(&bytes).unwrap_or(bytes)))
        })
    }
}

fn redacted(redactor: &Redactor, StoredEntry { entry, bytes }: StoredEntry) -> Result<Entry, JournalFault> {
    if !redactor.may_change_json(&bytes) {
        return Ok(entry);
    }
    let read = |value| Batch::decode(&serde_json::to_vec(&value)?);
    let batch = serde_json::from_slice(&bytes).and_then(|value| redactor.redact_as(&value, read));
    let batch =
        batch.map_err(|error| JournalFault::Failed { reason: format!("this cannot be shown: {error}") })?;
    Ok(Entry { batch, ..entry })
}
