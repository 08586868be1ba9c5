//! Rollback decisions: what is stopped, what is discarded, what the agent reads, and which pasts are invalid.

use spinney_journal::Batch;
use spinney_kernel::context::ContextSnapshot;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Body, CallId, Category, Envelope, Seq, TokenCount};
use spinney_kernel::record::{AgentSnapshot, Header, Tie};
use spinney_kernel::rules::request::{Checkpoint, Refresh, RefreshReply, Request, Rollback, Send};
use spinney_testkit::Scenario;

use crate::observed::{events, name};

const FIXTURE: &str = "root $9.00 turns=9 / b turns=9";

/// An agent's current state, as a reader of the journal finds it.
fn stands(play: &Scenario, agent: &str) -> (AgentSnapshot, ContextSnapshot) {
    let agent: AgentId = name(agent);
    let contexts = spinney_testkit::contexts_of(play.world().tree(), events(play).iter());
    let known = contexts.known(&agent).unwrap();
    (AgentSnapshot::new(play.world(), &agent, &known).unwrap(), known)
}

/// A checkpoint of an agent, and the rollback to it.
fn checkpoint(play: &mut Scenario, agent: &str) -> Rollback {
    play.must(Request::Checkpoint(Checkpoint::manual(name(agent), None)));
    let mut rollback = Rollback::to(name(agent), play.world().seq(), None);
    rollback.standing = Some(Box::new(stands(play, agent).0));
    rollback.prior = Some(name("prior"));
    rollback
}

fn texts(play: &Scenario, agent: &str) -> Vec<String> {
    let contexts = spinney_testkit::contexts_of(play.world().tree(), events(play).iter());
    assert_eq!(contexts.lacks(), None);
    let agent: AgentId = name(agent);
    let read = contexts.messages(&agent).unwrap().iter().map(|message| message.text().into_owned());
    read.chain(contexts.unread(&agent).map(|message| message.text().into_owned())).collect()
}

fn headers(play: &Scenario, agent: &str) -> usize {
    let agents = play.world().agents();
    let living = agents.find(&name::<AgentId>(agent)).and_then(|ix| agents.living(ix));
    living.unwrap().progress.window.headers().len()
}

/// The model answers anyway, and calls tools: it is paid, nothing is called, and no agent reads it.
#[test]
fn an_answer_that_comes_too_late_is_paid_and_asks_for_nothing() {
    let mut play = Scenario::grow(FIXTURE);
    let rollback = checkpoint(&mut play, "root");
    play.clear_log();
    let reply = play.must(rollback);
    assert_eq!((reply.messages, reply.cancelled), (1, Vec::<AgentId>::new()));
    play.run("said #1 Hm. | read {\"path\":\"a\"}");
    insta::assert_snapshot!(play.log(), @"
    root is what root was at 9: 1 messages, 0 unanswered, 0 calls stay, 0 children go
    #1 ended: done, spent $0.003 tokens=3 steps=1
    #3 asked by root
    #3 started: held $0.10 tokens=578 steps=1
    ");
    assert_eq!((texts(&play, "root").len(), headers(&play, "root")), (1, 1));
}

/// Running tools return too late: the context has the results of that time, and an error for each of the others.
#[test]
fn a_tool_that_was_running_is_shown_as_an_error_and_its_result_is_void() {
    let mut play = Scenario::grow(FIXTURE);
    play.run("said #1 Hm. | read {} | read {} | read {}\ndone #4");
    let rollback = checkpoint(&mut play, "root");
    let Some(standing) = &rollback.standing else { panic!() };
    assert_eq!(standing.open, [(CallId(3), 0), (CallId(5), 2)]);
    play.run("done #3");
    play.clear_log();
    play.must(Request::Rollback(rollback));
    // It waits until running calls have ended.
    insta::assert_snapshot!(play.log(), @"root is what root was at 17: 3 messages, 2 unanswered, 0 calls stay, 0 children go");
    play.clear_log();
    play.run("done #5");
    insta::assert_snapshot!(play.log(), @"
    #5 ended: done, spent tool_calls=1
    #6 asked by root
    #6 started: held $0.10 tokens=879 steps=1
    ");
    let recorded = texts(&play, "root");
    assert_eq!((recorded.len(), headers(&play, "root")), (5, 5), "{recorded:?}");
    let late = recorded.iter().filter(|text| text.contains("rolled back to before it ended")).count();
    assert_eq!(late, 2, "{recorded:?}");
}

/// What a child received from a discarded past does not count as known: its replacement is new.
#[test]
fn replacements_are_new_to_agents_that_had_the_original() {
    let fact = |text: &str| {
        let envelope = Envelope { category: Category::Context, ..Envelope::default() };
        Request::Send(Send { envelope, ..Send::plain(name("root"), Body::text(text)) })
    };
    let refresh = || Refresh { agent: name("b"), replace: false };
    let mut play = Scenario::grow(FIXTURE);
    play.must(fact("FACT-1"));
    let rollback = checkpoint(&mut play, "root");
    play.must(fact("FACT-2"));
    assert_eq!(play.must(refresh()), RefreshReply { messages: 3 });
    play.must(Request::Rollback(rollback));
    assert_eq!(play.must(refresh()), RefreshReply { messages: 0 });
    play.must(fact("FACT-3"));
    assert_eq!(play.must(refresh()), RefreshReply { messages: 1 });
    let recorded = texts(&play, "b");
    assert!(recorded.last().unwrap().contains("FACT-3"), "{recorded:?}");
}

/// An impossible past is refused and changes nothing, whatever is wrong with it.
#[test]
fn a_past_that_cannot_have_been_is_refused() {
    let mut play = Scenario::grow(FIXTURE);
    let rollback = checkpoint(&mut play, "root");
    let at = rollback.at;
    let wrong: [fn(&mut AgentSnapshot); 10] = [
        |standing| standing.born = 0,
        |standing| standing.born = 3,
        |standing| standing.said = Some(Seq(9_999)),
        |standing| standing.inbox = vec![Seq(9_999)],
        |standing| standing.inbox = vec![Seq(1); 3],
        |standing| standing.open = vec![(CallId(1), 0)],
        |standing| standing.window.headers.clear(),
        |standing| standing.window.unread = 1,
        |standing| {
            standing.window.headers.push(Header::new(
                TokenCount::exact(9),
                Category::Context,
                Tie::Shared(0),
            ));
        },
        |standing| standing.window.headers[0].category = Category::Dialog,
    ];
    let seq = play.world().seq();
    for (case, wrong) in wrong.into_iter().enumerate() {
        let mut rollback = rollback.clone();
        wrong(rollback.standing.as_mut().unwrap());
        let refusal = play.ask(Request::Rollback(rollback)).unwrap_err();
        assert!(matches!(&refusal, Refusal::NoPast { at: place, .. } if *place == at.0), "{case}: {refusal}");
    }
    let mut unread = rollback.clone();
    unread.standing = None;
    assert!(matches!(play.ask(Request::Rollback(unread)), Err(Refusal::NoPast { .. })));
    let later = Rollback { at: Seq(seq.0 + 1), ..rollback.clone() };
    assert!(matches!(play.ask(Request::Rollback(later)), Err(Refusal::NoCheckpoint { .. })));
    assert_eq!(play.world().seq(), seq);
    assert!(play.ask(Request::Rollback(rollback)).is_ok());
}

/// An agent's state is stored once, and read back whole.
#[test]
fn a_past_is_stored_once() {
    let mut play = Scenario::grow(FIXTURE);
    let rollback = checkpoint(&mut play, "root");
    play.must(Request::Rollback(rollback));
    let batch = play.batches().last().unwrap().clone();
    let mut stored = batch.clone();
    stored.fold();
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(text.matches("\"headers\"").count(), 1, "{text}");
    let mut read: Batch = serde_json::from_str(&text).unwrap();
    read.unfold();
    assert_eq!(read, batch);
}

/// An agent without turns has no context to restore.
#[test]
fn an_agent_without_turns_is_not_rolled_back() {
    let mut play = Scenario::grow("root $9.00 / b turns=9");
    let rollback = checkpoint(&mut play, "b");
    let into = Rollback { into: Some(name("root")), ..rollback };
    assert_eq!(play.ask(Request::Rollback(into)), Err(Refusal::RollbackTurnless { agent: name("root") }));
}
