//! Requests that the gateway refused or could not pass on, for the person who started the program: a program may hide the
//! errors that it gets.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::wire::{GatewayError, GatewayErrorKind};

/// The requests of a run that got an error of the gateway's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedRequests {
    kinds: BTreeMap<GatewayErrorKind, RefusedOfKind>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RefusedOfKind {
    count: u64,
    last: GatewayError,
    /// How many requests had got an error by then.
    number: u64,
}

impl RefusedRequests {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.kinds.values().map(|kind| kind.count).sum()
    }

    #[must_use]
    pub fn last(&self) -> Option<&GatewayError> {
        self.kinds.values().max_by_key(|kind| kind.number).map(|kind| &kind.last)
    }

    /// How many there were of each kind.
    pub fn kinds(&self) -> impl Iterator<Item = (GatewayErrorKind, u64)> {
        self.kinds.iter().map(|(kind, of_kind)| (*kind, of_kind.count))
    }

    /// Those that nothing else explains: not what a person sees when it happens. Programs look for paths that only some
    /// servers have, so unknown ones are among them only if the program made no call.
    #[must_use]
    pub fn unexplained(&self, calls: u64) -> Self {
        let is_explained = |kind: &GatewayErrorKind| match kind {
            GatewayErrorKind::NotFound => calls > 0,
            GatewayErrorKind::NeedsHttp | GatewayErrorKind::Ceiling | GatewayErrorKind::Ended => true,
            GatewayErrorKind::WrongKey
            | GatewayErrorKind::TooLarge
            | GatewayErrorKind::BadRequest
            | GatewayErrorKind::Refused
            | GatewayErrorKind::Unreachable
            | GatewayErrorKind::Broken
            | GatewayErrorKind::Internal => false,
        };
        let mut kinds = self.kinds.clone();
        kinds.retain(|kind, _| !is_explained(kind));
        Self { kinds }
    }

    fn add(&mut self, error: &GatewayError) {
        let number = self.count() + 1;
        let before = self.kinds.get(&error.kind).map_or(0, |kind| kind.count);
        self.kinds.insert(error.kind, RefusedOfKind { count: before + 1, last: error.clone(), number });
    }
}

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<RefusedRequests>);

impl Refusals {
    pub(super) fn add(&self, error: &GatewayError) {
        // Codex tries a WebSocket before it uses HTTP.
        if error.kind != GatewayErrorKind::NeedsHttp {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).add(error);
        }
    }

    pub(super) fn get(&self) -> RefusedRequests {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
