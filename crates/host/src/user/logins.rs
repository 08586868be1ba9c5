//! The tokens of logins at servers elsewhere:
//!
//! ```text
//! <state>/logins/<hash>.json      of one server, by its URL: readable for the user alone
//! ```
//!
//! They are in no journal, no log and no environment. What is hidden from agents hides them.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use spinney::clock::{Clock, SystemClock};
use spinney_drivers::mcp::{LoginTokens, ServerLogins};
use spinney_drivers::network::{Outbound, SystemOutbound};
use spinney_kernel::port::Pending;
use spinney_kernel::primitives::BlobHash;

use super::folders;
use super::state_files::{self, StateFileError};
use crate::error_text::with_causes;
use crate::off_workers::off_workers;
use crate::text_file::{FileAction, FileFault};

const FOLDER: &str = "logins";

/// The user's logins.
pub struct UserLogins;

/// The login at a server, if there is one.
///
/// # Errors
/// If what is kept cannot be read.
pub fn find(url: &str) -> Result<Option<LoginTokens>, StateFileError> {
    let Some(path) = place(url) else { return Ok(None) };
    let kept: Option<LoginTokens> = state_files::read(&path)?;
    Ok(kept.filter(|kept| kept.url == url))
}

/// Keeps a login, in place of the one before.
///
/// # Errors
/// If it cannot be written.
pub fn keep(tokens: &LoginTokens) -> Result<(), StateFileError> {
    state_files::write(&state_files::make_folder(FOLDER)?.join(name(&tokens.url)), tokens)
}

/// Removes the login at a server. Whether there was one.
///
/// # Errors
/// If it cannot be removed.
pub fn forget(url: &str) -> Result<bool, StateFileError> {
    let Some(path) = place(url) else { return Ok(false) };
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => Ok(removed.map(|()| true).map_err(FileFault::when(FileAction::Remove, &path))?),
    }
}

fn place(url: &str) -> Option<PathBuf> {
    Some(folders::state().ok()?.join(FOLDER).join(name(url)))
}

fn name(url: &str) -> String {
    format!("{}.json", BlobHash::digest(url.as_bytes()).as_str())
}

impl ServerLogins for UserLogins {
    fn token(&self, url: String) -> Pending<Result<Option<String>, String>> {
        Box::pin(async move {
            let in_words = |error: StateFileError| with_causes(&error);
            let wanted = url.clone();
            let Some(tokens) = off_workers(async move || find(&wanted)).await.map_err(in_words)? else {
                return Ok(None);
            };
            let now = SystemClock::new().now_ms();
            if !tokens.is_expired(now) {
                return Ok(Some(tokens.access_token().to_owned()));
            }
            let outbound: Arc<dyn Outbound> = Arc::new(SystemOutbound::default());
            match tokens.renewed(&outbound, now).await {
                Ok(newer) => {
                    let token = newer.access_token().to_owned();
                    off_workers(async move || keep(&newer)).await.map_err(in_words)?;
                    Ok(Some(token))
                }
                Err(why) => {
                    // Another process may have renewed it meanwhile: then the old one is worth nothing.
                    let kept = off_workers(async move || find(&url)).await.map_err(in_words)?;
                    let newer = kept.filter(|kept| kept.access_token() != tokens.access_token());
                    newer.map(|newer| Some(newer.access_token().to_owned())).ok_or(why)
                }
            }
        })
    }
}
