//! What is visible of a living agent, and what is kept after its end.

use spinney_kernel::budget::{Amounts, Ceilings, Resource, SparseAmounts};
use spinney_kernel::primitives::{ThreadId, TokenCount};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::{AgentStatus, AgentView, Ended};
use spinney_testkit::Scenario;

use crate::observed::{name, turn};

/// V12: a snapshot has the agent's id, its parent's id, spent and held amounts, limits and state.
#[test]
fn v12_a_snapshot_has_ids_amounts_limits_and_state() {
    let mut play = Scenario::grow("root $9.00 / a $1.00 / b $0.80 steps=5");
    play.run("call b $0.20\ndone #1 $0.25\ncall b $0.30");
    let spent = turn(250);
    let held = turn(300);
    let limit = Ceilings::NONE.with(Resource::Cost, 800_000_000).with(Resource::Steps, 5);
    let remaining = Ceilings::NONE.with(Resource::Cost, 250_000_000).with(Resource::Steps, 3);
    let view = AgentView {
        agent: name("b"),
        parent: Some(name("a")),
        role: name("b"),
        depth: 2,
        status: AgentStatus::Running,
        spent,
        presumed: Amounts::ZERO,
        held,
        lent: Amounts::ZERO,
        overrun: Amounts::cost(50_000_000).with(Resource::Tokens, 50),
        limit: Some(limit),
        remaining: Some(remaining),
        thread: Some(ThreadId::of_tree(play.world().tree())),
    };
    assert_eq!(play.view("b"), view);
    assert_eq!(play.view("root").parent, None);
}

/// V12: nothing is kept per ended call, so a snapshot costs the same after ten calls and after ten thousand.
#[test]
fn v12_nothing_is_kept_per_call_that_ended() {
    let size = |calls: u64| {
        let mut play = Scenario::grow("root $99999.00 / a");
        for call in 1..=calls {
            play.run(&format!("call a $0.10\ndone #{call} $0.05"));
        }
        assert_eq!(play.view("root").spent.get(Resource::Steps), calls);
        format!("{:?}", play.world()).len()
    };
    let (few, many) = (size(10), size(10_000));
    assert!(many < few + 100, "the world grew from {few} to {many} characters");
}

/// V13: only the totals of an ended agent are left: no account, call, timer or message, nothing about its work.
#[test]
fn v13_only_totals_are_left_of_an_agent_that_ended() {
    let mut play = Scenario::grow("root $9.00 / a timeout=60s / b");
    play.run(
        "send a hello\nsend a again\nask a Which?\nwait a message timeout=9s\ncall b $0.30\ndone #3 $0.20",
    );
    play.run("call a $0.10\nfailed #4 rate_limit after=5s\nfinish b ok\nfinish a ok");
    let world = play.world();
    let ix = world.agents().find(&name("a")).unwrap();
    let ended = Ended {
        role: name("a"),
        parent: world.agents().root(),
        depth: 1,
        exit: ExitKind::Completed,
        at: world.agents().ended(ix).unwrap().at,
        tokens: TokenCount::of_bytes(2),
        spent: turn(200),
        presumed: SparseAmounts::default(),
    };
    assert_eq!((world.agents().living(ix), world.agents().ended(ix)), (None, Some(&ended)));
    assert_eq!((world.ledger().len(), world.ledger().line_len()), (1, 0));
    assert_eq!((world.calls().all().count(), world.alarms().count()), (0, 0));
    let view = play.view("a");
    assert_eq!((view.limit, view.held, view.thread), (None, Amounts::ZERO, None));
}

/// V13: an agent that did a lot leaves no more behind than one that did nothing.
#[test]
fn v13_a_busy_life_leaves_no_more_than_an_idle_one() {
    let size = |life: &str| {
        let mut play = Scenario::grow("root $9.00 / a");
        play.run(life).run("finish a ok");
        // Its unread result belongs to its parent.
        play.run("wait root message");
        format!("{:?}", play.world()).len()
    };
    let mut busy = String::new();
    for call in 1..=200 {
        busy += &format!("call a $0.02\ndone #{call} $0.01\nsend a hello\n");
    }
    let (idle, busy) = (size(""), size(&busy));
    assert!(busy < idle + 100, "{idle} characters after an idle life, {busy} after a busy one");
}
