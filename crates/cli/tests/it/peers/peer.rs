//! A peer as a process: on a free port of the loopback, with a bound on every wait, and stopped when the test ends, however
//! that ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use spinney_drivers::http::{HttpLimits, ModelKey};
use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup};
use spinney_drivers::wire::WireParams;
use spinney_kernel::context::{Message, Origin, Packet};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::model::{AttemptError, DeltaKind, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{Actor, CallId, Category, TreeId};
use tempfile::TempDir;

use crate::test_folder::{Ended, TestFolder};

/// What the environment has as the key of every peer.
pub(super) const KEY_ENV: &str = "TEST_PEER_KEY";
pub(super) const PRICE: &str =
    "price: { input_per_mtok_usd: 1, output_per_mtok_usd: 10, cached_input_per_mtok_usd: 0.5 }";

/// How long a peer may take until it listens. SmolLM2 needs a second on an idle machine.
const START_MAX: Duration = Duration::from_secs(90);
/// How long a peer may take to answer what is not a model's work.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// How long a tree may take. What a peer does must never make one hang.
const RUN_MAX: Duration = Duration::from_secs(150);

pub(super) struct Peer {
    child: Child,
    /// Where it listens, without a path.
    pub(super) url: String,
    folder: TempDir,
}

impl Peer {
    /// Answers as these fixtures say.
    pub(super) fn aimock(fixtures: &Value) -> Self {
        let (installed, folder) = (installed(), TempDir::new().unwrap());
        let file = folder.path().join("fixtures.json");
        fs::write(&file, fixtures.to_string()).unwrap();
        let mut command = Command::new(installed.join("node"));
        command.arg(scripts().join("aimock.mjs")).arg(installed).arg(file);
        Self::start(command, folder)
    }

    /// The real model.
    pub(super) fn smollm2() -> Self {
        let mut command = Command::new(installed().join("python/bin/python"));
        command.arg(scripts().join("smollm2.py"));
        Self::start(command, TempDir::new().unwrap())
    }

    fn start(mut command: Command, folder: TempDir) -> Self {
        let log = folder.path().join("log");
        // It serves until its standard input ends, which it does even if this process is killed.
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut peer = Self { child, url: String::new(), folder };
        let out = BufReader::new(peer.child.stdout.take().unwrap());
        let (found, address) = sync_channel(1);
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("peer: ") {
                    found.send(url.to_owned()).unwrap();
                }
            }
        });
        peer.url = address.recv_timeout(START_MAX).unwrap_or_else(|error| {
            let log = fs::read_to_string(peer.folder.path().join("log")).unwrap();
            panic!("the peer does not listen ({error}, {START_MAX:?} at most); it wrote:\n{log}")
        });
        peer
    }

    /// What stands at a path.
    pub(super) fn read(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        connection.set_read_timeout(Some(REPLY_MAX)).unwrap();
        // The older version, in which a body has no chunks and ends with the connection.
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.lines().next().unwrap().contains(" 200 "), "{reply}");
        body.to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer that has ended on its own cannot be killed, and that is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where `make test-peers` installed everything.
#[expect(clippy::disallowed_methods, reason = "the script that installs the peers says where they are")]
pub(super) fn installed() -> PathBuf {
    let folder = std::env::var_os("SPINNEY_PEERS").map(PathBuf::from);
    folder.filter(|folder| folder.join("complete").exists()).unwrap_or_else(|| {
        panic!(
            "the peers are not installed, or SPINNEY_PEERS does not name their folder: run `make test-peers`"
        )
    })
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers")
}

/// Runs a tree to its end, with the key of the peers.
pub(super) fn run(stage: &TestFolder, file: &str) -> Ended {
    let playing = stage.play_in(&["run", file, "--json"], &[(KEY_ENV, "sk-peer-7c1e")]);
    let pid = playing.pid();
    let (ends, ended) = sync_channel(1);
    thread::spawn(move || ends.send(playing.end()));
    ended.recv_timeout(RUN_MAX).unwrap_or_else(|error| {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        panic!("the tree does not end ({error}, {RUN_MAX:?} at most; killed: {killed:?})")
    })
}

/// A format, as a tree file names it, and where below its address a peer speaks it.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) provider: &'static str,
    pub(super) path: &'static str,
}

impl Format {
    /// The keys of a model at a peer.
    pub(super) fn at(self, peer: &Peer) -> String {
        let (Self { provider, path }, url) = (self, &peer.url);
        format!("provider: {provider}, base_url: '{url}{path}', key_env: {KEY_ENV}, {PRICE}")
    }

    const fn provider(self) -> ModelProvider {
        match self.provider.as_bytes() {
            b"openai" => ModelProvider::OpenAi,
            b"openai_chat" => ModelProvider::OpenAiChat,
            b"anthropic" => ModelProvider::Anthropic,
            b"gemini" => ModelProvider::Gemini,
            _ => ModelProvider::OpenAiCompatible,
        }
    }
}

/// One attempt through the driver: its outcome, and the pieces that were streamed.
pub(super) async fn called(format: Format, peer: &Peer) -> (Result<ModelAnswer, AttemptError>, Vec<String>) {
    let params = WireParams { temperature: Some(0.into()), ..WireParams::default() };
    let setup = ProviderSetup {
        provider: format.provider(),
        model: "smollm2".to_owned(),
        base_url: Some(format!("{}{}", peer.url, format.path)),
        key: Some(ModelKey::new("sk-peer-7c1e".to_owned())),
        headers: Vec::new(),
        params,
    };
    let model = ProviderModel::new(setup, &ProviderClients::new(HttpLimits::default()).unwrap()).unwrap();
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&pieces);
    let deltas = Arc::new(move |kind, text: &str| {
        if kind == DeltaKind::Text {
            heard.lock().unwrap().push(text.to_owned());
        }
    });
    let answer = model.call(Arc::new(attempt()), deltas).await;
    let pieces = pieces.lock().unwrap().clone();
    (answer, pieces)
}

fn attempt() -> ModelAttempt {
    let goal = "Describe a small wood.";
    let text = goal.to_owned();
    let heard = Message::Heard { from: Actor::PERSON, text, category: Category::Dialog, along: None };
    let origin = Origin {
        tree: TreeId::new([7; 16]),
        path: ["lead".parse().unwrap()].into(),
        role: "lead".parse().unwrap(),
        goal: goal.into(),
    };
    let messages = [Message::System("You describe things.".into()), heard];
    let messages = Arc::new(messages.into_iter().map(Arc::new).collect());
    let packet = Packet { messages, tools: Arc::default(), tokens: 100 };
    let (key, model) = ("k".to_owned(), "m".parse().unwrap());
    let mut attempt = ModelAttempt::new(Arc::new(origin), CallId(1), key, model, packet);
    attempt.output_cap = 24;
    attempt
}

/// The events of a type.
pub(super) fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}
