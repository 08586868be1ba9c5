//! What one call sees of an agent's context, and the window sizes of children, on the real runtime: every packet of a
//! model is checked.

use spinney_journal::Blocking;
use std::sync::Arc;

use spinney::Tree;
use spinney_kernel::context::{Frame, Message};
use spinney_kernel::definition::{Compact, Definition, Share, WindowSpec};
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, Body, Category, Envelope};
use spinney_kernel::record::{Clamped, Event, Exit, ExitKind};
use spinney_kernel::rules::request::{Collect, Request, Send, Spawn};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, TestHome, definition, recorded, settled};

/// Asks a person each turn, so the test decides what comes between two packets.
const ASKS: &str = "rules: [ { call: [ { tool: ask_human, args: { question: 'Which?' } } ] } ]";

/// A definition whose roles have windows of these sizes.
fn with_windows(fixture: &str, sizes: &[(&str, u64)]) -> Definition {
    let mut definition = definition(fixture);
    for (role, size) in sizes {
        let turns = definition.roles.get_mut(*role).unwrap().turns.as_mut().unwrap();
        turns.window = Some(WindowSpec { size: Some(*size), ..WindowSpec::default() });
    }
    definition
}

/// A text of this many tokens that begins with a marker.
fn long(mark: &str, tokens: usize) -> String {
    format!("{mark} {}", "word".repeat(tokens))
}

async fn send(tree: &Tree, to: &str, category: Category, text: String) {
    let envelope = Envelope { category, ..Envelope::default() };
    let send = Send { envelope, ..Send::plain(to.parse().unwrap(), Body::text(text)) };
    tree.request(Actor::PERSON, Request::Send(send)).await.unwrap();
}

/// Answers every open question.
async fn answer_all(tree: &Tree, text: &str) {
    for open in settled(tree).await.questions {
        tree.answer(open.question, text).await.unwrap();
    }
    settled(tree).await;
}

fn packets_of(stage: &TestHome, agent: &str) -> Vec<Arc<ModelAttempt>> {
    let attempts = stage.model().attempts();
    attempts.into_iter().filter(|attempt| attempt.origin.agent().as_str() == agent).collect()
}

/// Whether a packet contains the whole message that begins with this marker.
fn has(attempt: &ModelAttempt, mark: &str) -> bool {
    let whole = |message: &Arc<Message>| {
        !matches!(message.as_ref(), Message::Folded(_)) && message.text().contains(&format!("{mark} word"))
    };
    attempt.packet.messages.iter().any(whole)
}

async fn cuts(tree: &Tree, stage: &TestHome) -> usize {
    let seq = tree.snapshot().await.unwrap().seq;
    let batches =
        stage.journal().read(tree.id(), spinney_kernel::primitives::Seq(0), usize::MAX).wait().unwrap();
    assert!(seq.0 > 0);
    let events = batches.iter().flat_map(|entry| &entry.batch.events);
    events.filter(|event| matches!(event, Event::ContextCut { .. })).count()
}

/// P2: SYSTEM has 70 % of the window and everything else keeps to its share. When it becomes too much, outputs are
/// dropped first, then dialog, then context, the oldest of each first, until it fits; SYSTEM stays whole. If SYSTEM
/// alone is too large, that is a typed error with both numbers, and no model is called.
#[tokio::test(start_paused = true)]
async fn p2_the_least_important_goes_and_what_the_agent_is_stays() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let mut plan = with_windows("root turns=40 tools=ask_human", &[("root", 10_000)]);
    let prompt = long("PROMPT", 6_950);
    let turns = plan.roles.get_mut("root").unwrap().turns.as_mut().unwrap();
    turns.prompt = Body::text(prompt.clone());
    // One line for everything that was dropped, so the rest has room.
    turns.window.as_mut().unwrap().compact = Compact::Count;
    let tree = home.start(plan.clone()).await.unwrap();
    settled(&tree).await;
    let mut rounds = 0;
    while cuts(&tree, &stage).await == 0 {
        send(&tree, "root", Category::Context, long(&format!("C{rounds}"), 60)).await;
        send(&tree, "root", Category::Dialog, long(&format!("D{rounds}"), 60)).await;
        answer_all(&tree, &long(&format!("O{rounds}"), 60)).await;
        rounds += 1;
    }
    let packets = packets_of(&stage, "root");
    let (before, after) = (&packets[packets.len() - 2], &packets[packets.len() - 1]);
    let system = |attempt: &ModelAttempt| match attempt.packet.messages[0].as_ref() {
        Message::System(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(system(before), system(after));
    assert!(system(after).starts_with(&prompt));
    let system_tokens = system(after).len().div_ceil(4);
    assert!((6_950..7_050).contains(&system_tokens), "{system_tokens}");
    assert!(packets.iter().all(|attempt| attempt.packet.tokens <= 10_000));
    let system_and_tools = packets[0].packet.tokens;

    // The newest message is unread and stays; everything before is in the order in which it is dropped.
    let order = ["O", "D", "C"].map(|kind| (0..rounds - 1).map(move |round| format!("{kind}{round}")));
    let order: Vec<String> = order.into_iter().flatten().collect();
    assert!(order.iter().all(|mark| has(before, mark)), "nothing went before the first cut");
    let gone = order.iter().take_while(|mark| !has(after, mark)).count();
    assert!(order[gone..].iter().all(|mark| has(after, mark)), "{order:?}: {gone} went first, and others");
    let per_kind = rounds - 1;
    assert!((per_kind + 1..3 * per_kind).contains(&gone), "{gone} of three times {per_kind}");
    for kind in ["O", "D", "C"] {
        assert!(has(after, &format!("{kind}{}", rounds - 1)), "{kind}");
    }

    let turns = plan.roles.get_mut("root").unwrap().turns.as_mut().unwrap();
    turns.window = Some(WindowSpec { size: Some(5_000), ..WindowSpec::default() });
    let calls = stage.model().model().calls();
    let tree = home.start(plan).await.unwrap();
    let end = settled(&tree).await.end.unwrap();
    let Exit::Failed { error } = &end.exit else { panic!("{:?}", end.exit) };
    assert_eq!(error.code, "window_too_small");
    let numbers = format!("cannot be dropped, {system_and_tools} of them the agent's instructions and task");
    assert!(error.message.contains(&numbers), "{}", error.message);
    assert_eq!(stage.model().model().calls(), calls, "no model was called");
}

/// P4: no packet has a call without its results or a result without its call, and a person's last message is in every
/// packet, although it alone exceeds the whole share of dialog.
#[tokio::test(start_paused = true)]
async fn p4_no_pair_is_split_and_the_newest_word_of_a_person_stays() {
    let result = "seen".repeat(300);
    let script = format!(
        "
rules:
  - {{ when: {{ turn: 4 }}, call: [ {{ tool: ask_human, args: {{ question: 'Which?' }} }} ] }}
  - {{ when: {{ turn: 20 }}, say: done }}
  - {{ call: [ {{ tool: look }}, {{ tool: look }} ] }}
tools: {{ look: {{ say: {result} }} }}
"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    // The share of dialog is 40 %.
    let tree =
        home.start(with_windows("root turns=30 tools=ask_human,look", &[("root", 4_000)])).await.unwrap();
    let snapshot = settled(&tree).await;
    send(&tree, "root", Category::Dialog, long("NEWEST", 2_000)).await;
    tree.answer(snapshot.questions[0].question, "red").await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    assert!(cuts(&tree, &stage).await > 2);
    let packets = packets_of(&stage, "root");
    assert_eq!(packets.len(), 20);
    for attempt in &packets {
        assert!(attempt.packet.tokens <= 4_000, "{}", attempt.packet.tokens);
        assert_eq!(has(attempt, "NEWEST"), attempt.turn > 4, "turn {}", attempt.turn);
        let mut open = 0;
        for message in attempt.packet.messages.iter() {
            match message.as_ref() {
                Message::Result { .. } => {
                    assert!(open > 0, "turn {}: a result without its call", attempt.turn);
                    open -= 1;
                }
                other => {
                    assert_eq!(open, 0, "turn {}: a call without its result", attempt.turn);
                    open = if let Message::Said { asks, .. } = other { asks.len() } else { 0 };
                }
            }
        }
        assert_eq!(open, 0, "turn {}", attempt.turn);
    }
}

/// P6: context has more than twice its share while dialog is idle, and packets hold all of it. The next packet, in
/// which dialog needs its own share, returns to the preset's shares: context shrinks, although dialog is less
/// important, and no dialog is dropped.
#[tokio::test(start_paused = true)]
async fn p6_what_was_borrowed_for_one_request_is_given_back_for_the_next() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = home.start(with_windows("root turns=9 tools=ask_human", &[("root", 10_000)])).await.unwrap();
    settled(&tree).await;
    for number in 0..7 {
        send(&tree, "root", Category::Context, long(&format!("C{number}"), 860)).await;
    }
    answer_all(&tree, "go on").await;
    for number in 0..3 {
        send(&tree, "root", Category::Dialog, long(&format!("D{number}"), 860)).await;
    }
    answer_all(&tree, "go on").await;
    let borrowed = packets_of(&stage, "root").pop().unwrap();
    assert!((0..7).all(|number| has(&borrowed, &format!("C{number}"))));
    assert_eq!(cuts(&tree, &stage).await, 0);
    send(&tree, "root", Category::Dialog, long("D3", 860)).await;
    answer_all(&tree, "go on").await;
    let next = packets_of(&stage, "root").pop().unwrap();
    assert!((0..4).all(|number| has(&next, &format!("D{number}"))));
    let kept = (0..7).filter(|number| has(&next, &format!("C{number}"))).collect::<Vec<_>>();
    // The digest of dropped messages counts as context too, and has a tenth of the window.
    assert!(matches!(kept.as_slice(), [5, 6] | [4, 5, 6]), "{kept:?}");
    assert!(next.packet.tokens <= 10_000);
}

/// P9 (the same beginning): from one packet to the next only the end is new, until the window is full; then a fifth of
/// it is freed.
#[tokio::test(start_paused = true)]
async fn consecutive_packets_begin_with_the_same_bytes_until_the_window_is_full() {
    let result = "seen".repeat(200);
    let script = format!(
        "rules: [ {{ when: {{ turn: 30 }}, say: done }}, {{ say: Looking., call: [ {{ tool: look }} ] }} ]\ntools: {{ look: {{ say: {result} }} }}"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let tree = home.start(with_windows("root turns=40 tools=look", &[("root", 3_000)])).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    let bytes = |attempt: &ModelAttempt| -> Vec<String> {
        let messages = attempt.packet.messages.iter().map(|message| format!("{message:?}"));
        std::iter::once(format!("{:?}", attempt.packet.tools)).chain(messages).collect()
    };
    let packets = packets_of(&stage, "root");
    let mut moved = 0;
    for pair in packets.windows(2) {
        let (before, after) = (bytes(&pair[0]), bytes(&pair[1]));
        if after.starts_with(&before) {
            assert!(after.len() > before.len());
        } else {
            moved += 1;
            assert_eq!(before[..2], after[..2], "tools and the first message are the same even then");
            assert!(pair[1].packet.tokens <= 3_000 * 80 / 100, "{}", pair[1].packet.tokens);
        }
    }
    assert_eq!(moved, cuts(&tree, &stage).await);
    assert!((2..10).contains(&moved), "{moved} of {}", packets.len());
}

fn spawn(role: &str, id: &str, share: Share, window: Option<u64>) -> Request {
    Request::Spawn(Spawn {
        id: Some(id.parse().unwrap()),
        share: Some(share),
        frame: Frame { window, ..Frame::default() },
        collect: Collect::Detached,
        ..Scenario::spawn("root", role)
    })
}

/// P10 (asked by the parent): a model gives its child a window and messages. More than the role allows changes nothing, and a
/// window in which nothing fits is refused with the numbers.
#[tokio::test(start_paused = true)]
async fn p10_a_model_gives_its_child_a_window_and_messages() {
    let script = "
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: b, id: small, goal: Go., window: 3000, messages: [The first., The second.] } }
      - { tool: spawn_agent, args: { agent: b, id: large, goal: Go., window: 500000 } }
      - { tool: spawn_agent, args: { agent: b, id: tiny, goal: Go., window: 3 } }
      - { tool: spawn_agent, args: { agent: b, id: empty, goal: Go., messages: [''] } }
  - { say: done }
";
    let stage = TestHome::new(script);
    let home = stage.home();
    let sizes = [("root", 100_000), ("b", 8_000)];
    let tree = home.start(with_windows("root turns=9 / b later turns=9", &sizes)).await.unwrap();
    settled(&tree).await;
    let size = |event: &Event| match event {
        Event::WindowSet { agent, size, .. } => Some((agent.to_string(), *size)),
        _ => None,
    };
    let events: Vec<Event> = recorded(&tree).await.into_iter().map(|recorded| recorded.event).collect();
    let sizes: Vec<(String, u64)> = events.iter().filter_map(size).collect();
    assert_eq!(
        sizes,
        [("root".to_owned(), 100_000), ("small".to_owned(), 3_000), ("large".to_owned(), 8_000)]
    );
    let texts = |agent: &str| -> Vec<String> {
        packets_of(&stage, agent)[0]
            .packet
            .messages
            .iter()
            .map(|message| message.text().into_owned())
            .collect()
    };
    let small = texts("small");
    for text in ["The first.", "The second."] {
        assert!(small.iter().any(|message| message.contains(text)), "{small:?}");
    }
    assert!(small.iter().any(|message| message.ends_with("Go.")), "{small:?}");
    let refusals: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolAnswered { is_error: true, body, .. } => Some(body.text.clone()),
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(refusals.join("\n"), @"
    a window of 3 tokens is too small: it must hold at least 256
    the message is empty
    ");
}

/// P10, P11: A has 100,000 tokens. B's own limit is 8,000 and its spawner's cap 16,000: B has 8,000, no packet of B has
/// more, and A still has 100,000. A reads one note with the 8,000. A child whose cap is not below A's window causes no
/// note.
#[tokio::test(start_paused = true)]
async fn p10_p11_a_child_has_the_smallest_window_and_its_parent_one_note_of_it() {
    let result = "seen".repeat(450);
    let script = format!(
        "
rules:
  - {{ when: {{ agent: root }}, call: [ {{ tool: ask_human, args: {{ question: 'Which?' }} }} ] }}
  - {{ when: {{ agent: b, turn: 40 }}, say: done }}
  - {{ when: {{ agent: b }}, call: [ {{ tool: look }} ] }}
  - {{ say: done }}
tools: {{ look: {{ say: {result} }} }}
"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let fixture =
        "root turns=9 tools=ask_human,look / b later turns=50 tools=look / c later turns=9 tools=look";
    let sizes = [("root", 100_000), ("b", 8_000), ("c", 100_000)];
    let tree = home.start(with_windows(fixture, &sizes)).await.unwrap();
    settled(&tree).await;
    tree.request(Actor::PERSON, spawn("b", "b1", Share::Goal, Some(16_000))).await.unwrap();
    tree.request(Actor::PERSON, spawn("c", "c1", Share::Goal, Some(100_000))).await.unwrap();
    tree.request(Actor::PERSON, spawn("c", "c2", Share::Goal, Some(200_000))).await.unwrap();
    settled(&tree).await;
    for _ in 0..3 {
        answer_all(&tree, "go on").await;
    }

    let packets = packets_of(&stage, "b1");
    let largest = packets.iter().map(|attempt| attempt.packet.tokens).max().unwrap();
    assert_eq!(packets.len(), 40);
    assert!((7_000..=8_000).contains(&largest), "{largest}");
    let notes = |attempt: &ModelAttempt| -> Vec<String> {
        let of_window = |message: &&Arc<Message>| {
            message.category() == Category::Internal && message.text().contains("the window of")
        };
        attempt.packet.messages.iter().filter(of_window).map(|message| message.text().into_owned()).collect()
    };
    let root = packets_of(&stage, "root");
    assert_eq!(notes(&root[0]), [""; 0]);
    for attempt in &root[1..] {
        let [note] = &notes(attempt)[..] else { panic!("{:?}", notes(attempt)) };
        assert!(note.contains("the window of b1 has 8000 tokens"), "{note}");
    }

    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    let size = |event: Event| match event {
        Event::WindowSet { agent, size, clamped, .. } => Some((agent.to_string(), size, clamped)),
        _ => None,
    };
    let sizes: Vec<_> =
        recorded(&tree).await.into_iter().filter_map(|recorded| size(recorded.event)).collect();
    let of = |agent: &str, size, clamped| (agent.to_owned(), size, clamped);
    let clamped = Clamped { parent_size: 100_000, is_told: true };
    assert_eq!(
        sizes,
        [
            of("root", 100_000, None),
            of("b1", 8_000, Some(clamped)),
            of("c1", 100_000, None),
            of("c2", 100_000, None)
        ]
    );
}

/// P14: whenever an agent joins or leaves a shared thread, the limit on its context is the smallest share of all
/// members, with one event for each change; no packet holds more of the thread than that, and no own window changes.
#[tokio::test(start_paused = true)]
async fn p14_the_bound_of_a_thread_is_the_least_of_its_members_at_every_change() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let fixture =
        "root turns=20 tools=ask_human / b later turns=20 tools=ask_human / c later turns=20 tools=ask_human";
    let sizes = [("root", 100_000), ("b", 8_000), ("c", 4_000)];
    let tree = home.start(with_windows(fixture, &sizes)).await.unwrap();
    settled(&tree).await;
    // How many of the facts so far each member's newest packet holds.
    let mut facts = 0;
    let mut tell_more = async |members: &[&str]| {
        for _ in 0..6 {
            send(&tree, "root", Category::Context, long(&format!("F{facts}"), 250)).await;
            facts += 1;
        }
        // Once to read them, and once more with all of them read.
        for _ in 0..2 {
            answer_all(&tree, "go on").await;
        }
        let held = |member: &&str| {
            let packet = packets_of(&stage, member).pop().unwrap();
            (0..facts).filter(|fact| has(&packet, &format!("F{fact}"))).count()
        };
        members.iter().map(held).collect::<Vec<_>>()
    };
    tree.request(Actor::PERSON, spawn("b", "b1", Share::Thread, None)).await.unwrap();
    let with_b = tell_more(&["root", "b1"]).await;
    tree.request(Actor::PERSON, spawn("c", "c1", Share::Thread, None)).await.unwrap();
    let with_c = tell_more(&["root", "b1", "c1"]).await;
    tree.cancel("c1".parse().unwrap(), "enough").await.unwrap();
    let without_c = tell_more(&["root", "b1"]).await;
    tree.cancel("b1".parse().unwrap(), "enough").await.unwrap();
    let alone = tell_more(&["root"]).await;
    // A fact has slightly more than 250 tokens: at most nine fit in 2,400 and four in 1,200.
    assert!(with_b.iter().all(|held| (4..=9).contains(held)), "{with_b:?}");
    assert!(with_c.iter().all(|held| (2..=4).contains(held)), "{with_c:?}");
    assert!(without_c.iter().all(|held| (4..=9).contains(held)), "{without_c:?}");
    assert!(without_c.iter().zip(&with_c).all(|(after, before)| after > before), "{with_c:?} {without_c:?}");
    assert!(alone[0] > 9, "{alone:?}");

    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    let mut changes = Vec::new();
    let mut windows = Vec::new();
    for recorded in recorded(&tree).await {
        match recorded.event {
            Event::ThreadJoined { agent, bound, .. } => changes.push(format!("{agent} joins: {bound:?}")),
            Event::ThreadLeft { agent, bound, .. } => changes.push(format!("{agent} leaves: {bound:?}")),
            Event::WindowSet { agent, size, .. } => windows.push(format!("{agent}: {size}")),
            _ => {}
        }
    }
    let expected =
        ["b1 joins: Some(2400)", "c1 joins: Some(1200)", "c1 leaves: Some(2400)", "b1 leaves: None"];
    assert_eq!(changes, expected);
    assert_eq!(windows, ["root: 100000", "b1: 8000", "c1: 4000"]);
}
