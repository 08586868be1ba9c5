//! Requests that the gateway refused or could not pass on, for the person who started the program: a program may hide the
//! errors that it gets.

use std::sync::{Mutex, PoisonError};

use super::wire::{GatewayError, GatewayErrorKind};

/// How many requests got an error of the gateway's own, and the last one. Those at a ceiling are told by
/// [`Notice`](super::Notice).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequests {
    pub count: u64,
    pub last: GatewayError,
}

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Option<RefusedRequests>>);

impl Refusals {
    pub(super) fn add(&self, error: &GatewayError) {
        let is_of_interest = match error.kind {
            GatewayErrorKind::TooLarge
            | GatewayErrorKind::BadRequest
            | GatewayErrorKind::Refused
            | GatewayErrorKind::Unreachable
            | GatewayErrorKind::Broken
            | GatewayErrorKind::Internal => true,
            // Codex tries a WebSocket first, and programs look for paths that only some servers have.
            GatewayErrorKind::NeedsHttp | GatewayErrorKind::NotFound => false,
            GatewayErrorKind::WrongKey | GatewayErrorKind::Ceiling | GatewayErrorKind::Ended => false,
        };
        if !is_of_interest {
            return;
        }
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = refused.as_ref().map_or(0, |refused| refused.count) + 1;
        *refused = Some(RefusedRequests { count, last: error.clone() });
    }

    pub(super) fn get(&self) -> Option<RefusedRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
