//! The root's answer as a typed value, for callers that gave the root an `output_schema`.

use serde::de::DeserializeOwned;
use spinney_journal::JournalFault;
use spinney_kernel::primitives::Body;
use spinney_kernel::record::Exit;

use super::{RequestError, Stopped, Tree};

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The root ended without an answer, or with one that does not match its schema.
    #[error("the root has no answer: {exit}")]
    NoAnswer {
        /// How it ended.
        exit: Exit,
        /// Its progress.
        so_far: Body,
    },
    /// The answer is not such a value.
    #[error("the answer does not have the expected form ({reason}): give the root an `output_schema` for it")]
    OtherValue {
        /// The deserialization error.
        reason: String,
    },
    /// The tree is not running and has not ended.
    #[error(transparent)]
    Stopped(Stopped),
    /// A long answer could not be read.
    #[error(transparent)]
    Journal(JournalFault),
}

impl Tree {
    /// Waits until the tree has ended and deserializes the root's answer.
    ///
    /// # Errors
    /// If the root gave no answer, or one of another type.
    pub async fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        if let Some(stopped) = self.ended().await.stopped {
            return Err(OutputError::Stopped(stopped));
        }
        let snapshot = self.snapshot().await.map_err(|error| match error {
            RequestError::Stopped(stopped) => OutputError::Stopped(stopped),
            RequestError::Refused(_) | RequestError::Reply(_) => OutputError::Stopped(Stopped::Bug),
        })?;
        let Some(end) = snapshot.end else { return Err(OutputError::Stopped(Stopped::Bug)) };
        if !end.exit.is_success() {
            return Err(OutputError::NoAnswer { exit: end.exit, so_far: end.shown });
        }
        let text = self.whole(end.shown).await?;
        serde_json::from_str(&text).map_err(|error| OutputError::OtherValue { reason: error.to_string() })
    }

    /// The whole text, from its blob if the event has only a preview.
    async fn whole(&self, body: Body) -> Result<String, OutputError> {
        let Some(rest) = body.rest().cloned() else { return Ok(body.text) };
        match self.journal().blob(&rest).await {
            Ok(Some(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(None) => Ok(body.text),
            Err(fault) => Err(OutputError::Journal(fault)),
        }
    }
}
