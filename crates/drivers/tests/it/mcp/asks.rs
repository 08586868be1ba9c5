//! What servers ask for while they are called: a person, and their folders.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use spinney_kernel::context::Origin;
use spinney_kernel::definition::ServerScope;
use spinney_kernel::port::{
    ModelHandle, ModelPort, ModelReply, NoAnswer, NoReply, Pending, PersonHandle, PersonPort,
};
use spinney_testkit::http_tool_server::HttpToolServer;

use super::{Running, Setting};
use crate::files::TREE;

/// A person with prepared answers, who remembers the questions.
#[derive(Clone)]
struct Person {
    answers: Arc<Mutex<VecDeque<Result<String, NoAnswer>>>>,
    questions: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn new(answers: &[&str]) -> Self {
        let answers = answers.iter().map(|answer| Ok((*answer).to_owned())).collect();
        Self { answers: Arc::new(Mutex::new(answers)), questions: Arc::default() }
    }

    fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap().clone()
    }
}

impl PersonPort for Person {
    fn ask(&self, question: String, _: u64) -> Pending<Result<String, NoAnswer>> {
        self.questions.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { answer.unwrap_or(Err(NoAnswer::Expired)) })
    }
}

/// A person who never answers.
struct Silent;

impl PersonPort for Silent {
    fn ask(&self, _: String, _: u64) -> Pending<Result<String, NoAnswer>> {
        Box::pin(std::future::pending())
    }
}

/// A model that says red, and remembers what it was asked, with its output cap.
#[derive(Clone, Default)]
struct Red(Arc<Mutex<Vec<(String, u64)>>>);

impl ModelPort for Red {
    fn ask(&self, message: String, output_cap: u64) -> Pending<Result<ModelReply, NoReply>> {
        self.0.lock().unwrap().push((message, output_cap));
        let model = "fast".parse().unwrap();
        Box::pin(async move { Ok(ModelReply { text: "red".to_owned(), model, is_cut: false }) })
    }
}

impl Running {
    /// What a tool of the server says that asks this model.
    async fn said_with(&self, model: ModelHandle) -> String {
        let mut attempt = self.attempt("ask_model", &json!({}));
        attempt.model = model;
        self.tool("ask_model").call(attempt).await.unwrap().text
    }

    async fn said_to(&self, agent: &str, person: PersonHandle, tool: &str) -> String {
        let mut attempt = self.attempt(tool, &json!({}));
        let path = vec!["lead".parse().unwrap(), agent.parse().unwrap()].into();
        let origin = Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Work.".into() };
        (attempt.origin, attempt.person) = (Arc::new(origin), person);
        self.tool(tool).call(attempt).await.unwrap().text
    }
}

#[tokio::test]
async fn a_question_of_a_server_is_asked_and_answered() {
    let setting = Setting::new("plain").with_tools(&["ask_person"]);
    let running = setting.start().await;
    let ask = async |answers: &[&str]| {
        let person = Person::new(answers);
        let said = running.said_to("a", PersonHandle::new(person.clone()), "ask_person").await;
        (serde_json::from_str::<Value>(&said).unwrap(), person.questions())
    };
    let (said, questions) = ask(&["red"]).await;
    assert_eq!(said, json!({ "action": "accept", "content": { "colour": "red" } }));
    assert_eq!(
        questions,
        [
            "server `test` asks: Which colour?\n  colour (text)\nAnswer with the value, or `no`. The server reads it."
        ]
    );
    assert_eq!(ask(&["no"]).await.0, json!({ "action": "decline" }));
    // Nobody answered, or not in a way that fits.
    assert_eq!(ask(&[]).await.0, json!({ "action": "cancel" }));
    let (said, questions) = ask(&["{}", r#"{"colour": 7}"#, r#"{"other": "x"}"#]).await;
    assert_eq!((said, questions.len()), (json!({ "action": "cancel" }), 3));
    assert!(questions[1].starts_with("That was not understood: `colour` is missing.\nserver `test` asks: "));
    // There is nobody.
    let said = running.said_to("a", PersonHandle::default(), "ask_person").await;
    assert!(said.contains("there is nobody to ask"), "{said}");
}

/// P17 (whose question it is): it is asked only for an agent that is known to have called.
#[tokio::test]
async fn p17_a_question_belongs_to_the_agent_whose_call_is_under_way() {
    let tools = ["ask_person", "wait", "seen"];
    let setting = Setting::new("plain").with_tools(&tools);
    let running = setting.start().await;
    let other = running.said_to("b", PersonHandle::default(), "wait");
    let asked = async {
        while running.said_to("a", PersonHandle::default(), "seen").await != "[1, 0, 1]" {}
        let person = Person::new(&["red"]);
        let said = running.said_to("a", PersonHandle::new(person.clone()), "ask_person").await;
        assert!(said.contains("calls of several agents are under way"), "{said}");
        assert!(person.questions().is_empty());
    };
    tokio::select! {
        _ = other => panic!("it waits"),
        () = asked => {}
    }

    // With a process for each agent it is known, and none sees the other's folder.
    let mut setting = Setting::new("plain").with_tools(&tools);
    setting.server.per = ServerScope::Agent;
    let running = setting.start().await;
    let other = running.said_to("b", PersonHandle::default(), "wait");
    let asked = async {
        while running.said_to("b", PersonHandle::default(), "seen").await != "[1, 0, 1]" {}
        let said = running.said_to("a", PersonHandle::new(Person::new(&["red"])), "ask_person").await;
        assert_eq!(said, r#"{"action":"accept","content":{"colour":"red"}}"#);
        assert_eq!(running.said_to("a", PersonHandle::default(), "seen").await, "[0, 0, 1]");
    };
    tokio::select! {
        _ = other => panic!("it waits"),
        () = asked => {}
    }
}

/// G28 (requests without end): of thousands of questions a few are heard, one after another, and the server can still be
/// called.
#[tokio::test]
async fn g28_a_server_that_asks_without_end_is_heard_a_few_times() {
    let setting = Setting::new("plain").with_tools(&["beg", "echo"]);
    let running = setting.start().await;
    let person = Person::new(&["no"; 100]);
    let mut attempt = running.attempt("beg", &json!({ "requests": 1_200 }));
    attempt.person = PersonHandle::new(person.clone());
    let said = running.tool("beg").call(attempt).await.unwrap().text;
    assert_eq!(said, "begged");
    assert!(person.questions().len() <= 8, "{}", person.questions().len());
    assert_eq!(running.said("echo", json!({ "text": "still" })).await, "still");
}

/// G28 (requests without end): a call whose server waits for a person who never answers ends when it is given up.
#[tokio::test]
async fn g28_a_question_without_an_answer_ends_with_its_call() {
    let setting = Setting::new("plain").with_tools(&["ask_person", "seen"]);
    let running = setting.start().await;
    let asked = running.said_to("a", PersonHandle::new(Silent), "ask_person");
    let given_up = async { while running.said("seen", json!({})).await.is_empty() {} };
    tokio::select! {
        _ = asked => panic!("nobody answers"),
        () = given_up => {}
    }
    assert_eq!(running.said("seen", json!({})).await, "[0, 1, 1]");
}

#[tokio::test]
async fn roots_are_the_folders_of_the_server_itself() {
    let setting = Setting::new("plain").with_tools(&["roots"]);
    let running = setting.start().await;
    let said: Value = serde_json::from_str(&running.said("roots", json!({})).await).unwrap();
    let around = std::env::current_exe().unwrap().canonicalize().unwrap();
    let around = around.parent().unwrap().to_str().unwrap().to_owned();
    assert_eq!(said, json!({ "roots": [{ "uri": format!("file://{around}") }] }));
}

/// Over HTTP, in the versions that ask on the way to the answer, and in the newest, which asks in the answer.
#[tokio::test]
async fn a_question_of_a_server_elsewhere_is_asked_and_answered() {
    for (mood, expected) in
        [("stream", r#"{"action":"accept","content":{"colour":"red"}}"#), ("newest", "red")]
    {
        let server = HttpToolServer::start(mood);
        let running = Setting::elsewhere(&server.url()).with_tools(&["ask"]).start().await;
        let said = running.said_to("a", PersonHandle::new(Person::new(&["green", "red"])), "ask").await;
        assert_eq!(said, expected, "{mood}");
    }
}

/// A server gets the answer of the model of the agent that called it, if its file lets it ask: as one message, with a cap.
#[tokio::test]
async fn a_model_call_of_a_server_is_made_if_it_may_ask() {
    let mut setting = Setting::new("plain").with_tools(&["ask_model"]);
    let red = Red::default();
    let refused = setting.start().await.said_with(ModelHandle::new(red.clone())).await;
    assert!(
        refused.contains("server `test` may not ask for model calls: write `sampling: true` at it"),
        "{refused}"
    );
    assert!(red.0.lock().unwrap().is_empty());

    setting.server.sampling = true;
    let running = setting.start().await;
    let said = running.said_with(ModelHandle::new(red.clone())).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        said,
        json!({ "role": "assistant", "content": { "type": "text", "text": "red" }, "model": "fast", "stopReason": "endTurn" })
    );
    assert_eq!(*red.0.lock().unwrap(), [("Be brief.\n\nWhich colour?".to_owned(), 4_000)]);
    let said = running.said_with(ModelHandle::default()).await;
    assert!(said.contains("the model was not asked"), "{said}");
}
