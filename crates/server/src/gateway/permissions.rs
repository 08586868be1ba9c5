//! The names that the user has allowed although their cost has no bound, at the start or when asked during the run. The
//! user is asked about each name once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_drivers::wire::{Permitted, RequestName};
use spinney_kernel::port::Pending;
use tokio::sync::Mutex as AsyncMutex;

use super::wire::{GatewayError, RefusedName};

/// Asks the user whether to allow a refused name.
pub type AskPerson = Arc<dyn Fn(RefusedName) -> Pending<bool> + Send + Sync>;

pub(super) struct Permissions {
    permitted: Arc<Mutex<Arc<Permitted>>>,
    /// The number of calls in which each name passed only because the user allowed it.
    used: Mutex<BTreeMap<RequestName, u64>>,
    ask: Option<AskPerson>,
    /// The names that the user denied. Locked while the user is asked, so there is one question at a time.
    denied: Arc<AsyncMutex<BTreeSet<RequestName>>>,
}

impl Permissions {
    pub(super) fn new(permitted: Permitted, ask: Option<AskPerson>) -> Self {
        let permitted = Arc::new(Mutex::new(Arc::new(permitted)));
        Self { permitted, used: Mutex::default(), ask, denied: Arc::default() }
    }

    pub(super) fn permitted(&self) -> Arc<Permitted> {
        Arc::clone(&lock(&self.permitted))
    }

    /// Whether the user allows the name for which a request was refused, so the request can be read again.
    pub(super) async fn allows(&self, error: &GatewayError) -> bool {
        let (Some(refused), Some(ask)) = (&error.refused, &self.ask) else { return false };
        let mut denied = Arc::clone(&self.denied).lock_owned().await;
        if self.permitted().contains(&refused.name) {
            return true;
        }
        if denied.contains(&refused.name) {
            return false;
        }
        let (refused, ask, permitted) = (refused.clone(), Arc::clone(ask), Arc::clone(&self.permitted));
        // A separate task: the answer counts for the next request if the program of this one has gone.
        let asking = tokio::spawn(async move {
            let is_allowed = ask(refused.clone()).await;
            if is_allowed {
                Arc::make_mut(&mut lock(&permitted)).insert(refused.name);
            } else {
                denied.insert(refused.name);
            }
            is_allowed
        });
        asking.await.unwrap_or(false)
    }

    /// Counts a call with these names. Returns the names that no earlier call had.
    pub(super) fn use_names(&self, names: &BTreeSet<RequestName>) -> Vec<RequestName> {
        let mut used = lock(&self.used);
        let mut first = Vec::new();
        for name in names {
            let count = used.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count == 1 {
                first.push(name.clone());
            }
        }
        first
    }

    pub(super) fn used(&self) -> BTreeMap<RequestName, u64> {
        lock(&self.used).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
