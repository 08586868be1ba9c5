//! How agents end: from the bottom up, once, and never as a false success.

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Body, Seq};
use spinney_kernel::record::{Effect, Event, Exit, Failure, FailureCode, Outcome, WaitReason};
use spinney_kernel::rules::request::{Fail, Finish, Request, Spawn, SpawnReply};
use spinney_kernel::world::{CallStage, Phase};
use spinney_testkit::{Scenario, check};

use crate::observed::{
    agent, attempts, effects, ends, events, model_call, name, outcomes, person, refused, running,
};

/// V6: whatever ends or stops a parent, nothing below it starts another call, at any depth, at once: neither a new one,
/// nor one in line, nor a retry of a running one.
#[test]
fn v6_below_a_parent_that_is_stopped_nothing_starts_at_any_depth() {
    for stop in ["cancel a", "finish a ok", "fail a broken", "pass 5s", "call a $9.00"] {
        let mut play = Scenario::grow("root $9.00 / a $2.00 timeout=5s / b / c / d");
        play.run("call b $0.50\ncall c $0.50\ncall d $0.50\ncall d $0.60");
        let (before, open) = (attempts(&play), play.world().calls().all().count());
        assert_eq!((before, open), (3, 4), "three run and one waits in line");
        play.run(stop);
        for below in ["b", "c", "d"] {
            let refusal = refused(&mut play, agent(below, model_call(below, 10)));
            assert_eq!(refusal, Refusal::AgentEnded { agent: name(below), state: "ending".to_owned() });
        }
        play.run("failed #1 server $0.10\nfailed #2 rate_limit after=1s\nlost #3\npass 60s");
        assert_eq!((attempts(&play), running(&play)), (before, Vec::new()), "{stop}");
        assert_eq!(play.view("root").status.to_string(), "idle", "{stop}: the root lives");
    }
}

/// V6: an expired deadline stops calls below although its timer has not fired yet.
#[test]
fn v6_a_deadline_that_has_passed_stops_calls_before_its_timer_fires() {
    let mut play = Scenario::grow("root $9.00 / a timeout=5s / b / c");
    play.run("call c $0.50\nfailed #1 rate_limit after=1s");
    play.pass(5_200);
    let refusal = refused(&mut play, agent("c", model_call("c", 10)));
    let deadline = spinney_kernel::primitives::Time(6_000);
    assert_eq!(refusal, Refusal::DeadlinePassed { agent: name("a"), deadline, late_ms: 200 });
    play.run("pass 1ms");
    assert_eq!((attempts(&play), running(&play)), (1, Vec::new()));
    assert_eq!(play.view("a").status.to_string(), "failed");
}

/// V6: a halted tree starts no call at any depth, and nothing that failed is tried again.
#[test]
fn v6_in_a_halted_tree_nothing_starts_at_any_depth() {
    let mut play = Scenario::grow("root $1.00 / a / b / c");
    play.run("call c $0.40\ncall root $2.00\nfailed #1 server\ncall a $0.01\ntool b read\ncall c $0.01");
    assert_eq!((attempts(&play), running(&play)), (1, Vec::new()));
    let why = play.world().calls().all().map(|(_, call)| call.stage);
    assert_eq!(
        why.collect::<Vec<_>>(),
        [CallStage::Waiting(WaitReason::Halted); 5],
        "they wait for a person"
    );
    assert_eq!(refused(&mut play, person(Request::Spawn(Scenario::spawn("c", "x")))), Refusal::TreeHalted);
}

/// Cancelling stops everything below: each agent with running calls is asked to stop, and ends once they have.
#[test]
fn a_cancelled_agent_ends_with_everything_below_it() {
    let mut play = Scenario::grow("root $9.00 / a / b / c\nroot / a / d\nroot / e");
    play.run("call b $0.10\ncall c $0.10\ntool c write\nask d Which?\ncall e $0.10");
    let recorded = effects(&mut play, "cancel a");
    let stops: Vec<Effect> = ["a", "b", "c"].iter().map(|id| Effect::StopCalls { agent: name(id) }).collect();
    assert_eq!(recorded, stops, "everyone who has something running, or below it");
    play.run("failed #1 stopped $0.05\ndone #2 $0.10\nfailed #3 stopped");
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by b
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by c
    #2 started: held $0.10 tokens=100 steps=1
    #3 asked by c
    #3 started: held tool_calls=1
    #4 d asks: Which?
    #5 asked by e
    #5 started: held $0.10 tokens=100 steps=1
    a ending: cancelled ()
    #4 ended: cancelled, spent nothing
    b ending: cancelled (`a` ended)
    c ending: cancelled (`a` ended)
    d ended: cancelled (`a` ended), spent nothing
    #1 ended: failed (Stopped), spent $0.05 tokens=50
    #2 ended: done, spent $0.10 tokens=100 steps=1
    #3 ended: failed (Stopped), spent tool_calls=1
    c ended: cancelled (`a` ended), spent $0.10 tokens=100 steps=1 tool_calls=1
    b ended: cancelled (`a` ended), spent $0.15 tokens=150 steps=1 tool_calls=1
    a ended: cancelled (), spent $0.15 tokens=150 steps=1 tool_calls=1
    root idle, spent $0.15 tokens=150 steps=1 tool_calls=1, held $0.10 tokens=100 steps=1, of $9.00
      a cancelled, spent $0.15 tokens=150 steps=1 tool_calls=1
        b cancelled, spent $0.15 tokens=150 steps=1 tool_calls=1
          c cancelled, spent $0.10 tokens=100 steps=1 tool_calls=1
        d cancelled
      e running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

/// A report about a call whose agent was cancelled is booked at its true usage.
#[test]
fn a_call_that_ends_after_the_cancel_is_booked_at_its_true_usage() {
    let script = "call a $0.50\ncall b $0.50\ncancel root\ndone #1 $0.20\nfailed #2 server $0.30";
    insta::assert_snapshot!(check("root $9.00 / a\nroot / b", script), @"
    #1 asked by a
    #1 started: held $0.50 tokens=500 steps=1
    #2 asked by b
    #2 started: held $0.50 tokens=500 steps=1
    root ending: cancelled ()
    b ending: cancelled (`root` ended)
    a ending: cancelled (`root` ended)
    #1 ended: done, spent $0.20 tokens=200 steps=1
    a ended: cancelled (`root` ended), spent $0.20 tokens=200 steps=1
    #2 ended: failed (Server), spent $0.30 tokens=300
    b ended: cancelled (`root` ended), spent $0.30 tokens=300
    root ended: cancelled (), spent $0.50 tokens=500 steps=1
    root cancelled, spent $0.50 tokens=500 steps=1
      a cancelled, spent $0.20 tokens=200 steps=1
      b cancelled, spent $0.30 tokens=300
    ");
}

/// Late children inherit the cancel: nothing is spawned under an agent that is ending, or below one.
#[test]
fn nothing_is_spawned_under_an_agent_that_is_ending() {
    let mut play = Scenario::grow("root $9.00 / a / b / c\nroot / d");
    play.run("call c $0.10\ncancel a");
    for parent in ["a", "b", "c"] {
        let refusal = refused(&mut play, person(Request::Spawn(Scenario::spawn(parent, "d"))));
        assert_eq!(refusal, Refusal::AgentEnded { agent: name(parent), state: "ending".to_owned() });
    }
}

/// Children end before their parents, each agent once, and no event follows the root's end.
#[test]
fn children_end_before_their_parents_and_nothing_follows_the_root() {
    for last in ["cancel root", "finish root ok", "fail root broken"] {
        let mut play = Scenario::grow("root $9.00 / a / b / c\nroot / a / d\nroot / e / f");
        play.run(&format!("call c $0.10\ncall e $0.10\ncall f $9.00\nask d Which?\n{last}"));
        play.run("done #2 $0.10\nfailed #1 stopped\ndone #3 $0.10\npass 60s");
        let order: Vec<AgentId> = ends(&play).into_iter().map(|(agent, ..)| agent).collect();
        let place = |id: &str| order.iter().position(|ended| *ended == name(id));
        for (child, parent) in [("c", "b"), ("b", "a"), ("d", "a"), ("f", "e"), ("a", "root"), ("e", "root")]
        {
            assert!(place(child) < place(parent), "{child} before {parent}: {order:?}");
        }
        assert_eq!(order.len(), 7, "{order:?}");
        let last = events(&play).pop();
        assert!(
            matches!(&last, Some(Event::AgentEnded { agent, .. }) if agent.as_str() == "root"),
            "{last:?}"
        );
        assert!(play.world().is_over() && play.world().alarms().count() == 0);
    }
}

/// Every kind of exit, and whether it is a success.
#[test]
fn o12_only_a_completed_agent_is_a_success() {
    for (script, word, code) in [
        ("finish a ok", "completed", None),
        ("fail a quota_reached", "failed", Some("quota_reached")),
        ("pass 5s", "failed", Some("timeout")),
        ("cancel a", "cancelled", None),
        ("ask a Which? cancel timeout=1s\npass 1s", "cancelled", None),
        ("call a $0.60", "exhausted", None),
    ] {
        let mut play = Scenario::grow("root $9.00 / a $0.50 timeout=5s");
        play.run(script);
        let all = ends(&play);
        let [(_, exit, _)] = all.as_slice() else { panic!("{script}: {all:?}") };
        assert_eq!((exit.as_str(), exit.is_success()), (word, word == "completed"), "{script}");
        let error = if let Exit::Failed { error } = exit { Some(error.code.as_str()) } else { None };
        assert_eq!(error, code, "{script}: failed if and only if there is an error");
    }
}

/// O12: a child that is cancelled, fails, is stopped by a ceiling or never ends is not a success for the parent that
/// waits for it.
#[test]
fn o12_a_parent_learns_how_its_child_really_ended() {
    for (script, recorded) in [
        ("finish a ok", "completed"),
        ("fail a quota_reached", "failed"),
        ("cancel a", "cancelled"),
        ("call a $0.60", "exhausted"),
    ] {
        for collect in ["attached", "detached"] {
            let mut play = Scenario::grow(&format!("root $9.00 / a $0.50 {collect}"));
            play.run(&format!("wait root for a\n{script}"));
            let waits: Vec<Outcome> = outcomes(&play).into_iter().filter(|end| !is_refused(end)).collect();
            assert_eq!(waits.len(), if collect == "attached" { 2 } else { 1 });
            for outcome in waits {
                let Outcome::Children { ended } = outcome else { panic!("{outcome:?}") };
                let [end] = ended.as_slice() else { panic!("{ended:?}") };
                assert_eq!((end.agent.as_str(), end.state.as_str()), ("a", recorded));
                assert_eq!(exit_at(&play, end.seq).as_str(), recorded);
            }
        }
    }
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("wait root for a timeout=5s\npass 5s");
    assert_eq!(outcomes(&play), [Outcome::Expired { ended: Vec::new() }], "no end is no success");
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { .. })
}

/// What the event with this number says about an end.
fn exit_at(play: &Scenario, seq: Seq) -> Exit {
    let at = usize::try_from(seq.0 - 1).unwrap_or(usize::MAX);
    match events(play).get(at) {
        Some(Event::AgentEnded { exit, .. }) => exit.clone(),
        other => panic!("event {} is no end: {other:?}", seq.0),
    }
}

/// O12: the code of a failure reaches the waiting parent unchanged, in whichever way, and so the root.
#[test]
fn o12_the_real_error_code_reaches_the_caller() {
    let mut play = Scenario::grow("root $9.00 / a attached / b attached\nroot / c");
    play.run("fail b disk_full\nfail a disk_full\nfail c net_down\nwait root message");
    let seq = |outcome: &Outcome| match outcome {
        Outcome::Children { ended } => ended.first().map(|end| end.seq),
        Outcome::Message { seq } => Some(*seq),
        Outcome::Done { .. } | Outcome::Failed { .. } | Outcome::Lost | Outcome::Cancelled => None,
        Outcome::NobodyLeft => None,
        Outcome::Refused { .. } | Outcome::Approved | Outcome::Answered { .. } | Outcome::Expired { .. } => {
            None
        }
    };
    let exits: Vec<Exit> = outcomes(&play).iter().filter_map(seq).map(|seq| exit_at(&play, seq)).collect();
    let failed = |code: &str| Exit::failed(FailureCode::from_text(code), "it went wrong");
    assert_eq!(exits, [failed("disk_full"), failed("disk_full"), failed("net_down")]);
    assert_eq!(exit_at(&play, ended_at(&play, "b")), failed("disk_full"), "the directory names it, too");
    play.run("fail root disk_full");
    assert_eq!(exit_at(&play, play.world().seq()), failed("disk_full"), "the tree's last event");
}

/// The event that the directory names for an agent's end.
fn ended_at(play: &Scenario, agent: &str) -> Seq {
    let agents = play.world().agents();
    let ended = agents.find(&name(agent)).and_then(|ix| agents.ended(ix));
    ended.map_or_else(|| panic!("{agent} has not ended"), |ended| ended.at)
}

/// O12: a failure needs a code and a message, otherwise it is refused.
#[test]
fn o12_a_failure_without_an_error_is_refused() {
    let mut play = Scenario::grow("root / a");
    for (code, message, what) in [("", "why", "error code"), ("oops", " ", "error message")] {
        let error = Failure { code: FailureCode::from_text(code), message: message.to_owned() };
        let fail = Request::Fail(Fail { agent: name("a"), error, partial: None });
        let refusal = refused(&mut play, agent("a", fail));
        assert_eq!(refusal, Refusal::TextEmpty { what: what.to_owned() });
    }
}

/// O12: an end is final, and how an agent ends is decided once.
#[test]
fn o12_only_legal_transitions_happen_and_an_end_is_final() {
    use Phase::{Ended, Ending, Live};
    for from in [Live, Ending, Ended] {
        for to in [Live, Ending, Ended] {
            let legal = matches!((from, to), (Live, Ending | Ended) | (Ending, Ended));
            assert_eq!(from.may_become(to), legal, "{from:?} to {to:?}");
        }
    }
    for (ending, state) in [("finish a ok", "completed"), ("call a $0.10\ncancel a", "ending")] {
        let mut play = Scenario::grow("root $9.00 / a");
        play.run(ending);
        let over = Refusal::AgentEnded { agent: name("a"), state: state.to_owned() };
        let finish = Request::Finish(Finish { agent: name("a"), result: Body::text("other") });
        let error = Failure { code: FailureCode::from_text("oops"), message: "why".to_owned() };
        let fail = Request::Fail(Fail { agent: name("a"), error, partial: None });
        for request in [finish, fail, model_call("a", 1)] {
            assert_eq!(refused(&mut play, agent("a", request)), over);
        }
    }
}

/// A parent learns of each child's end once: through the wait that names it, or else by message.
#[test]
fn a_parent_hears_of_each_child_exactly_once() {
    let script = "wait root for b\nfinish a first\nfinish b second\nwait root message\nfinish c third";
    insta::assert_snapshot!(check("root / a\nroot / b\nroot / c", script), @"
    #1 root waits
    a ended: completed, spent nothing
    b ended: completed, spent nothing
    #1 ended: children b completed, spent nothing
    #2 root waits
    #2 ended: message 7, spent nothing
    c ended: completed, spent nothing
    root idle
      a completed
      b completed
      c completed
    ");
}

/// A wait for any child ends with the first; one for all with the last, in the order they were named.
#[test]
fn waits_end_when_they_have_what_they_wait_for() {
    let script = "wait root for b a\nwait root for a b any\nfinish a one\nfail b two\nwait root for a";
    insta::assert_snapshot!(check("root / a\nroot / b", script), @"
    #1 root waits
    #2 root waits
    a ended: completed, spent nothing
    #2 ended: children a completed, spent nothing
    b ended: failed (two), spent nothing
    #1 ended: children a completed, b failed, spent nothing
    #3 root waits
    #3 ended: children a completed, spent nothing
    root idle
      a completed
      b failed
    ");
}

/// An attached child's end is the end of the call that spawned it.
#[test]
fn an_attached_child_ends_the_call_that_spawned_it() {
    let mut play = Scenario::grow("root / a");
    let reply = play.must(Spawn { id: Some(name("b")), ..Scenario::spawn("root", "a") });
    let call = spinney_kernel::primitives::CallId(1);
    assert_eq!(reply, SpawnReply { agent: name("b"), call: Some(call) });
    play.clear_log().run("finish b ok");
    insta::assert_snapshot!(play.log(), @"
    b ended: completed, spent nothing
    #1 ended: children b completed, spent nothing
    ");
}
