//! Invalid input is refused with its name and a remedy, and the world does not change.

use spinney_kernel::budget::{Amounts, Used};
use spinney_kernel::definition::{BudgetSpec, OnLow, Refusal};
use spinney_kernel::primitives::{
    Actor, AgentId, Body, CallId, Envelope, Fault, FaultKind, ModelName, RoleName, Running, ThreadId, Time,
    TimerId, ToolName, TreeId, limit,
};
use spinney_kernel::record::{
    BreakerState as Gate, Failure, FailureCode, OnTimeout, Question, Sources, WaitFor, WaitNeed,
};
use spinney_kernel::rules::report::{Breaker, Done, Failed, Lost, Rate, RateKind, Report, Timer};
use spinney_kernel::rules::request::{
    Accepted, Answer, Ask, Cancel, Charge, Fail, Finish, Hold, HoldFor, Pause, Publish, Raise, Redirect,
    Request, Send, Spawn, Start, Unpause, Wait,
};
use spinney_kernel::rules::{InputKind, Receipt};
use spinney_kernel::world::World;
use spinney_testkit::{Scenario, fixture};

use crate::observed::{agent, events, ignored, model_call, name, person, refused, turn};

/// Texts that are not ids: empty, too long, paths, other letters.
fn no_ids() -> Vec<String> {
    let bad = [
        "",
        "../x",
        "..",
        ".",
        "a/b",
        "/a",
        "a\\b",
        "~",
        "-a",
        "_a",
        "A",
        "aB",
        "a b",
        " a",
        "a\n",
        "a\0",
        "\0",
        "é",
        "а",
        "ａ",
        "a\u{202e}",
        "a.b",
        "a:b",
        "%2e%2e",
        "CON",
        "*",
        "$HOME",
    ];
    let mut all: Vec<String> = bad.map(str::to_owned).to_vec();
    all.extend(["a".repeat(65), "a".repeat(100_000)]);
    all
}

/// Ids that could leave a folder, or be confused with another, neither parse nor decode.
#[test]
fn an_id_that_is_no_plain_name_cannot_exist() {
    for text in no_ids() {
        let shown: String = text.chars().take(20).collect();
        let json = serde_json::to_string(&text).unwrap();
        let error = text.parse::<AgentId>().unwrap_err().to_string();
        assert!(error.contains("1 to 64 characters") && error.len() < 500, "{error}");
        assert!(serde_json::from_str::<AgentId>(&json).is_err(), "{shown:?}");
        assert!(
            text.parse::<RoleName>().is_err() && serde_json::from_str::<RoleName>(&json).is_err(),
            "{shown:?}"
        );
        assert!(
            text.parse::<TreeId>().is_err() && serde_json::from_str::<TreeId>(&json).is_err(),
            "{shown:?}"
        );
    }
    for text in ["", "../x", ".", "/etc", "-x", "a b", "a\0", "é", "a\n", "a*", &"a".repeat(129)] {
        let json = serde_json::to_string(&text).unwrap();
        assert!(
            text.parse::<ModelName>().is_err() && serde_json::from_str::<ModelName>(&json).is_err(),
            "{text:?}"
        );
        assert!(
            text.parse::<ToolName>().is_err() && serde_json::from_str::<ToolName>(&json).is_err(),
            "{text:?}"
        );
        assert!(
            text.parse::<ThreadId>().is_err() && serde_json::from_str::<ThreadId>(&json).is_err(),
            "{text:?}"
        );
    }
    for text in ["0", "a", "a-b_c9", &"a".repeat(64)] {
        assert!(text.parse::<AgentId>().is_ok(), "{text:?}");
    }
    assert!("0123456789abcdef0123456789ABCDEF".parse::<TreeId>().is_err(), "one spelling per tree");
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn spawn(parent: &str, role: &str, id: &str) -> Spawn {
    Spawn { id: Some(name(id)), ..Scenario::spawn(parent, role) }
}

fn question(text: &str) -> Question {
    Question::new(text, OnTimeout::Fail)
}

fn children(agents: &[&str]) -> WaitFor {
    WaitFor::Children {
        agents: agents.iter().map(|id| name(id)).collect(),
        need: WaitNeed::All,
        sources: Sources::LeftOut,
    }
}

/// Requests about agents that never existed, have ended or are ending.
fn about_nobody() -> Vec<InputKind> {
    let mut all = Vec::new();
    for id in ["ghost", "dead", "dying"] {
        let failure = Failure { code: FailureCode::from_text("oops"), message: "why".to_owned() };
        let running = Running::Finishes;
        all.extend([
            Request::Spawn(spawn(id, "a", "x")),
            model_call(id, 1),
            Request::Wait(Wait { agent: name(id), wait: WaitFor::Message, timeout_ms: None }),
            Request::Ask(Ask { agent: name(id), question: question("Which?"), timeout_ms: None }),
            Request::Finish(Finish { agent: name(id), result: Body::text("ok") }),
            Request::Fail(Fail { agent: name(id), error: failure, partial: None }),
            Request::Pause(Pause { agent: name(id) }),
            Request::Unpause(Unpause::now(name(id))),
            Request::Cancel(Cancel { agent: name(id), reason: String::new() }),
            Request::Redirect(Redirect {
                agent: name(id),
                instruction: "on".to_owned(),
                tokens: None,
                running,
            }),
            Request::Raise(Raise { agent: name(id), add: turn(1), add_ms: 0 }),
        ]);
    }
    // A message waits for an agent that does not exist yet.
    all.extend(["dead", "dying"].map(|id| Request::Send(Send::plain(name(id), Body::text("hello")))));
    all.push(Request::Charge(Charge { agent: name("ghost"), amounts: turn(1), note: String::new() }));
    all.into_iter().map(person).collect()
}

/// Requests that only the agent itself, or only a person, may make.
fn by_the_wrong_one() -> Vec<InputKind> {
    let failure = Failure { code: FailureCode::from_text("oops"), message: "why".to_owned() };
    let start = Start::new(fixture::shared(&fixture::plants("root")));
    let (to, running) = (|| name("a"), Running::Stops);
    let mut all: Vec<InputKind> = ["root", "b", "ghost"]
        .iter()
        .flat_map(|by| {
            [
                Request::Spawn(spawn("a", "b", "x")),
                model_call("a", 1),
                Request::Wait(Wait { agent: to(), wait: WaitFor::Message, timeout_ms: None }),
                Request::Ask(Ask { agent: to(), question: question("Which?"), timeout_ms: None }),
                Request::Finish(Finish { agent: to(), result: Body::text("ok") }),
                Request::Fail(Fail { agent: to(), error: failure.clone(), partial: None }),
            ]
            .map(|request| agent(by, request))
        })
        .collect();
    all.extend(
        [
            Request::Start(start),
            Request::Charge(Charge { agent: to(), amounts: turn(1), note: String::new() }),
            Request::Raise(Raise { agent: to(), add: turn(1), add_ms: 0 }),
            Request::Answer(Answer::new(CallId(1), "yes")),
            Request::Redirect(Redirect { agent: to(), instruction: "on".to_owned(), tokens: None, running }),
            Request::Cancel(Cancel { agent: to(), reason: String::new() }),
            Request::Pause(Pause { agent: to() }),
        ]
        .map(|request| agent("a", request)),
    );
    all.push(agent("dead", Request::Send(Send::plain(to(), Body::text("boo")))));
    all.push(agent("ghost", Request::Send(Send::plain(to(), Body::text("boo")))));
    all
}

/// The envelope of a message that was forwarded too often.
fn spent() -> Envelope {
    Envelope { topic: Some(name("news")), ttl: Some(0), ..Envelope::default() }
}

/// Requests with wrong texts, numbers or names.
fn malformed() -> Vec<InputKind> {
    let (note, long) = (text(limit::NOTE_BYTES_MAX + 1), text(limit::TEXT_BYTES_MAX + 1));
    let failure = |code: &str| Failure { code: FailureCode::from_text(code), message: "why".to_owned() };
    let answer = OnTimeout::answer(long.clone());
    let downgrade =
        |model: &str| BudgetSpec { on_low: Some(OnLow::Downgrade(name(model))), ..BudgetSpec::default() };
    let call = |model: &str| HoldFor::Model { model: Some(name(model)), input_tokens: 1, output_cap: None };
    let (running, a) = (Running::Finishes, || name("a"));
    let all = [
        Request::Start(Start::new(fixture::shared(&fixture::plants("root")))),
        Request::Spawn(Spawn { goal: " \n\t".to_owned(), ..spawn("root", "a", "x") }),
        Request::Spawn(Spawn { goal: long.clone(), ..spawn("root", "a", "x") }),
        Request::Spawn(spawn("root", "ghost", "x")),
        Request::Spawn(Spawn { model: Some(name("ghost")), ..spawn("root", "a", "x") }),
        Request::Spawn(Spawn { budget: downgrade("ghost"), ..spawn("root", "a", "x") }),
        Request::Hold(Hold { agent: a(), effect: call("ghost") }),
        Request::Send(Send::plain(a(), Body::text(""))),
        Request::Send(Send::plain(a(), Body::text(long.clone()))),
        Request::Send(Send { envelope: spent(), ..Send::plain(a(), Body::text("hello")) }),
        Request::Publish(Publish { body: Body::text("hello"), envelope: Envelope::default() }),
        Request::Publish(Publish { body: Body::text("hello"), envelope: spent() }),
        Request::Wait(Wait { agent: a(), wait: children(&[]), timeout_ms: None }),
        Request::Wait(Wait { agent: a(), wait: children(&["ghost"]), timeout_ms: None }),
        Request::Wait(Wait { agent: a(), wait: children(&["dead"]), timeout_ms: None }),
        Request::Wait(Wait { agent: a(), wait: children(&["a"]), timeout_ms: None }),
        Request::Wait(Wait { agent: a(), wait: children(&["root"]), timeout_ms: None }),
        Request::Ask(Ask { agent: a(), question: question(&long), timeout_ms: None }),
        Request::Ask(Ask { agent: a(), question: Question::new("Q", answer), timeout_ms: None }),
        Request::Answer(Answer::new(CallId(1), long.clone())),
        Request::Answer(Answer::new(CallId(99), "yes")),
        Request::Finish(Finish { agent: a(), result: Body::text(long.clone()) }),
        Request::Fail(Fail { agent: a(), error: failure(&note), partial: None }),
        Request::Fail(Fail { agent: a(), error: failure("oops"), partial: Some(Body::text(long.clone())) }),
        Request::Cancel(Cancel { agent: a(), reason: note.clone() }),
        Request::Redirect(Redirect { agent: a(), instruction: long, tokens: None, running }),
        Request::Charge(Charge { agent: a(), amounts: Amounts::ZERO, note }),
        Request::Unpause(Unpause::now(a())),
    ];
    all.into_iter().map(person).collect()
}

/// A tree with agents of every kind: working, waiting, asking, ending and ended.
fn village() -> Scenario {
    let mut play = Scenario::grow("root $9.00 tokens=90000 / a / b\nroot / dying / deep\nroot / dead");
    play.run("ask a Which?\ncall b $0.10\ncall deep $0.10\ncall b $9.00\nfinish dead ok\ncancel dying");
    play
}

/// Every refusal of a bad request, each of which must not change the world.
pub(crate) fn all_refusals() -> Vec<Refusal> {
    let mut play = village();
    let mut recorded: Vec<Refusal> = Vec::new();
    for what in about_nobody().into_iter().chain(by_the_wrong_one()).chain(malformed()) {
        recorded.push(refused(&mut play, what));
    }
    recorded
}

/// Every invalid request is refused with its own reason, and changes nothing.
#[test]
fn a_request_that_makes_no_sense_is_refused_and_changes_nothing() {
    let mut recorded: Vec<String> = all_refusals()
        .iter()
        .map(|refusal| refusal.to_string().replace(&text(limit::NOTE_BYTES_MAX + 1), "xxx"))
        .collect();
    recorded.sort();
    recorded.dedup();
    insta::assert_snapshot!(recorded.join("\n"), @"
    `a` is not a child of `a`: name one of your own children
    `a` is not paused: nothing to unpause
    `a` may not do this to `a`: an agent acts for itself, and signals only its descendants
    `b` may not do this to `a`: an agent acts for itself, and signals only its descendants
    `dead` is not a child of `a`: name one of your own children
    `ghost` may not do this to `a`: an agent acts for itself, and signals only its descendants
    `root` is not a child of `a`: name one of your own children
    `root` may not do this to `a`: an agent acts for itself, and signals only its descendants
    agent `dead` is completed and takes no more work: spawn another one
    agent `dying` is ending and takes no more work: spawn another one
    no question 99 is open: choose one of `1`
    nothing to wait for: name at least one child, or wait for messages
    only a person may answer a question: ask one with `ask_human`
    only a person may charge outside spending: ask one with `ask_human`
    only a person may raise a ceiling: ask one with `ask_human`
    only a person may redirect an agent: ask one with `ask_human`
    only a person may start a tree: ask one with `ask_human`
    the answer has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the default answer has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the error code has 1025 bytes and the limit is 1024: shorten it or pass a reference
    the goal has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the goal is empty
    the instruction has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the message has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the message has used up its ttl: do not forward it again
    the message is empty
    the note has 1025 bytes and the limit is 1024: shorten it or pass a reference
    the partial result has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the question has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the reason has 1025 bytes and the limit is 1024: shorten it or pass a reference
    the result has 32769 bytes and the limit is 32768: shorten it or pass a reference
    the topic is empty
    the tree has already started: a tree starts once
    unknown agent `ghost`: the tree's events name every agent
    unknown model `ghost`: choose one of `m`, `cheap`, `free`
    unknown role `ghost`: choose one of `root`, `a`, `b`, `dying`, `deep`, `dead`
    ");
}

/// No request or report changes a tree that does not exist: each request gets this refusal, or may not be made by its
/// sender.
fn nothing_happens(play: &mut Scenario, refusal: &Refusal) {
    let before = play.world().clone();
    for what in about_nobody().into_iter().chain(malformed()).chain(by_the_wrong_one()) {
        if matches!(&what, InputKind::Request { by: Actor::PERSON, request } if matches!(**request, Request::Start(_)))
        {
            continue;
        }
        let recorded = refused(play, what);
        let other = matches!(recorded, Refusal::PersonOnly { .. } | Refusal::NotYours { .. });
        assert!(recorded == *refusal || other, "{recorded:?}");
    }
    all_reports().into_iter().for_each(|report| ignored(play, report));
    assert_eq!(play.world(), &before);
}

/// Before the tree starts no agent exists, and no report applies.
#[test]
fn before_the_start_everything_is_refused_or_ignored() {
    let mut play = Scenario::seed();
    nothing_happens(&mut play, &Refusal::TreeNotStarted);
    assert_eq!(play.world(), &World::new(play.world().tree()));
}

/// After the root's end every request is refused, and every report, late or absurd, changes nothing.
#[test]
fn after_the_end_everything_is_refused_or_ignored() {
    let mut play = village();
    play.run("cancel root\ndone #2 $0.10\nfailed #3 stopped");
    assert!(play.world().is_over());
    nothing_happens(&mut play, &Refusal::TreeEnded);
    ignored(&mut play, Report::Breaker(Breaker { model: name("m"), breaker: Gate::Open }));
    ignored(
        &mut play,
        Report::Rate(Rate { model: name("m"), until: Time(9_000_000), cause: RateKind::Pause }),
    );
}

/// A tree starts once.
#[test]
fn a_tree_starts_once() {
    let mut play = village();
    let start = Request::Start(Start::new(fixture::shared(&fixture::plants("root"))));
    assert_eq!(refused(&mut play, person(start)), Refusal::TreeStartedBefore);
}

/// Reports about calls, timers and models that do not exist, or no longer do.
fn all_reports() -> Vec<Report> {
    let (used, model) = (Used::Unknown, || name("ghost"));
    let mut reports = Vec::new();
    for (call, attempt) in [(0, 1), (1, 1), (2, 0), (2, 2), (4, 1), (99, 1), (u64::MAX, u32::MAX)] {
        let call = CallId(call);
        reports.extend([
            Report::Done(Done::new(call, attempt, used, Body::default())),
            Report::Failed(Failed { call, attempt, used, fault: Fault::new(FaultKind::Server) }),
            Report::Lost(Lost { call, attempt }),
        ]);
    }
    reports.extend([98, u64::MAX].map(|timer| Report::Timer(Timer { timer: TimerId::after(timer) })));
    reports.push(Report::Breaker(Breaker { model: model(), breaker: Gate::Open }));
    reports.push(Report::Breaker(Breaker { model: name("m"), breaker: Gate::Closed }));
    reports.push(Report::Rate(Rate { model: model(), until: Time(u64::MAX), cause: RateKind::Window }));
    reports
}

/// A report about something that ended, never existed, or is another attempt changes nothing.
#[test]
fn a_report_about_nothing_changes_nothing() {
    let mut play = village();
    all_reports().into_iter().for_each(|report| ignored(&mut play, report));
}

/// A call is settled once: further reports about it change nothing.
#[test]
fn a_call_is_settled_once() {
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("call a $0.50\ncall a $0.50");
    let done = |output| {
        let used = Used::Tokens(spinney_kernel::budget::Usage { output, ..Default::default() });
        Report::Done(Done::new(CallId(1), 1, used, Body::default()))
    };
    assert_eq!(play.report(done(200)), Receipt::Applied);
    ignored(&mut play, done(200));
    ignored(&mut play, done(100));
    let fault = Fault::new(FaultKind::Server);
    let failed = Failed { call: CallId(1), attempt: 1, fault: fault.clone(), used: Used::Unknown };
    ignored(&mut play, Report::Failed(failed));
    ignored(&mut play, Report::Lost(Lost { call: CallId(1), attempt: 1 }));
    assert_eq!(play.view("root").spent, turn(200));
    let failed = |attempt| {
        Report::Failed(Failed { call: CallId(2), attempt, fault: fault.clone(), used: Used::Unknown })
    };
    assert_eq!(play.report(failed(1)), Receipt::Applied);
    ignored(&mut play, failed(1));
    assert_eq!(play.world().call(CallId(2)).map(|call| call.attempt), Some(2), "the second attempt runs on");
}

/// A reported timer has fired, whatever our clock says, and fires once.
#[test]
fn a_timer_fires_once_and_counts_even_if_its_clock_was_fast() {
    let mut play = Scenario::grow("root / a wall=5s");
    play.run("ask a Which? timeout=3s");
    let timers: Vec<TimerId> = play.world().alarms().map(|alarm| alarm.timer).collect();
    assert_eq!(timers.len(), 2);
    for timer in timers.into_iter().rev() {
        assert_eq!(play.report(Report::Timer(Timer { timer })), Receipt::Applied);
        ignored(&mut play, Report::Timer(Timer { timer }));
    }
    assert_eq!(play.view("a").status.to_string(), "failed");
}

/// An agent's open calls and its inbox are bounded.
#[test]
fn open_calls_and_messages_are_bounded() {
    let mut play = Scenario::grow("root / a\nroot / b");
    for _ in 0..limit::OPEN_CALLS_MAX {
        play.run("ask a Which?");
    }
    let full = Refusal::OpenCallsLimit { open: limit::OPEN_CALLS_MAX, open_max: limit::OPEN_CALLS_MAX };
    for request in [
        model_call("a", 1),
        Request::Wait(Wait { agent: name("a"), wait: WaitFor::Message, timeout_ms: None }),
        Request::Ask(Ask { agent: name("a"), question: question("Which?"), timeout_ms: None }),
        Request::Spawn(spawn("a", "b", "x")),
    ] {
        assert_eq!(refused(&mut play, agent("a", request)), full);
    }
    for _ in 0..limit::INBOX_MAX {
        play.run("send b hello");
    }
    let more = Request::Send(Send::plain(name("b"), Body::text("one more")));
    let refusal = refused(&mut play, person(more));
    assert_eq!(refusal, Refusal::InboxFull { agent: name("b"), waiting: limit::INBOX_MAX });
    // A flood of messages does not prevent a person's redirect.
    let running = Running::Finishes;
    let redirect = Redirect { agent: name("b"), instruction: "on".to_owned(), tokens: None, running };
    assert_eq!(play.ask(redirect), Ok(Accepted {}));
}

/// A definition with unknown names starts no tree.
#[test]
fn a_definition_that_names_what_does_not_exist_starts_no_tree() {
    type Damage = fn(&mut spinney_kernel::definition::Definition);
    let damages: [Damage; 7] = [
        |tree| tree.entry = name("ghost"),
        |tree| tree.roles[1].model = name("ghost"),
        |tree| tree.models[0].fallback.push(name("ghost")),
        |tree| tree.budget.on_low = Some(OnLow::Downgrade(name("ghost"))),
        |tree| tree.roles[1].budget.on_low = Some(OnLow::Downgrade(name("ghost"))),
        |tree| tree.name = String::new(),
        |tree| tree.name = text(limit::NOTE_BYTES_MAX + 1),
    ];
    let mut recorded = Vec::new();
    for damage in damages {
        let mut definition = fixture::definition(&fixture::plants("root $1.00 / a"));
        damage(&mut definition);
        let mut play = Scenario::seed();
        let start = Request::Start(Start::new(definition));
        recorded.push(refused(&mut play, person(start)).to_string());
        assert_eq!(events(&play), []);
    }
    insta::assert_snapshot!(recorded.join("\n"), @"
    unknown role `ghost`: choose one of `root`, `a`
    unknown model `ghost`: choose one of `m`, `cheap`, `free`
    unknown model `ghost`: choose one of `m`, `cheap`, `free`
    unknown model `ghost`: choose one of `m`, `cheap`, `free`
    unknown model `ghost`: choose one of `m`, `cheap`, `free`
    the name is empty
    the name has 1025 bytes and the limit is 1024: shorten it or pass a reference
    ");
}
