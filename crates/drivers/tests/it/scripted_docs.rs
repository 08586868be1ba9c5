//! `docs/scripted-model.md` says what the code does: its example plays, and every key is described.

use spinney_drivers::scripted::{FUEL_MAX, Script};
use spinney_kernel::context::Origin;
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::model::{Model, ModelAttempt};
use spinney_kernel::port::tool::Tool;
use spinney_kernel::primitives::FaultKind;

use crate::scene::{attempt, origin, packet, play, result, said, tool_attempt, used, with};

const DOC: &str = include_str!("../../../../docs/scripted-model.md");
const FILE: &str = include_str!("../../src/scripted/file.rs");
const FAIL: &str = include_str!("../../src/scripted/fail.rs");
const WHEN: &str = include_str!("../../src/scripted/when.rs");

/// The first fenced block of YAML.
fn example() -> Script {
    let text = DOC.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    Script::parse("docs/scripted-model.md", text).unwrap()
}

fn researcher(turn: u32, number: u32) -> ModelAttempt {
    let role = "researcher".parse().unwrap();
    let origin = Origin { role, goal: "Research JAX.".into(), ..origin() };
    with(attempt(), |it| {
        it.origin = origin.into();
        it.turn = turn;
        it.attempt = number;
    })
}

#[tokio::test(start_paused = true)]
async fn the_lead_of_the_example_splits_and_answers() {
    let model = example().model();
    let (end, chunks) = play(&model, attempt()).await;
    let answer = end.unwrap();
    assert_eq!((answer.text.as_str(), chunks.len()), ("Splitting the work.", 2));
    assert_eq!((answer.asks[0].tool.as_str(), answer.used), ("spawn_agent", used(1_200, 80)));
    let args = r#"{"agent":"researcher","goal":"Research JAX.","budget":{"cost_usd":0.1}}"#;
    assert_eq!(answer.asks[0].args, args);

    let seen = packet(vec![said("Splitting the work."), result("It is worth a look: 3 pages")]);
    let (end, _) = play(
        &model,
        with(attempt(), |it| {
            it.turn = 2;
            it.packet = seen;
        }),
    )
    .await;
    let text = "The answer to «Compare PyTorch and JAX.»: It is worth a look: 3 pages";
    assert_eq!(end.unwrap().text, text);
    assert_eq!(model.lost(), OnLost::Repeatable);
}

#[tokio::test(start_paused = true)]
async fn the_researcher_of_the_example_meets_a_limit_and_searches() {
    let script = example();
    let model = script.model();
    for number in [1, 2] {
        let fault = play(&model, researcher(1, number)).await.0.unwrap_err().fault;
        assert_eq!((fault.kind, fault.retry_after_ms), (FaultKind::RateLimit, Some(20)));
    }
    let asks = play(&model, researcher(1, 3)).await.0.unwrap().asks;
    let (name, search) = &script.tools()[0];
    assert_eq!(asks[0].tool, name.as_str());
    assert_eq!(search.spec().description, "Finds pages.");
    let found = search.call(tool_attempt(&asks[0].args)).await.unwrap().text;
    assert_eq!(found, "3 pages about «Research JAX.»");
    let seen = packet(vec![said(""), result(&found)]);
    let (end, _) = play(&model, with(researcher(2, 1), |it| it.packet = seen)).await;
    assert_eq!(end.unwrap().text, "Research JAX. It is worth a look: 3 pages about «Research JAX.»");
}

#[test]
fn every_key_of_a_script_is_described() {
    let fields = |source: &'static str| {
        let lines = source.lines().filter_map(|line| line.strip_prefix("    "));
        let lines = lines.map(|line| line.strip_prefix("pub(super) ").unwrap_or(line));
        lines.filter_map(|line| line.split_once(": ")).filter(|(_, kind)| kind.ends_with(','))
    };
    let names = [FILE, FAIL, WHEN].into_iter().flat_map(fields).map(|(name, _)| name);
    let keys: Vec<&str> =
        names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect();
    let missing: Vec<&&str> = keys.iter().filter(|key| !DOC.contains(&format!("`{key}`"))).collect();
    assert!(keys.len() > 25, "the source was not read: {keys:?}");
    assert_eq!(missing, Vec::<&&str>::new(), "docs/scripted-model.md does not describe these");
    assert!(DOC.contains("50,000 instructions") && FUEL_MAX == 50_000);
}
