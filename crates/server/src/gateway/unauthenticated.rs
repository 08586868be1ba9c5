//! Connections that have not shown the run's key yet. They have a small quota and a short time of their own, and give way
//! when there is no room, so a client without the key cannot keep the program out, however many connections it opens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney::clock::instant;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a connection may take to show the key.
const KEY_WAIT: Duration = Duration::from_secs(5);
/// Most of them that take longer than [`QUICK`]; beyond that, the oldest is closed.
const SLOW_MAX: usize = 64;
/// A program that opens many connections at once shows the key on each within this time.
const QUICK: Duration = Duration::from_secs(1);

/// Oldest first.
#[derive(Default)]
pub(super) struct Newcomers(Mutex<VecDeque<Waiting>>);

struct Waiting {
    since: Instant,
    standing: Arc<watch::Sender<Standing>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Unknown,
    /// It has shown the key.
    Admitted,
    /// It is to be closed.
    TurnedAway,
}

/// One connection, from its first byte to its end.
pub(super) struct Newcomer {
    all: Arc<Newcomers>,
    standing: Arc<watch::Sender<Standing>>,
}

impl Newcomers {
    /// Adds a connection, and turns the oldest away if too many are slow.
    pub(super) fn add(self: &Arc<Self>) -> Newcomer {
        let standing = Arc::new(watch::Sender::new(Standing::Unknown));
        let now = Waiting { since: instant(), standing: Arc::clone(&standing) };
        let last_slow = self.waiting().get(SLOW_MAX).map(|waiting| waiting.since);
        if last_slow.is_some_and(|since| now.since - since > QUICK) {
            self.turn_away_oldest();
        }
        self.waiting().push_back(now);
        Newcomer { all: Arc::clone(self), standing }
    }

    /// Makes room for another connection, if one has not shown the key yet.
    pub(super) fn turn_away_oldest(&self) {
        if let Some(oldest) = self.waiting().pop_front() {
            oldest.standing.send_replace(Standing::TurnedAway);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settles a connection that is still unknown.
    fn settle(&self, standing: &Arc<watch::Sender<Standing>>, settled: Standing) {
        let mut waiting = self.waiting();
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(&other.standing, standing)) {
            waiting.remove(at);
            standing.send_replace(settled);
        }
    }
}

impl Newcomer {
    /// It has shown the key.
    pub(super) fn admit(&self) {
        self.all.settle(&self.standing, Standing::Admitted);
    }

    /// Waits until it is to be closed, which never happens to one that has shown the key.
    pub(super) async fn turned_away(&self) {
        let mut standing = self.standing.subscribe();
        let is_settled = |standing: &Standing| *standing != Standing::Unknown;
        if timeout(KEY_WAIT, standing.wait_for(is_settled)).await.is_err() {
            self.all.settle(&self.standing, Standing::TurnedAway);
        }
        if *self.standing.borrow() == Standing::Admitted {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.all.settle(&self.standing, Standing::TurnedAway);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    fn is_turned_away(newcomer: &Newcomer) -> bool {
        newcomer.turned_away().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_without_the_key_gives_way_and_one_with_it_never() {
        let all = Arc::new(Newcomers::default());
        let (first, second, third) = (all.add(), all.add(), all.add());
        first.admit();
        all.turn_away_oldest();
        assert!(!is_turned_away(&first) && is_turned_away(&second) && !is_turned_away(&third));
        // Too late.
        second.admit();
        assert!(is_turned_away(&second));
        drop(third);
        all.turn_away_oldest();
        assert!(!is_turned_away(&first));
    }

    #[tokio::test(start_paused = true)]
    async fn many_may_come_at_once_and_few_may_be_slow() {
        let all = Arc::new(Newcomers::default());
        let burst: Vec<Newcomer> = (0..10 * SLOW_MAX).map(|_| all.add()).collect();
        assert!(burst.iter().all(|newcomer| !is_turned_away(newcomer)));
        burst[SLOW_MAX + 1..].iter().for_each(Newcomer::admit);
        advance(2 * QUICK).await;
        let others: Vec<Newcomer> = (0..2).map(|_| all.add()).collect();
        let closed: Vec<bool> = burst[..3].iter().map(is_turned_away).collect();
        assert_eq!(closed, [true, false, false], "one too many");
        assert!(others.iter().all(|newcomer| !is_turned_away(newcomer)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_a_short_time_to_show_the_key() {
        let all = Arc::new(Newcomers::default());
        let (slow, quick) = (all.add(), all.add());
        quick.admit();
        let since = instant();
        slow.turned_away().await;
        assert_eq!(since.elapsed(), KEY_WAIT);
        assert!(timeout(10 * KEY_WAIT, quick.turned_away()).await.is_err());
        assert_eq!(all.0.lock().unwrap().len(), 0);
    }
}
