//! A program that closes its connection while its call waits usually tries again. If nothing was sent to the provider, its
//! second request takes the place of the first in line, instead of a second one behind it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use spinney_kernel::primitives::AgentId;
use tokio::sync::mpsc;

use super::client::Client;

/// Identifies equal requests by agent, path and body. The body may be large, so it is hashed only when there is something
/// to compare it with.
#[derive(Clone, Debug)]
pub(super) struct RetryKey {
    agent: AgentId,
    path: String,
    body: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HashedKey {
    agent: AgentId,
    bytes: [u8; 32],
}

impl RetryKey {
    pub(super) fn new(agent: &AgentId, path: &str, body: &Bytes) -> Self {
        Self { agent: agent.clone(), path: path.to_owned(), body: body.clone() }
    }

    fn hashed(&self) -> HashedKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.path.as_bytes());
        hasher.update(b"\n");
        hasher.update(&self.body);
        HashedKey { agent: self.agent.clone(), bytes: *hasher.finalize().as_bytes() }
    }
}

/// Calls that wait and have lost their program.
#[derive(Default)]
pub(super) struct Retries {
    abandoned: Mutex<BTreeMap<HashedKey, mpsc::Sender<Client>>>,
}

/// What a waiting call gets its program from, if that comes back.
pub(super) struct Offer<'r> {
    retries: &'r Retries,
    key: &'r RetryKey,
    adopt: mpsc::Sender<Client>,
    adopted: mpsc::Receiver<Client>,
}

impl Offer<'_> {
    /// Offers the call to the next request with the same key.
    pub(super) fn make(&self) {
        let key = self.key.hashed();
        self.retries.abandoned().insert(key, self.adopt.clone());
    }

    /// Waits for such a request.
    pub(super) async fn adopted(&mut self) -> Option<Client> {
        self.adopted.recv().await
    }

    /// Takes the offer back. Returns a request that came at the last moment: nothing else answers it.
    pub(super) async fn take_back(mut self) -> Option<Client> {
        self.retries.take(self.key);
        self.adopted.close();
        self.adopted.recv().await
    }
}

impl Retries {
    /// What the call with this key can offer.
    pub(super) fn offer<'r>(&'r self, key: &'r RetryKey) -> Offer<'r> {
        let (adopt, adopted) = mpsc::channel(1);
        Offer { retries: self, key, adopt, adopted }
    }

    /// Hands a client over to the call that an equal request left behind. Gives it back if there is none.
    pub(super) fn adopt(&self, key: &RetryKey, client: Client) -> Option<Client> {
        let Some(adopt) = self.take(key) else { return Some(client) };
        adopt.try_send(client).err().map(mpsc::error::TrySendError::into_inner)
    }

    fn take(&self, key: &RetryKey) -> Option<mpsc::Sender<Client>> {
        if self.abandoned().is_empty() {
            return None;
        }
        let key = key.hashed();
        self.abandoned().remove(&key)
    }

    /// How many calls wait for a retry.
    pub(super) fn count(&self) -> usize {
        self.abandoned().len()
    }

    fn abandoned(&self) -> MutexGuard<'_, BTreeMap<HashedKey, mpsc::Sender<Client>>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::client;
    use super::*;

    /// Whichever of the two is first, a request that comes back when the offer is taken back is not lost.
    #[tokio::test]
    async fn a_retry_that_comes_as_its_offer_ends_is_handed_over_or_given_back() {
        let retries = Retries::default();
        let key = RetryKey::new(&"main".parse().unwrap(), "/v1/messages", &Bytes::from_static(b"{}"));
        let offer = retries.offer(&key);
        offer.make();
        let (came, _response) = client();
        assert!(retries.adopt(&key, came).is_none(), "it was offered");
        assert!(offer.take_back().await.is_some_and(|client| !client.is_gone()), "it had come");

        let offer = retries.offer(&key);
        offer.make();
        assert!(offer.take_back().await.is_none());
        let (late, _response) = client();
        assert!(retries.adopt(&key, late).is_some(), "it was taken back");

        // The sender was taken out of the list, and the offer ends before the client is sent.
        let offer = retries.offer(&key);
        offer.make();
        let adopt = retries.take(&key).unwrap();
        assert!(offer.take_back().await.is_none());
        let (between, _response) = client();
        assert!(adopt.try_send(between).is_err());
    }
}
