//! A clock that is set back while no process runs.

use std::sync::Arc;
use std::time::Duration;

use spinney::Shutdown;
use spinney::clock::Clock;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_testkit::{SteadyClock, TestHome};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A clock that is a day behind.
struct SetBack(SteadyClock);

impl Clock for SetBack {
    fn now_ms(&self) -> u64 {
        self.0.now_ms() - DAY_MS
    }
}

/// A deadline is a duration: it does not grow by a day because the clock was set back by one.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_moves_no_deadline_of_a_tree() {
    let stage = TestHome::new("rules: [{ hang: true }]");
    let clock = SteadyClock::new();
    let home = stage.home_on(Arc::new(clock));
    let tree = stage.start(&home, "root turns=3 timeout=10s").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    home.shutdown(Shutdown::Kill).await;

    let home = stage.home_on(Arc::new(SetBack(clock)));
    let tree = home.resume(tree.id()).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), tree.ended()).await;
    assert_eq!(ended.unwrap().state, TreeState::Ended(ExitKind::Failed));
}
