//! A thread that several agents share: its members, what each receives, and how much of it a packet holds.

use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::definition::{Definition, Share, WindowSpec};
use spinney_kernel::primitives::{Body, Category, Envelope, RoleName, TokenCount};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Cancel, Collect, Request, Send, Spawn};
use spinney_testkit::Scenario;

use crate::observed::{events, name};

const FIXTURE: &str = "root $9.00 turns=20 / b later turns=20 / c later turns=20";

fn windows(definition: &mut Definition) {
    for (role, size) in [("root", 100_000), ("b", 8_000), ("c", 4_000)] {
        let role = definition.roles.get_mut(&name::<RoleName>(role)).and_then(|role| role.turns.as_mut());
        role.unwrap().window = Some(WindowSpec { size: Some(size), ..WindowSpec::default() });
    }
}

fn spawn(parent: &str, role: &str, share: Share) -> Request {
    let (id, share) = (Some(name(&format!("{role}1"))), Some(share));
    Request::Spawn(Spawn { id, share, collect: Collect::Detached, ..Scenario::spawn(parent, role) })
}

fn fact(to: &str, text: &str) -> Request {
    let envelope = Envelope { category: Category::Context, ..Envelope::default() };
    let body =
        Body { tokens: Some(TokenCount::exact(300)), ..Body::text(format!("{text} {}", "w".repeat(400))) };
    Request::Send(Send { envelope, ..Send::plain(name(to), body) })
}

fn cancel(agent: &str) -> Request {
    Request::Cancel(Cancel { agent: name(agent), reason: "enough".to_owned() })
}

/// How many messages of an agent's window have this text, without the digest.
fn count(play: &Scenario, agent: &str, text: &str) -> usize {
    let mut contexts = Contexts::new(play.world().tree());
    events(play).iter().for_each(|event| contexts.apply(event));
    let agent = name(agent);
    let whole =
        crate::observed::window(&contexts, &agent).filter(|message| !matches!(message, Message::Folded(_)));
    whole.filter(|message| message.text().contains(text)).count()
}

/// Every change of a thread: the agent, whether it joined, and the new limit.
fn changes(play: &Scenario) -> Vec<(String, bool, Option<u64>)> {
    let change = |event: Event| {
        if let Event::ThreadJoined { agent, bound, .. } = event {
            return Some((agent.to_string(), true, bound));
        }
        let Event::ThreadLeft { agent, bound, .. } = event else { return None };
        Some((agent.to_string(), false, bound))
    };
    events(play).into_iter().filter_map(change).collect()
}

fn bound(play: &Scenario, agent: &str) -> Option<u64> {
    let world = play.world();
    world.agents().find(&name(agent)).and_then(|ix| world.threads().bound(ix))
}

/// P14 (decision part): the limit of a shared thread is the smallest context share of its members, updated whenever one
/// joins or leaves, with one event each time. No own window changes.
#[test]
fn the_bound_of_a_thread_follows_its_readers() {
    let mut play = Scenario::grow_as(FIXTURE, windows);
    play.must(spawn("root", "b", Share::Thread));
    assert_eq!((bound(&play, "root"), bound(&play, "b1")), (Some(2_400), Some(2_400)));
    play.must(spawn("root", "c", Share::Thread));
    for agent in ["root", "b1", "c1"] {
        assert_eq!((agent, bound(&play, agent)), (agent, Some(1_200)));
    }
    play.must(cancel("c1"));
    play.run("done #3");
    assert_eq!(bound(&play, "b1"), Some(2_400));
    play.must(cancel("b1"));
    play.run("done #2");
    assert_eq!(bound(&play, "root"), None);
    let recorded = |agent: &str, joined, bound| (agent.to_owned(), joined, bound);
    assert_eq!(
        changes(&play),
        [
            recorded("b1", true, Some(2_400)),
            recorded("c1", true, Some(1_200)),
            recorded("c1", false, Some(2_400)),
            recorded("b1", false, None),
        ]
    );
    let sizes = |event: Event| {
        let Event::WindowSet { agent, size, .. } = event else { return None };
        Some((agent.to_string(), size))
    };
    let sizes: Vec<(String, u64)> = events(&play).into_iter().filter_map(sizes).collect();
    let size = |agent: &str, size| (agent.to_owned(), size);
    assert_eq!(sizes, [size("root", 100_000), size("b1", 8_000), size("c1", 4_000)]);
}

/// P14 (decision part): no packet holds more of a thread than its smallest member has room for; the rest of a window is
/// not affected, and the digest mentions what is left out.
#[test]
fn no_reader_sees_more_of_a_thread_than_the_smallest_window_fits() {
    let mut play = Scenario::grow_as(FIXTURE, windows);
    play.must(spawn("root", "b", Share::Thread));
    play.must(spawn("root", "c", Share::Thread));
    let facts: Vec<String> = (1..=5).map(|number| format!("FACT-{number}.")).collect();
    for text in &facts {
        play.must(fact("root", text));
    }
    play.must(Request::Send(Send::plain(name("root"), Body::text("DIALOG-1."))));
    // A turn with a tool, so each agent has a new packet.
    play.run(
        "said #1 Hm. | read {}\ndone #4\nsaid #2 Hm. | read {}\ndone #6\nsaid #3 Hm. | read {}\ndone #8",
    );
    for agent in ["root", "b1", "c1"] {
        let seen: Vec<usize> = facts.iter().map(|text| count(&play, agent, &format!("{text} w"))).collect();
        // Each has 300 tokens and some overhead: three fit in 1,200, and two in the 80 % it is cut to.
        assert_eq!((agent, seen), (agent, vec![0, 0, 0, 1, 1]));
        let window =
            |event: &Event| matches!(event, Event::ContextCut { agent: of, .. } if *of == name(agent));
        assert_eq!((agent, events(&play).iter().filter(|event| window(event)).count()), (agent, 1));
    }
    assert_eq!(count(&play, "root", "DIALOG-1."), 1);
}

/// A member receives the thread's context messages once, when it joins and as they arrive; a member's child joins the
/// same thread. Nothing else is shared, and nothing goes up.
#[test]
fn a_reader_receives_the_threads_messages_and_nothing_else() {
    let mut play = Scenario::grow(FIXTURE);
    play.must(fact("root", "FACT-1."));
    play.must(Request::Send(Send::plain(name("root"), Body::text("DIALOG-1."))));
    play.must(spawn("root", "b", Share::Thread));
    play.must(fact("b1", "OWN-1."));
    play.must(spawn("b1", "c", Share::Thread));
    play.must(fact("root", "FACT-2."));
    for agent in ["b1", "c1"] {
        for (text, times) in [("FACT-1.", 1), ("FACT-2.", 1), ("DIALOG-1.", 0), ("Grow.", 0)] {
            assert_eq!((agent, text, count(&play, agent, text)), (agent, text, times));
        }
    }
    assert_eq!((count(&play, "b1", "OWN-1."), count(&play, "c1", "OWN-1.")), (1, 0));
    assert_eq!(count(&play, "root", "OWN-1."), 0);
}

/// An agent with only a goal or a briefing is not a member.
#[test]
fn only_who_asked_for_a_thread_reads_it() {
    let mut play = Scenario::grow(FIXTURE);
    play.must(spawn("root", "b", Share::Briefing));
    play.must(spawn("root", "c", Share::Goal));
    play.must(fact("root", "FACT-1."));
    assert_eq!((count(&play, "b1", "FACT-1."), count(&play, "c1", "FACT-1.")), (0, 0));
    assert_eq!(changes(&play), []);
}
