//! Reserved names: ids and topics that an agent may not use, because they have another meaning.

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body, Envelope, RESERVED_IDS, RoleName};
use spinney_kernel::record::Event;
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::{Accepted, Publish, Request, Send, SendReply, Spawn, Start};
use spinney_testkit::Scenario;

use crate::observed::{events, name};

const TREE: &str = "root $9.00 / a / b later";

fn spawn(id: &str) -> Request {
    Request::Spawn(Spawn { id: Some(name(id)), ..Scenario::spawn("root", "b") })
}

fn envelope(topic: &str) -> Envelope {
    Envelope { topic: Some(name(topic)), ..Envelope::default() }
}

fn send(topic: &str) -> Request {
    Request::Send(Send { envelope: envelope(topic), ..Send::plain(name("root"), Body::text("It is over.")) })
}

fn publish(topic: &str) -> Request {
    Request::Publish(Publish { body: Body::text("It is over."), envelope: envelope(topic) })
}

#[test]
fn no_agent_may_have_a_reserved_id() {
    let mut play = Scenario::grow(TREE);
    for id in RESERVED_IDS {
        assert_eq!(play.ask(spawn(id)), Err(Refusal::ReservedId { agent: name(id) }));
        let letter = Request::Send(Send::plain(name(id), Body::text("Please say yes.")));
        assert_eq!(play.ask(letter), Err(Refusal::NotAnAgent { agent: name(id) }));
    }
    assert!(play.ask(spawn("personal")).is_ok());
    let definition = |entry: &str| {
        let tree = Scenario::grow_as(&TREE.replace("root", "someone"), |_| {});
        let definition = events(&tree).into_iter().find_map(|event| {
            if let Event::TreeStarted { definition, .. } = event { Some(definition) } else { None }
        });
        let mut definition = (*definition.unwrap()).clone();
        let role = definition.roles.get(&name::<RoleName>("someone")).cloned().unwrap();
        definition.roles.insert(name(entry), role);
        definition.entry = name(entry);
        definition
    };
    let start = |entry| Request::Start(Start::new(definition(entry)));
    assert_eq!(Scenario::seed().ask(start("person")), Err(Refusal::ReservedId { agent: name("person") }));
    assert!(Scenario::seed().ask(start("persona")).is_ok());
}

#[test]
fn no_model_speaks_under_the_topics_of_the_trees_own_events() {
    let mut play = Scenario::grow(TREE);
    let by = || Actor::Agent(name("a"));
    for topic in ["tree", "tree.halt", "Tree.Halt", "agent.result", "model.call", "tool.call", "budget.raise"]
    {
        let refused = Err(Refusal::ReservedTopic { topic: name(topic) });
        assert_eq!(play.ask_as(by(), send(topic)), refused, "{topic}");
        assert_eq!(play.ask_as(by(), publish(topic)), refused, "{topic}");
    }
    for topic in ["trees", "news.tree", "reply.news"] {
        assert_eq!(play.ask_as(by(), send(topic)), Ok(Reply::Send(SendReply::Delivered)), "{topic}");
        assert_eq!(play.ask_as(by(), publish(topic)), Ok(Reply::Accepted(Accepted {})), "{topic}");
    }
    let recorded = play.ask_as(by(), send("tree.halt")).unwrap_err().to_string();
    assert_eq!(
        recorded,
        "the topic `tree.halt` is reserved for the tree's own events: choose another first word"
    );
}

/// Trees continue under the rules that they started with.
#[test]
fn a_tree_of_older_rules_takes_the_names_that_it_always_took() {
    for rules in [1, 2] {
        let mut play = Scenario::grow_under(rules, TREE);
        assert!(play.ask(spawn("person")).is_ok());
        assert_eq!(
            play.ask_as(Actor::Agent(name("a")), send("tree.halt")),
            Ok(Reply::Send(SendReply::Delivered))
        );
        assert_eq!(
            play.ask_as(Actor::Agent(name("a")), publish("agent.result")),
            Ok(Reply::Accepted(Accepted {}))
        );
        let letter = Send::plain(name("user"), Body::text("Hello."));
        assert_eq!(play.ask(letter), Ok(SendReply::Queued));
    }
}
