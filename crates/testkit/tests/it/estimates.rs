//! Two counts: holds take bounds, windows take estimates, and what providers report makes both better.

use spinney_kernel::budget::{Resource, Usage, Used};
use spinney_kernel::definition::{Definition, TokenCounter, WindowSpec};
use spinney_kernel::primitives::{Body, CallId, TokenCount};
use spinney_kernel::record::{Event, ModelCall, ToolAsk, Work};
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::Send;
use spinney_testkit::Scenario;

use crate::observed::{events, name};

/// Bytes of one token in these tests.
const BYTES: u64 = 4;

/// The tokens of a message in these tests.
const TOKENS: u64 = 200;

/// A tree whose models have no public tokenizer.
fn estimated(definition: &mut Definition) {
    definition.models.values_mut().for_each(|model| model.counter = TokenCounter::Estimate);
}

fn with_window(definition: &mut Definition, size: u64) {
    for role in definition.roles.values_mut() {
        let window = WindowSpec { size: Some(size), ..WindowSpec::default() };
        role.turns.iter_mut().for_each(|turns| turns.window = Some(window.clone()));
    }
}

fn grow(size: Option<u64>, change: impl FnOnce(&mut Definition)) -> Scenario {
    Scenario::grow_as("root turns=500", |definition| {
        change(definition);
        size.into_iter().for_each(|size| with_window(definition, size));
    })
}

/// A text that was counted by its bytes and estimated right.
fn text() -> Body {
    let bytes = TOKENS * BYTES;
    Body { tokens: Some(TokenCount::new(bytes, TOKENS)), ..Body::text("w".repeat(bytes as usize)) }
}

/// The model call that is open.
fn open(play: &Scenario) -> (CallId, ModelCall) {
    let calls = play.world().calls().all();
    let model = |work: &Work| if let Work::Model(work) = work { Some(work.clone()) } else { None };
    calls.filter_map(|(id, call)| Some((id, model(&call.work)?))).last().unwrap()
}

/// The open model call ends with this input and asks for a tool, which returns a text.
fn turn(play: &mut Scenario, input: u64) {
    let (call, _) = open(play);
    report(
        play,
        call,
        Used::Tokens(Usage { input, ..Usage::default() }),
        vec![ToolAsk::new("c", "read", "{}")],
    );
    let (tool, _) = play.world().calls().all().last().unwrap();
    report(play, tool, Used::NOTHING, Vec::new());
}

fn report(play: &mut Scenario, call: CallId, used: Used, asks: Vec<ToolAsk>) {
    let attempt = play.world().call(call).unwrap().attempt;
    play.report(Report::Done(Done { asks, ..Done::new(call, attempt, used, text()) }));
}

fn held(play: &Scenario) -> u64 {
    let held = |event: Event| if let Event::CallStarted { held, .. } = event { Some(held) } else { None };
    events(play).into_iter().filter_map(held).last().unwrap().get(Resource::Tokens)
}

fn cuts(play: &Scenario) -> usize {
    events(play).iter().filter(|event| matches!(event, Event::ContextCut { .. })).count()
}

/// G6 (holds): the bound is what was reported of the last packet, and the bytes that came since.
#[test]
fn a_hold_is_what_was_reported_and_the_bytes_since() {
    let mut play = grow(None, estimated);
    let (_, first) = open(&play);
    assert_eq!(first.counted_tokens, None, "nothing was reported yet");
    turn(&mut play, first.input_tokens / 3);
    let (_, second) = open(&play);
    let since = second.counted() - first.input_tokens;
    assert!(since >= 2 * TOKENS * BYTES, "an answer and a result came since: {since}");
    assert_eq!(second.input_tokens, first.input_tokens / 3 + since);
    assert_eq!(held(&play), second.input_tokens + second.output_cap);
    // Counts continue from earlier counts.
    turn(&mut play, second.input_tokens / 2);
    let (_, third) = open(&play);
    assert_eq!(third.counted() - second.counted(), since);
    assert_eq!(third.input_tokens, second.input_tokens / 2 + since);
}

/// G6 (holds): what one provider reported says nothing about another one's tokens.
#[test]
fn a_call_that_moves_to_another_model_holds_what_was_counted() {
    let mut play = grow(None, estimated);
    let (_, first) = open(&play);
    turn(&mut play, first.input_tokens / 3);
    let (call, second) = open(&play);
    play.run(&format!("failed #{} overloaded", call.0));
    let (_, moved) = open(&play);
    assert_eq!(moved.model, name("cheap"));
    assert_eq!(moved.input_tokens, second.counted());
    assert_eq!(held(&play), second.counted() + moved.output_cap);
    // The other model's own report counts from here on, and for that model alone.
    turn(&mut play, moved.input_tokens / 2);
    let (_, third) = open(&play);
    assert_eq!((third.model, third.counted_tokens), (name("m"), None));
}

/// G6 (holds): a packet that something was cut from does not extend the reported one.
#[test]
fn after_a_cut_a_hold_is_counted_again() {
    let mut play = grow(Some(4_000), estimated);
    let mut reported = 0;
    while cuts(&play) == 0 {
        let (_, work) = open(&play);
        reported = work.estimate.unwrap();
        turn(&mut play, reported);
    }
    let (_, work) = open(&play);
    assert_eq!(work.counted_tokens, None);
    assert!(work.input_tokens > reported, "{} are bytes, not tokens", work.input_tokens);
    turn(&mut play, work.estimate.unwrap());
    let (_, work) = open(&play);
    assert!(work.counted_tokens.is_some(), "and the next report counts again");
}

/// G6 (windows): a window is cut when its estimate is above its size, not when its bytes are.
#[test]
fn a_window_is_cut_by_estimates() {
    for counter in [TokenCounter::Estimate, TokenCounter::Exact] {
        let mut play = grow(Some(4_000), |definition| {
            definition.models.values_mut().for_each(|model| model.counter = counter);
        });
        let mut last = open(&play).1;
        while cuts(&play) == 0 {
            last = open(&play).1;
            let estimate = last.estimate.unwrap_or(last.input_tokens);
            turn(&mut play, estimate);
        }
        match counter {
            TokenCounter::Estimate => {
                let estimate = last.estimate.unwrap();
                assert!((3_400..=4_000).contains(&estimate), "{estimate}");
                assert!(last.counted() > 3 * estimate, "{last:?}");
            }
            // A definition that says nothing, as all older ones, decides as it always did.
            TokenCounter::Exact => assert!(last.input_tokens <= 4_000 && last.estimate.is_none()),
        }
    }
}

/// G6 (windows): if a model has twice the tokens that were estimated, its window is cut at half of the estimate.
#[test]
fn reports_correct_what_a_window_holds() {
    for (times, part) in [(1, 1), (2, 1), (2, 3)] {
        let mut play = grow(Some(4_000), estimated);
        let mut raw = 0;
        while cuts(&play) == 0 {
            let agent = play.world().agents().find(&name("root")).unwrap();
            raw = play.world().agents().agent(agent).progress.window.counted().estimate();
            turn(&mut play, raw * times / part);
        }
        let most = 4_000 * part / times;
        assert!(raw <= most && raw * 100 >= most * 80, "{raw} of {most} for {times}/{part}");
    }
}

/// A server that reports nothing useful switches nothing off.
#[test]
fn a_report_that_cannot_be_true_is_not_believed() {
    let mut play = grow(Some(4_000), estimated);
    for input in [0, 1, 7] {
        turn(&mut play, input);
        let (_, work) = open(&play);
        assert_eq!(work.counted_tokens, None, "{input}");
    }
    while cuts(&play) == 0 {
        turn(&mut play, 1);
    }
}

/// A message that is still unread when the report comes is not part of the reported packet.
#[test]
fn what_arrives_during_a_call_counts_beside_its_report() {
    let mut play = grow(None, estimated);
    let (_, first) = open(&play);
    play.must(Send::plain(name("root"), text()));
    turn(&mut play, first.input_tokens / 3);
    let (_, second) = open(&play);
    let since = second.counted() - first.input_tokens;
    assert!(since >= 3 * TOKENS * BYTES, "{since}");
    assert_eq!(second.input_tokens, first.input_tokens / 3 + since);
}

/// Each call's end has what the provider reported; trees of older rules never had it.
#[test]
fn the_end_of_a_call_has_the_reported_input() {
    let reported = |play: &Scenario| {
        let input = |event: Event| {
            if let Event::CallEnded { input_tokens, .. } = event { input_tokens } else { None }
        };
        events(play).into_iter().filter_map(input).collect::<Vec<u64>>()
    };
    let mut play = grow(None, |_| {});
    turn(&mut play, 7);
    assert_eq!(reported(&play), [7]);
    let mut play = Scenario::grow_under(4, "root turns=500");
    turn(&mut play, 7);
    assert_eq!(reported(&play), [0_u64; 0]);
}
