//! What a child receives from its parent, and the size of its window: nothing else is shared.

use spinney_kernel::context::{Contexts, Frame, Message};
use spinney_kernel::definition::{Builtin, Definition, GivenMessage, Refusal, Share, WindowSpec};
use spinney_kernel::primitives::{Actor, AgentId, Body, Category, Envelope, ModelName, RoleName, limit};
use spinney_kernel::record::{Clamped, Event, RULES, Tie};
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::{Broadcast, Collect, Refresh, Request, Send, SendReply, Spawn};
use spinney_testkit::Scenario;

use crate::observed::{events, name, person, refused};

const FIXTURE: &str = "root $9.00 turns=20 / b later turns=20 / c later turns=20";

/// A window for each role, or none.
fn windows(definition: &mut Definition, sizes: [(&str, u64); 2]) {
    for (role, size) in sizes {
        let role = definition.roles.get_mut(&name::<RoleName>(role)).and_then(|role| role.turns.as_mut());
        if let Some(turns) = role {
            turns.window = Some(WindowSpec { size: Some(size), ..WindowSpec::default() });
        }
    }
}

fn spawn(id: &str, share: Share) -> Request {
    let (id, share) = (Some(name(id)), Some(share));
    Request::Spawn(Spawn { id, share, collect: Collect::Detached, ..Scenario::spawn("root", "b") })
}

fn send(to: &str, category: Category, text: &str) -> Request {
    let envelope = Envelope { category, ..Envelope::default() };
    Request::Send(Send { envelope, ..Send::plain(name(to), Body::text(text)) })
}

/// Everything in an agent's next packet, by category and text.
fn packet(play: &Scenario, agent: &str) -> Vec<(Category, String)> {
    let mut contexts = Contexts::new(play.world().tree());
    events(play).iter().for_each(|event| contexts.apply(event));
    let agent: AgentId = name(agent);
    let packet = contexts.packet(&agent, 0).unwrap_or_default();
    let read = |message: &std::sync::Arc<Message>| (message.category(), message.text().into_owned());
    packet.messages.iter().map(read).collect()
}

fn count(play: &Scenario, agent: &str, text: &str) -> usize {
    packet(play, agent).iter().filter(|(_, shown)| shown.contains(text)).count()
}

/// A parent that received a fact, said something and read a tool result.
fn busy() -> Scenario {
    let mut play = Scenario::grow(FIXTURE);
    play.must(send("root", Category::Context, "FACT-1 stays true."));
    play.must(send("root", Category::Dialog, "DIALOG-1 from a person."));
    play.run("said #1 SAID-1 to myself. | read {\"path\":\"ARGS-1\"}\ndone #2");
    play
}

fn window(play: &Scenario, agent: &str) -> Option<u64> {
    let agents = play.world().agents();
    agents.find(&name(agent)).and_then(|ix| agents.living(ix))?.progress.window.size()
}

/// P10 (decision part): a child's window is the smaller of its role's and its spawner's size, and its parent's stays.
#[test]
fn a_childs_window_is_the_smallest_size_given() {
    let mut play =
        Scenario::grow_as(FIXTURE, |definition| windows(definition, [("root", 100_000), ("b", 8_000)]));
    let spawn = Spawn {
        frame: Frame { window: Some(16_000), ..Frame::default() },
        id: Some(name("b1")),
        ..Scenario::spawn("root", "b")
    };
    play.must(Request::Spawn(spawn.clone()));
    assert_eq!((window(&play, "b1"), window(&play, "root")), (Some(8_000), Some(100_000)));
    play.must(Request::Spawn(Spawn {
        frame: Frame { window: Some(4_000), ..Frame::default() },
        id: Some(name("b2")),
        ..spawn.clone()
    }));
    assert_eq!(window(&play, "b2"), Some(4_000));
    let small =
        Spawn { frame: Frame { window: Some(10), ..Frame::default() }, id: Some(name("b3")), ..spawn };
    let refusal = refused(&mut play, person(Request::Spawn(small)));
    assert_eq!(refusal, Refusal::WindowTooSmall { tokens: 256, size: 10 });
}

/// P10 (decision part): a window leaves room for the answer, with every model that calls may use.
#[test]
fn a_window_fits_each_model_that_a_call_may_go_to() {
    let play = Scenario::grow_as(FIXTURE, |definition| {
        for (model, context) in [("m", 10_000), ("cheap", 4_000)] {
            definition.models.get_mut(&name::<ModelName>(model)).unwrap().context = Some(context);
        }
    });
    assert_eq!(window(&play, "root"), Some(3_400));
}

/// P11 (decision part): a parent gets one note about a smaller window, with the effective size, and none about an equal
/// one.
#[test]
fn a_parent_is_notified_only_when_a_child_was_clamped() {
    let sizes = |small| {
        Scenario::grow_as(FIXTURE, |definition| windows(definition, [("root", 100_000), ("b", small)]))
    };
    let mut play = sizes(8_000);
    play.must(spawn("b1", Share::Goal));
    let clamped = |event: &Event| matches!(event, Event::WindowSet { clamped: Some(_), .. });
    let recorded = Clamped { parent_size: 100_000, is_told: true };
    let set = events(&play).into_iter().filter(clamped).collect::<Vec<_>>();
    let [Event::WindowSet { agent, size: 8_000, clamped: Some(by), .. }] = set.as_slice() else {
        panic!("{set:?}")
    };
    assert_eq!((agent.as_str(), *by), ("b1", recorded));
    play.run("said #1 Hm. | read {}\ndone #3");
    assert_eq!(count(&play, "root", "the window of b1 has 8000 tokens"), 1);
    assert_eq!(packet(&play, "root").last().map(|(category, _)| *category), Some(Category::Internal));
    let mut play = sizes(100_000);
    play.must(spawn("b1", Share::Goal));
    assert!(!events(&play).iter().any(clamped));
    play.run("said #1 Hm. | read {}\ndone #3");
    assert_eq!(count(&play, "root", "the window of"), 0);
}

/// P11 (decision part): the note can be turned off; the event is recorded anyway.
#[test]
fn the_note_can_be_switched_off() {
    let mut play = Scenario::grow_as(FIXTURE, |definition| {
        windows(definition, [("root", 100_000), ("b", 8_000)]);
        let root = definition.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut());
        root.and_then(|turns| turns.window.as_mut()).unwrap().clamp_note = false;
    });
    play.must(spawn("b1", Share::Goal));
    play.run("said #1 Hm. | read {}\ndone #3");
    assert_eq!(count(&play, "root", "the window of"), 0);
    assert!(events(&play).iter().any(|event| matches!(event, Event::WindowSet { clamped: Some(_), .. })));
}

/// P12: a briefed child holds its parent's context messages, once, and nothing that was said or returned; later ones do
/// not appear on their own.
#[test]
fn p12_a_briefing_is_the_parents_task_and_context_once() {
    let mut play = busy();
    play.must(spawn("b1", Share::Briefing));
    let recorded = packet(&play, "b1");
    let categories: Vec<Category> = recorded.iter().map(|(category, _)| *category).collect();
    // Its own task stands last.
    assert_eq!(categories, [Category::System, Category::Context, Category::Context, Category::System]);
    assert_eq!(recorded.iter().filter(|(_, text)| text.contains("Its task: Grow.")).count(), 1);
    assert_eq!(count(&play, "b1", "FACT-1"), 1);
    for secret in ["DIALOG-1", "SAID-1", "ARGS-1"] {
        assert_eq!((secret, count(&play, "b1", secret)), (secret, 0));
    }
    play.must(send("root", Category::Context, "FACT-2 is new."));
    assert_eq!(count(&play, "b1", "FACT-2"), 0);
}

/// A briefed child reads its parent's role and goal, but not the parent's tools or answer format: it has its own.
#[test]
fn a_briefing_leaves_out_the_tools_of_the_parent() {
    let mut play = busy();
    play.must(spawn("b1", Share::Briefing));
    let recorded = packet(&play, "b1");
    assert_eq!(recorded[1].1, "[background: what root knows]\nIts task: Grow.");
    let own = packet(&play, "root")[0].1.clone();
    assert!(own.contains("Tools you may use:") && own.contains("When you are done"), "{own}");
    assert_eq!(count(&play, "b1", "Tools you may use:"), 1, "only its own");
    let headers = |agent: &str| {
        let agents = play.world().agents();
        agents.living(agents.find(&name(agent)).unwrap()).unwrap().progress.window.headers().to_vec()
    };
    let (first, recorded) = (headers("root")[0].tokens, headers("b1")[1].tokens);
    assert!(recorded < first / 3, "it counts {recorded} tokens, all of it {first}");
}

/// What is counted for a child is at least what its model reads, also with the longest names.
#[test]
fn the_lines_around_what_is_shared_are_counted() {
    let parent = "p".repeat(64);
    let mut play = Scenario::grow("root turns=9 / b later turns=9 / c later turns=9");
    play.must(spawn(&parent, Share::Goal));
    for number in 0..2 {
        play.must(send(&parent, Category::Context, &format!("Fact {number}.")));
    }
    let (id, share) = (Some(name("c1")), Some(Share::Briefing));
    play.must(Spawn { id, share, collect: Collect::Detached, ..Scenario::spawn(&parent, "c") });
    let agents = play.world().agents();
    let window = &agents.living(agents.find(&name("c1")).unwrap()).unwrap().progress.window;
    let packet = packet(&play, "c1");
    let [_, shared @ .., _] = packet.as_slice() else { panic!("{packet:?}") };
    let counted = window.headers().iter().skip(1).map(|header| header.counted().bound());
    for (counted, (_, text)) in counted.zip(shared) {
        // Its own message, and the one with the child's task.
        let read = text.len() as u64 + 2 * limit::MESSAGE_TOKENS.bound();
        assert!(counted >= read, "{counted} tokens are counted and {read} are read: {text}");
    }
}

/// Packets of older trees stay the same byte for byte: what was shared followed the child's task, and read like it.
#[test]
fn under_older_rules_a_briefing_follows_the_childs_task() {
    let texts = |rules: u32| -> Vec<String> {
        let mut play = Scenario::grow_under(rules, FIXTURE);
        play.must(spawn("b1", Share::Briefing));
        packet(&play, "b1").into_iter().map(|(_, text)| text).collect()
    };
    let [first, shared] = texts(5).try_into().unwrap();
    let [role, background, task] = texts(RULES).try_into().unwrap();
    assert_eq!(shared, "[what root knows]\nYour task: Grow.");
    assert_eq!(background, "[background: what root knows]\nIts task: Grow.");
    let newer = [Builtin::WaitMessage, Builtin::DelegateToAgent, Builtin::HandBack];
    let older = newer.into_iter().fold(role, |role, tool| {
        let does = tool.description().split(';').next().unwrap();
        role.replace(&format!("\n- {}: {does}", tool.as_str()), "")
    });
    assert_eq!(first, older + &task, "the same words, in two messages");
}

/// P13 (decision part): a refresh shares each new item once however often it runs; with replace, outdated items are
/// removed, and the child's own conversation stays.
#[test]
fn a_refresh_tells_what_is_new_once() {
    let mut play = busy();
    play.must(spawn("b1", Share::Briefing));
    play.must(send("b1", Category::Dialog, "DIALOG-2 for the child."));
    play.must(send("root", Category::Context, "FACT-2 is new."));
    let refresh = |replace| Request::Refresh(Refresh { agent: name("b1"), replace });
    play.must(refresh(false));
    let events_then = events(&play).len();
    play.must(refresh(false));
    assert_eq!(events(&play).len(), events_then, "a second refresh is nothing");
    for fact in ["Its task: Grow.", "FACT-1", "FACT-2"] {
        assert_eq!((fact, count(&play, "b1", fact)), (fact, 1));
    }
    play.must(refresh(true));
    for fact in ["Its task: Grow.", "FACT-1", "FACT-2"] {
        assert_eq!((fact, count(&play, "b1", fact)), (fact, 1));
    }
    play.run("said #4 Thinking. | read {}\ndone #5");
    assert_eq!(count(&play, "b1", "DIALOG-2"), 1);
    let nobody =
        refused(&mut play, person(Request::Refresh(Refresh { agent: name("root"), replace: false })));
    assert_eq!(nobody, Refusal::NobodyAbove { agent: name("root") });
}

/// P4 (decision part): a tool result directly follows the message that requested it, whatever is shared while it runs;
/// shared twice with replace, an item is there once.
#[test]
fn what_is_shared_while_a_tool_runs_follows_its_result() {
    let mut play = busy();
    play.must(spawn("b1", Share::Goal));
    play.run("said #4 Look. | read {}");
    let refresh = || Request::Refresh(Refresh { agent: name("b1"), replace: true });
    play.must(refresh());
    play.must(refresh());
    play.run("done #5");
    let categories: Vec<Category> = packet(&play, "b1").iter().map(|(category, _)| *category).collect();
    let recorded = [Category::Context; 2];
    assert_eq!(categories[..3], [Category::System, Category::Dialog, Category::Output]);
    assert_eq!(categories[3..], recorded);
}

/// What a forked child takes over is its own conversation, including what others had shared with its parent: it is
/// never removed again.
#[test]
fn what_others_shared_with_a_parent_is_its_forked_childs_own() {
    let mut play = Scenario::grow(FIXTURE);
    play.must(spawn("b1", Share::Goal));
    play.must(send("b1", Category::Context, "FACT-1 of b1."));
    play.run("said #1 One. | read {}\ndone #3");
    play.must(Request::Broadcast(Broadcast {
        from: name("b1"),
        to: vec![name("root")],
        categories: vec![Category::Context],
    }));
    play.run("said #4 Two. | read {}\ndone #5\nsaid #6 Three. | read {}");
    let fork = Spawn { id: Some(name("c1")), share: Some(Share::Fork(9)), ..Scenario::spawn("root", "c") };
    play.must(Request::Spawn(Spawn { collect: Collect::Detached, ..fork }));
    assert_eq!(count(&play, "c1", "FACT-1"), 1);
    let agents = play.world().agents();
    let child = agents.find(&name("c1")).and_then(|ix| agents.living(ix)).unwrap();
    let recorded =
        child.progress.window.headers().iter().filter(|header| matches!(header.tie, Tie::Shared(_)));
    assert_eq!(recorded.count(), 0, "nobody told it anything");
    play.must(Request::Refresh(Refresh { agent: name("c1"), replace: true }));
    assert_eq!(count(&play, "c1", "FACT-1"), 1);
}

/// P15: only the named agents receive it, by reference and with the name of the agent that knows it.
#[test]
fn p15_a_broadcast_reaches_those_who_are_named() {
    let mut play = busy();
    for id in ["b1", "b2", "b3"] {
        play.must(spawn(id, Share::Goal));
    }
    let (from, to, categories) = (name("root"), vec![name("b1"), name("b2")], vec![Category::Context]);
    let broadcast = Request::Broadcast(Broadcast { from, to, categories });
    play.must(broadcast.clone());
    play.must(broadcast);
    let seen = |agent| count(&play, agent, "[background: what root knows]\nFACT-1 stays true.");
    assert_eq!([seen("b1"), seen("b2"), seen("b3")], [1, 1, 0]);
    assert_eq!(count(&play, "b1", "Its task: Grow."), 0);
    let stored = events(&play).iter().filter(|event| format!("{event:?}").contains("FACT-1")).count();
    assert_eq!(stored, 1, "told by reference");
}

/// P15: an agent's own texts and results are private: no broadcast includes them, and an agent cannot share its first
/// message.
#[test]
fn p15_a_broadcast_takes_nothing_that_is_private() {
    let mut play = busy();
    play.must(spawn("b1", Share::Goal));
    for category in [Category::Dialog, Category::Output, Category::Error, Category::Internal] {
        let (from, to, categories) = (name("root"), vec![name("b1")], vec![category]);
        let refusal = refused(&mut play, person(Request::Broadcast(Broadcast { from, to, categories })));
        assert_eq!(refusal, Refusal::CategoryNotAllowed { category });
    }
    let (from, to) = (name("root"), vec![name("nobody")]);
    let unknown = Request::Broadcast(Broadcast { from, to, categories: vec![Category::Context] });
    assert!(matches!(refused(&mut play, person(unknown)), Refusal::UnknownAgent { .. }));
    let (from, to) = (name("root"), vec![name("b1")]);
    let stolen = Request::Broadcast(Broadcast { from, to, categories: vec![Category::Context] });
    let by = Actor::Agent(name("b1"));
    assert!(matches!(play.ask_as(by, stolen), Err(Refusal::NotYours { .. })));
}

/// A fork continues from its parent's last turns, each whole, without the current one.
#[test]
fn a_forked_child_continues_from_whole_turns() {
    let mut play = busy();
    play.run("said #3 SAID-2. | read {}\ndone #4");
    play.run("said #5 SAID-3. | spawn_agent {\"agent\":\"b\",\"goal\":\"Go on.\",\"id\":\"b1\",\"share\":{\"fork\":1}}");
    let texts: Vec<String> = packet(&play, "b1").into_iter().map(|(_, text)| text).collect();
    let [first, fact, letter, said, result] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(first.contains("Your task: Go on."), "{first}");
    // Messages before the turn were read in it.
    assert_eq!((fact.as_str(), letter.as_str()), ("FACT-1 stays true.", "DIALOG-1 from a person."));
    assert_eq!((said.as_str(), result.as_str()), ("SAID-2.", "ok"));
}

/// Messages that a caller of the library gives a child are in its first packet; Spinney's own categories are refused.
#[test]
fn given_messages_are_in_the_first_packet() {
    let mut play = busy();
    let given = |category| GivenMessage { category, body: Body::text("GIVEN-1") };
    let born = |category| Spawn {
        messages: vec![given(category)],
        id: Some(name("b1")),
        ..Scenario::spawn("root", "b")
    };
    for category in [Category::System, Category::Internal, Category::Output] {
        let refusal = refused(&mut play, person(Request::Spawn(born(category))));
        assert_eq!(refusal, Refusal::CategoryNotAllowed { category });
    }
    play.must(Request::Spawn(born(Category::Context)));
    assert_eq!(
        packet(&play, "b1").iter().map(|(_, text)| text.as_str()).skip(1).collect::<Vec<_>>(),
        ["GIVEN-1"]
    );
}

/// P16 (decision part): a bad id, itself as parent or an existing id is refused, and nothing changes.
#[test]
fn a_bad_spawn_changes_nothing() {
    let mut play = busy();
    for bad in ["../x", "", "a/b", "x y", "\0", "."] {
        assert!(bad.parse::<AgentId>().is_err(), "{bad:?}");
    }
    let args = "{\"agent\":\"b\",\"goal\":\"Go.\",\"id\":\"../x\"}";
    let before = play.world().agents().len();
    play.run(&format!(
        "said #3 Hm. | spawn_agent {args} | spawn_agent {{\"agent\":\"b\",\"goal\":\"Go.\",\"spite\":1}}"
    ));
    assert_eq!(play.world().agents().len(), before);
    let taken = Request::Spawn(Spawn { id: Some(name("root")), ..Scenario::spawn("root", "b") });
    assert_eq!(refused(&mut play, person(taken)), Refusal::DuplicateId { agent: name("root") });
    let orphan = Request::Spawn(Spawn { id: Some(name("x")), ..Scenario::spawn("x", "b") });
    assert!(matches!(refused(&mut play, person(orphan)), Refusal::UnknownAgent { .. }));
}

/// P18: a request about one agent changes only that one, and an unknown agent is an error.
#[test]
fn p18_what_is_meant_for_one_agent_changes_that_one_only() {
    let mut play = busy();
    play.must(spawn("b1", Share::Goal));
    play.must(spawn("b2", Share::Goal));
    let others = |play: &Scenario| [packet(play, "root"), packet(play, "b2")];
    let before = others(&play);
    assert_eq!(play.must(send("b1", Category::Dialog, "only you")), Reply::Send(SendReply::Delivered));
    play.run("said #4 I read. | read {}\ndone #6");
    assert_eq!(count(&play, "b1", "only you"), 1);
    assert_eq!(others(&play), before);
    let unknown = person(Request::Refresh(Refresh { agent: name("nobody"), replace: false }));
    assert!(matches!(refused(&mut play, unknown), Refusal::UnknownAgent { .. }));
}

/// P11 (decision part): a note takes as much of the parent's window as its text needs, and is dropped when there is no
/// room.
#[test]
fn a_note_is_small_and_gives_way() {
    let mut play = Scenario::grow_as(FIXTURE, |definition| windows(definition, [("root", 700), ("b", 500)]));
    play.must(spawn("b1", Share::Goal));
    let notes = |play: &Scenario| {
        let agents = play.world().agents();
        let root = agents.find(&name("root")).and_then(|ix| agents.living(ix));
        root.map_or(0, |root| root.progress.window.used_by(Category::Internal))
    };
    assert!((1..120).contains(&notes(&play)), "{}", notes(&play));
    play.run("said #1 Hm. | read {}\ndone #3");
    for (place, id) in ["b2", "b3", "b4", "b5"].into_iter().enumerate() {
        play.must(spawn(id, Share::Goal));
        play.run(&format!("said #{} Hm. | read {{}}\ndone #{}", 4 + 3 * place, 6 + 3 * place));
    }
    assert_eq!(play.view("root").status.to_string(), "running");
}
