//! Packets that are longer than their model takes.

use insta::assert_snapshot;
use spinney_kernel::record::{Event, Exit};
use spinney_testkit::Scenario;

use crate::observed::name;

/// An agent that has read something in each of three turns, and asks its model for the fourth time.
fn play(rules: u32, fixture: &str) -> Scenario {
    let mut play = Scenario::grow_under(rules, fixture);
    for turn in 0..3 {
        let (model, tool) = (2 * turn + 1, 2 * turn + 2);
        let long = "x".repeat(400);
        play.run(&format!("said #{model} Hm. | read {{\"turn\":{turn}}}\ndone #{tool} says={long}"));
    }
    play.clear_log();
    play
}

/// What the first message counts, and everything that was written last.
fn tokens(play: &Scenario) -> (u64, u64) {
    let root = play.world().agents().find(&name("root")).unwrap();
    let window = &play.world().agents().agent(root).progress.window;
    (window.headers()[0].tokens.into(), window.tokens())
}

/// L31 (context too long): the packet is cut and tried again at once, and that is a retry. A fallback gets what is left
/// if it is still too long.
#[test]
fn a_packet_that_is_too_long_is_cut_and_tried_again_once() {
    let mut play = play(5, "root $9.00 turns=20");
    let (_, before) = tokens(&play);
    play.run("failed #7 context_too_long");
    let (_, after) = tokens(&play);
    assert!(after * 100 <= before * 75, "{after} of {before}");
    play.run("failed #7 context_too_long\nsaid #7 Short.");
    assert_snapshot!(play.log(), @"
    #7 attempt failed: ContextTooLong, spent nothing
    root cut: 4 messages, #7 has 1062 in
    #7 started again (2): held $0.10 tokens=1162 steps=1 retries=1
    #7 attempt failed: ContextTooLong, spent retries=1
    #7 switched: cheap, cap 100
    #7 started again (3): held $0.01 tokens=1162 steps=1 retries=1
    #7 ended: done, spent $0.0006 tokens=6 steps=1 retries=1
    root ended: completed, spent $0.0096 tokens=15 steps=4 tool_calls=3 retries=2
    ");
}

/// L31 (context too long): without a fallback the second time is the last, and the error says what to do.
#[test]
fn the_second_time_the_agent_fails_with_the_remedy() {
    let mut play = play(5, "root $9.00 turns=20 tools=read");
    play.run("open cheap\nfailed #7 context_too_long\nfailed #7 context_too_long");
    let Some(Event::AgentEnded { exit: Exit::Failed { error }, .. }) =
        play.batches().last().unwrap().events.last()
    else {
        panic!("{}", play.log())
    };
    assert_eq!(error.code, "model_context_too_long");
    assert_snapshot!(error.message, @"the model call failed; set the model's `context` to what it takes, give the agent a smaller `window.size`, or ask for less at once");
}

/// Where only the first message is there, cutting cannot help; where no retry is left, nothing is cut in vain.
#[test]
fn what_cannot_be_cut_or_retried_fails_at_once() {
    let mut first = Scenario::grow("root $9.00 turns=20");
    first.run("open cheap\nfailed #1 context_too_long");
    let mut no_retry = play(5, "root $9.00 retries=0 turns=20");
    no_retry.run("open cheap\nfailed #7 context_too_long");
    for play in [first, no_retry] {
        assert!(play.log().contains("root ended: failed (model_context_too_long)"), "{}", play.log());
        assert!(!play.log().contains("cut: "), "{}", play.log());
    }
}

/// Trees that started under older rules decide as they did: a fallback, or the end.
#[test]
fn before_rules_5_nothing_is_cut() {
    let mut play = play(4, "root $9.00 turns=20");
    play.run("failed #7 context_too_long");
    assert!(play.log().contains("#7 switched: cheap") && !play.log().contains("cut: "), "{}", play.log());
}

/// A message that came while the model was called is not in the packet that is tried again: it stays unread.
#[test]
fn what_came_meanwhile_stays_unread() {
    let mut play = play(5, "root $9.00 turns=20");
    play.run("send root And this.\nfailed #7 context_too_long");
    let root = play.world().agents().find(&name("root")).unwrap();
    let agent = play.world().agents().agent(root);
    assert_eq!((agent.progress.window.unread(), agent.inbox.all().len()), (1, 1));
    let contexts = spinney_testkit::contexts_of(
        play.world().tree(),
        play.batches().iter().flat_map(|batch| &batch.events),
    );
    let unread: Vec<String> =
        contexts.unread(&name("root")).map(|message| message.text().into_owned()).collect();
    assert_eq!(unread, ["And this."]);
    let packet = contexts.packet(&name("root"), 0).unwrap();
    assert!(packet.messages.iter().all(|message| message.text() != "And this."), "{packet:?}");
}
