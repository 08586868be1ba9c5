//! Counting tokens: as providers count, never less, and in linear time.

use std::sync::{Arc, Mutex};

use spinney_drivers::tokens::Tokenizer;
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::{Message, Packet, ToolDescription};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{Deltas, Missed, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::record::{Event, ToolAsk};
use spinney_kernel::words::By;
use spinney_kernel::world::TreeState;
use spinney_testkit::spinney::function_tool::{FunctionTool, Untyped};
use spinney_testkit::spinney::{Drivers, Home};
use spinney_testkit::{Stage, definition, recorded};

use crate::corpus::{corpus, random};

const ALL: [Tokenizer; 3] = [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Bytes];

#[test]
fn known_texts_have_their_known_counts() {
    let counts = |text| (Tokenizer::O200k.count(text), Tokenizer::Cl100k.count(text));
    assert_eq!(counts(""), (0, 0));
    assert_eq!(counts("hello world"), (2, 2));
    assert_eq!(counts("2 + 2 = 4"), (7, 7));
    assert_eq!(counts("antidisestablishmentarianism"), (6, 6));
    assert_eq!(counts("お誕生日おめでとう"), (8, 9));
    assert_eq!(Tokenizer::Bytes.count("お誕生日おめでとう"), 27);
}

#[test]
fn a_model_is_counted_by_its_own_encoding_or_else_by_bytes() {
    let o200k = "gpt-4o gpt-4o-mini gpt-4.1 gpt-4.1-nano gpt-5 gpt-5-mini gpt-5.1 o1 o1-pro o3 o3-mini o4-mini chatgpt-4o-latest openai/gpt-4o ft:gpt-4o:us::1";
    let cl100k = "gpt-4 gpt-4-turbo gpt-4-0613 gpt-3.5-turbo gpt-3.5 openai/gpt-4";
    let bytes = "claude-sonnet-4-5 gemini-2.5-pro llama-3 gpt-2 gpt-40 gpt-4x o10 o2 openai scripted";
    for (names, tokenizer) in [
        (o200k, Tokenizer::O200k),
        (cl100k, Tokenizer::Cl100k),
        (bytes, Tokenizer::Bytes),
        ("", Tokenizer::Bytes),
    ] {
        for name in names.split(' ') {
            assert_eq!(Tokenizer::of(name), tokenizer, "{name}");
        }
    }
    assert_eq!(ALL.map(Tokenizer::name), ["o200k", "cl100k", "bytes"]);
}

#[test]
fn what_looks_like_a_special_token_is_counted_as_text() {
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
        assert!(tokenizer.count("<|endoftext|>") > 1);
        assert!(tokenizer.count("a <|endoftext|> b") > tokenizer.count("a  b") + 1);
    }
}

/// No count is above the bytes, no bound is below the count or above the bytes, and a line break on either side costs
/// no more than itself.
#[test]
fn every_text_of_the_corpus_is_bounded_at_every_position() {
    for tokenizer in ALL {
        for (name, text) in corpus() {
            let (count, bound) = (tokenizer.count(&text), tokenizer.bound(&text));
            assert!(count <= bound && bound <= text.len() as u64, "{name}: {count}, {bound}, {}", text.len());
            for around in [("\n", ""), ("", "\n"), ("\n", "\n"), ("]\n", "\n\n"), ("!\n\n", "\n[")] {
                let whole = format!("{}{text}{}", around.0, around.1);
                let most = bound + (around.0.len() + around.1.len()) as u64;
                assert!(tokenizer.count(&whole) <= most, "{name} within {around:?}: {tokenizer:?}");
            }
        }
    }
}

#[test]
fn any_two_texts_of_the_corpus_can_be_joined() {
    for tokenizer in ALL {
        let corpus: Vec<(u64, String)> =
            corpus().into_iter().map(|(_, text)| (tokenizer.bound(&text), text)).collect();
        for (first, a) in &corpus {
            for (second, b) in corpus.iter().filter(|(_, b)| a.len() + b.len() < 8_000) {
                assert!(tokenizer.count(&format!("{a}\n{b}")) <= first + 1 + second, "{a}\n{b}");
            }
        }
    }
}

/// What cannot be cut is counted by its bytes: nothing is merged, and no memory is taken for it. The bench does the same
/// with sixteen megabytes.
#[test]
fn a_hostile_text_is_bounded_without_being_merged() {
    for tokenizer in ALL {
        for (text, kilobytes) in [("a", 1024), ("!", 100), ("\n", 100), ("漢", 100), ("👍", 100), ("A", 100)]
        {
            let text = text.repeat(kilobytes * 1024 / text.len());
            assert_eq!(tokenizer.count(&text), text.len() as u64);
            assert_eq!(tokenizer.bound(&text), text.len() as u64);
        }
    }
}

/// A text that is too long for the library at once is cut where both encodings split anyway.
#[test]
fn a_long_text_has_as_many_tokens_as_the_library_says() {
    let noise = String::from_utf8_lossy(&random(100_000)).into_owned();
    let long = corpus().into_iter().map(|(_, text)| text + "\n").collect::<String>().repeat(3);
    for (tokenizer, name) in [(Tokenizer::O200k, "o200k_base"), (Tokenizer::Cl100k, "cl100k_base")] {
        let library = tiktoken::get_encoding(name).unwrap();
        for text in [&noise, &long] {
            assert!(text.len() > 64 * 1024);
            assert_eq!(tokenizer.count(text), library.count(text) as u64, "{name}");
        }
    }
}

/// The goal of whoever is to say every text of the corpus.
const TELL_ALL: &str = "Tell all.";

/// A model that reads its packet as OpenAI's models do, says what that was, and plays a part.
struct Reader {
    tokenizer: Tokenizer,
    texts: Vec<String>,
    /// What each packet really had, and what the kernel counted.
    read: Mutex<Vec<(u64, u64)>>,
}

impl Reader {
    fn new(tokenizer: Tokenizer) -> Self {
        let texts = corpus().into_iter().map(|(_, text)| text).collect();
        Self { tokenizer, texts, read: Mutex::default() }
    }

    /// The tokens of a packet in chat form, each message counted whole.
    fn tokens_of(&self, packet: &Packet) -> u64 {
        let messages: u64 = packet.messages.iter().map(|message| self.tokens_in(message)).sum();
        let tools: u64 = packet.tools.iter().map(|tool| self.tokens_of_tool(tool)).sum();
        let list = if packet.tools.is_empty() { 0 } else { 12 };
        3 + messages + tools + list
    }

    fn tokens_in(&self, message: &Message) -> u64 {
        let count = |text: &str| self.tokenizer.count(text);
        let behind = message.facts().map(|facts| format!("\n{facts}")).unwrap_or_default();
        let recorded = |text: &str| count(&[text, &behind].concat());
        match message {
            Message::System(system) => 3 + count("system") + count(&system.to_string()),
            Message::Heard { from: By::Person, text, .. } => 3 + count("user") + count(text),
            Message::Heard { from: By::Agent(name), text, .. } => {
                3 + count("user") + 1 + count(name.as_str()) + recorded(text)
            }
            Message::Said { body, asks } => {
                let call = |ask: &ToolAsk| 3 + count(&ask.id) + count(&ask.tool) + count(&ask.args);
                3 + count("assistant") + count(&body.text) + asks.iter().map(call).sum::<u64>()
            }
            Message::Result { id, tool, text, .. } => {
                3 + count("tool") + count(id) + count(tool) + recorded(text)
            }
            Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_)
            | Message::Folded(_) => 3 + count("user") + count(&message.text()),
        }
    }

    fn tokens_of_tool(&self, ToolDescription { name, description, schema }: &ToolDescription) -> u64 {
        let texts = [name.as_str(), description, schema];
        7 + texts.map(|text| self.tokenizer.count(text)).into_iter().sum::<u64>()
    }

    /// A helper answers with its goal's text; a root that is to tell all hands each text to a tool, a helper and
    /// itself, in turn.
    fn play(&self, attempt: &ModelAttempt) -> (String, Vec<ToolAsk>) {
        let turn = attempt.turn as usize - 1;
        if attempt.origin.role.as_str() == "helper" {
            return (attempt.origin.goal.to_string(), Vec::new());
        }
        let tells = &*attempt.origin.goal == TELL_ALL;
        let Some(text) = self.texts.get(turn).filter(|_| tells) else {
            return ("done".to_owned(), Vec::new());
        };
        let short: String = text.chars().take(6_000).collect();
        let goal = serde_json::json!({ "agent": "helper", "goal": short, "id": format!("h{turn}"), "detach": turn.is_multiple_of(3) });
        let letter = serde_json::json!({ "to": "root", "text": short, "topic": "news" });
        let echo = serde_json::json!({ "place": turn });
        let asks = [("echo", echo), ("spawn_agent", goal), ("send_message", letter)];
        let ask = |(number, (tool, args)): (usize, (&str, serde_json::Value))| ToolAsk {
            id: format!("call_{turn}_{number}"),
            tool: tool.to_owned(),
            args: args.to_string(),
            tokens: None,
            told_tokens: None,
        };
        (short.clone(), asks.into_iter().enumerate().map(ask).collect())
    }
}

impl Model for Reader {
    fn call(&self, attempt: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, Missed>> {
        let input = self.tokens_of(&attempt.packet);
        self.read.lock().unwrap_or_else(|error| panic!("{error}")).push((input, attempt.packet.tokens));
        let (text, asks) = self.play(&attempt);
        let used = Used::Tokens(Usage { input, output: 0, ..Usage::default() });
        Box::pin(async move { Ok(ModelAnswer { asks, used, ..ModelAnswer::said(text) }) })
    }

    fn tokens(&self, text: &str) -> u64 {
        self.tokenizer.bound(text)
    }

    fn tokenizer(&self) -> Option<&str> {
        Some(self.tokenizer.name())
    }
}

/// A tree that is told every text of the corpus in every way there is.
fn wood(goal: &str, prompt: &str) -> Definition {
    let mut definition = definition("root turns=40 / helper later turns=3");
    definition.goal = goal.to_owned();
    definition.limits.agents_max = 1_000;
    for role in definition.roles.values_mut() {
        if let Some(turns) = &mut role.turns {
            turns.prompt.text = prompt.to_owned();
        }
    }
    definition
}

/// Over the corpus no packet has more tokens than were held for it, whichever tokenizer counts.
#[tokio::test(start_paused = true)]
async fn overrun_is_zero_over_the_corpus_for_every_counter() {
    for tokenizer in ALL {
        let texts: Vec<String> = corpus().into_iter().map(|(_, text)| text).collect();
        let schema = r#"{"type":"object","properties":{"place":{"type":"integer","description":"which text"}},"required":["place"]}"#;
        let description = "give back the text at a place!\n";
        let reader = Arc::new(Reader::new(tokenizer));
        let all = texts.clone();
        let echo = FunctionTool::sync(move |Untyped(attempt)| {
            let args: serde_json::Value = serde_json::from_str(&attempt.args).unwrap_or_default();
            let place = args["place"].as_u64().unwrap_or_default() as usize;
            all.get(place).cloned().ok_or("no such place")
        })
        .described(description)
        .schema(schema);
        let mut drivers = Drivers::new().with_tool("echo".parse().unwrap(), Arc::new(echo));
        for name in ["m", "cheap", "free"] {
            drivers = drivers.with_model(name.parse().unwrap(), Arc::<Reader>::clone(&reader));
        }
        let home = Home::open(Arc::clone(Stage::new("rules: [{ say: x }]").journal()), drivers);
        let said = texts.iter().map(|text| text.chars().take(6_000).collect());
        let said: Vec<String> = said.filter(|text: &String| !text.trim().is_empty()).collect();
        for goal in said.iter().map(String::as_str).chain([TELL_ALL]) {
            let tree = home.start(wood(goal, goal)).await.unwrap();
            if goal == TELL_ALL {
                tree.pause("root".parse().unwrap()).await.unwrap();
                for letter in &said {
                    tree.send("root".parse().unwrap(), letter.clone()).await.unwrap();
                }
                tree.unpause("root".parse().unwrap()).await.unwrap();
            }
            assert_eq!(
                tree.ended().await.state,
                TreeState::Ended(spinney_kernel::record::ExitKind::Completed)
            );
            for recorded in recorded(&tree).await {
                if let Event::CallEnded { overrun, .. } = recorded.event {
                    assert!(overrun.is_zero(), "{overrun:?}");
                }
            }
        }
        let read = reader.read.lock().unwrap();
        assert!(read.len() > 2 * texts.len(), "{}", read.len());
        assert!(read.iter().all(|(real, counted)| real <= counted), "{read:?}");
        // A bound that is far off would keep everything that fits from running.
        let (real, counted) = read.iter().fold((0, 0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        println!("{}: {real} tokens were read, {counted} counted", tokenizer.name());
    }
}
