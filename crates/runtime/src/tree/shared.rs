//! The values that the agents of a tree share, from its journal: while it runs, and after its end.

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::context::{SharedValue, SharedValues};
use spinney_kernel::primitives::TreeId;
use spinney_kernel::record::ValueForm;

use super::Tree;
use crate::bus::Tail;

/// The shared values of a stored tree, each at its last version.
///
/// # Errors
/// If the tree does not exist, or its journal cannot be read.
pub async fn shared_values(journal: &dyn Journal, tree: TreeId) -> Result<SharedValues, JournalFault> {
    let (mut values, mut tail) = (SharedValues::default(), Tail::new(journal, tree));
    while let Some(traced) = tail.next().await? {
        values.apply(&traced.recorded.event);
    }
    Ok(values)
}

/// The whole JSON of a value, from its blob if it is long.
///
/// # Errors
/// If its blob is missing or cannot be read.
pub async fn shared_json(journal: &dyn Journal, value: &SharedValue) -> Result<String, JournalFault> {
    let Some(rest) = value.body.rest() else { return Ok(value.body.text.clone()) };
    match journal.blob(rest).await? {
        Some(bytes) => {
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            Ok(match value.form {
                ValueForm::Json => whole,
                ValueForm::Text => serde_json::Value::String(whole).to_string(),
            })
        }
        None => Err(JournalFault::DamagedBlob { hash: rest.hash.to_string() }),
    }
}

impl Tree {
    /// The values that its agents share, each at its last durable version. After the root's end they are marked as
    /// cleared: no agent can read them any more.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub async fn shared(&self) -> Result<SharedValues, JournalFault> {
        shared_values(self.journal().as_ref(), self.id()).await
    }

    /// The last durable version of a shared value; `None` if it was never written.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub async fn shared_value(&self, name: &str) -> Result<Option<serde_json::Value>, JournalFault> {
        let values = self.shared().await?;
        let Some(value) = values.find(name) else { return Ok(None) };
        let json = shared_json(self.journal().as_ref(), value).await?;
        // It was written by the kernel from a value.
        Ok(Some(serde_json::from_str(&json).unwrap_or(serde_json::Value::String(json))))
    }
}
