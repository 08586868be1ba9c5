//! Clocks of trees whose process died: a timeout stands still while no process runs the tree, a wall-clock timeout runs
//! on, and what ends because of time says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spinney::function_tool::RawCall;
use spinney::tree::ApplyError;
use spinney::{FunctionTool, Shutdown};
use spinney_kernel::record::{ClockKind, ExitKind};
use spinney_kernel::rules::request::Request;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded};

use crate::clocks::{MINUTE_MS, id, life, message, more_time, pass, turns_of};
use crate::graphs::definition;

/// A timeout stands still while no process runs the tree: it counts up to the last batch before the process died, and a
/// tree that is resumed long after its end would have come has the rest of its time.
#[tokio::test(start_paused = true)]
async fn a_timeout_counts_up_to_the_last_batch_before_a_crash() {
    for lost in ["repeatable", "presumed"] {
        let stage = TestHome::new(&format!("lost: {lost}\nrules: [{{ hang: true }}]"));
        let mut home = stage.home();
        let mut tree = stage.start(&home, "root turns=5 timeout=5s").await;
        for _ in 0..3 {
            let running = stage.model().until_out(1);
            tokio::time::timeout(Duration::from_secs(60), running).await.unwrap();
            pass(1_000).await;
            // An unrelated batch records how far the process came.
            tree.send(id("root"), "Still there?").await.unwrap();
            pass(500).await;
            home.shutdown(Shutdown::Kill).await;
            pass(5_000).await;
            home = stage.home();
            tree = home.resume(tree.id()).await.unwrap();
        }
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Failed), "{lost}");
        let recorded = recorded(&tree).await;
        let (_, exit) = life(&recorded, "root");
        assert_eq!(message(&exit), ("timeout", "it took longer than its timeout of 5 seconds"), "{lost}");
        let clock = turns_of(&recorded, "root", ClockKind::Timeout);
        assert_eq!(clock, [(4_000, true), (3_000, true), (2_000, true)], "{lost}");
    }
}

/// A tree of five seconds that was killed after one and a half and resumed after six and a half completes.
#[tokio::test(start_paused = true)]
async fn a_tree_that_was_killed_once_and_resumed_after_its_timeout_completes() {
    for lost in ["repeatable", "presumed"] {
        let stage = TestHome::new(&format!("lost: {lost}\nrules: [{{ think_ms: 2000, say: done }}]"));
        let home = stage.home();
        let tree = stage.start(&home, "root turns=5 timeout=5s").await;
        pass(1_500).await;
        home.shutdown(Shutdown::Kill).await;
        pass(5_000).await;
        let tree = stage.home().resume(tree.id()).await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{lost}");
    }
}

/// The same with more time, given while no process runs the tree.
#[tokio::test(start_paused = true)]
async fn more_time_for_a_tree_that_was_killed_is_added_to_what_was_left() {
    let stage = TestHome::new("rules: [{ think_ms: 12000, say: done }]");
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 timeout=5s").await;
    pass(1_500).await;
    home.shutdown(Shutdown::Kill).await;
    pass(5_000).await;
    let home = stage.home();
    home.apply(tree.id(), Request::Raise(more_time("root", 10_000))).await.unwrap();
    pass(60 * MINUTE_MS).await;
    let tree = home.resume(tree.id()).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
}

/// A wall-clock timeout runs on without a process. If it is over when the tree is resumed, the tree ends because of
/// time and not because of the call that was lost, whether it would have wrapped up or not, and nothing is called. More
/// time comes too late then.
#[tokio::test(start_paused = true)]
async fn a_tree_whose_wall_clock_timeout_passed_without_a_process_ends_because_of_time() {
    for (lost, fixture, given) in [
        ("presumed", "root turns=5 wall=5s", "5 seconds"),
        ("repeatable", "root turns=5 wall=5s", "5 seconds"),
        ("presumed", "root turns=5 wall=20s wrap", "20 seconds"),
    ] {
        for asks_for_time in [false, true] {
            let stage = TestHome::new(&format!("lost: {lost}\nrules: [{{ hang: true }}]"));
            let home = stage.home();
            let tree = stage.start(&home, fixture).await;
            pass(1_500).await;
            home.shutdown(Shutdown::Kill).await;
            pass(20_000).await;
            let home = stage.home();
            if asks_for_time {
                let late = home.apply(tree.id(), Request::Raise(more_time("root", 10_000))).await;
                assert!(matches!(late, Err(ApplyError::Refused(_))), "{late:?}");
            }
            let tree = home.resume(tree.id()).await.unwrap();
            assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Failed), "{lost} {fixture}");
            let (_, exit) = life(&recorded(&tree).await, "root");
            let told = format!("it took longer than its timeout of {given}");
            assert_eq!(message(&exit), ("timeout", told.as_str()), "{lost} {fixture}");
            assert_eq!(stage.model().model().calls(), 1, "{lost} {fixture}");
        }
    }
}

/// Clocks are decided before lost calls: if the moment of an agent's last call came while no process ran the tree, a tool
/// that ran is not started again, and the agent answers with what it has.
#[tokio::test(start_paused = true)]
async fn a_tool_is_not_started_again_when_the_time_for_a_last_call_has_come() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let tool = FunctionTool::new(move |_: RawCall| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<String, String>>()
    });
    let script = "rules: [{ when: { turn: 1 }, call: [{ tool: dig }] }, { say: As far as I got. }]";
    let stage = TestHome::new(script).with_tool("dig", tool.repeatable().timeout_ms(60 * MINUTE_MS));
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 wall=50s wrap").await;
    pass(1_000).await;
    home.shutdown(Shutdown::Kill).await;
    pass(46_000).await;
    let tree = stage.home().resume(tree.id()).await.unwrap();
    tree.ended().await;
    let (lived_ms, exit) = life(&recorded(&tree).await, "root");
    assert_eq!(message(&exit).0, "timeout");
    assert!(lived_ms < 50_000, "{lived_ms}");
    assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "As far as I got.");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// The same for a turn that was lost: in place of another attempt, which would take as long as the first, the agent
/// answers with what it has.
#[tokio::test(start_paused = true)]
async fn a_turn_is_not_tried_again_when_the_time_for_a_last_call_has_come() {
    for lost in ["repeatable", "presumed"] {
        let stage = TestHome::new(&format!(
            "lost: {lost}\nrules: [{{ when: {{ wrap_up: true }}, say: As far as I got. }}, {{ hang: true }}]"
        ));
        let home = stage.home();
        let tree = stage.start(&home, "root turns=5 wall=20s wrap").await;
        pass(4_000).await;
        home.shutdown(Shutdown::Kill).await;
        pass(14_700).await;
        let tree = stage.home().resume(tree.id()).await.unwrap();
        tree.ended().await;
        let (lived_ms, exit) = life(&recorded(&tree).await, "root");
        assert_eq!(message(&exit).0, "timeout", "{lost}");
        assert!(lived_ms < 20_000, "{lost}: {lived_ms}");
        assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "As far as I got.", "{lost}");
        assert_eq!(stage.model().model().calls(), 2, "{lost}");
    }
}

/// The timeouts of steps and groups stand still in the same way.
#[tokio::test(start_paused = true)]
async fn the_timeouts_of_steps_and_groups_stand_still_while_no_process_runs_the_tree() {
    let stage = TestHome::new("rules: [{ think_ms: 2000, say: done }]");
    let home = stage.home();
    let pipeline = r"
pipeline:
  steps:
    - id: both
      budget: { timeout: 5s }
      parallel:
        - { id: a, agent_id: worker, task_description: Work., timeout: 4s }
        - { id: b, agent_id: worker, task_description: Work. }
";
    let tree = home.start(definition(pipeline)).await.unwrap();
    stage.model().until_out(2).await;
    pass(1_500).await;
    home.shutdown(Shutdown::Kill).await;
    pass(60 * MINUTE_MS).await;
    let tree = stage.home().resume(tree.id()).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
}
