//! A sealed tree: it moved elsewhere, or is a copy. It can be read and branched, and does nothing else.

use spinney_kernel::budget::{Amounts, Ceilings, Resource, Used};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body, CallId, SealKind, SourceFiles, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::Receipt;
use spinney_kernel::rules::report::{Continued, Done, Report, Suspended, Timer};
use spinney_kernel::rules::request::{Adjust, Branch, Cancel, Pause, Raise, Request, Seal, Send, Unseal};
use spinney_kernel::world::TreeState;
use spinney_testkit::Scenario;

use crate::observed::name;

fn moved() -> SealKind {
    SealKind::Moved { to: "oak.tree".parse().unwrap() }
}

fn seal(kind: SealKind) -> Request {
    Request::Seal(Seal { kind })
}

/// A tree with a running call and a question with a timeout, which no process runs any more.
fn suspended() -> Scenario {
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("call a $0.10\nask a Well? 5s");
    play.report(Report::Suspended(Suspended::default()));
    play
}

#[test]
fn a_sealed_tree_takes_no_request_and_no_report_until_it_is_taken_back() {
    let mut play = suspended();
    play.ask(seal(moved())).unwrap();
    assert_eq!(play.world().state(), TreeState::Moved);
    let (seq, world) = (play.world().seq(), play.world().clone());
    let limit = Ceilings::NONE.with(Resource::Cost, 20_000_000_000);
    for request in [
        Request::Send(Send::plain(name("a"), Body::text("on?"))),
        Request::Raise(Raise { agent: name("root"), add: Amounts::ZERO.with(Resource::Cost, 1), add_ms: 0 }),
        Request::Adjust(Adjust {
            limit,
            parallel_max: None,
            on_low: None,
            timeout_ms: None,
            sources: SourceFiles::default(),
        }),
        Request::Pause(Pause { agent: name("a") }),
        Request::Cancel(Cancel { agent: name("root"), reason: String::new() }),
        seal(SealKind::Copy),
    ] {
        let refusal = play.ask(request).unwrap_err();
        assert_eq!(refusal, Refusal::Sealed { kind: moved() });
        assert!(
            refusal.to_string().contains("moved to `oak.tree`") && refusal.code() == "sealed",
            "{refusal}"
        );
    }
    play.pass(60_000);
    let timer = play.world().alarms().next().map(|alarm| alarm.timer);
    for report in [
        Some(Report::Continued(Continued {})),
        Some(Report::Done(Done::new(CallId(1), 1, Used::Unknown, Body::text("late")))),
        timer.map(|timer| Report::Timer(Timer { timer })),
    ]
    .into_iter()
    .flatten()
    {
        assert_eq!(play.report(report), Receipt::Stale);
    }
    assert_eq!((play.world().seq(), play.world()), (seq, &world));
    play.ask(Request::Unseal(Unseal {})).unwrap();
    assert_eq!(play.world().state(), TreeState::Suspended);
    assert_eq!(play.report(Report::Continued(Continued {})), Receipt::Applied);
    assert_eq!(
        play.report(Report::Done(Done::new(CallId(1), 1, Used::Unknown, Body::text("there")))),
        Receipt::Applied
    );
}

#[test]
fn only_a_tree_that_is_not_running_is_sealed_and_only_from_outside() {
    let mut play = Scenario::grow("root $9.00 / a");
    assert_eq!(play.ask(seal(moved())), Err(Refusal::SealRunning));
    assert_eq!(play.ask(Request::Unseal(Unseal {})), Err(Refusal::NotSealed));
    play.report(Report::Suspended(Suspended::default()));
    let by_agent = play.ask_as(Actor::Agent(name("root")), seal(moved()));
    assert!(matches!(by_agent, Err(Refusal::PersonOnly { .. })), "{by_agent:?}");
    play.ask(Request::Cancel(Cancel { agent: name("root"), reason: String::new() })).unwrap();
    assert_eq!(play.ask(seal(moved())), Err(Refusal::TreeEnded));
}

/// A copy spends no budget of its original, whatever is done with it.
#[test]
fn a_copy_is_never_taken_back_and_branches_with_its_own_budget() {
    let mut play = suspended();
    play.ask(seal(SealKind::Copy)).unwrap();
    assert_eq!(play.world().state(), TreeState::Copied);
    assert_eq!(play.ask(Request::Unseal(Unseal {})), Err(Refusal::Sealed { kind: SealKind::Copy }));
    let (budget, since) = (Ceilings::NONE.with(Resource::Cost, 10_000_000_000), play.now());
    let branch = Branch { tree: TreeId::new([9; 16]), agent: name("root"), budget, since };
    play.ask(Request::Branch(branch)).unwrap();
    assert_eq!(play.world().sealed(), None);
    assert_eq!(play.report(Report::Continued(Continued {})), Receipt::Applied);
    assert!(
        play.batches()
            .iter()
            .flat_map(|batch| &batch.events)
            .any(|event| matches!(event, Event::TreeContinued))
    );
}
