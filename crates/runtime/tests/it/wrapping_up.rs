//! The last call of an agent that runs out of turns, steps, budget or time, on the real runtime.

use std::sync::Arc;

use spinney::bus::Watch;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::context::Message;
use spinney_kernel::port::model::{ModelAttempt, Purpose};
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::Raise;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

const LOOKS: &str = "
rules:
  - { when: { last_contains: The budget was raised. }, say: 'I was told: {{ last }}' }
  - { when: { wrap_up: true }, say: As far as I got. }
  - { say: 'Look {{ turn }}.', call: [ { tool: list_agents } ] }
";

fn code(exit: &Exit) -> &str {
    match exit {
        Exit::Failed { error } => error.code.as_str(),
        Exit::Completed | Exit::Exhausted { .. } | Exit::Cancelled { .. } => exit.as_str(),
    }
}

fn last_calls(attempts: &[Arc<ModelAttempt>]) -> Vec<&Arc<ModelAttempt>> {
    attempts.iter().filter(|attempt| attempt.purpose == Purpose::WrapUp).collect()
}

/// G1 (last turn), L11: the twentieth of 20 turns is the last call: without tools, announced as such, and its answer is
/// the partial result. No 21st is made.
#[tokio::test(start_paused = true)]
async fn l11_the_last_turn_that_max_steps_allows_is_the_last_call() {
    let stage = TestHome::new(LOOKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $90 turns=20 wrap out=2000").await;
    let end = settled(&tree).await.end.unwrap();
    assert_eq!((code(&end.exit), end.shown.text.as_str()), ("max_steps", "As far as I got."));
    let attempts = stage.model().attempts();
    assert_eq!((attempts.len(), last_calls(&attempts).len()), (20, 1));
    let (last, before) = (&attempts[19], &attempts[18]);
    assert_eq!((last.turn, last.purpose), (20, Purpose::WrapUp));
    assert!(last.packet.tools.is_empty() && !before.packet.tools.is_empty());
    let note = last.packet.messages.last().unwrap().text().into_owned();
    insta::assert_snapshot!(note, @"This is your last call, and no tool can be used: answer now with what you have, and say what is missing.");
}

/// L11 (without a last call): with `wrap_up: off`, or if only one turn is allowed, every turn is an ordinary one.
#[tokio::test(start_paused = true)]
async fn without_a_last_call_every_turn_is_an_ordinary_one() {
    for (fixture, calls) in [("root $90 turns=20", 20), ("root $90 turns=1 wrap", 1)] {
        let stage = TestHome::new(LOOKS);
        let home = stage.home();
        let tree = stage.start(&home, fixture).await;
        let end = settled(&tree).await.end.unwrap();
        assert_eq!((code(&end.exit), end.shown.text), ("max_steps", format!("Look {calls}.")), "{fixture}");
        let attempts = stage.model().attempts();
        assert_eq!((attempts.len(), last_calls(&attempts).len()), (calls, 0), "{fixture}");
    }
}

/// G1 (steps ceiling), X3: the last step of the root's ceiling is its last call. Its answer is the output so far, the
/// tree halts, and a raise returns to ordinary turns: the root reads that, and continues from there.
#[tokio::test(start_paused = true)]
async fn x3_at_its_steps_ceiling_the_root_answers_and_a_raise_lets_it_continue() {
    let stage = TestHome::new(LOOKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $90 steps=3 turns=20 wrap").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Halted);
    assert_eq!(snapshot.so_far.unwrap().text, "As far as I got.");
    assert_eq!((stage.model().attempts().len(), last_calls(&stage.model().attempts()).len()), (3, 1));
    let add = Amounts::ZERO.with(Resource::Steps, 5);
    tree.raise(Raise { agent: "root".parse().unwrap(), add, add_ms: 0 }).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    insta::assert_snapshot!(snapshot.end.unwrap().shown.text, @"I was told: The budget was raised. Your last answer is kept as the output so far: continue.");
    let attempts = stage.model().attempts();
    assert_eq!((attempts.len(), attempts[3].purpose), (4, Purpose::Turn));
    assert!(!attempts[3].packet.tools.is_empty());
}

const RUNS_OUT: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: child, goal: Help., ARGS } } ]
  - { when: { agent: root }, say: '{{ last }}' }
  - { when: { agent: child, wrap_up: true }, say: As far as I got. }
  - { when: { agent: child }, say: 'Look {{ turn }}.', call: [ { tool: TOOL } ], usage: { input: 700, output: 100 } }
tools: { look: { say: seen }, never: { hang: true } }
";

/// G1: an agent in its last turn, whose next call can never fit or whose deadline is near, gets one last call without
/// tools, within its turns, ceiling and time, and its answer is the partial result that its parent reads. That every
/// lead with room for its smallest call answers, over 1,000 random trees, is a test in `reserving.rs`.
#[tokio::test(start_paused = true)]
async fn g1_whatever_runs_out_there_is_one_last_call_inside_every_limit() {
    for (args, tool, reason) in [
        ("share: goal", "look", "max_steps"),
        ("budget: { tokens: 3300 }", "look", "tokens ceiling"),
        ("timeout: 50s", "never", "timeout"),
    ] {
        let stage = TestHome::new(&RUNS_OUT.replace("ARGS", args).replace("TOOL", tool));
        let home = stage.home();
        let fixture = "root $90 turns=9 / child later turns=20 wrap out=2000 tools=look,never";
        let tree = stage.start(&home, fixture).await;
        let snapshot = settled(&tree).await;
        let read = snapshot.end.unwrap().shown.text;
        assert!(read.contains(reason) && read.ends_with("partial result:\nAs far as I got."), "{read}");
        let mut attempts = stage.model().attempts();
        attempts.retain(|attempt| attempt.origin.role.as_str() == "child");
        let [last] = last_calls(&attempts)[..] else { panic!("{reason}: {}", attempts.len()) };
        assert!(last.packet.tools.is_empty(), "{reason}");
        assert_eq!(last.turn as usize, attempts.len(), "{reason}: nothing comes after it");
        assert!(attempts.len() <= 20 && (reason != "max_steps" || attempts.len() == 20), "{reason}");
        let spent = snapshot.agents[1].spent.get(Resource::Tokens);
        assert!(reason != "tokens ceiling" || spent <= 3_300, "{spent}");
        let at = |wanted: &dyn Fn(&Event) -> bool, recorded: &[spinney::bus::RecordedEvent]| {
            recorded.iter().find(|recorded| wanted(&recorded.event)).unwrap().at.0
        };
        let recorded = recorded(&tree).await;
        let born = at(
            &|event| matches!(event, Event::AgentSpawned(born) if born.agent.as_str() == "child"),
            &recorded,
        );
        let ended = at(
            &|event| matches!(event, Event::AgentEnded { agent, .. } if agent.as_str() == "child"),
            &recorded,
        );
        assert!(reason != "timeout" || (45_000..=50_000).contains(&(ended - born)), "{}", ended - born);
    }
}

const HOGS: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: child, goal: Help., budget: { tokens: 3300 } } } ]
  - { when: { agent: root }, say: '{{ last }}' }
  - { when: { agent: child, wrap_up: true }, say: As far as I got. }
  - { when: { agent: child }, say: 'Look {{ turn }}.', call: [ { tool: look } ], usage: { input: 700, output: 100 } }
tools: { look: { say: seen } }
";

/// G1 (never fits), X5 (ceiling): a child whose next call can never fit is shrunk first, then has its last call, and
/// its parent reads how it ended and its progress.
#[tokio::test(start_paused = true)]
async fn a_child_at_its_ceiling_answers_with_what_is_left() {
    let stage = TestHome::new(HOGS);
    let home = stage.home();
    let fixture = "root $90 turns=9 / child later turns=20 wrap out=2000 tools=look";
    let tree = stage.start(&home, fixture).await;
    let end = settled(&tree).await.end.unwrap();
    insta::assert_snapshot!(end.shown.text, @"
    child exhausted (tokens ceiling of `child`: limit 3300, spent 2400, held 0, asked 2303); partial result:
    As far as I got.
    ");
    let attempts = stage.model().attempts();
    let caps: Vec<(Purpose, u64)> = attempts
        .iter()
        .filter(|attempt| attempt.origin.role.as_str() == "child")
        .map(|attempt| (attempt.purpose, attempt.output_cap))
        .collect();
    insta::assert_debug_snapshot!(caps, @"
    [
        (
            Turn,
            2000,
        ),
        (
            Turn,
            2000,
        ),
        (
            Turn,
            1474,
        ),
        (
            WrapUp,
            469,
        ),
    ]
    ");
}

/// G1 (its packet): the last call sees what there is room for: the first message and a digest of what was left out, if
/// necessary.
#[tokio::test(start_paused = true)]
async fn the_packet_of_a_last_call_is_cut_to_what_is_left() {
    let long = "seen ".repeat(380);
    let stage = TestHome::new(
        &HOGS
            .replace("say: seen", &format!("say: '{long}'"))
            .replace("3300", "3000")
            .replace("input: 700", "input: 900"),
    );
    let home = stage.home();
    let fixture = "root $90 turns=9 / child later turns=20 wrap out=2000 tools=look";
    let tree = stage.start(&home, fixture).await;
    let end = settled(&tree).await.end.unwrap();
    assert!(end.shown.text.ends_with("partial result:\nAs far as I got."), "{}", end.shown.text);
    let attempts = stage.model().attempts();
    let [last] = last_calls(&attempts)[..] else { panic!("{}", attempts.len()) };
    let kinds: Vec<&str> = last
        .packet
        .messages
        .iter()
        .map(|message| match message.as_ref() {
            Message::System(_) => "system",
            Message::Folded(_) => "folded",
            Message::Note(_) => "note",
            Message::Heard { .. } | Message::Said { .. } | Message::Result { .. } => "dialog",
            Message::Shared { .. } | Message::Mismatch(_) | Message::Repeated(_) => "other",
        })
        .collect();
    assert_eq!(
        (kinds.first(), kinds.get(1), kinds.last()),
        (Some(&"system"), Some(&"folded"), Some(&"note"))
    );
    assert!(last.packet.messages.len() < attempts[attempts.len() - 3].packet.messages.len() + 3, "{kinds:?}");
    let room = last.packet.tokens + last.output_cap;
    assert!(last.output_cap >= 256, "{room}");
}

/// A lead with thousands of tokens left halted its tree, because its call needed a few more (2,650 were left and 3,040
/// asked). Now its turn is shrunk to what fits.
#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_fit_whole_is_shrunk_to_what_is_left() {
    let script = format!(
        "
rules:
  - when: {{ turn: 1 }}
    call: [ {{ tool: look }} ]
    usage: {{ input: 2600, output: 100 }}
  - {{ say: done }}
tools: {{ look: {{ say: '{}' }} }}
",
        "seen ".repeat(400)
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let tree = stage.start(&home, "root tokens=5000 turns=9 out=2000 tools=look").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed), "{:?}", snapshot.halted);
    let attempts = stage.model().attempts();
    let second = &attempts[1];
    let held = second.packet.tokens + second.output_cap;
    assert_eq!(held, 2_300);
    assert!((1_024..2_000).contains(&second.output_cap), "{}", second.output_cap);
}

const WAITS: &str = "
rules:
  - { when: { wrap_up: true }, say: As far as I got. }
  - when: { agent: root }
    say: I wait.
    call:
      - { tool: spawn_agent, args: { agent: child, id: a, goal: Help., detach: true } }
      - { tool: wait_agent, args: { agents: [a] } }
      - { tool: never }
  - { when: { agent: child }, hang: true }
tools: { never: { hang: true } }
";

/// G1 (deadline): a tenth of its time before its deadline an agent's tools, waits and children are stopped and it has
/// its last call.
#[tokio::test(start_paused = true)]
async fn shortly_before_its_deadline_an_agent_answers_with_what_it_has() {
    let stage = TestHome::new(WAITS);
    let home = stage.home();
    let tree = stage.start(&home, "root timeout=50s turns=9 wrap / child later turns=9 wrap").await;
    let snapshot = settled(&tree).await;
    let end = snapshot.end.unwrap();
    assert_eq!((code(&end.exit), end.shown.text.as_str()), ("timeout", "As far as I got."));
    assert_eq!(snapshot.agents[1].status.to_string(), "cancelled");
    let attempts = stage.model().attempts();
    let last = last_calls(&attempts)[0];
    let results: Vec<String> = last
        .packet
        .messages
        .iter()
        .filter(|message| matches!(message.as_ref(), Message::Result { .. }))
        .map(|message| message.text().into_owned())
        .collect();
    insta::assert_debug_snapshot!(results, @r#"
    [
        "spawned a",
        "cancelled",
        "stopped",
    ]
    "#);
    let recorded = recorded(&tree).await;
    let took_ms = recorded.last().unwrap().at.0 - recorded[0].at.0;
    assert!((45_000..46_000).contains(&took_ms), "{took_ms}");
    let begun =
        recorded.iter().filter(|recorded| matches!(recorded.event, Event::WrapUpStarted { .. })).count();
    assert_eq!(begun, 1);
}

/// G1 (deadline): a running turn may end. Its answer counts; the tools that it requests are not called any more.
#[tokio::test(start_paused = true)]
async fn a_turn_that_runs_when_time_is_short_is_let_end() {
    for (rest, state, shown, calls) in [
        ("say: All of it.", "completed", "All of it.", 1),
        ("say: More., call: [ { tool: never } ]", "failed", "As far as I got.", 2),
    ] {
        let rules = "{ when: { wrap_up: true }, say: As far as I got. }";
        let script = format!(
            "rules: [ {rules}, {{ think_ms: 95000, {rest} }} ]\ntools: {{ never: {{ hang: true }} }}"
        );
        let stage = TestHome::new(&script);
        let home = stage.home();
        let tree = stage.start(&home, "root timeout=100s turns=9 wrap").await;
        let snapshot = settled(&tree).await;
        assert_eq!((snapshot.state.as_str(), snapshot.end.unwrap().shown.text.as_str()), (state, shown));
        assert_eq!(stage.model().attempts().len(), calls);
    }
}

/// With less than 10 seconds in all there is no last call.
#[tokio::test(start_paused = true)]
async fn an_agent_with_little_time_has_no_last_call() {
    let stage = TestHome::new(WAITS);
    let home = stage.home();
    let tree = stage.start(&home, "root timeout=9s turns=9 wrap / child later turns=9").await;
    let end = settled(&tree).await.end.unwrap();
    assert_eq!((code(&end.exit), end.shown.text.as_str()), ("timeout", "I wait."));
    assert!(last_calls(&stage.model().attempts()).is_empty());
}

/// G1 (deadline): when active time is nearly used up the running tool is stopped, and the agent has its last call.
#[tokio::test(start_paused = true)]
async fn shortly_before_its_active_time_is_up_an_agent_answers_with_what_it_has() {
    let script = "
rules:
  - { when: { wrap_up: true }, say: As far as I got. }
  - { when: { agent: root, turn: 1 }, call: [ { tool: spawn_agent, args: { agent: child, id: a, goal: Help. } } ] }
  - { when: { agent: root }, say: done }
  - { when: { agent: child }, say: I look., call: [ { tool: never } ] }
tools: { never: { hang: true } }
";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / child later turns=9 wrap active=20s").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    let recorded = recorded(&tree).await;
    let ended = recorded.iter().find_map(|recorded| match &recorded.event {
        Event::AgentEnded { agent, exit, .. } if agent.as_str() == "a" => Some((recorded.at, exit.clone())),
        _ => None,
    });
    let (at, exit) = ended.unwrap();
    assert_eq!(code(&exit), "timeout");
    assert_eq!((at.0 - recorded[0].at.0) / 1_000, 18);
    assert_eq!(last_calls(&stage.model().attempts()).len(), 1);
}

/// Time that a person adds before the last call returns to ordinary turns, with a wrap-up at the end.
#[tokio::test(start_paused = true)]
async fn more_time_before_the_last_call_takes_the_wrap_up_back() {
    let script = "
rules:
  - { when: { wrap_up: true }, say: As far as I got. }
  - { when: { turn: 1 }, think_ms: 95000, call: [ { tool: look } ] }
  - { say: All of it. }
tools: { look: { say: seen } }
";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root timeout=100s turns=9 wrap tools=look").await;
    let mut events = tree.watch(Watch::default());
    while !matches!(events.next_event().await.unwrap().unwrap().recorded.event, Event::WrapUpStarted { .. }) {
    }
    let raise = Raise { agent: "root".parse().unwrap(), add: Amounts::ZERO, add_ms: 60_000 };
    tree.raise(raise).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(
        (snapshot.state, snapshot.end.unwrap().shown.text.as_str()),
        (TreeState::Ended(ExitKind::Completed), "All of it.")
    );
    assert!(last_calls(&stage.model().attempts()).is_empty());
}

/// If time is added during the last call, its answer is not the end, and the agent is asked to continue.
#[tokio::test(start_paused = true)]
async fn more_time_during_the_last_call_is_followed_by_an_ordinary_turn() {
    let script = "
rules:
  - { when: { wrap_up: true }, think_ms: 2000, say: As far as I got. }
  - { when: { turn: 1 }, call: [ { tool: never } ] }
  - { say: 'I was told: {{ last }}' }
tools: { never: { hang: true } }
";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root timeout=50s turns=9 wrap tools=never").await;
    let mut events = tree.watch(Watch::default());
    let is_last_call =
        |event: &Event| matches!(event, Event::CallAsked { work, .. } if work.wrap_up().is_some());
    while !is_last_call(&events.next_event().await.unwrap().unwrap().recorded.event) {}
    tree.raise(Raise { agent: "root".parse().unwrap(), add: Amounts::ZERO, add_ms: 60_000 }).await.unwrap();
    let end = settled(&tree).await.end.unwrap();
    assert_eq!(end.exit, Exit::Completed);
    insta::assert_snapshot!(end.shown.text, @"I was told: The budget was raised. You have more time: continue.");
}

/// G1 (thinking): a last call of a model that thinks answers inside its ceiling; one that only thinks says nothing, and
/// what was said before is the partial result.
#[tokio::test(start_paused = true)]
async fn a_last_call_that_thinks_answers_inside_its_ceiling() {
    for (thought, answer) in [("hm ", "As far as I got."), (&"hm ".repeat(2_000), "Look 3.")] {
        let thinks = format!("wrap_up: true }}, think: '{thought}', say: As far as I got.");
        let script = HOGS.replace("wrap_up: true }, say: As far as I got.", &thinks);
        let stage = TestHome::new(&script);
        let home = stage.home();
        let fixture = "root $90 turns=9 / child later turns=20 wrap out=2000 tools=look";
        let tree = stage.start(&home, fixture).await;
        let snapshot = settled(&tree).await;
        let read = snapshot.end.unwrap().shown.text;
        assert!(read.ends_with(&format!("partial result:\n{answer}")), "{read}");
        assert!(read.starts_with("child exhausted (tokens ceiling"), "{read}");
        let spent = snapshot.agents[1].spent.get(Resource::Tokens);
        assert!(spent <= 3_300, "{spent}");
        assert_eq!(last_calls(&stage.model().attempts()).len(), 1);
    }
}
