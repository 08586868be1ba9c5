//! Clean shutdowns, and crashes in the middle of one.

use std::sync::Arc;
use std::time::Duration;

use spinney::Shutdown;
use spinney::tree::Stopped;
use spinney_journal::{Blocking, JournalFault};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_testkit::TestHome;

use crate::failing_journal::Full;

const SCRIPT: &str = "rules:
  - { when: { turn: 1 }, think_ms: 50, say: first, call: [{ tool: list_agents }] }
  - { say: done }";
const ROOT: &str = "root turns=3";

/// Shuts a home down, and gives up after a moment.
async fn give_up_stopping(home: &spinney::Home) {
    let stopping = home.shutdown(Shutdown::Stop);
    assert!(tokio::time::timeout(Duration::from_millis(5), stopping).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_home_whose_stop_was_given_up_can_still_be_killed() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, ROOT).await;
    give_up_stopping(&home).await;
    home.shutdown(Shutdown::Kill).await;
    let seq = stage.journal().head(tree.id()).wait().unwrap().unwrap().seq;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.journal().head(tree.id()).wait().unwrap().unwrap().seq, seq, "it went on");
}

/// A clean stop suspends the root. A process that dies while it resumes, after the lost call was taken up and before
/// the suspension ended, must not leave it suspended.
#[tokio::test(start_paused = true)]
async fn a_crash_while_a_stopped_tree_comes_back_does_not_leave_it_paused() {
    let disk = TestHome::new(SCRIPT);
    let stage = TestHome::on(Arc::new(Full::new(Arc::clone(disk.journal()), 3)), SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, ROOT).await;
    give_up_stopping(&home).await;
    home.shutdown(Shutdown::Kill).await;
    let back = stage.home().resume(tree.id()).await.unwrap().ended().await;
    assert_eq!(back.stopped, Some(Stopped::Journal(JournalFault::Full)));
    let tree = disk.home().resume(tree.id()).await.unwrap();
    let status = tokio::time::timeout(Duration::from_secs(60), tree.ended()).await;
    assert_eq!(status.unwrap().state, TreeState::Ended(ExitKind::Completed));
}
