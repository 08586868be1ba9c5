//! Tools from closures: what a model sees of them, their arguments and results, and their error texts.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spinney::FunctionTool;
use spinney::function_tool::{Answered, RawCall, ToolRequest};
use spinney_kernel::budget::Used;
use spinney_kernel::context::{Message, Origin};
use spinney_kernel::definition::{OnLost, Refusal, ToolSpec as Spec};
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{CallId, Enclosure, TreeId, limit};
use spinney_testkit::{TestHome, definition, settled};

/// Books a seat on a train.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is read of it is enough")]
struct Book {
    /// From where to where.
    route: Route,
    /// How many seats.
    seats: u8,
    /// The class; any if left out.
    class: Option<Class>,
    /// Words for the conductor.
    #[serde(default)]
    notes: Vec<String>,
    /// How the seats are paid.
    pay: Pay,
    /// The way back.
    back: Option<Route>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Route {
    from: String,
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Class {
    First,
    Second,
}

/// Money.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it can be read matters")]
enum Pay {
    Cash,
    Card { number: String },
}

#[derive(Serialize)]
struct Booked {
    seats: Vec<u8>,
    price: f64,
}

fn book() -> FunctionTool {
    FunctionTool::sync(|book: Book| {
        if book.route.from == book.route.to {
            return Err(format!("{} is where you are", book.route.to));
        }
        Ok(Booked { seats: (1..=book.seats).collect(), price: 9.5 })
    })
}

fn attempt(args: &str) -> ToolAttempt {
    let path = ["root".parse().unwrap(), "a".parse().unwrap()].into();
    let (tree, role) = (TreeId::new([7; 16]), "lead".parse().unwrap());
    let origin = Arc::new(Origin { tree, path, role, goal: "Travel.".into() });
    ToolAttempt::new(origin, CallId(1), "k".to_owned(), "book".parse().unwrap(), args.to_owned())
}

fn answered(text: &str, is_error: bool) -> ToolAnswer {
    if is_error { ToolAnswer::failed(text) } else { ToolAnswer::text(text) }
}

async fn result(tool: &FunctionTool, args: &str) -> String {
    let answer = tool.call(attempt(args)).await.unwrap();
    format!("{}{}", if answer.is_error { "error: " } else { "" }, answer.text)
}

/// The schema follows from the type: names, descriptions, optional fields, choices, and nothing else.
#[test]
fn the_schema_of_a_tool_is_that_of_its_type() {
    let Spec { description, schema, .. } = book().spec();
    assert_eq!(description, "Books a seat on a train.");
    assert_eq!(schema, book().spec().schema);
    let shown: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema, shown.to_string(), "compact");
    insta::assert_snapshot!(schema, @r##"{"type":"object","additionalProperties":false,"properties":{"route":{"$ref":"#/$defs/Route","description":"From where to where."},"seats":{"type":"integer","description":"How many seats.","minimum":0,"maximum":255},"class":{"anyOf":[{"$ref":"#/$defs/Class"},{"type":"null"}],"description":"The class; any if left out."},"notes":{"type":"array","items":{"type":"string"},"description":"Words for the conductor.","default":[]},"pay":{"$ref":"#/$defs/Pay","description":"How the seats are paid."},"back":{"anyOf":[{"$ref":"#/$defs/Route"},{"type":"null"}],"description":"The way back."}},"required":["route","seats","pay"],"$defs":{"Route":{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"}},"required":["from","to"],"additionalProperties":false},"Class":{"type":"string","enum":["first","second"]},"Pay":{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"cash"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"card"},"number":{"type":"string"}},"required":["kind","number"],"additionalProperties":false}],"description":"Money."}}}"##);
}

/// A combination of several schemas is not closed: each of them would forbid the fields of the others.
#[test]
fn a_type_that_is_put_together_stays_open() {
    #[derive(Deserialize, JsonSchema)]
    struct Outer {
        #[expect(dead_code, reason = "only its schema matters")]
        name: String,
        #[serde(flatten)]
        #[expect(dead_code, reason = "only its schema matters")]
        pay: Pay,
    }
    let tool = FunctionTool::sync(|_: Outer| Ok::<_, String>(""));
    assert!(!tool.spec().schema.contains("additionalProperties"), "{}", tool.spec().schema);
    #[derive(Deserialize, JsonSchema)]
    struct Any {
        #[expect(dead_code, reason = "only its schema matters")]
        values: BTreeMap<String, u32>,
    }
    let tool = FunctionTool::sync(|_: Any| Ok::<_, String>(""));
    insta::assert_snapshot!(tool.spec().schema, @r#"{"type":"object","properties":{"values":{"type":"object","additionalProperties":{"type":"integer","minimum":0}}},"required":["values"],"additionalProperties":false}"#);
}

#[tokio::test]
async fn a_typed_closure_answers_with_json_or_complains() {
    let tool = book();
    let good = r#"{"route": {"from": "Bonn", "to": "Rome"}, "seats": 2, "pay": {"kind": "cash"}}"#;
    assert_eq!(result(&tool, good).await, r#"{"seats":[1,2],"price":9.5}"#);
    assert_eq!(result(&tool, &good.replace("Rome", "Bonn")).await, "error: Bonn is where you are");
    let tool = FunctionTool::sync(|book: Book| Ok::<_, String>(book.route.to));
    assert_eq!(result(&tool, good).await, "Rome", "text is said as it is");
    let tool = FunctionTool::sync(|_: RawCall| Ok::<_, String>(BTreeMap::from([([1, 2], 3)])));
    insta::assert_snapshot!(result(&tool, "{}").await, @"error: the tool's result cannot be written as JSON: key must be a string");
}

/// Errors name the field, even a nested one, and the model reads what the tool takes.
#[tokio::test]
async fn bad_arguments_name_the_field_and_what_the_tool_takes() {
    let tool = book();
    let good = r#"{"route": {"from": "Bonn", "to": "Rome"}, "seats": 2, "pay": {"kind": "cash"}}"#;
    insta::assert_snapshot!(result(&tool, "{}").await, @r#"error: bad arguments: missing field `route`; this tool takes { route: { from: string, to: string }, seats: integer, class?: "first" | "second" | null, notes?: [string], pay: { kind: "cash" } | { kind: "card", number: string }, back?: { from: string, to: string } | null }"#);
    let short = async |from: &str, to: &str| {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        let result = result(&tool, &good.replace(from, to)).await;
        result.split("; this tool takes {").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(short("2", "\"two\"").await, @r#"error: bad arguments: `seats`: invalid type: string "two", expected u8"#);
    insta::assert_snapshot!(short("2", "999").await, @"error: bad arguments: `seats`: invalid value: integer `999`, expected u8");
    insta::assert_snapshot!(short("\"Rome\"", "7").await, @"error: bad arguments: `route.to`: invalid type: integer `7`, expected a string");
    insta::assert_snapshot!(short("\"seats\"", "\"class\": \"third\", \"seats\"").await, @"error: bad arguments: `class`: unknown variant `third`, expected `first` or `second`");
    insta::assert_snapshot!(short("\"seats\"", "\"seat\"").await, @"error: bad arguments: `seat`: unknown field `seat`, expected one of `route`, `seats`, `class`, `notes`, `pay`, `back`");
    insta::assert_snapshot!(short("cash", "gold").await, @"error: bad arguments: `pay.kind`: unknown variant `gold`, expected `cash` or `card`");
    insta::assert_snapshot!(short("2,", "2, \"notes\": [\"a\", 5],").await, @"error: bad arguments: `notes[1]`: invalid type: integer `5`, expected a string");
    insta::assert_snapshot!(short("}}", "}} {}").await, @"error: bad arguments: trailing characters");
    let long = result(&tool, &good.replace("cash", &"x".repeat(9_000))).await;
    assert!(long.len() <= limit::NOTE_BYTES_MAX + "error: ".len(), "{}", long.len());
}

/// The calling agent, and the idempotency key of the effect.
#[tokio::test]
async fn a_closure_that_wants_it_is_given_the_attempt() {
    let tool = FunctionTool::new(async |call: ToolRequest<Route>| {
        let ToolRequest { args, attempt } = call;
        Ok::<_, String>(format!(
            "{} to {} for {} as {}",
            args.from,
            args.to,
            attempt.origin.agent(),
            attempt.key
        ))
    });
    assert_eq!(result(&tool, r#"{"from": "a", "to": "b"}"#).await, "a to b for a as k");
    assert_eq!(tool.spec().schema, FunctionTool::sync(|_: Route| Ok::<_, String>("")).spec().schema);
    assert!(result(&tool, "{}").await.starts_with("error: bad arguments: missing field `from`"));
}

#[tokio::test]
async fn an_untyped_closure_answers_or_complains() {
    let tool = FunctionTool::sync(|RawCall(attempt)| match attempt.args.as_str() {
        "{}" => Err("nothing to search"),
        args => Ok(format!("{} found {args}", attempt.tool)),
    });
    assert_eq!(tool.call(attempt("[1]")).await, Ok(answered("book found [1]", false)));
    assert_eq!(tool.call(attempt("{}")).await, Ok(answered("nothing to search", true)));
    assert_eq!(tool.spec(), Spec::default());
}

#[tokio::test]
async fn a_closure_may_wait_and_runs_only_when_awaited() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let tool = FunctionTool::new(move |RawCall(attempt)| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            Ok::<_, String>(attempt.key)
        }
    });
    drop(tool.call(attempt("{}")));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(tool.call(attempt("{}")).await, Ok(answered("k", false)));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_tool_is_described_by_what_it_is_given() {
    let plain = FunctionTool::new(|_: RawCall| ready(Ok::<_, String>(""))).schema("{}");
    let tool = plain.described("Searches.").repeatable().timeout_ms(50).cost_nanos_max(7).shown_bytes(4_096);
    let spec = Spec {
        description: "Searches.".to_owned(),
        schema: "{}".to_owned(),
        lost: OnLost::Repeatable,
        repeatable_below: None,
        cost_nanos_max: 7,
        timeout_ms: Some(50),
        shown_bytes: Some(4_096),
        tokens: None,
        subject: None,
        hosts: None,
    };
    assert_eq!(tool.spec(), spec);
    assert_eq!(book().described("Books.").spec().description, "Books.");
}

/// A tool with a cost is charged its maximum, unless it reports its usage or was never called.
#[tokio::test]
async fn a_tool_that_costs_something_says_how_much_or_it_was_the_most() {
    let tool = FunctionTool::sync(|route: Route| match route.from.as_str() {
        "dear" => Ok(Answered::new("done").cost_nanos(5)),
        "unsaid" => Ok(Answered::new("done")),
        _ => Err("no"),
    })
    .cost_nanos_max(9);
    let used = async |from: &str| {
        tool.call(attempt(&format!(r#"{{"from": "{from}", "to": "x"}}"#))).await.unwrap().used
    };
    assert_eq!(used("dear").await, Used::CostNanos(5));
    assert_eq!(used("unsaid").await, Used::Unknown);
    assert_eq!(used("other").await, Used::Unknown);
    assert_eq!(tool.call(attempt("{}")).await.unwrap().used, Used::NOTHING);
}

#[tokio::test]
async fn an_answer_may_have_images_and_files() {
    let part = || Enclosure::new("image/png".parse().unwrap(), "a.png".parse().unwrap(), b"pixels".to_vec());
    let tool =
        FunctionTool::sync(move |_: RawCall| Ok::<_, String>(Answered::new("seen").with_parts([part()])));
    let answer = tool.call(attempt("{}")).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.parts), ("seen", vec![part()]));
}

#[test]
#[should_panic(expected = "the arguments of a tool are a JSON object")]
fn arguments_without_names_are_a_mistake_of_the_program() {
    let _ = FunctionTool::sync(|text: String| Ok::<_, String>(text));
}

/// A schema that is too large for a journal is refused when a tree starts, with both numbers.
#[tokio::test(start_paused = true)]
async fn a_schema_that_is_too_large_is_refused_before_anything_runs() {
    let tool = book().schema(format!(r#"{{"description":"{}"}}"#, "x".repeat(limit::TEXT_BYTES_MAX)));
    let stage = TestHome::new("rules: [{ say: x }]").with_tool("book", tool);
    let refused = stage.home().start(definition("root turns=5")).await.err().unwrap();
    let bytes = limit::TEXT_BYTES_MAX + r#"{"description":""}"#.len();
    let what = "schema of a tool".to_owned();
    let refusal = Refusal::TextTooLong { what, bytes, bytes_max: limit::TEXT_BYTES_MAX };
    assert_eq!(refused, spinney::StartError::Refused(refusal));
}

/// In a tree: the definition has the schema, and the model reads its error and corrects it.
#[tokio::test(start_paused = true)]
async fn a_model_mends_what_it_got_wrong() {
    let script = r#"
rules:
  - when: { turn: 1 }
    call: [{ tool: book, args: { route: { from: Bonn, to: Rome }, seats: many, pay: { kind: cash } } }]
  - when: { turn: 2 }
    call: [{ tool: book, args: { route: { from: Bonn, to: Rome }, seats: 1, pay: { kind: cash } } }]
  - say: Booked.
"#;
    let stage = TestHome::new(script).with_tool("book", book());
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    assert_eq!(settled(&tree).await.end.unwrap().shown.text, "Booked.");
    let results = |turn: usize| {
        let attempts = stage.model().attempts();
        let Message::Result { text, is_error, .. } = attempts[turn].packet.messages.last().unwrap().as_ref()
        else {
            panic!("no result")
        };
        (text.clone(), *is_error)
    };
    let (wrong, is_error) = results(1);
    assert!(is_error && wrong.contains("`seats`: invalid type: string \"many\", expected u8"), "{wrong}");
    assert_eq!(results(2), (r#"{"seats":[1],"price":9.5}"#.to_owned(), false));
}
