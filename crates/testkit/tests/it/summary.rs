//! A summary that an agent's own model writes before its window is cut: a call like any other, but not a turn, and it
//! never blocks one.

use std::sync::Arc;

use insta::assert_snapshot;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::context::{Contexts, Message, Packet};
use spinney_kernel::definition::Share;
use spinney_kernel::primitives::{AgentId, Body, CallId, Category, Envelope, limit};
use spinney_kernel::record::{Event, ExitKind, NoSummary, Summary, Work};
use spinney_kernel::rules::request::{Charge, Collect, Refresh, Request, Send, Spawn};
use spinney_kernel::world::TreeState;
use spinney_testkit::Scenario;
use spinney_testkit::fixture::NANOS_PER_TOKEN;

use crate::observed::{events, name};

const SIZE: u64 = 1_600;

/// A tree whose agents with turns have summarized windows.
fn grow(fixture: &str) -> Scenario {
    let turns = |turns: &str| format!("turns={turns} summed={SIZE}");
    let fixture = if fixture.contains("summed") {
        fixture.to_owned()
    } else {
        let words =
            fixture.split(' ').map(|word| word.strip_prefix("turns=").map_or_else(|| word.to_owned(), turns));
        words.collect::<Vec<_>>().join(" ")
    };
    Scenario::grow(&fixture)
}

/// An agent's open summary call.
fn summary_of(play: &Scenario, agent: &str) -> Option<CallId> {
    let ix = play.world().agents().find(&name(agent))?;
    let is_it = |work: &Work| matches!(work, Work::Model(_)) && !work.is_turn();
    let mut calls = play.world().calls().all();
    calls.find(|(_, call)| call.agent == ix && is_it(&call.work)).map(|(id, _)| id)
}

/// Runs an agent's turns until it asks for a summary; the log has what happened since its last answer.
fn until_full(play: &mut Scenario, agent: &str) -> CallId {
    for _ in 0..200 {
        if let Some(call) = summary_of(play, agent) {
            return call;
        }
        play.clear_log();
        step(play, agent);
    }
    panic!("the window of {agent} never got full: {}", play.log());
}

/// Ends an agent's oldest open call successfully: a turn calls a tool, a tool returns.
fn step(play: &mut Scenario, agent: &str) {
    let ix = play.world().agents().find(&name(agent)).unwrap();
    let (id, call) = play.world().calls().all().find(|(_, call)| call.agent == ix).unwrap();
    let line = match call.work {
        Work::Model(_) => format!("said #{} {} | read {{}}", id.0, "looking ".repeat(15)),
        Work::Tool(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => format!("done #{}", id.0),
    };
    play.run(&line);
}

fn contexts(play: &Scenario) -> Contexts {
    let mut contexts = Contexts::new(play.world().tree());
    events(play).iter().for_each(|event| contexts.apply(event));
    contexts
}

/// An agent's digest of what was left out.
fn recorded(play: &Scenario, agent: &str) -> String {
    let messages = contexts(play).packet(&name(agent), 0).unwrap_or_default().messages;
    messages.get(1).map(|message| message.text().into_owned()).unwrap_or_default()
}

fn asked(play: &Scenario, agent: &str) -> Packet {
    contexts(play).summary_packet(&name(agent), 0).unwrap_or_default()
}

/// How each cut so far is described.
fn cuts(play: &Scenario) -> Vec<Option<Summary>> {
    let cut =
        |event: &Event| if let Event::ContextCut { summary, .. } = event { Some(*summary) } else { None };
    events(play).iter().filter_map(cut).collect()
}

/// Whether an agent's next turn was requested.
fn has_its_turn(play: &Scenario, agent: &str) -> bool {
    let ix = play.world().agents().find(&name(agent)).unwrap();
    play.world().calls().all().any(|(_, call)| call.agent == ix && call.work.is_turn())
}

fn send(to: &str, text: String) -> Request {
    let envelope = Envelope { category: Category::Context, ..Envelope::default() };
    Request::Send(Send { envelope, ..Send::plain(name(to), Body::text(text)) })
}

#[test]
fn a_full_window_is_summed_up_before_it_is_cut() {
    let mut play = grow("root $9.00 turns=20");
    let call = until_full(&mut play, "root");
    play.run(&format!("said #{} I looked four times and found nothing.", call.0));
    assert_snapshot!(play.log(), @"
    #16 ended: done, spent tool_calls=1
    #17 summary of 8 asked by root
    #17 started: held $0.064 tokens=1443
    #17 ended: done, spent $0.038 tokens=38
    root cut: 8 messages, told by the summary in event 54
    #18 asked by root
    #18 started: held $0.10 tokens=1374 steps=1
    ");
    assert_snapshot!(recorded(&play, "root"), @"
    Earlier steps, summed up by you:
    I looked four times and found nothing.
    ");
}

/// The text is part of the rules: every hold counts it.
#[test]
fn the_summary_request_follows_the_dropped_messages_without_tools() {
    let mut play = grow("root $9.00 turns=20");
    until_full(&mut play, "root");
    let Packet { messages, tools, .. } = asked(&play, "root");
    assert_eq!(tools.len(), 0);
    let kinds: Vec<&str> = messages.iter().map(|message| kind(message)).collect();
    assert_eq!(kinds.first(), Some(&"system"));
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "said").count(),
        kinds.iter().filter(|kind| **kind == "result").count()
    );
    assert_snapshot!(messages.last().unwrap().text(), @"Your window is full and the steps above will leave it. Sum them up for yourself, in at most 64 characters: goals, facts found, decisions, what failed and is not to be tried again, files by name. Answer with the summary alone; call no tool.");
}

const fn kind(message: &Message) -> &'static str {
    match message {
        Message::System(_) => "system",
        Message::Heard { .. } => "heard",
        Message::Said { .. } => "said",
        Message::Result { .. } => "result",
        Message::Shared { .. } => "told",
        Message::Note(_) => "note",
        Message::Mismatch(_) | Message::Repeated(_) => "mismatch",
        Message::Folded(_) => "folded",
    }
}

#[test]
fn a_summary_is_no_turn_and_is_paid_by_its_agent() {
    let mut play = grow("root $9.00 turns=20");
    let call = until_full(&mut play, "root");
    let before = play.view("root");
    play.run(&format!("said #{} Nothing yet.", call.0));
    let after = play.view("root");
    let spent = after.spent.minus(&before.spent);
    assert_snapshot!(format!("{spent:?}"), @"Amounts([12000000, 12, 0, 0, 0])");
    let agent =
        play.world().agents().find(&name("root")).and_then(|ix| play.world().agents().living(ix)).unwrap();
    let turns = events(&play)
        .iter()
        .filter(|event| matches!(event, Event::CallAsked { work, .. } if work.is_turn()))
        .count();
    assert_eq!(agent.progress.turns as usize + 1, turns);
    assert!(has_its_turn(&play, "root"));
}

/// An automatic checkpoint is made when the turn is requested, and not a second time for the summary before it.
#[test]
fn a_summary_before_the_eleventh_turn_makes_no_checkpoint() {
    let after_ten = |size: u64| {
        let mut play = grow(&format!("root $9.00 turns=20 summed={size}"));
        let call = until_full(&mut play, "root");
        let ix = play.world().agents().find(&name("root")).unwrap();
        (play.world().agents().agent(ix).progress.turns == 10).then_some((play, call))
    };
    let (mut play, call) = (1_500..4_000).step_by(50).find_map(after_ten).unwrap();
    let made = |play: &Scenario| {
        let is_made = |event: &&Event| matches!(event, Event::CheckpointMade { .. });
        events(play).iter().filter(is_made).count()
    };
    assert_eq!(made(&play), 0);
    play.run(&format!("said #{} Nothing yet.", call.0));
    assert_eq!(made(&play), 1);
}

/// Whatever becomes of the call, lines describe the cut, the event says why, and the agent has its turn.
#[test]
fn without_a_summary_lines_replace_the_cut_and_the_agent_continues() {
    let ends: [(&str, NoSummary); 6] = [
        ("failed #N invalid\nfailed #N invalid", NoSummary::Failed),
        ("said #N", NoSummary::Empty),
        ("said #N Let me see. | read {}", NoSummary::Tools),
        ("redirect root Elsewhere. stop\nfailed #N stopped", NoSummary::Failed),
        ("lost #N\nlost #N\nlost #N\nlost #N\nlost #N\nlost #N\nlost #N\nlost #N\nlost #N", NoSummary::Lost),
        (
            "pause root\nfailed #N rate_limit after=1s\npass 2s\nredirect root Elsewhere. stop",
            NoSummary::Cancelled,
        ),
    ];
    for (script, why) in ends {
        let mut play = grow("root $99.00 turns=20");
        let call = until_full(&mut play, "root");
        play.run(&script.replace('N', &call.0.to_string()));
        assert_eq!(cuts(&play), [Some(Summary::Not(why))], "{script}\n{}", play.log());
        assert!(recorded(&play, "root").starts_with("Earlier steps in short"), "{script}");
        assert!(has_its_turn(&play, "root"), "{script}\n{}", play.log());
        assert_eq!(summary_of(&play, "root"), None);
    }
}

/// The turn comes first: no summary is requested after which the turn would not be affordable.
#[test]
fn a_summary_that_the_turn_could_not_be_paid_after_is_not_asked_for() {
    let mut rich = grow("root $9.00 turns=20");
    let call = until_full(&mut rich, "root");
    let held = rich.world().call(call).unwrap().held();
    let spent = rich.view("root").spent;
    // Enough for the summary or the turn, each with its hold, but not for both.
    let nanos = spent.get(Resource::Cost) + 100 * NANOS_PER_TOKEN;
    assert!(held.get(Resource::Cost) > 0);
    let mut play = Scenario::grow_as(&format!("root $9.00 turns=20 summed={SIZE}"), |definition| {
        definition.budget.limit = definition.budget.limit.with(Resource::Cost, nanos);
    });
    for _ in 0..200 {
        if !cuts(&play).is_empty() {
            break;
        }
        step(&mut play, "root");
    }
    assert_eq!(cuts(&play), [Some(Summary::Not(NoSummary::Budget))], "{}", play.log());
    assert!(has_its_turn(&play, "root"));
    assert_eq!(play.world().state(), TreeState::Running);
}

/// A summary that is refused while it waits ends no agent and halts nothing.
#[test]
fn a_summary_that_is_refused_for_budget_neither_ends_its_agent_nor_halts_the_tree() {
    let mut play = grow("root $9.00 turns=20 reserve=0% / b later turns=20");
    let call = until_full(&mut play, "root");
    // It fails, and while it waits for its retry the money is spent elsewhere.
    let spent = play.view("root").spent.get(Resource::Cost);
    let left = 9_000_000_000 - spent - 110 * NANOS_PER_TOKEN;
    play.run(&format!("pause root\nlost #{}", call.0));
    let amounts = Amounts::cost(left);
    play.must(Request::Charge(Charge { agent: name("root"), amounts, note: String::new() }));
    play.run("unpause root");
    assert_eq!(cuts(&play), [Some(Summary::Not(NoSummary::Refused))], "{}", play.log());
    // The turn halts the tree, as it would have without a summary.
    let halt = play.world().halted().and_then(|halt| play.world().call(halt.call));
    assert!(halt.is_some_and(|call| call.work.is_turn()), "{}", play.log());
}

/// What arrived meanwhile and is cut too is described by lines after the summary.
#[test]
fn lines_after_a_summary_cover_the_rest() {
    let mut play = grow("root $9.00 turns=20");
    let call = until_full(&mut play, "root");
    let covered = asked(&play, "root").messages.len();
    let fact = format!("FACT {}", "x".repeat(400));
    play.must(send("root", fact));
    play.run(&format!("said #{} I looked.", call.0));
    assert!(matches!(cuts(&play)[..], [Some(Summary::By(_))]), "{}", play.log());
    let recorded = recorded(&play, "root");
    assert!(recorded.starts_with("Earlier steps, summed up by you:\nI looked.\nNot in it ("), "{recorded}");
    let Some(Event::ContextCut { left_out, .. }) =
        events(&play).into_iter().find(|event| matches!(event, Event::ContextCut { .. }))
    else {
        panic!()
    };
    let gone: u32 = left_out.iter().map(|(_, left)| left.messages).sum();
    assert!(gone as usize > covered - 2, "{gone} went and {covered} were shown");
}

/// A later cut also covers the previous summary; if the later one fails, the previous one stays and lines follow.
#[test]
fn a_later_summary_is_of_the_former_one_too() {
    let mut play = grow("root $9.00 turns=30");
    let call = until_full(&mut play, "root");
    play.run(&format!("said #{} SUMMARY-1.", call.0));
    let call = until_full(&mut play, "root");
    let shown = asked(&play, "root").messages;
    assert_eq!(shown[1].text(), "Earlier steps, summed up by you:\nSUMMARY-1.");
    let mut other = play.clone();
    play.run(&format!("said #{} SUMMARY-2.", call.0));
    assert_eq!(recorded(&play, "root"), "Earlier steps, summed up by you:\nSUMMARY-2.");
    other.run(&format!("failed #{0} invalid\nfailed #{0} invalid", call.0));
    assert!(
        recorded(&other, "root").starts_with("Earlier steps, summed up by you:\nSUMMARY-1.\nNot in it ("),
        "{}",
        recorded(&other, "root")
    );
}

/// If shared messages are removed while the summary is written, the summary is outdated and not used.
#[test]
fn a_summary_of_what_was_replaced_meanwhile_is_not_used() {
    let mut play = grow("root $99.00 turns=20 / b later turns=20");
    play.must(send("root", "FACT-1 holds.".to_owned()));
    let (id, share) = (Some(name("b")), Some(Share::Briefing));
    play.must(Request::Spawn(Spawn {
        id,
        share,
        collect: Collect::Detached,
        ..Scenario::spawn("root", "b")
    }));
    let call = until_full(&mut play, "b");
    play.must(Request::Refresh(Refresh { agent: name("b"), replace: true }));
    play.run(&format!("said #{} FACT-1 holds.", call.0));
    assert_eq!(cuts(&play), [Some(Summary::Not(NoSummary::Changed))], "{}", play.log());
    assert!(!recorded(&play, "b").contains("summed up"));
    assert!(has_its_turn(&play, "b"));
}

/// A message that arrives during the summary may change which messages are cut: then something stays that the summary
/// covers, and lines describe everything that is cut.
#[test]
fn a_summary_of_something_that_stays_is_not_used() {
    let full = || {
        let mut play = grow("root $99.00 turns=20");
        play.must(send("root", "x".repeat(390)));
        play.run("send root One.\nsend root Two.\nsend root Three.");
        let call = until_full(&mut play, "root");
        (play, call)
    };
    let (mut same, call) = full();
    same.run(&format!("said #{} Three letters.", call.0));
    assert!(matches!(cuts(&same)[..], [Some(Summary::By(_))]), "{}", same.log());
    let (mut other, call) = full();
    other.must(send("root", "y".repeat(20)));
    other.run(&format!("said #{} Three letters.", call.0));
    assert_eq!(cuts(&other), [Some(Summary::Not(NoSummary::Changed))], "{}", other.log());
    let recorded = recorded(&other, "root");
    assert!(recorded.starts_with("Earlier steps in short"), "{recorded}");
}

/// A summary that is too long is cut, and says so.
#[test]
fn a_summary_that_is_too_long_is_cut_and_says_so() {
    let mut play = grow("root $9.00 turns=20");
    let call = until_full(&mut play, "root");
    play.run(&format!("said #{} {}", call.0, "word ".repeat(100)));
    let recorded = recorded(&play, "root");
    assert!(recorded.ends_with("… (cut)"), "{recorded}");
    let room = SIZE / 10;
    assert!(recorded.len() as u64 + limit::MESSAGE_TOKENS.bound() <= room, "{} of {room}", recorded.len());
}

/// A summary waits while its agent is paused, and ends with it.
#[test]
fn a_summary_waits_with_its_agent_and_ends_with_it() {
    let mut play = grow("root $9.00 turns=20");
    let call = until_full(&mut play, "root");
    play.run(&format!("pause root\nlost #{}", call.0));
    assert_eq!(summary_of(&play, "root"), Some(call));
    assert!(!play.world().call(call).unwrap().is_running());
    let mut other = play.clone();
    play.run(&format!("unpause root\nsaid #{} Nothing yet.", call.0));
    assert!(matches!(cuts(&play)[..], [Some(Summary::By(_))]), "{}", play.log());
    other.run("cancel root enough");
    assert_eq!(other.world().state(), TreeState::Ended(ExitKind::Cancelled));
    assert_eq!(cuts(&other), []);
}

/// Between two cuts each packet begins with the previous one, with or without summaries.
#[test]
fn packets_share_their_beginning_between_two_cuts() {
    let mut play = grow("root $99.00 turns=60");
    let agent: AgentId = name("root");
    let (mut packet, mut grown): (Arc<Vec<Arc<Message>>>, u32) = (Arc::default(), 0);
    for _ in 0..60 {
        let before = cuts(&play).len();
        match summary_of(&play, "root") {
            Some(call) => drop(play.run(&format!("said #{} So far nothing.", call.0))),
            None => step(&mut play, "root"),
        }
        let now = contexts(&play).packet(&agent, 0).unwrap_or_default().messages;
        if cuts(&play).len() == before {
            assert_eq!(now[..packet.len()], packet[..]);
            grown += u32::from(now.len() > packet.len());
        }
        packet = now;
    }
    assert!(cuts(&play).len() > 2 && grown > 10, "{} cuts", cuts(&play).len());
}
