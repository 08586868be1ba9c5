//! One tree file on its scripted stand-in, on aimock and on SmolLM2: the same journal but for what was said and used.
//!
//! A model of 135 million parameters cannot be relied on to call a tool, and nothing here makes it look as if it did: the
//! lead, which spawns, answers from aimock also in the third run. Its two children, and with them the answers that it sums
//! up, come from SmolLM2, one through each of the server's formats.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::peer::{KEY_ENV, PRICE, Peer, of_type, run};
use crate::test_folder::{Ended, TestFolder};

/// A port that hands its connections on. So a file that names it stays the same, whichever server answers.
struct Door {
    address: SocketAddr,
    to: Arc<Mutex<String>>,
}

impl Door {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let to = Arc::<Mutex<String>>::default();
        let target = Arc::clone(&to);
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, address) = (near.unwrap(), target.lock().unwrap().clone());
                let far = TcpStream::connect(address).unwrap();
                hand_on(&near, &far);
                hand_on(&far, &near);
            }
        });
        Self { address, to }
    }

    fn lead_to(&self, peer: &Peer) {
        *self.to.lock().unwrap() = peer.url.strip_prefix("http://").unwrap().to_owned();
    }
}

/// Copies one direction of a connection until it ends.
fn hand_on(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        // Whichever side breaks off, the other is to see it.
        let copied = io::copy(&mut from, &mut to);
        let closed = to.shutdown(std::net::Shutdown::Write);
        drop((copied, closed));
    });
}

const SCRIPT: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    say: Two describe it.
    call:
      - { tool: spawn_agent, args: { agent: near, id: near, goal: Describe a small wood from within. } }
      - { tool: spawn_agent, args: { agent: far, id: far, goal: Describe a small wood from far away. } }
  - { when: { agent: lead }, say: 'Both have described it.' }
  - { say: 'It is green.' }
";

/// The same, as aimock plays it.
fn fixtures() -> Value {
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 });
    let spawn = |agent: &str, goal: &str| json!({ "name": "spawn_agent", "arguments": { "agent": agent, "id": agent, "goal": goal } });
    let spawns = [
        spawn("near", "Describe a small wood from within."),
        spawn("far", "Describe a small wood from far away."),
    ];
    json!({ "fixtures": [
        { "match": { "model": "lead", "hasToolResult": false }, "response": { "content": "Two describe it.", "toolCalls": spawns, "usage": usage } },
        { "match": { "model": "lead", "hasToolResult": true }, "response": { "content": "Both have described it.", "usage": usage } },
        { "match": { "model": "smollm2" }, "response": { "content": "It is green.", "usage": usage } },
    ] })
}

/// What is compared: for each agent, by its path, its events in order, each by its type and, for the end of a call or of an
/// agent, how it ended. Left out are texts, ids, times and amounts, and which of two agents did something first.
fn shape(ended: &Ended) -> BTreeMap<String, Vec<String>> {
    let mut shape = BTreeMap::<String, Vec<String>>::new();
    for event in ended.json().iter().filter(|event| event["type"] != "result") {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ends = [&event["outcome"]["end"], &event["exit"]["state"]].map(word).concat();
        let line = format!("{} {ends}", word(&event["type"])).trim_end().to_owned();
        shape.entry(word(&event["path"])).or_default().push(line);
    }
    shape
}

#[test]
fn one_tree_file_has_the_same_journal_on_its_script_on_aimock_and_on_a_real_model() {
    let (mock, real) = (Peer::aimock(&fixtures()), Peer::smollm2());
    let doors = [Door::new(), Door::new(), Door::new()];
    let [leads, chats, messages] = &doors;
    let stage = TestFolder::new();
    stage.file("tree.script.yaml", SCRIPT);
    let common = format!("key_env: {KEY_ENV}, script: tree.script.yaml, {PRICE}");
    let small = format!("model: smollm2, {common}, context: 4096, params: {{ temperature: 0, stop: ['.'] }}");
    let file = stage.file(
        "tree.yaml",
        &format!(
            "name: wood
goal: Describe a small wood.
budget: {{ cost_usd: 0.20, tokens: 60000, steps: 20 }}
models:
  lead: {{ provider: openai, model: lead, base_url: 'http://{}/v1', {common} }}
  chat: {{ provider: openai_compatible, base_url: 'http://{}/v1', {small} }}
  messages: {{ provider: anthropic, base_url: 'http://{}', {small} }}
entry: lead
agents:
  lead: {{ model: lead, tools: [spawn_agent] }}
  near: {{ model: chat, limits: {{ max_tokens_per_step: 200 }} }}
  far: {{ model: messages, limits: {{ max_tokens_per_step: 200 }} }}
",
            leads.address, chats.address, messages.address
        ),
    );

    let scripted = stage.spinney(&["run", &file, "--json"]);
    for door in &doors {
        door.lead_to(&mock);
    }
    let mocked = run(&stage, &file);
    chats.lead_to(&real);
    messages.lead_to(&real);
    let lived = run(&stage, &file);

    for ended in [&scripted, &mocked, &lived] {
        let result = ended.result();
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.out, ended.err);
        assert_eq!((&result["output"], &result["agents"]), (&json!("Both have described it."), &json!(3)));
    }
    assert_eq!(scripted.result()["scripted"], json!(["chat", "lead", "messages"]));
    assert_eq!((mocked.result().get("scripted"), lived.result().get("scripted")), (None, None));
    assert_eq!(shape(&scripted), shape(&mocked));
    assert_eq!(shape(&scripted), shape(&lived));

    // What the children say is the model's own.
    let answers = |ended: &Ended| -> Vec<String> {
        let events = ended.json();
        let ends = of_type(&events, "call_ended").into_iter();
        let children = ends.filter(|event| matches!(event["agent"].as_str(), Some("near" | "far")));
        children.map(|event| event["outcome"]["body"]["text"].to_string()).collect()
    };
    assert_eq!(answers(&mocked), ["\"It is green.\""; 2]);
    assert!(answers(&lived).iter().all(|text| text.len() > 20), "{:?}", answers(&lived));
}
