//! Programs that speak Gemini's format under `spinney exec`: Gemini CLI, and Google's SDKs for Python and JavaScript. Their
//! bill is exact, and at a ceiling they wait and continue.

use spinney_kernel::budget::Usage;

use super::outside::{KEY, ended, play};
use super::peer::installed;
use crate::provider::{Answer, Provider, Question};
use crate::test_folder::{Ended, Playing, TestFolder};

const MODEL: &str = "gemini-2.5-flash";
const TASK: &str = "Describe the oaks.";
const DONE: &str = "The oaks are green.";

/// A chat of two messages: an answer as a whole, and one as a stream. The second repeats what the first said.
const PYTHON: &str = r#"
from google import genai
client = genai.Client()
chat = client.chats.create(model="gemini-2.5-flash")
print(chat.send_message("Describe the oaks.").text)
print("".join(chunk.text or "" for chunk in chat.send_message_stream("Once more.")))
"#;
const JAVASCRIPT: &str = r#"
const { GoogleGenAI } = await import(process.argv[2]);
const chat = new GoogleGenAI({}).chats.create({ model: "gemini-2.5-flash" });
console.log((await chat.sendMessage({ message: "Describe the oaks." })).text);
let text = "";
for await (const chunk of await chat.sendMessageStream({ message: "Once more." })) text += chunk.text ?? "";
console.log(text);
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Cli,
    Python,
    JavaScript,
}

impl Client {
    const ALL: [Self; 3] = [Self::Cli, Self::Python, Self::JavaScript];

    fn words(self, stage: &TestFolder) -> Vec<String> {
        let path = |name: &str| installed().join(name).display().to_string();
        match self {
            Self::Cli => [&path("gemini"), "--skip-trust", "-m", MODEL, "-p", TASK].map(str::to_owned).into(),
            Self::Python => vec![path("python/bin/python"), stage.file("program.py", PYTHON)],
            Self::JavaScript => vec![
                path("node"),
                stage.file("program.mjs", JAVASCRIPT),
                path("packages/node_modules/@google/genai/dist/node/index.mjs"),
            ],
        }
    }

    fn calls(self) -> usize {
        if self == Self::Cli { 1 } else { 2 }
    }
}

/// Where Gemini CLI is to use a key.
fn stage() -> TestFolder {
    let stage = TestFolder::new();
    std::fs::create_dir(stage.folder().join(".gemini")).unwrap();
    stage.file(".gemini/settings.json", r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#);
    stage
}

fn exec(stage: &TestFolder, client: Client, provider: &Provider, options: &[&str]) -> Playing {
    let start = [env!("CARGO_BIN_EXE_spinney"), "exec", "--prices-of", "google"];
    let words = start.into_iter().chain(options.iter().copied()).chain(["--"]).map(str::to_owned);
    let words: Vec<String> = words.chain(client.words(stage)).collect();
    let environment = [
        // Gemini CLI is a program for Node.
        ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", installed().display())),
        ("HOME", stage.folder().display().to_string()),
        ("TERM", "dumb".to_owned()),
        // Whatever it wants from another machine ends here.
        ("HTTPS_PROXY", "http://127.0.0.1:9".to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", provider.url.clone()),
    ];
    play(stage, &words, &environment)
}

/// Each answer has a usage that no other has.
fn usage(question: &Question) -> Usage {
    let number = question.users.len() as u64;
    Usage { input: 211 + number, cached_input: 1_009, output: 101, reasoning: 13, ..Usage::default() }
}

/// By the list prices of October 2026, with nothing of ours in between: $0.30, $0.03 and $2.50 for a million.
fn billed(provider: &Provider) -> u64 {
    let nanos =
        |usage: Usage| 300 * usage.input + 30 * usage.cached_input + 2_500 * (usage.output + usage.reasoning);
    provider.answered().iter().map(|(_, answer)| nanos(answer.usage)).sum()
}

fn assert_done(client: Client, stage: &TestFolder, provider: &Provider, ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{client:?} {ended:?}");
    assert!(ended.out.contains(DONE), "{client:?} {ended:?}");
    assert_eq!(provider.answered().len(), client.calls(), "{client:?} {ended:?}");
    let events = stage.spinney(&["events", "last", "--json"]).json();
    let booked = events.iter().filter(|event| event["type"] == "call_ended");
    let booked: u64 = booked.filter_map(|event| event["spent"]["cost_nanos"].as_u64()).sum();
    assert_eq!(booked, billed(provider), "{client:?}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// G10 (Gemini): what is booked is what the provider bills, to the nano-dollar, and the user's key goes to the provider
/// alone.
#[test]
fn g10_programs_of_gemini_are_booked_at_their_bill() {
    for client in Client::ALL {
        let stage = stage();
        let provider = Provider::new(|question| Answer::says(DONE, usage(question)));
        let ended = ended(exec(&stage, client, &provider, &["--budget-usd", "1"]));
        assert_done(client, &stage, &provider, &ended);
        assert!(!format!("{}{}", ended.out, ended.err).contains(KEY), "{client:?}: {ended:?}");
        for exchange in provider.exchanges() {
            assert_eq!(exchange.asked.header("x-goog-api-key"), Some(KEY), "{client:?}");
        }
    }
}

/// G11 (Gemini): at the ceiling a call waits, and a raise lets it be sent.
#[test]
fn g11_programs_of_gemini_wait_at_their_ceiling_and_finish_after_a_raise() {
    for client in Client::ALL {
        let stage = stage();
        let provider = Provider::new(|question| Answer::says(DONE, usage(question)));
        let mut playing = exec(&stage, client, &provider, &["--budget-usd", "0.001", "--on-low", "halt"]);
        playing.until_noted("continue with: ");
        assert!(provider.answered().is_empty(), "{client:?}: no call fits");
        let raised = stage.spinney(&["budget", "last", "--add-usd", "1"]);
        assert_eq!(raised.code, Some(0), "{client:?} {raised:?}");
        assert_done(client, &stage, &provider, &ended(playing));
    }
}

/// A tool that the provider runs is refused by its name, and a person sees it.
#[test]
fn a_search_of_google_is_refused_by_its_name() {
    let stage = TestFolder::new();
    let provider = Provider::new(|question| Answer::says(DONE, usage(question)));
    let script = "from google import genai\n\
        tool = genai.types.Tool(google_search=genai.types.GoogleSearch())\n\
        config = genai.types.GenerateContentConfig(tools=[tool])\n\
        client = genai.Client()\n\
        client.models.generate_content(model='gemini-2.5-flash', contents='x', config=config)\n";
    stage.file("search.py", script);
    let python = installed().join("python/bin/python").display().to_string();
    let words = [env!("CARGO_BIN_EXE_spinney"), "exec", "--budget-usd", "1", "--", &python, "search.py"];
    let environment = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", stage.folder().display().to_string()),
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", provider.url.clone()),
    ];
    let ended = ended(play(&stage, &words.map(str::to_owned), &environment));
    assert!(ended.err.contains("tool:googleSearch"), "{ended:?}");
    assert!(provider.exchanges().is_empty());
}
