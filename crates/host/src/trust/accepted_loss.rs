//! Accepts that a journal has lost something: what is recorded of its trees is set back as well.

use std::path::Path;

use spinney_store::{Loss, SqliteJournal};

use super::{TrustError, tree_marks};
use crate::home::{HomeError, HomeUse, open_read_only};
use crate::inside;

/// Accepts that confirmed commits are missing. None if none is.
pub async fn accept_loss(home: &Path) -> Result<Option<Loss>, TrustError> {
    inside::check_self(home).map_err(HomeError::Denied)?;
    let accepted = SqliteJournal::accept_loss(home).map_err(|error| HomeError::Unopened {
        home: home.to_owned(),
        to: HomeUse::Change,
        error,
    })?;
    if accepted.is_some() {
        tree_marks::accept_loss(home, &open_read_only(home)?).await?;
    }
    Ok(accepted)
}
