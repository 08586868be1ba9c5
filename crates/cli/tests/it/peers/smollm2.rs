//! SmolLM2-135M as the model: 135 million parameters on this machine's processor, served by llama.cpp. What it says is of no
//! any use; what is checked is that it is streamed, bounded and booked as its server counts it.

use serde_json::json;
use spinney_kernel::budget::{Usage, Used};

use super::peer::{Format, Peer, called, of_type, run};
use crate::test_folder::TestFolder;

/// Two of the formats that the server speaks.
const FORMATS: [Format; 2] =
    [Format { provider: "openai_compatible", path: "/v1" }, Format { provider: "anthropic", path: "" }];

/// What a server says that it has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    input: u64,
    cached_input: u64,
    output: u64,
}

impl Counted {
    fn by(peer: &Peer) -> Self {
        let metrics = peer.read("/metrics");
        let count = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).trim().parse().unwrap()
        };
        Self {
            input: count("llamacpp:prompt_tokens_total"),
            cached_input: count("llamacpp:prompt_tokens_cached_total"),
            output: count("llamacpp:tokens_predicted_total"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input - before.input,
            cached_input: self.cached_input - before.cached_input,
            output: self.output - before.output,
        }
    }

    const fn tokens(self) -> u64 {
        self.input + self.cached_input + self.output
    }
}

/// A tree of one agent.
fn tree(stage: &TestFolder, format: Format, peer: &Peer, keys: TreeKeys<'_>) -> String {
    let TreeKeys { budget, params, cap } = keys;
    let model = format!("{}, model: smollm2, context: 4096, params: {{ {params} }}", format.at(peer));
    stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: Describe a small wood in one sentence.\nbudget: {{ {budget} }}\nmodels:\n  fast: {{ {model} }}\n\
             agents:\n  lead: {{ model: fast, limits: {{ max_tokens_per_step: {cap} }} }}\n"
        ),
    )
}

#[derive(Clone, Copy)]
struct TreeKeys<'k> {
    budget: &'k str,
    params: &'k str,
    cap: u64,
}

#[tokio::test]
async fn a_real_model_is_streamed_and_its_usage_is_what_its_server_counts() {
    let peer = Peer::smollm2();
    for format in FORMATS {
        let before = Counted::by(&peer);
        let (answer, pieces) = called(format, &peer).await;
        let (answer, word) = (answer.unwrap(), format.provider);
        assert!(pieces.len() > 3 && pieces.concat() == answer.text, "{word} {pieces:?}");
        let Counted { input, cached_input, output } = Counted::by(&peer).since(before);
        let used = Usage { input, cached_input, output, ..Usage::default() };
        assert_eq!(answer.used, Used::Tokens(used), "{word}");
        assert!(output <= 24, "{word}: the cap of the attempt holds");
    }
}

/// V7 (by a real model): what is booked is what the server counts, and never more than was held.
#[test]
fn v7_a_tree_on_a_real_model_is_settled_at_what_its_server_counts() {
    let peer = Peer::smollm2();
    for format in FORMATS {
        let (before, stage) = (Counted::by(&peer), TestFolder::new());
        let keys = TreeKeys { budget: "cost_usd: 0.05", params: "temperature: 0, stop: ['.']", cap: 150 };
        let ended = run(&stage, &tree(&stage, format, &peer, keys));
        let (result, events) = (ended.result(), ended.json());
        assert_eq!(ended.code, Some(0), "{}", ended.out);
        assert_ne!(result["output"], json!(""));
        let counted = Counted::by(&peer).since(before);
        let cost_nanos = 1_000 * counted.input + 500 * counted.cached_input + 10_000 * counted.output;
        let spent = &result["spent"];
        assert_eq!(
            (&spent["tokens"], &spent["cost_nanos"]),
            (&json!(counted.tokens()), &json!(cost_nanos)),
            "{counted:?} {}",
            ended.out
        );
        let held = &of_type(&events, "call_started")[0]["held"];
        assert!(held["tokens"].as_u64() >= Some(counted.tokens()), "{held}");
        assert!(held["cost_nanos"].as_u64() >= Some(cost_nanos), "{held}");
    }
}

/// A hold that does not fit is refused before the model hears of it.
#[test]
fn a_budget_that_is_too_small_for_a_call_never_reaches_a_real_model() {
    let (peer, stage) = (Peer::smollm2(), TestFolder::new());
    let before = Counted::by(&peer);
    let keys = TreeKeys { budget: "tokens: 40", params: "temperature: 0", cap: 150 };
    let ended = run(&stage, &tree(&stage, FORMATS[0], &peer, keys));
    assert_eq!((ended.code, &ended.result()["state"]), (Some(3), &json!("halted")), "{}", ended.out);
    assert_eq!(
        (&ended.result()["spent"]["tokens"], Counted::by(&peer)),
        (&json!(0), before),
        "{}",
        ended.out
    );
}

/// G3 (by a real model): an answer that stays cut at its cap after one more turn is partial and says so.
#[test]
fn g3_an_answer_of_a_real_model_that_is_cut_twice_is_partial() {
    let peer = Peer::smollm2();
    for format in FORMATS {
        let (before, stage) = (Counted::by(&peer), TestFolder::new());
        let keys = TreeKeys { budget: "cost_usd: 0.05", params: "temperature: 0", cap: 6 };
        let ended = run(&stage, &tree(&stage, format, &peer, keys));
        let (result, counted) = (ended.result(), Counted::by(&peer).since(before));
        assert_eq!(result["error"]["code"], json!("output_truncated"), "{}", ended.out);
        assert_eq!(
            (counted.output, &result["spent"]["tokens"]),
            (12, &json!(counted.tokens())),
            "{}",
            ended.out
        );
    }
}
