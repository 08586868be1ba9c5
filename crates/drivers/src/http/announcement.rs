//! The last announcement of a provider about its rate limits, shared by all calls of a model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::HeaderMap;
use spinney_kernel::port::model::Announced;

use crate::wire::{WireHeader, announced};

/// Keeps what the newest response announced. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LastAnnouncement(Arc<Mutex<Announced>>);

impl LastAnnouncement {
    #[must_use]
    pub fn read(&self) -> Announced {
        *self.kept()
    }

    /// A response that announces nothing, such as an error of a gateway, changes nothing.
    pub(super) fn hear(&self, headers: &[WireHeader<'_>]) {
        let heard = announced(headers);
        if heard != Announced::default() {
            *self.kept() = heard;
        }
    }

    /// It is one plain value, so a panic elsewhere cannot leave it half written.
    fn kept(&self) -> MutexGuard<'_, Announced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The headers that are text.
pub(super) fn wire_headers(headers: &HeaderMap) -> Vec<WireHeader<'_>> {
    headers
        .iter()
        .filter_map(|(name, value)| Some(WireHeader { name: name.as_str(), value: value.to_str().ok()? }))
        .collect()
}
