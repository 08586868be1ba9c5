//! An answer that does not match its schema: the model reads why, repairs it in ordinary turns, and then fails with a
//! type. These are the kernel's decisions; whether an answer matches is checked elsewhere.

use insta::assert_snapshot;
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::{Contexts, Frame};
use spinney_kernel::definition::{
    Allow, Definition, FieldMismatch, Mismatch, MismatchKind, OutputSchema, Refusal, WindowSpec,
};
use spinney_kernel::primitives::{Body, CallId, Category, RoleName, Running, TokenCount, limit};
use spinney_kernel::record::{Event, Exit, Work};
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Collect, Redirect, Request, Send, Spawn};
use spinney_testkit::Scenario;

use crate::observed::{births, events, name, person, refused, running};

const SCHEMA: &str = r#"{ "type": "object", "required": ["n"] }"#;

fn schema() -> Option<Box<OutputSchema>> {
    Some(Box::new(OutputSchema::read(SCHEMA).unwrap()))
}

/// A tree in which every role with turns has the schema.
fn grow(fixture: &str) -> Scenario {
    Scenario::grow_as(fixture, shaped)
}

fn shaped(definition: &mut Definition) {
    let turns = definition.roles.values_mut().filter_map(|role| role.turns.as_mut());
    turns.for_each(|turns| turns.output_schema = schema());
}

fn misfit() -> Mismatch {
    let wrong =
        FieldMismatch { path: "/n".to_owned(), expected: "value is not of type \"integer\"".to_owned() };
    Mismatch { kind: MismatchKind::Value, wrong: vec![wrong], more: 1 }
}

/// Ends the running call with this text and this mismatch.
fn answer(play: &mut Scenario, text: &str, mismatch: Option<Mismatch>) {
    let call = *running(play).last().unwrap();
    answer_of(play, call, text, mismatch);
}

fn answer_of(play: &mut Scenario, call: CallId, text: &str, mismatch: Option<Mismatch>) {
    let attempt = play.world().call(call).unwrap().attempt;
    let used = Used::Tokens(Usage { output: 10, ..Usage::default() });
    let (body, mismatch) = (Body::text(text), mismatch.map(Box::new));
    play.report(Report::Done(Done { mismatch, ..Done::new(call, attempt, used, body) }));
}

fn contexts(play: &Scenario) -> Contexts {
    spinney_testkit::contexts_of(play.world().tree(), events(play).iter())
}

/// What an agent's model was shown last.
fn shown(play: &Scenario, agent: &str) -> Vec<String> {
    let messages = contexts(play).packet(&name(agent), 0).unwrap().messages;
    messages.iter().map(|message| message.text().into_owned()).collect()
}

/// How an agent ended, in words.
fn end(play: &Scenario, agent: &str) -> String {
    let exit = |event: &Event| {
        let Event::AgentEnded { agent: ended, exit, .. } = event else { return None };
        (ended.as_str() == agent).then(|| exit.clone())
    };
    match events(play).iter().find_map(exit) {
        Some(Exit::Failed { error }) => format!("{}: {}", error.code, error.message),
        Some(exit) => exit.as_str().to_owned(),
        None => "lives".to_owned(),
    }
}

/// The first message of an agent with a schema asks for such a value; without a schema it is unchanged.
#[test]
fn only_the_agent_itself_is_shown_its_schema() {
    let play = Scenario::grow_as("root turns=5 / plain turns=5", |definition| {
        let root =
            definition.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut()).unwrap();
        root.output_schema = schema();
        definition.tools.clear();
        definition.roles.values_mut().for_each(|role| role.caps.tools = Allow::only([]));
    });
    assert_snapshot!(shown(&play, "root")[0], @r#"
    When you are done, answer with one JSON value that fits this JSON Schema, and with nothing else:
    {"type":"object","required":["n"]}

    Your task: Grow.
    "#);
    assert_snapshot!(shown(&play, "plain")[0], @"
    When you are done, answer with a clear summary of the result.

    Your task: Do the part of plain.
    ");
    let recorded = |agent: &str| contexts(&play).output_schema(&name(agent)).map(ToString::to_string);
    assert_eq!(recorded("root").as_deref(), Some(r#"{"type":"object","required":["n"]}"#));
    assert_eq!(recorded("plain"), None);
}

#[test]
fn an_answer_that_fits_at_the_second_try_is_the_result() {
    let mut play = grow("root turns=5");
    answer(&mut play, "five", Some(misfit()));
    assert_eq!(end(&play, "root"), "lives");
    let recorded = shown(&play, "root");
    assert_eq!(recorded[1], "five");
    assert_snapshot!(recorded[2], @r#"
    Your answer does not fit the JSON Schema: at /n: value is not of type "integer"; and 1 more
    Answer again, with the whole JSON value and nothing else.
    "#);
    answer(&mut play, r#"{"n":5}"#, None);
    assert_eq!(end(&play, "root"), "completed");
    assert_eq!(contexts(&play).end().unwrap().shown.text, r#"{"n":5}"#);
}

/// A parent gets a typed failure with the place, and the child's text as a partial result.
#[test]
fn repairs_that_do_not_help_end_in_a_typed_failure() {
    let mut play = grow("root turns=9 / child turns=9 detached");
    for at in 0..=limit::REPAIRS_MAX {
        assert_eq!(end(&play, "child"), "lives", "{at}");
        answer(&mut play, "five", Some(misfit()));
    }
    assert_snapshot!(end(&play, "child"), @r#"output_mismatch: at /n: value is not of type "integer"; and 1 more: the answer still does not fit `output_schema` after 2 repairs; describe the expected answer in the goal, or ask for less in the schema"#);
    let heard: Vec<String> = contexts(&play).unread(&name("root")).map(|m| m.text().into_owned()).collect();
    assert_snapshot!(heard.join("\n"), @r#"
    child failed (output_mismatch: at /n: value is not of type "integer"; and 1 more: the answer still does not fit `output_schema` after 2 repairs; describe the expected answer in the goal, or ask for less in the schema); partial result:
    five
    "#);
    let turns = events(&play).iter().filter(|event| matches!(event, Event::CallAsked { .. })).count();
    assert_eq!(turns, 1 + 1 + usize::from(limit::REPAIRS_MAX));
}

#[test]
fn an_invalid_schema_fails_at_once_because_nothing_can_match() {
    let mut play = grow("root turns=5");
    let wrong = Mismatch { kind: MismatchKind::Schema, ..misfit() };
    answer(&mut play, "{}", Some(wrong));
    assert_snapshot!(end(&play, "root"), @r#"bad_output_schema: the schema itself is wrong: at /n: value is not of type "integer"; and 1 more: no answer can fit it; give a valid one"#);
}

#[test]
fn turns_that_run_out_while_repairing_say_what_is_still_wrong() {
    let mut play = grow("root turns=2");
    answer(&mut play, "five", Some(misfit()));
    answer(&mut play, "six", Some(misfit()));
    assert_snapshot!(end(&play, "root"), @r#"max_steps: at /n: value is not of type "integer"; and 1 more: no answer fits `output_schema` after 2 turns, the most allowed: raise `limits.max_steps`, or ask for less"#);
}

/// The agent pays for its repairs: at its ceiling it ends as at any other turn, with its progress.
#[test]
fn a_repair_that_the_budget_refuses_leaves_a_partial_result() {
    let mut play = grow("root turns=5 / child steps=1 turns=5 detached");
    answer(&mut play, "five", Some(misfit()));
    assert_eq!(end(&play, "child"), "exhausted");
    let heard: Vec<String> = contexts(&play).unread(&name("root")).map(|m| m.text().into_owned()).collect();
    assert!(heard[0].ends_with("; partial result:\nfive"), "{heard:?}");
}

/// After a new message the agent gives another answer, with as many repairs.
#[test]
fn a_message_or_an_instruction_asks_for_another_answer() {
    let mut play = grow("root turns=20");
    for _ in 0..2 {
        for _ in 0..limit::REPAIRS_MAX {
            answer(&mut play, "five", Some(misfit()));
        }
        play.must(Request::Send(Send::plain(name("root"), Body::text("Hurry."))));
        answer(&mut play, "five", Some(misfit()));
        assert_eq!(end(&play, "root"), "lives");
        let running = Running::Stops;
        let (agent, instruction) = (name("root"), "Count again.".to_owned());
        play.must(Request::Redirect(Redirect { agent, instruction, tokens: None, running }));
        let call = running_call(&play);
        play.run(&format!("failed #{} stopped", call.0));
    }
    for _ in 0..=limit::REPAIRS_MAX {
        assert_eq!(end(&play, "root"), "lives");
        answer(&mut play, "five", Some(misfit()));
    }
    assert!(end(&play, "root").starts_with("output_mismatch: "));
}

fn running_call(play: &Scenario) -> CallId {
    *running(play).last().unwrap()
}

/// A matching answer is not the end if a message arrived meanwhile.
#[test]
fn an_answer_that_fits_is_not_the_end_while_there_is_something_to_read() {
    let mut play = grow("root turns=20");
    play.must(Request::Send(Send::plain(name("root"), Body::text("Hurry."))));
    answer(&mut play, r#"{"n":5}"#, None);
    assert_eq!(end(&play, "root"), "lives");
    answer(&mut play, r#"{"n":6}"#, None);
    assert_eq!(end(&play, "root"), "completed");
}

/// The note about a mismatch is read, however full the window is.
#[test]
fn a_mismatch_is_shown_even_when_the_window_is_full() {
    let mut play = Scenario::grow_as("root turns=20", |definition| {
        shaped(definition);
        let turns = definition.roles.values_mut().filter_map(|role| role.turns.as_mut());
        turns
            .for_each(|turns| turns.window = Some(WindowSpec { size: Some(1_500), ..WindowSpec::default() }));
    });
    answer(&mut play, &"five ".repeat(200), Some(misfit()));
    assert_eq!(end(&play, "root"), "lives");
    let recorded = shown(&play, "root");
    assert!(
        recorded.last().unwrap().starts_with("Your answer does not fit the JSON Schema: at /n"),
        "{recorded:?}"
    );
    let cut = |event: &Event| matches!(event, Event::ContextCut { .. });
    assert!(events(&play).iter().any(cut), "the window was never full");
    let window = play.world().agents().agent(play.world().agents().root().unwrap());
    assert!(window.progress.window.used_by(Category::Error) > 0);
}

/// A spawner's schema applies to the child, whatever the role says, and to the child alone.
#[test]
fn a_spawner_may_ask_for_another_shape() {
    let mut play = grow("root turns=5 / b turns=5 later");
    let other = OutputSchema::read(r#"{"type":"array"}"#).unwrap();
    let frame = Frame { output_schema: Some(Box::new(other)), ..Frame::default() };
    let id = Some(name("b1"));
    play.must(Request::Spawn(Spawn {
        id,
        frame,
        collect: Collect::Detached,
        ..Scenario::spawn("root", "b")
    }));
    let id = Some(name("b2"));
    play.must(Request::Spawn(Spawn { id, collect: Collect::Detached, ..Scenario::spawn("root", "b") }));
    let recorded = |agent: &str| contexts(&play).output_schema(&name(agent)).unwrap().to_string();
    assert_eq!((recorded("b1").as_str(), recorded("b2").contains("object")), (r#"{"type":"array"}"#, true));
    assert!(births(&play)[1].output_schema.is_some() && births(&play)[2].output_schema.is_none());
}

/// The schema in `spawn_agent`: an object, or its JSON as a string.
#[test]
fn a_model_may_give_a_child_a_schema() {
    for (args, wanted) in [
        (
            r#"{"agent":"b","id":"x","goal":"Go.","output_schema":{"type": "array"}}"#,
            Ok(r#"{"type":"array"}"#),
        ),
        (
            r#"{"agent":"b","id":"x","goal":"Go.","output_schema":"{\"type\": \"array\"}"}"#,
            Ok(r#"{"type":"array"}"#),
        ),
        (r#"{"agent":"b","id":"x","goal":"Go.","output_schema":5}"#, Err("it is not a JSON object")),
        (
            r#"{"agent":"b","id":"x","goal":"Go.","output_schema":"an array"}"#,
            Err("expected value at line 1"),
        ),
    ] {
        let mut play = Scenario::grow("root turns=5 / b turns=5 later");
        let call = running_call(&play);
        play.run(&format!("said #{} Off. | spawn_agent {args}", call.0));
        match wanted {
            Ok(schema) => {
                assert_eq!(contexts(&play).output_schema(&name("x")).unwrap().as_ref(), schema);
            }
            Err(why) => {
                let refused = |event: &Event| {
                    let Event::ToolAnswered { body, is_error: true, .. } = event else { return None };
                    Some(body.text.clone())
                };
                let recorded = events(&play).iter().find_map(refused).unwrap();
                assert!(
                    recorded.starts_with("bad `output_schema`: ") && recorded.contains(why),
                    "{recorded}"
                );
            }
        }
    }
}

#[test]
fn a_schema_that_is_too_long_is_refused_with_both_numbers() {
    let mut play = Scenario::grow("root turns=5 / b turns=5 later");
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(limit::SCHEMA_BYTES_MAX));
    let refusal = OutputSchema::read(&long).unwrap_err();
    assert!(matches!(refusal, Refusal::TextTooLong { bytes_max: limit::SCHEMA_BYTES_MAX, .. }), "{refusal}");
    // A schema that was not checked is refused on arrival.
    let written = serde_json::json!({ "output_schema": { "schema": long } });
    let frame: Frame = serde_json::from_value(written).unwrap();
    let spawn = Spawn { frame, ..Scenario::spawn("root", "b") };
    let refusal = refused(&mut play, person(Request::Spawn(spawn)));
    assert!(matches!(refusal, Refusal::TextTooLong { .. }), "{refusal}");
}

/// A first message counts at least its bytes, or its actual count. A counted schema counts twice, because providers that
/// support it get it once more.
#[test]
fn the_schema_counts_in_what_a_first_call_holds() {
    let asked = |play: &Scenario| {
        let tokens = |event: &Event| {
            let Event::CallAsked { work: Work::Model(work), .. } = event else { return None };
            Some(work.input_tokens)
        };
        events(play).iter().find_map(tokens).unwrap()
    };
    let plain = asked(&Scenario::grow("root turns=5"));
    let bytes = asked(&grow("root turns=5"));
    assert!(bytes > plain + OutputSchema::read(SCHEMA).unwrap().text().len() as u64);
    let counted = asked(&Scenario::grow_as("root turns=5", |definition| {
        shaped(definition);
        let turns = definition.roles.values_mut().filter_map(|role| role.turns.as_mut());
        turns
            .filter_map(|turns| turns.output_schema.as_mut())
            .for_each(|schema| schema.count(&|_| TokenCount::exact(7)));
    }));
    assert_eq!(counted, plain + 2 * 7);
}
