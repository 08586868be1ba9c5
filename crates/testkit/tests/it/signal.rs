//! Signals: pause, unpause, redirect and cancel; who may send them and what they do.

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Running};
use spinney_kernel::record::Effect;
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::{Accepted, Cancel, Pause, Redirect, Request, Spawn, Unpause};
use spinney_testkit::{Scenario, check};

use crate::observed::{agent, attempts, effects, name, person, refused, running};

fn pause(agent: &str) -> Request {
    Request::Pause(Pause { agent: name(agent) })
}

fn unpause(agent: &str) -> Request {
    Request::Unpause(Unpause::now(name(agent)))
}

fn cancel(agent: &str) -> Request {
    Request::Cancel(Cancel { agent: name(agent), reason: "enough".to_owned() })
}

/// P21 (decision part): a paused child's running calls end, and nothing starts until it is unpaused, whatever it asks
/// or fails.
#[test]
fn a_paused_child_starts_nothing_until_it_is_unpaused() {
    let script = "
        call a $0.10
        call b $0.10
        pause a
        failed #2 server
        done #1 $0.10
        call a $0.20
        tool b read
        call c $0.10
        unpause a";
    insta::assert_snapshot!(check("root $9.00 / a / b\nroot / c", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by b
    #2 started: held $0.10 tokens=100 steps=1
    a paused
    #2 attempt failed: Server, spent nothing
    #2 switched: cheap, cap 100
    #2 waiting: paused
    #1 ended: done, spent $0.10 tokens=100 steps=1
    #3 asked by a
    #3 waiting: paused
    #4 asked by b
    #4 waiting: paused
    #5 asked by c
    #5 started: held $0.10 tokens=100 steps=1
    a unpaused
    #2 started again (2): held $0.01 tokens=100 steps=1 retries=1
    #3 started: held $0.20 tokens=200 steps=1
    #4 started: held tool_calls=1
    root idle, spent $0.10 tokens=100 steps=1, held $0.31 tokens=400 steps=3 tool_calls=1 retries=1, of $9.00
      a running, spent $0.10 tokens=100 steps=1, held $0.21 tokens=300 steps=2 tool_calls=1 retries=1, of $9.00
        b running, held $0.01 tokens=100 steps=1 tool_calls=1 retries=1, of $9.00
      c running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

/// P21 (decision part): calls in line, in a retry delay or at a rate limit do not start either while their agent is
/// paused.
#[test]
fn calls_that_waited_when_the_pause_came_stay_where_they_are() {
    let script = "
        call c $0.90
        call a $0.50
        rate cheap 2s
        call a $0.01 model=cheap
        pause a
        done #1 $0.10
        pass 5s
        unpause a";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / c", script), @"
    #1 asked by c
    #1 started: held $0.90 tokens=900 steps=1
    #2 asked by a
    #2 waiting: budget of root
    cheap limited until 3000
    #3 asked by a
    #3 waiting: rate until 3000
    a paused
    #2 waiting: paused
    #3 waiting: paused
    #1 ended: done, spent $0.10 tokens=100 steps=1
    a unpaused
    #2 started: held $0.50 tokens=500 steps=1
    #3 started: held $0.001 tokens=10 steps=1
    root idle, spent $0.10 tokens=100 steps=1, held $0.501 tokens=510 steps=2, of $1.00
      a running, held $0.501 tokens=510 steps=2, of $1.00
      c idle, spent $0.10 tokens=100 steps=1, of $1.00
    ");
    let backoff = "call a $0.10\nfailed #1 rate_limit after=1s\npause a\npass 1s\nunpause a";
    insta::assert_snapshot!(check("root $1.00 / a", backoff), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: RateLimit, spent nothing
    #1 waiting: backoff until 2000
    a paused
    #1 waiting: paused
    a unpaused
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    root idle, held $0.10 tokens=100 steps=1 retries=1, of $1.00
      a running, held $0.10 tokens=100 steps=1 retries=1, of $1.00
    ");
}

/// P21 (decision part): a pause also holds for everything below, until the last one ends.
#[test]
fn unpausing_a_child_below_a_paused_parent_starts_nothing() {
    let script = "pause a\npause b\ncall b $0.10\nunpause b\nunpause a";
    insta::assert_snapshot!(check("root $9.00 / a / b", script), @"
    a paused
    b paused
    #1 asked by b
    #1 waiting: paused
    b unpaused
    a unpaused
    #1 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1, of $9.00
      a idle, held $0.10 tokens=100 steps=1, of $9.00
        b running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

/// P21 (decision part): a cancelled child stops, unpausing does not bring it back, and starting over makes a new agent
/// with a new id.
#[test]
fn a_cancelled_child_stays_cancelled_and_a_new_one_has_a_new_id() {
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("call a $0.10\npause a\ncancel a\nfailed #1 stopped $0.05");
    let gone = Refusal::AgentEnded { agent: name("a"), state: "cancelled".to_owned() };
    assert_eq!(refused(&mut play, person(unpause("a"))), gone);
    let same = Spawn { id: Some(name("a")), ..Scenario::spawn("root", "a") };
    assert_eq!(refused(&mut play, person(Request::Spawn(same))), Refusal::DuplicateId { agent: name("a") });
    let agent = play.must(Scenario::spawn("root", "a")).agent;
    assert_ne!(agent, name("a"));
    assert_eq!((running(&play).len(), attempts(&play)), (0, 1));
}

/// A pause or unpause that changes nothing is refused.
#[test]
fn pausing_twice_and_unpausing_what_runs_are_refused() {
    let mut play = Scenario::grow("root / a");
    assert_eq!(refused(&mut play, person(unpause("a"))), Refusal::NotPaused { agent: name("a") });
    play.must(pause("a"));
    assert_eq!(refused(&mut play, person(pause("a"))), Refusal::AlreadyPaused { agent: name("a") });
}

/// An agent signals its descendants, however deep; never itself, its ancestors or others.
#[test]
fn an_agent_signals_only_its_descendants() {
    let mut play = Scenario::grow("root / a / b / c\nroot / d");
    for (by, to) in [("a", "a"), ("b", "a"), ("c", "root"), ("d", "c"), ("a", "d")] {
        for request in [pause(to), cancel(to)] {
            let refusal = refused(&mut play, agent(by, request));
            assert_eq!(refusal, Refusal::NotYours { by: name(by), agent: name(to) });
        }
    }
    for to in ["b", "c"] {
        assert_eq!(play.ask_as(Actor::Agent(name("a")), pause(to)), Ok(Reply::Accepted(Accepted {})));
        assert_eq!(play.ask_as(Actor::Agent(name("root")), unpause(to)), Ok(Reply::Accepted(Accepted {})));
    }
    play.run("cancel d");
    let dead = Refusal::AgentEnded { agent: name("d"), state: "cancelled".to_owned() };
    assert_eq!(refused(&mut play, agent("d", cancel("c"))), dead);
}

/// A redirect that lets things finish only brings the instruction; it wakes agents that wait for a message.
#[test]
fn a_redirect_that_lets_things_finish_stops_nothing() {
    let script = "call a $0.10\nwait a message\nredirect a elsewhere\ndone #1 $0.10\nwait a message";
    insta::assert_snapshot!(check("root $9.00 / a / b", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #2 a waits
    a redirected: elsewhere
    #2 ended: message 8, spent nothing
    #1 ended: done, spent $0.10 tokens=100 steps=1
    #3 a waits
    root idle, spent $0.10 tokens=100 steps=1, of $9.00
      a waiting: message, spent $0.10 tokens=100 steps=1, of $9.00
        b idle, of $9.00
    ");
}

/// A redirect that stops ends what the agent had under way: children, calls in line and open questions; running calls
/// are asked to stop and are paid.
#[test]
fn a_redirect_that_stops_ends_what_is_under_way() {
    let mut play = Scenario::grow("root $1.00 / a / b / c\nroot / a / d");
    play.run("call c $0.10\ncall a $0.60\ncall a $0.60\nask a Which?\nwait a message\nwait a for b d");
    let recorded = effects(&mut play, "redirect a elsewhere stop");
    let stops = |agent: &str| Effect::StopCalls { agent: name(agent) };
    assert_eq!(recorded, [stops("a"), stops("b"), stops("c")]);
    play.run("failed #2 stopped $0.20\nfailed #1 stopped $0.05\ncall a $0.30");
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by c
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by a
    #2 started: held $0.60 tokens=600 steps=1
    #3 asked by a
    #3 waiting: budget of a
    #4 a asks: Which?
    #5 a waits
    #6 a waits
    a redirected: elsewhere stop
    #3 ended: cancelled, spent nothing
    #4 ended: cancelled, spent nothing
    #5 ended: cancelled, spent nothing
    #6 ended: cancelled, spent nothing
    d ended: cancelled (redirected), spent nothing
    b ending: cancelled (redirected)
    c ending: cancelled (`b` ended)
    #2 ended: failed (Stopped), spent $0.20 tokens=200
    #1 ended: failed (Stopped), spent $0.05 tokens=50
    c ended: cancelled (`b` ended), spent $0.05 tokens=50
    b ended: cancelled (redirected), spent $0.05 tokens=50
    #7 asked by a
    #7 started: held $0.30 tokens=300 steps=1
    root idle, spent $0.25 tokens=250, held $0.30 tokens=300 steps=1, of $1.00
      a running, spent $0.25 tokens=250, held $0.30 tokens=300 steps=1, of $1.00
        b cancelled, spent $0.05 tokens=50
          c cancelled, spent $0.05 tokens=50
        d cancelled
    ");
}

/// A call that was asked to stop is not tried again, whatever it reports, also after a restart.
#[test]
fn a_call_that_a_redirect_stopped_is_not_tried_again() {
    for report in ["failed #1 server $0.01", "failed #1 rate_limit after=1s", "lost #1"] {
        for call in ["call a $0.10", "tool a read repeatable"] {
            let mut play = Scenario::grow("root $1.00 / a");
            play.run(&format!("{call}\nredirect a elsewhere stop\n{report}\npass 60s"));
            let open = play.world().calls().all().count();
            assert_eq!((attempts(&play), open), (1, 0), "{call}, {report}:\n{}", play.log());
        }
    }
}

/// Only a person may redirect, and not without text.
#[test]
fn a_redirect_is_for_people_and_says_something() {
    let mut play = Scenario::grow("root / a");
    let redirect = |instruction: &str| {
        let instruction = instruction.to_owned();
        Request::Redirect(Redirect { agent: name("a"), instruction, tokens: None, running: Running::Stops })
    };
    let refusal = refused(&mut play, agent("root", redirect("elsewhere")));
    assert_eq!(refusal, Refusal::PersonOnly { verb: "redirect an agent".to_owned() });
    let refusal = refused(&mut play, person(redirect(" \n")));
    assert_eq!(refusal, Refusal::TextEmpty { what: "instruction".to_owned() });
}
