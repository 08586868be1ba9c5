//! Who asks: what is written for each kind of actor, what is read, and what models and people are shown of it.

use proptest::prelude::*;
use spinney_journal::Batch;
use spinney_kernel::budget::Amounts;
use spinney_kernel::primitives::{Actor, ActorName, Body, Envelope, OutsiderKind, Time};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Raise, Request, Send, WriteValue};
use spinney_kernel::rules::{Input, InputKind};
use spinney_testkit::Scenario;

use crate::observed::{agent, events, name, refused};

fn named(kind: OutsiderKind, text: &str) -> Actor {
    Actor::named(kind, name(text))
}

fn actors() -> Vec<(Actor, &'static str, &'static str)> {
    vec![
        (Actor::Agent(name("lead")), r#"{"agent":"lead"}"#, "lead"),
        (Actor::PERSON, r#""person""#, "a person"),
        (Actor::PROGRAM, r#""program""#, "a program"),
        (Actor::GATEWAY, r#""gateway""#, "the gateway"),
        (Actor::HOOK, r#""hook""#, "a hook"),
        (Actor::REMOTE, r#""remote""#, "a remote agent"),
        (Actor::RUNTIME, r#""runtime""#, "the runtime"),
        (named(OutsiderKind::Person, "ana"), r#"{"person":"ana"}"#, "person ana"),
        (named(OutsiderKind::Program, "nightly job"), r#"{"program":"nightly job"}"#, "program nightly job"),
        (named(OutsiderKind::Gateway, "claude"), r#"{"gateway":"claude"}"#, "gateway claude"),
        (named(OutsiderKind::Hook, "audit"), r#"{"hook":"audit"}"#, "hook audit"),
        (
            named(OutsiderKind::Remote, "https://a.example/b"),
            r#"{"remote":"https://a.example/b"}"#,
            "remote https://a.example/b",
        ),
        (named(OutsiderKind::Runtime, "raise"), r#"{"runtime":"raise"}"#, "runtime raise"),
    ]
}

fn batch_of(actor: &Actor) -> Batch {
    let (from, to, envelope) = (actor.clone(), name("root"), Envelope::default());
    let events = vec![Event::MessageSent { from, to, body: Body::text("Hello."), envelope }];
    let request = Box::new(Request::Send(Send::plain(name("root"), Body::text("Hello."))));
    let input = Input { now: Time(5), draw: 1, what: InputKind::Request { by: actor.clone(), request } };
    Batch { input, events }
}

#[test]
fn every_kind_of_actor_has_its_json_and_its_words() {
    for (actor, json, words) in actors() {
        assert_eq!(serde_json::to_string(&actor).unwrap(), json);
        assert_eq!(serde_json::from_str::<Actor>(json).unwrap(), actor);
        assert_eq!(actor.to_string(), words);
        // In a batch an actor is read from values that serde has kept, and written by the journal's own JSON.
        let bytes = batch_of(&actor).encode().unwrap();
        assert_eq!(Batch::decode(bytes.bytes()).unwrap(), batch_of(&actor), "{json}");
        let text = String::from_utf8(bytes.bytes().to_vec()).unwrap();
        assert!(
            text.contains(&format!("\"by\":{json}")) && text.contains(&format!("\"from\":{json}")),
            "{text}"
        );
    }
}

#[test]
fn what_is_not_an_actor_is_not_read() {
    let long = format!("{{\"person\":\"{}\"}}", "x".repeat(129));
    for bad in [
        "7",
        "null",
        "\"\"",
        "\"agent\"",
        "\"Person\"",
        "\"stranger\"",
        "[]",
        "{}",
        r#"{"agent":null}"#,
        r#"{"agent":"Not An Id"}"#,
        r#"{"stranger":"ana"}"#,
        r#"{"person":7}"#,
        r#"{"person":""}"#,
        r#"{"person":" ana"}"#,
        r#"{"person":"ana\nperson eve"}"#,
        r#"{"person":"\u001b[2J"}"#,
        r#"{"person":"a\u202eb"}"#,
        r#"{"person":"ana","program":"ci"}"#,
        r#"{"agent":"lead","person":"ana"}"#,
        &long,
    ] {
        assert!(serde_json::from_str::<Actor>(bad).is_err(), "{bad}");
    }
    let error = serde_json::from_str::<Actor>("\"stranger\"").unwrap_err().to_string();
    assert!(error.starts_with("unknown variant `stranger`, expected one of `agent`, `person`"), "{error}");
    let error = "".parse::<ActorName>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`` is not a valid name of an actor: 1 to 128 bytes without characters that cannot be printed, no space at an end"
    );
}

proptest! {
    /// Whatever a person or a key is called, the journal gives it back, or the name is refused before it is an actor.
    #[test]
    fn every_actor_is_read_as_it_was_written(kind in 0..OutsiderKind::ALL.len(), text in "\\PC{0,140}|[ -~]{1,20}|.{0,9}") {
        let kind = OutsiderKind::ALL[kind];
        if let Ok(name) = text.parse::<ActorName>() {
            let actor = Actor::named(kind, name);
            prop_assert_eq!(batch_of(&actor).encode().unwrap().decode().unwrap(), batch_of(&actor));
            prop_assert!(!actor.to_string().contains(char::is_control));
        } else {
            let json = serde_json::json!({ kind.as_str(): text });
            prop_assert!(serde_json::from_value::<Actor>(json).is_err());
        }
    }
}

/// What a note says and who said it, of every message in the journal.
fn notes(play: &Scenario) -> Vec<(Actor, String)> {
    let sent = |event| match event {
        Event::MessageSent { from, body, .. } => Some((from, body.text.chars().take(22).collect())),
        _ => None,
    };
    events(play).into_iter().filter_map(sent).collect()
}

/// The runtime's notes are its own and never a person's. Trees of older rules decide as they did.
#[test]
fn the_runtime_signs_its_own_notes_from_rules_6_on() {
    for (rules, from) in [(4, Actor::PERSON), (5, Actor::PERSON), (6, Actor::RUNTIME)] {
        let mut play = Scenario::grow_under(rules, "root $9.00 turns=9");
        play.run("cut #1 Half of");
        assert_eq!(notes(&play), [(from.clone(), "Your answer was cut at".to_owned())], "rules {rules}");
        let mut play = Scenario::grow_under(rules, "root $2.00 turns=9 wrap out=1500 tools=read");
        play.run("said #1 Go. | read {}\ncharge root $1.20\ndone #2\nsaid #4 So far.\nraise root $3.00");
        assert_eq!(
            notes(&play),
            [(from, "The budget was raised.".to_owned())],
            "rules {rules}: {}",
            play.log()
        );
    }
}

/// What models read depends on neither the kind nor the name, as far as it did not before.
#[test]
fn whoever_sends_a_message_its_reader_is_shown_the_same() {
    let log = |by: Actor| {
        let mut play = Scenario::grow("root $9.00 turns=9");
        play.ask_as(by, Send::plain(name("root"), Body::text("Hello."))).unwrap();
        play.run("said #1 Yes.");
        play.log()
            .lines()
            .filter(|line| line.contains("asked") || line.contains("started"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (actor, ..) in actors().into_iter().skip(1) {
        assert_eq!(log(actor.clone()), log(Actor::PERSON), "{actor}");
    }
}

/// Rights are checked where a request arrives; the kernel only tells agents from everyone else.
#[test]
fn everyone_outside_may_ask_for_what_a_person_may_and_is_recorded() {
    for (actor, ..) in actors().into_iter().skip(1) {
        let mut play = Scenario::grow("root $9.00 turns=9");
        let raise = Raise { agent: name("root"), add: Amounts::cost(1_000), add_ms: 0 };
        play.ask_as(actor.clone(), raise).unwrap();
        let write =
            WriteValue { name: name("plan"), json: "1".to_owned(), tokens: None, expect_version: None };
        play.ask_as(actor.clone(), write).unwrap();
        let written = events(&play).into_iter().find_map(|event| match event {
            Event::ValueWritten { by, .. } => Some(by),
            _ => None,
        });
        assert_eq!(written, Some(actor));
    }
    let mut play = Scenario::grow("root $9.00 turns=9");
    let raise = Raise { agent: name("root"), add: Amounts::cost(1_000), add_ms: 0 };
    assert_eq!(refused(&mut play, agent("root", Request::Raise(raise))).code(), "person_only");
}

/// Names of people and keys never reach a model: it reads the kind.
#[test]
fn a_model_reads_the_kind_of_who_wrote_a_value_and_never_the_name() {
    for (by, shown) in [
        (Actor::PERSON, "written by person"),
        (named(OutsiderKind::Person, "ana"), "written by person"),
        (named(OutsiderKind::Program, "billing-key"), "written by a program"),
        (Actor::GATEWAY, "written by the gateway"),
    ] {
        let mut play = Scenario::grow("root $9.00 turns=9");
        let write =
            WriteValue { name: name("plan"), json: "1".to_owned(), tokens: None, expect_version: None };
        play.ask_as(by, write).unwrap();
        play.run("said #1 Let me see. | list_context {}");
        assert!(play.log().contains(&format!("plan version 1, 1 bytes, {shown}\n")), "{}", play.log());
    }
}
