//! The reserve of a lead for its own answer, and children that could never make a call, on the real runtime.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use spinney::{Drivers, Home, Tree};
use spinney_kernel::budget::{Amounts, Resource, Shortfall, Usage, Used};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt, Purpose};
use spinney_kernel::primitives::{AgentId, limit};
use spinney_kernel::record::{Event, Exit, ExitKind, ToolAsk};
use spinney_kernel::rules::request::Raise;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded, settled};

const SPAWNS: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: child, goal: Help. } } ]
    usage: { input: 4000, output: 900 }
  - { when: { agent: root }, say: '{{ last }}' }
  - { when: { agent: child }, say: helped }
";

/// G4, L20 (under the minimum): with 140 tokens left a child could never make its first call. It is refused with both
/// numbers, no model is called for it, and the tree does not halt: its lead answers.
#[tokio::test(start_paused = true)]
async fn g4_a_child_that_could_never_make_its_first_call_is_not_spawned() {
    let stage = TestHome::new(SPAWNS);
    let home = stage.home();
    let fixture =
        "root tokens=8000 reserve=37% turns=9 wrap out=1000 tools=spawn_agent / child later turns=9 out=1000";
    let tree = stage.start(&home, fixture).await;
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 1));
    insta::assert_snapshot!(snapshot.end.unwrap().shown.text, @"its first call needs 3812 tokens and 140 tokens are left (tokens ceiling of `root`: limit 8000 less 2960 in reserve, spent 4900, held 0, asked 3812): do this part yourself, or ask for less");
    let attempts = stage.model().attempts();
    assert!(attempts.iter().all(|attempt| attempt.origin.role.as_str() == "root"), "{}", attempts.len());
}

/// The result of the first tool call.
async fn first_result(tree: &Tree, home: Home) -> String {
    home.shutdown(spinney::Shutdown::Stop).await;
    let answered = |event: Event| match event {
        Event::ToolAnswered { body, is_error: true, .. } => Some(body.text),
        _ => None,
    };
    recorded(tree).await.into_iter().find_map(|recorded| answered(recorded.event)).unwrap()
}

/// L20: with nothing left, or less than a first call needs, a child is refused because of the ceiling, and no model is
/// called for it. The reserve for the lead's own answer is not available to the child.
#[tokio::test(start_paused = true)]
async fn l20_with_nothing_left_no_child_is_spawned_and_no_model_is_called() {
    for (fixture, output, left) in [
        ("root tokens=8000 reserve=37%", 1_040, "limit 8000 less 2960 in reserve, spent 5040"),
        ("root tokens=8000 reserve=37%", 1_039, "tokens and 1 token"),
        ("root tokens=5100 reserve=0%", 1_100, "limit 5100, spent 5100"),
        ("root steps=2 reserve=default", 900, "limit 2 less 1 in reserve, spent 1"),
    ] {
        let stage = TestHome::new(&SPAWNS.replace("output: 900", &format!("output: {output}")));
        let home = stage.home();
        let terms = "turns=9 wrap out=1100 tools=spawn_agent / child later turns=9 out=1000";
        let tree = stage.start(&home, &format!("{fixture} {terms}")).await;
        let snapshot = settled(&tree).await;
        assert_eq!(snapshot.agents.len(), 1, "{fixture}");
        let refused = first_result(&tree, home).await;
        assert!(refused.contains(left) && refused.contains("ceiling of `root`"), "{fixture}: {refused}");
        let attempts = stage.model().attempts();
        assert!(attempts.iter().all(|attempt| attempt.origin.role.as_str() == "root"), "{fixture}");
    }
}

/// G4: a child whose own ceiling is too small is also refused.
#[tokio::test(start_paused = true)]
async fn g4_a_child_with_too_small_a_ceiling_of_its_own_is_not_spawned() {
    let stage = TestHome::new(&SPAWNS.replace("goal: Help.", "goal: Help., budget: { tokens: 300 }"));
    let home = stage.home();
    let fixture = "root tokens=80000 turns=9 wrap out=1000 tools=spawn_agent / child later turns=9 out=1000";
    let tree = stage.start(&home, fixture).await;
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 1));
    insta::assert_snapshot!(snapshot.end.unwrap().shown.text, @"its first call needs 3812 tokens and 300 tokens are left (tokens ceiling of `child`: limit 300, spent 0, held 0, asked 3812): do this part yourself, or ask for less");
}

/// Which agents have a reserve, and how much: those with turns that may delegate, the larger of a tenth and one call,
/// at most half; and a step.
#[tokio::test(start_paused = true)]
async fn only_those_who_may_hand_work_down_keep_something_back() {
    let reserve_of = async |fixture: &str| {
        let stage = TestHome::new("rules: [ { say: done } ]");
        let home = stage.home();
        let tree = stage.start(&home, fixture).await;
        settled(&tree).await;
        let spawned = recorded(&tree).await.into_iter().find_map(|recorded| match recorded.event {
            Event::AgentSpawned(spawned) => Some(spawned),
            _ => None,
        });
        let reserve = spawned.unwrap().terms.reserve;
        [Resource::Cost, Resource::Tokens, Resource::Steps].map(|resource| reserve.get(resource))
    };
    let lead = "turns=9 reserve=default tools=spawn_agent";
    // A tenth is more than a call.
    assert_eq!(reserve_of(&format!("root $100 steps=7 {lead}")).await, [10_000_000_000, 0, 1]);
    // A call: 1,024 output tokens; in tokens, the first packet and 2,048 more.
    let [cost, tokens, steps] = reserve_of(&format!("root $4 tokens=20000 {lead}")).await;
    assert_eq!((cost, steps), (1_024_000_000, 0));
    assert!((3_072 + 200..3_072 + 900).contains(&tokens), "{tokens}");
    // Half, if that is less than a call.
    assert_eq!(reserve_of(&format!("root $1 tokens=2000 {lead}")).await, [500_000_000, 1_000, 0]);
    // The file's own value stays, and no other agent has a reserve.
    assert_eq!(reserve_of("root $1 tokens=9000 steps=5 turns=9 reserve=20%").await, [200_000_000, 1_800, 0]);
    assert_eq!(
        reserve_of("root $1 tokens=2000 steps=5 turns=9 reserve=default tools=list_agents").await,
        [0, 0, 0]
    );
}

/// X3 (told): a lead that lost a child to a ceiling reads after a raise that it may give the task again.
#[tokio::test(start_paused = true)]
async fn a_raised_lead_is_notified_which_tasks_it_may_assign_again() {
    let stage = TestHome::new(
        "
rules:
  - { when: { agent: root, last_contains: may be given again }, say: '{{ last }}' }
  - { when: { wrap_up: true }, say: As far as I got. }
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: child, goal: Help., budget: { steps: 2 } } } ]
  - { say: 'Look {{ turn }}.', call: [ { tool: list_agents } ] }
",
    );
    let home = stage.home();
    let fixture = "root $90 steps=6 turns=20 wrap reserve=default / child later turns=20 wrap";
    let tree = stage.start(&home, fixture).await;
    let snapshot = settled(&tree).await;
    assert_eq!(
        (snapshot.state, snapshot.agents[1].status.to_string().as_str()),
        (TreeState::Halted, "exhausted")
    );
    let add = Amounts::ZERO.with(Resource::Steps, 5);
    tree.raise(Raise { agent: "root".parse().unwrap(), add, add_ms: 0 }).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    insta::assert_snapshot!(snapshot.end.unwrap().shown.text, @"The budget was raised. Your last answer is kept as the output so far: continue. A ceiling stopped child: such a task may be given again.");
}

/// Leads delegate everything and then answer; workers use all that they get, forever.
struct Greedy {
    seed: u64,
    /// The tokens of each agent's first packet.
    first: Arc<Mutex<BTreeMap<AgentId, u64>>>,
}

impl Greedy {
    fn dice(&self, path: &str) -> u64 {
        let digest = path.bytes().fold(0xCBF2_9CE4_8422_2325 ^ self.seed, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        digest ^ (digest >> 29)
    }

    fn answer(&self, attempt: &ModelAttempt) -> (String, Vec<ToolAsk>, u64) {
        let agent = attempt.origin.agent().clone();
        self.first.lock().unwrap().entry(agent.clone()).or_insert(attempt.packet.tokens);
        let ask = |place: u64, tool: &str, args: String| {
            let (id, tool) = (format!("c{place}"), tool.to_owned());
            ToolAsk { id, tool, args, tokens: None, told_tokens: None }
        };
        let below = match attempt.origin.role.as_str() {
            "root" => "lead",
            "lead" => "worker",
            _ => "",
        };
        match (attempt.purpose, below) {
            (Purpose::WrapUp, _) => (format!("last of {agent}"), Vec::new(), attempt.output_cap.min(20)),
            (_, "") => ("more".to_owned(), vec![ask(0, "list_agents", "{}".to_owned())], attempt.output_cap),
            (_, _) if attempt.turn > 1 => {
                (format!("answer of {agent}"), Vec::new(), attempt.output_cap.min(20))
            }
            (_, below) => {
                let count = 1 + self.dice(agent.as_str()) % 3;
                let spawn = |place| {
                    ask(place, "spawn_agent", format!(r#"{{"agent":"{below}","goal":"Do {place}."}}"#))
                };
                (String::new(), (0..count).map(spawn).collect(), attempt.output_cap.min(60))
            }
        }
    }
}

impl Model for Greedy {
    fn call(&self, attempt: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let (text, asks, output) = self.answer(&attempt);
        // Half of it is thought.
        let (reasoning, output) = (output / 2, output - output / 2);
        let used =
            Used::Tokens(Usage { input: attempt.packet.tokens, output, reasoning, ..Usage::default() });
        Box::pin(async move { Ok(ModelAnswer::text(text).with_asks(asks).with_used(used)) })
    }

    fn tokens(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }
}

/// The most that a lead's smallest last call can take: its first message, the digest of what was left out, the notice
/// that it is the last call, and the least answer.
fn least(short: &Shortfall, first_packet: u64) -> u64 {
    match short.resource {
        Resource::Tokens => {
            let packet = first_packet + 64 + limit::WRAP_UP_TOKENS.bound();
            packet + packet / 8 + limit::WRAP_UP_OUTPUT_TOKENS_MIN
        }
        Resource::Cost => limit::WRAP_UP_OUTPUT_TOKENS_MIN * 1_000_000,
        Resource::Steps | Resource::ToolCalls | Resource::Retries => 1,
    }
}

/// G1 (the property): in 1,000 random trees with the default reserve whose children use all they can, every lead with
/// room for its smallest call answers.
#[tokio::test(start_paused = true)]
async fn every_lead_with_room_for_its_smallest_call_answers() {
    let (mut answered, mut without, mut roots) = (0, 0, 0);
    for seed in 0..1_000_u64 {
        let first = Arc::new(Mutex::new(BTreeMap::new()));
        let model: Arc<dyn Model> = Arc::new(Greedy { seed, first: Arc::clone(&first) });
        let mut drivers = Drivers::new();
        for name in ["m", "cheap", "free"] {
            drivers = drivers.with_model(name.parse().unwrap(), Arc::clone(&model));
        }
        let home = Home::open(Arc::clone(TestHome::new("rules: [ { say: x } ]").journal()), drivers);
        let draw = |salt: &str| Greedy { seed, first: Arc::default() }.dice(salt);
        let ceilings = [
            format!("tokens={}", 3_000 + draw("tokens") % 60_000),
            format!("${}.{:02}", 1 + draw("usd") % 30, draw("cents") % 100),
            format!("steps={}", 3 + draw("steps") % 30),
        ];
        // One ceiling per tree, so an agent's end says what it lacked.
        let ceiling = &ceilings[(seed % 3) as usize];
        let terms = format!("turns=30 wrap reserve=default out={}", 300 + draw("out") % 3_000);
        let tools = "tools=spawn_agent,list_agents";
        let fixture = format!(
            "root {ceiling} {terms} {tools} / lead later {terms} {tools} / worker later {terms} tools=list_agents"
        );
        let tree = home.start(definition(&fixture)).await.unwrap();
        let snapshot = settled(&tree).await;
        let first = first.lock().unwrap().clone();
        let mut judge = |agent: &AgentId, said: &str, short: Option<&Shortfall>| {
            if said == format!("answer of {agent}") || said == format!("last of {agent}") {
                answered += 1;
                roots += u64::from(agent.as_str() == "root");
                return;
            }
            without += 1;
            let short = short.unwrap_or_else(|| panic!("seed {seed}: {agent} said `{said}`"));
            let least = least(short, first.get(agent).copied().unwrap_or(u64::MAX / 4));
            assert!(short.left() < least, "seed {seed}: {agent} had room: {short:?}, {least}: {fixture}");
        };
        match (&snapshot.end, &snapshot.halted) {
            (Some(end), _) => {
                let short = if let Exit::Exhausted { short, .. } = &end.exit { Some(short) } else { None };
                judge(&snapshot.agents[0].agent, &end.shown.text, short);
            }
            (None, halted) => {
                let said = snapshot.so_far.as_ref().map_or("", |body| body.text.as_str());
                judge(&snapshot.agents[0].agent, said, halted.as_ref().map(|halt| &halt.short));
            }
        }
        home.shutdown(spinney::Shutdown::Stop).await;
        let mut texts: BTreeMap<u64, String> = BTreeMap::new();
        for recorded in recorded(&tree).await {
            if let Event::CallEnded { outcome: spinney_kernel::record::Outcome::Done { body, .. }, .. } =
                &recorded.event
            {
                texts.insert(recorded.seq.0, body.text.clone());
            }
            if let Event::AgentEnded { agent, exit, said, .. } = &recorded.event
                && agent.as_str().starts_with("lead")
                && !matches!(exit, Exit::Cancelled { .. })
            {
                let said = said.and_then(|seq| texts.get(&seq.0)).map_or("", String::as_str);
                let short = if let Exit::Exhausted { short, .. } = exit { Some(short) } else { None };
                judge(agent, said, short);
            }
        }
    }
    assert!(
        roots > 950 && answered > 1_400,
        "{roots} roots and {answered} leads answered, {without} had no room"
    );
}
