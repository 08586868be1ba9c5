//! A program that closes its connection while its call waits usually tries again. If nothing was sent to the provider, its
//! second request takes the place of the first in line, instead of a second one behind it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney_kernel::words::AgentId;
use tokio::sync::mpsc;

use super::client::Client;

/// What makes two requests the same: the agent, and the bytes of path and body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RetryKey {
    agent: AgentId,
    bytes: [u8; 32],
}

impl RetryKey {
    pub(super) fn new(agent: &AgentId, path: &str, body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_bytes());
        hasher.update(b"\n");
        hasher.update(body);
        Self { agent: agent.clone(), bytes: *hasher.finalize().as_bytes() }
    }
}

/// Calls that wait and have lost their program.
#[derive(Default)]
pub(super) struct Retries {
    abandoned: Mutex<BTreeMap<RetryKey, mpsc::Sender<Client>>>,
}

impl Retries {
    /// Offers a call to the next request with the same key. The call takes the offer back with [`keep`](Self::keep).
    pub(super) fn offer(&self, key: &RetryKey, adopt: mpsc::Sender<Client>) {
        self.abandoned().insert(key.clone(), adopt);
    }

    pub(super) fn keep(&self, key: &RetryKey) {
        self.abandoned().remove(key);
    }

    /// Hands a client over to the call that an equal request left behind. Gives it back if there is none.
    pub(super) fn adopt(&self, key: &RetryKey, client: Client) -> Option<Client> {
        let Some(adopt) = self.abandoned().remove(key) else { return Some(client) };
        adopt.try_send(client).err().map(mpsc::error::TrySendError::into_inner)
    }

    /// How many calls wait for a retry.
    pub(super) fn count(&self) -> usize {
        self.abandoned().len()
    }

    fn abandoned(&self) -> MutexGuard<'_, BTreeMap<RetryKey, mpsc::Sender<Client>>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
