//! Questions to people: only the asking agent waits, at any depth, and never forever.

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::CallId;
use spinney_kernel::record::{Question, WaitReason, Work};
use spinney_kernel::rules::request::{Answer, Ask, Request, Withdraw};
use spinney_kernel::world::{CallStage, TreeState};
use spinney_testkit::{Scenario, check};

use crate::observed::{agent, name, person, refused};

fn answer(question: u64) -> Request {
    Request::Answer(Answer::new(CallId(question), "yes"))
}

/// An answer ends only its own question; other agents continue meanwhile.
#[test]
fn an_answer_wakes_only_the_agent_that_asked() {
    let script = "ask b Which?\nask c Why?\ncall a $0.10\nanswer #1 this one\ncall b $0.10";
    insta::assert_snapshot!(check("root $9.00 / a / b\nroot / c", script), @"
    #1 b asks: Which?
    #2 c asks: Why?
    #3 asked by a
    #3 started: held $0.10 tokens=100 steps=1
    #1 ended: answered this one, spent nothing
    #4 asked by b
    #4 started: held $0.10 tokens=100 steps=1
    root idle, held $0.20 tokens=200 steps=2, of $9.00
      a running, held $0.20 tokens=200 steps=2, of $9.00
        b running, held $0.10 tokens=100 steps=1, of $9.00
      c waiting: person, of $9.00
    ");
}

/// Without an answer in time the question fails, its default counts, or the agent is cancelled, as its policy says.
#[test]
fn an_unanswered_question_follows_its_timeout_policy() {
    insta::assert_snapshot!(check("root / a / b", "ask a Which? timeout=5s\npass 4999ms\npass 1ms"), @"
    #1 a asks: Which?
    #1 ended: expired, 0 ended, spent nothing
    root idle
      a idle
        b idle
    ");
    insta::assert_snapshot!(check("root / a / b", "ask a Which? default=blue timeout=5s\npass 5s"), @"
    #1 a asks: Which?
    #1 ended: answered by default blue, spent nothing
    root idle
      a idle
        b idle
    ");
    insta::assert_snapshot!(check("root / a / b", "ask a Which? cancel timeout=5s\npass 5s"), @"
    #1 a asks: Which?
    #1 ended: cancelled, spent nothing
    a ending: cancelled (no answer in time)
    b ended: cancelled (`a` ended), spent nothing
    a ended: cancelled (no answer in time), spent nothing
    root idle
      a cancelled
        b cancelled
    ");
}

/// An answer to a question that does not exist, was answered, or is not a question is refused with a list of open ones.
#[test]
fn an_answer_to_an_unknown_question_is_refused() {
    let mut play = Scenario::grow("root $9.00 / a\nroot / b");
    play.run("call a $0.10\nask a Which?\nask b Why?\nask b When?\nanswer #3 because\nwait b message");
    for question in [1, 3, 5, 99] {
        let refusal = refused(&mut play, person(answer(question)));
        let open = vec![CallId(2), CallId(4)];
        assert_eq!(refusal, Refusal::UnknownQuestion { question: CallId(question), open });
    }
    let refusal = refused(&mut play, agent("root", answer(2)));
    assert_eq!(refusal, Refusal::PersonOnly { verb: "answer a question".to_owned() });
}

/// An answer after the timeout is refused.
#[test]
fn an_answer_after_the_time_is_too_late() {
    let mut play = Scenario::grow("root / a");
    play.run("ask a Which? timeout=5s\npass 5s");
    let refusal = refused(&mut play, person(answer(1)));
    assert_eq!(refusal, Refusal::UnknownQuestion { question: CallId(1), open: Vec::new() });
}

/// An answer after the timeout is refused even if it arrives before the timer fires.
#[test]
fn an_answer_that_overtakes_the_timer_of_its_question_is_too_late() {
    let mut play = Scenario::grow("root / a");
    play.run("ask a Which? timeout=5s");
    play.pass(4_999);
    play.run("ask a Why? timeout=5s");
    play.pass(1);
    let refusal = refused(&mut play, person(answer(1)));
    assert_eq!(refusal, Refusal::AnswerLate { question: CallId(1), late_ms: 0 });
    assert!(play.ask(answer(2)).is_ok());
}

/// A tree that only a person's answer can continue is shown as waiting.
#[test]
fn a_tree_that_only_waits_for_a_person_says_so() {
    let mut play = Scenario::grow("root $9.00 / a\nroot / b");
    play.run("ask a Which?");
    assert_eq!(play.world().state(), TreeState::Waiting);
    play.run("call b $0.10");
    assert_eq!(play.world().state(), TreeState::Running);
    play.run("done #2 $0.10\nanswer #1 yes");
    assert_eq!(play.world().state(), TreeState::Running);
}

/// A question survives a restart: the journal has it with its timeout.
#[test]
fn a_question_and_its_time_are_in_the_world_that_a_journal_gives() {
    let mut play = Scenario::grow("root / a");
    play.run("ask a Which? timeout=5s");
    let mut again = spinney_kernel::world::World::new(play.world().tree());
    for batch in play.batches() {
        batch.events.iter().for_each(|event| again.apply(event));
    }
    assert_eq!(again.call(CallId(1)).map(|call| call.stage), Some(CallStage::Waiting(WaitReason::Person)));
    assert_eq!(again.alarms().map(|alarm| alarm.at.0).collect::<Vec<_>>(), [6_000]);
}

/// A question that is empty, too long or from another agent is refused.
#[test]
fn a_question_must_say_something_and_be_the_agents_own() {
    let mut play = Scenario::grow("root / a / b");
    let ask = |text: &str, timeout_ms| {
        let on_timeout = spinney_kernel::record::OnTimeout::Fail;
        let question = Question::new(text, on_timeout);
        Request::Ask(Ask { agent: name("a"), question, timeout_ms })
    };
    let empty = refused(&mut play, agent("a", ask("  ", None)));
    assert_eq!(empty, Refusal::TextEmpty { what: "question".to_owned() });
    for ms in [0, spinney_kernel::primitives::limit::TIMEOUT_MS_MAX + 1, u64::MAX] {
        let refusal = refused(&mut play, agent("a", ask("Which?", Some(ms))));
        assert_eq!(
            refusal,
            Refusal::BadTimeout { ms, ms_max: spinney_kernel::primitives::limit::TIMEOUT_MS_MAX }
        );
    }
    let other = refused(&mut play, agent("b", ask("Which?", None)));
    assert_eq!(other, Refusal::NotYours { by: name("b"), agent: name("a") });
}

fn ask_of(asking: u64, by: &str) -> Request {
    let question = Question::of_call(CallId(asking), "Which?");
    Request::Ask(Ask { agent: name(by), question, timeout_ms: None })
}

/// The questions that are open.
fn open(play: &Scenario) -> Vec<u64> {
    let calls = play.world().calls().all();
    calls.filter(|(_, call)| matches!(call.work, Work::Question(_))).map(|(id, _)| id.0).collect()
}

/// A question of a tool call belongs to that call: only while it runs, one at a time, and no longer than it.
#[test]
fn a_question_of_a_tool_call_ends_with_it() {
    let mut play = Scenario::grow("root $9.00 / a\nroot / b");
    play.run("tool a look $0.10\ncall b $0.10");
    for (asking, by) in [(2, "b"), (1, "b"), (9, "a")] {
        let refusal = refused(&mut play, agent(by, ask_of(asking, by)));
        assert_eq!(refusal, Refusal::NotRunning { call: CallId(asking) });
    }
    for question in [3, 4] {
        play.input(agent("a", ask_of(1, "a"))).unwrap();
        assert_eq!(open(&play), [question], "a new question replaces the one before");
    }
    play.run("done #1 $0.05");
    assert!(open(&play).is_empty());
    play.run("tool a look $0.10");
    play.input(agent("a", ask_of(5, "a"))).unwrap();
    assert_eq!(open(&play), [6]);
    let withdraw = Request::Withdraw(Withdraw { agent: name("a"), call: CallId(6) });
    play.input(agent("a", withdraw)).unwrap();
    assert!(open(&play).is_empty());
}
