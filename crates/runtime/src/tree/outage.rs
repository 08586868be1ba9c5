//! A journal that cannot be reached for a while. The tree keeps what is not written, asks where its journal ends until it
//! gets an answer, and continues there.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use spinney_journal::{Append, ChainHash, Head, Journal, JournalFault};
use spinney_kernel::primitives::{Seq, Time, TreeId};

use crate::clock::Nap;

const FIRST_WAIT_MS: u64 = 100;
const WAIT_MS_MAX: u64 = 5_000;

/// What the journal says about the end of a tree.
type Answer = Pin<Box<dyn Future<Output = Result<Option<Head>, JournalFault>> + Send>>;

pub(super) struct Outage {
    /// When it was noticed.
    pub(super) since: Time,
    wait_ms: u64,
    /// Absent while appends are not answered yet: each is answered, and none may be written after it was given up.
    asking: Option<Answer>,
}

impl Outage {
    pub(super) const fn new(since: Time) -> Self {
        Self { since, wait_ms: FIRST_WAIT_MS, asking: None }
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Asks where a tree ends, after a while that doubles each time.
    pub(super) fn ask(&mut self, journal: &Arc<dyn Journal>, tree: TreeId) {
        let (journal, wait_ms) = (Arc::clone(journal), self.wait_ms);
        self.wait_ms = (wait_ms * 2).min(WAIT_MS_MAX);
        self.asking = Some(Box::pin(async move {
            let mut nap = Nap::new();
            nap.set(wait_ms);
            nap.over().await;
            journal.head(tree).await
        }));
    }

    /// The answer; forever pending if nothing was asked.
    pub(super) async fn answer(&mut self) -> Result<Option<Head>, JournalFault> {
        match &mut self.asking {
            Some(asking) => asking.await,
            None => std::future::pending().await,
        }
    }
}

/// How far a tree is durable, by what its journal says now: nothing, a part or all of what was being written may be there.
/// If anything else is there, another writer has it.
pub(super) fn durable(
    tree: TreeId,
    confirmed: (Seq, Option<ChainHash>),
    in_flight: &VecDeque<Append>,
    head: Option<&Head>,
) -> Result<(Seq, Option<ChainHash>), JournalFault> {
    let end = head.map_or(Seq(0), |head| head.seq);
    let (mut seq, mut hash) = (confirmed.0, confirmed.1.unwrap_or_else(|| ChainHash::start(tree)));
    for append in in_flight.iter().take_while(|append| append.end() <= end) {
        (seq, hash) = (append.end(), hash.then(append.after, append.batch.bytes()));
    }
    match head {
        None if seq == end => Ok((seq, None)),
        Some(head) if seq == end && hash == head.hash => Ok((seq, Some(hash))),
        Some(_) | None => Err(JournalFault::Stale { tree, expected: confirmed.0.0, found: end.0 }),
    }
}
