//! Messages: to existing agents, to agents that do not exist yet, and to watchers of a topic.

use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Body, Envelope, limit};
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::{Accepted, Publish, Request, Send, SendReply, Spawn};
use spinney_testkit::Scenario;

use crate::observed::{events, name};

fn send(to: &str, text: &str) -> Request {
    Request::Send(Send::plain(name(to), Body::text(text)))
}

/// How many messages an agent has not read.
fn unread(play: &Scenario, agent: &str) -> usize {
    let agents = play.world().agents();
    agents.find(&name(agent)).and_then(|ix| agents.living(ix)).map_or(0, |agent| agent.inbox.all().len())
}

/// What an agent's next call would see after its first message.
fn heard(play: &mut Scenario, agent: &str) -> Vec<String> {
    play.run(&format!("call {agent} $0.01"));
    let mut contexts = Contexts::new(play.world().tree());
    events(play).iter().for_each(|event| contexts.apply(event));
    let packet = contexts.packet(&name(agent), 0).unwrap_or_default();
    let text = |message: &Message| match message {
        Message::Heard { text, .. } => Some(text.clone()),
        Message::System(_)
        | Message::Said { .. }
        | Message::Result { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => None,
    };
    packet.messages.iter().filter_map(|message| text(message)).collect()
}

/// P20: a message for an agent that does not exist is kept, and delivered once when the agent is spawned.
#[test]
fn p20_a_message_for_an_agent_that_is_yet_to_come_is_delivered_once() {
    let mut play = Scenario::grow("root $9.00 / a / c later");
    assert_eq!(play.ask(send("c", "first")), Ok(Reply::Send(SendReply::Queued)));
    assert_eq!(play.ask(send("c", "second")), Ok(Reply::Send(SendReply::Queued)));
    assert_eq!(play.ask(send("a", "other")), Ok(Reply::Send(SendReply::Delivered)));
    assert_eq!((unread(&play, "a"), unread(&play, "c")), (1, 0));
    let spawn = Spawn { id: Some(name("c")), ..Scenario::spawn("a", "c") };
    assert!(play.ask(Request::Spawn(spawn)).is_ok());
    assert_eq!(unread(&play, "c"), 2);
    assert!(play.world().unspawned().is_empty());
    assert_eq!(heard(&mut play, "c"), ["first", "second"]);
    assert_eq!(heard(&mut play, "a"), ["other"]);
    assert_eq!(play.ask(send("c", "third")), Ok(Reply::Send(SendReply::Delivered)));
    assert_eq!(heard(&mut play, "c"), ["first", "second", "third"]);
}

/// Waiting messages are read in the agent's first turn, so they count in its hold.
#[test]
fn messages_that_waited_for_an_agent_are_counted_in_its_first_turn() {
    let first = |letters: &[&str]| {
        let mut play = Scenario::grow("root $9.00 / c later turns=3");
        letters.iter().for_each(|text| assert!(play.ask(send("c", text)).is_ok()));
        let spawn = Spawn { id: Some(name("c")), ..Scenario::spawn("root", "c") };
        assert!(play.ask(Request::Spawn(spawn)).is_ok());
        let ix = play.world().agents().find(&name("c")).unwrap();
        play.world().agents().living(ix).unwrap().progress.tokens
    };
    let each = limit::SENDER_TOKENS.plus(limit::MESSAGE_TOKENS).bound();
    assert_eq!(first(&["hello", "again"]), first(&[]) + 2 * (5 + each));
}

#[test]
fn messages_for_those_who_never_come_are_bounded() {
    let mut play = Scenario::grow("root $9.00");
    for number in 0..limit::UNSPAWNED_MAX {
        assert!(play.ask(send(&format!("late-{number}"), "hello")).is_ok());
    }
    let refused = play.ask(send("one-more", "hello"));
    assert!(matches!(refused, Err(Refusal::TooMany { count_max: limit::UNSPAWNED_MAX, .. })), "{refused:?}");
    for _ in 1..limit::INBOX_MAX {
        assert!(play.ask(send("late-0", "hello")).is_ok());
    }
    let refused = play.ask(send("late-0", "hello"));
    assert!(matches!(refused, Err(Refusal::InboxFull { .. })), "{refused:?}");
}

/// A model reads the envelope of a message, so it can reply, and these texts are counted.
#[test]
fn a_messages_envelope_is_read_and_counted() {
    let envelope = Envelope {
        topic: Some(name("review.ask")),
        kind: Some(name("request")),
        correlation: Some(name("r-1")),
        ttl: Some(3),
        ..Envelope::default()
    };
    let mut play = Scenario::grow("root $9.00 / a");
    let message = Send { envelope, ..Send::plain(name("a"), Body::text("Is it good?")) };
    assert_eq!(play.ask(message), Ok(SendReply::Delivered));
    play.run("call a $0.01");
    let mut contexts = Contexts::new(play.world().tree());
    events(&play).iter().for_each(|event| contexts.apply(event));
    let packet = contexts.packet(&name("a"), 0).unwrap();
    let Some(Message::Heard { text, .. }) = packet.messages.last().map(AsRef::as_ref) else {
        panic!("{packet:?}")
    };
    insta::assert_snapshot!(text, @r"
    [topic review.ask, type request, correlation r-1]
    Is it good?
    ");
}

/// P20: a message without a recipient is for watchers of its topic; no agent reads it.
#[test]
fn p20_a_message_without_recipient_reaches_no_agent() {
    let mut play = Scenario::grow("root $9.00 / a / b");
    let envelope = Envelope { topic: Some(name("news")), ..Envelope::default() };
    let publish = Publish { body: Body::text("all of you"), envelope };
    assert_eq!(play.ask(publish), Ok(Accepted {}));
    for agent in ["root", "a", "b"] {
        assert_eq!(unread(&play, agent), 0);
        assert_eq!(heard(&mut play, agent), [""; 0]);
    }
}
