//! Agents that are programs: one call that holds nothing, model calls from outside below it, a ceiling of its own at which
//! only it waits, and one end.

use serde_json::{Value, json};
use spinney_kernel::budget::{Amounts, Ceilings, Resource, Usage, Used};
use spinney_kernel::definition::{
    Allow, BudgetSpec, Definition, KnownProgram, Lend, OnLow, ProgramCommand, ProgramSpec, Refusal, Role,
};
use spinney_kernel::primitives::{Body, CallId, Fault, FaultKind, RoleName, Running, limit};
use spinney_kernel::record::{Event, Exit, FailureCode, FollowupStart, NoSession, Outcome, WaitReason, Work};
use spinney_kernel::rules::report::{Done, Failed, FollowupStarted, Lost, Report, Resumed, Session};
use spinney_kernel::rules::request::{
    Cancel, Collect, Finish, Followup, Hold, HoldFor, HoldReply, Raise, Redirect, Send, Spawn, Withdraw,
};
use spinney_kernel::world::TreeState;
use spinney_testkit::Scenario;

use crate::observed::{events, name, outcomes, running, taken};

/// The role `coder`, whose agents are programs, below the root, which takes no turns.
fn with_program(definition: &mut Definition) {
    let role: RoleName = name("coder");
    let mut program = Role::of_program(&role, ProgramSpec::new(ProgramCommand::Known(KnownProgram::Claude)));
    program.budget = BudgetSpec { on_low: Some(OnLow::Halt), ..BudgetSpec::default() };
    definition.roles.insert(role, program);
}

fn tree(fixture: &str) -> Scenario {
    Scenario::grow_as(fixture, with_program)
}

fn spawn(id: &str, nanos: Option<u64>) -> Spawn {
    let limit = nanos.map_or(Ceilings::NONE, |nanos| Ceilings::NONE.with(Resource::Cost, nanos));
    Spawn {
        id: Some(name(id)),
        collect: Collect::Detached,
        goal: "Write it.".to_owned(),
        budget: BudgetSpec::with_limit(limit),
        ..Scenario::spawn("root", "coder")
    }
}

fn below(parent: &str, id: &str) -> Spawn {
    Spawn {
        id: Some(name(id)),
        collect: Collect::Outside,
        goal: format!("sub-agent {id}"),
        ..Scenario::spawn(parent, "coder")
    }
}

/// A call of the model `m`, whose tokens cost $0.001 each.
fn call(agent: &str, tokens: u64) -> Hold {
    Hold { agent: name(agent), effect: HoldFor::outside(name("m"), 0, tokens) }
}

fn done(play: &mut Scenario, id: u64, tokens: u64) {
    let used = Used::Tokens(Usage { output: tokens, ..Usage::default() });
    play.report(Report::Done(Done::new(CallId(id), 1, used, Body::text("an answer"))));
}

fn program_done(play: &mut Scenario, id: u64, text: &str) {
    play.report(Report::Done(Done::new(CallId(id), 1, Used::NOTHING, Body::text(text))));
}

fn raise(agent: &str, tokens: u64) -> Raise {
    Raise { agent: name(agent), add: Amounts::cost(tokens * 1_000_000), add_ms: 0 }
}

/// How an agent ended, and its result.
fn end(play: &Scenario, id: &str) -> Option<(Exit, Option<String>)> {
    let ended = events(play).into_iter().find_map(|event| match event {
        Event::AgentEnded { agent, exit, result, .. } if agent == name(id) => Some((exit, result)),
        _ => None,
    });
    ended.map(|(exit, result)| (exit, result.map(|body| body.text)))
}

/// G29: a program begins with one call that holds nothing, its model calls are held at its own and every ancestor's
/// account, its sub-agents are below it, and its last text is its answer.
#[test]
fn g29_the_calls_of_a_program_are_held_at_every_account_above_it() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", Some(5_000_000_000)));
    assert_eq!(running(&play), [CallId(1)], "the program itself");
    assert!(matches!(&events(&play)[..], [.., Event::CallStarted { held, .. }] if *held == Amounts::ZERO));
    play.must(below("a", "sub"));
    assert_eq!(running(&play), [CallId(1)], "a sub-agent starts no program");
    assert_eq!(play.must(call("a", 400)), HoldReply::Started { call: CallId(2) });
    assert_eq!(play.must(call("sub", 300)), HoldReply::Started { call: CallId(3) });
    assert_eq!(taken(&play, "sub", Resource::Cost), 300_000_000);
    for above in ["a", "root"] {
        assert_eq!(taken(&play, above, Resource::Cost), 700_000_000, "{above}");
    }
    done(&mut play, 2, 100);
    done(&mut play, 3, 200);
    program_done(&mut play, 1, "It is written.");
    assert_eq!(end(&play, "a"), Some((Exit::Completed, Some("It is written.".to_owned()))));
    assert!(matches!(end(&play, "sub"), Some((Exit::Cancelled { .. }, None))), "children end first");
    let spent = |id: &str| {
        let agents = play.world().agents();
        agents.ended(agents.find(&name(id))?).map(|ended| ended.spent.get(Resource::Cost))
    };
    assert_eq!((spent("a"), spent("sub")), (Some(300_000_000), Some(200_000_000)));
    assert_eq!(taken(&play, "root", Resource::Cost), 300_000_000);
    assert_eq!(taken(&play, "root", Resource::ToolCalls), 0, "a program is no tool call");
}

/// G11: at its own ceiling only the program waits. Its siblings go on, a raise starts its call, and the tree never halts.
#[test]
fn g11_a_program_at_its_own_ceiling_waits_alone_and_a_raise_starts_its_call() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", Some(500_000_000)));
    play.must(spawn("b", Some(500_000_000)));
    let waits = play.must(call("a", 600));
    assert_eq!(waits, HoldReply::Waiting { call: CallId(3), why: WaitReason::Ceiling });
    assert!(
        matches!(&events(&play)[..], [.., Event::CallWaiting { account: Some(account), .. }] if *account == name("a"))
    );
    assert_eq!(play.must(call("b", 400)), HoldReply::Started { call: CallId(4) });
    done(&mut play, 4, 400);
    assert_eq!(play.must(call("b", 50)), HoldReply::Started { call: CallId(5) });
    assert_eq!(play.world().state(), TreeState::Running);
    play.must(raise("a", 50));
    assert!(!running(&play).contains(&CallId(3)), "it is still too large");
    play.must(raise("a", 50));
    assert!(running(&play).contains(&CallId(3)));
    assert!(!events(&play).iter().any(|event| matches!(event, Event::TreeHalted { .. })));
}

/// G11: only the root's ceiling halts the tree.
#[test]
fn g11_the_ceiling_of_the_root_halts_the_tree_of_a_program() {
    let mut play = tree("root $1.00");
    play.must(spawn("a", None));
    assert_eq!(play.must(call("a", 900)), HoldReply::Started { call: CallId(2) });
    done(&mut play, 2, 900);
    let waits = play.must(call("a", 400));
    assert_eq!(waits, HoldReply::Waiting { call: CallId(3), why: WaitReason::Halted });
    assert_eq!(play.world().state(), TreeState::Halted, "although the program itself runs");
    play.must(raise("root", 2_000));
    assert!(running(&play).contains(&CallId(3)));
}

/// G11: a call that was given up at a ceiling says at which, and a program that then ends has a partial result. One that
/// makes another call has coped with it.
#[test]
fn g11_a_program_whose_last_call_was_given_up_ends_with_a_partial_result() {
    for copes in [false, true] {
        let mut play = tree("root $9.00");
        play.must(spawn("a", Some(500_000_000)));
        play.must(call("a", 600));
        play.must(Withdraw { agent: name("a"), call: CallId(2) });
        assert!(
            matches!(&outcomes(&play)[..], [Outcome::Refused { refusal: Refusal::Ceiling { account, short } }] if *account == name("a") && short.asked == 600_000_000)
        );
        if copes {
            play.must(call("a", 100));
            done(&mut play, 3, 100);
        }
        program_done(&mut play, 1, "As far as I came.");
        let Some((exit, result)) = end(&play, "a") else { panic!("it has ended") };
        assert_eq!(result.as_deref(), Some("As far as I came."));
        match exit {
            Exit::Completed => assert!(copes),
            Exit::Exhausted { account, .. } => assert!(!copes && account == name("a")),
            other => panic!("{other:?}"),
        }
    }
}

/// A ceiling that is lent to a sibling comes back, so a program waits for it too.
#[test]
fn g11_a_call_that_is_given_up_at_the_roots_ceiling_makes_the_result_partial() {
    let mut play = tree("root $1.00");
    play.must(spawn("a", None));
    assert_eq!(play.must(call("a", 900)), HoldReply::Started { call: CallId(2) });
    done(&mut play, 2, 900);
    assert_eq!(play.must(call("a", 400)), HoldReply::Waiting { call: CallId(3), why: WaitReason::Halted });
    play.must(Withdraw { agent: name("a"), call: CallId(3) });
    assert!(
        matches!(&outcomes(&play)[..], [_, Outcome::Refused { refusal: Refusal::Ceiling { account, .. } }] if *account == name("root"))
    );
    program_done(&mut play, 1, "This far.");
    let (exit, result) = end(&play, "a").unwrap();
    assert!(matches!(exit, Exit::Exhausted { ref account, .. } if *account == name("root")), "{exit:?}");
    assert_eq!(result.as_deref(), Some("This far."));
}

/// Nothing can be said to a program: what is sent to it would never be read.
#[test]
fn g29_a_program_takes_no_message_and_no_redirection() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", None));
    play.must(below("a", "sub"));
    for agent in ["a", "sub"] {
        let refused = Refusal::ReadsNothing { agent: name(agent) };
        assert_eq!(play.ask(Send::plain(name(agent), Body::text("Faster."))).unwrap_err(), refused);
        let redirect = Redirect {
            agent: name(agent),
            instruction: "Stop.".to_owned(),
            tokens: None,
            running: Running::Stops,
        };
        assert_eq!(play.ask(redirect).unwrap_err(), refused);
    }
    assert_eq!(running(&play), [CallId(1)]);
}

/// A program can name agents without end: half of the tree's places are left for others.
#[test]
fn the_agents_that_programs_name_leave_half_of_the_places() {
    let mut play = Scenario::grow_as("root $9.00", |definition| {
        with_program(definition);
        definition.limits.agents_max = 8;
    });
    play.must(spawn("a", None));
    play.must(below("a", "one"));
    play.must(below("a", "two"));
    assert_eq!(play.ask(below("a", "three")).unwrap_err(), Refusal::AgentsLimit { agents: 4, agents_max: 4 });
    for id in ["b", "c", "d", "e"] {
        play.must(spawn(id, None));
    }
    assert_eq!(play.ask(spawn("f", None)).unwrap_err(), Refusal::AgentsLimit { agents: 8, agents_max: 8 });
}

#[test]
fn a_program_waits_for_what_is_lent_to_a_sibling() {
    let mut play = tree("root $1.00");
    let lent = BudgetSpec {
        lend: Some(Lend::Yes),
        ..BudgetSpec::with_limit(Ceilings::NONE.with(Resource::Cost, 700_000_000))
    };
    play.must(spawn("a", Some(600_000_000)));
    play.must(Spawn { budget: lent, ..spawn("b", None) });
    let waits = play.must(call("a", 500));
    assert_eq!(waits, HoldReply::Waiting { call: CallId(3), why: WaitReason::Ceiling });
    program_done(&mut play, 2, "done");
    assert!(running(&play).contains(&CallId(3)));
}

/// A program takes no slot, so its model calls cannot wait for it.
#[test]
fn x12_a_program_takes_no_slot() {
    let mut play = Scenario::grow_as("root $9.00", |definition| {
        with_program(definition);
        definition.limits.parallel_max = 1;
    });
    play.must(spawn("a", None));
    play.must(spawn("b", None));
    assert_eq!(running(&play), [CallId(1), CallId(2)]);
    assert_eq!(play.must(call("a", 100)), HoldReply::Started { call: CallId(3) });
    assert_eq!(play.must(call("b", 100)), HoldReply::Waiting { call: CallId(4), why: WaitReason::Slot });
}

/// G29: after a crash a program is lost and never started again; what its calls held is booked once.
#[test]
fn g29_a_lost_program_is_never_started_again_and_its_calls_are_booked_once() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", Some(1_000_000_000)));
    play.must(call("a", 600));
    let since = play.now();
    play.report(Report::Resumed(Resumed { since }));
    play.report(Report::Lost(Lost { call: CallId(1), attempt: 1 }));
    play.report(Report::Lost(Lost { call: CallId(2), attempt: 1 }));
    let Some((Exit::Failed { error }, None)) = end(&play, "a") else { panic!("it was lost") };
    assert_eq!(error.code, FailureCode::ProgramLost);
    assert_eq!(taken(&play, "root", Resource::Cost), 600_000_000);
    assert_eq!(running(&play), []);
    let programs = events(&play)
        .into_iter()
        .filter(|event| matches!(event, Event::CallAsked { work: Work::Tool(tool), .. } if tool.is_program));
    assert_eq!(programs.count(), 1);
}

/// O15: cancelling an agent stops its program, and the agent ends when that has ended.
#[test]
fn g29_a_program_that_named_its_session_continues_in_it() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", Some(1_000_000_000)));
    play.must(below("a", "sub"));
    play.must(call("a", 600));
    let names =
        |session: &str| Report::Session(Session { call: CallId(1), attempt: 1, session: name(session) });
    for session in ["s1", "s1", "s2"] {
        play.report(names(session));
    }
    let named = |play: &Scenario| {
        let sessions = events(play).into_iter().filter_map(|event| match event {
            Event::SessionNamed { session, .. } => Some(session.to_string()),
            _ => None,
        });
        sessions.collect::<Vec<_>>()
    };
    assert_eq!(named(&play), ["s1", "s2"], "the same one is not recorded twice");
    let since = play.now();
    play.report(Report::Resumed(Resumed { since }));
    play.report(Report::Lost(Lost { call: CallId(1), attempt: 1 }));
    play.report(Report::Lost(Lost { call: CallId(2), attempt: 1 }));
    assert_eq!(running(&play), [CallId(1)], "only the program itself runs again");
    let call = play.world().call(CallId(1)).unwrap();
    assert_eq!(call.session().map(ToString::to_string).as_deref(), Some("s2"));
    let resumed = events(&play).iter().filter(|event| matches!(event, Event::CallResumed { .. })).count();
    assert_eq!((resumed, taken(&play, "root", Resource::Cost)), (1, 600_000_000));
    program_done(&mut play, 1, "It is written.");
    assert_eq!(end(&play, "a"), Some((Exit::Completed, Some("It is written.".to_owned()))));
}

/// A root that may give follow-ups to its children.
fn tree_with_followups() -> Scenario {
    Scenario::grow_as("root $9.00", |definition| {
        with_program(definition);
        let coder = definition.roles.get_mut(&name::<RoleName>("coder")).unwrap();
        coder.program.as_mut().unwrap().prompt = "You write code.".to_owned();
        let entry = definition.entry.clone();
        definition.roles.get_mut(&entry).unwrap().caps.tools = Allow::All;
    })
}

fn followup(agent: &str, task: &str) -> Followup {
    Followup {
        parent: name("root"),
        agent: name(agent),
        task: task.to_owned(),
        task_tokens: None,
        budget: BudgetSpec::default(),
        collect: Collect::Detached,
    }
}

/// The arguments of the last program.
fn asked(play: &Scenario) -> Value {
    let programs = events(play).into_iter().filter_map(|event| match event {
        Event::CallAsked { work: Work::Tool(tool), .. } if tool.is_program => Some(tool.args),
        _ => None,
    });
    serde_json::from_str(&programs.last().unwrap()).unwrap()
}

/// G29: a follow-up of a program is a program again. It is told the new task alone, and what it continues is known: the last
/// session that was named, and all that was said, through every follow-up before.
#[test]
fn g29_a_followup_of_a_program_continues_what_its_program_named_and_said() {
    let mut play = tree_with_followups();
    play.must(spawn("a", Some(1_000_000_000)));
    let session = |call, session: &str| {
        Report::Session(Session { call: CallId(call), attempt: 1, session: name(session) })
    };
    play.report(session(1, "s1"));
    program_done(&mut play, 1, "It is written.");
    assert_eq!(play.must(followup("a", "Now test it.")).agent, name("a-2"));
    assert_eq!(asked(&play), json!({ "continues": "a", "task": "Now test it." }));
    let past = |play: &Scenario, agent: &str| {
        let contexts = spinney_testkit::contexts_of(
            play.world().tree(),
            play.batches().iter().flat_map(|batch| &batch.events),
        );
        contexts.program_past(&name(agent)).unwrap().as_ref().clone()
    };
    let first = past(&play, "a-2");
    assert_eq!(
        (first.agent.as_str(), first.session.as_ref().map(ToString::to_string)),
        ("a", Some("s1".to_owned()))
    );
    let told = first.retold("Now test it.");
    let parts = ["You write code.", "Write it.", "It is written.", "Now test it."];
    assert!(parts.map(|part| told.find(part).unwrap()).is_sorted(), "{told}");
    // It names no session, so the next one has none.
    program_done(&mut play, 2, "It is tested.");
    play.must(followup("a-2", "Thanks."));
    let second = past(&play, "a-2-2");
    assert_eq!((second.agent.as_str(), second.session.as_ref()), ("a-2", None));
    let told = second.retold("Thanks.");
    assert!(
        ["It is written.", "Now test it.", "It is tested."].iter().all(|part| told.contains(part)),
        "{told}"
    );
}

/// How a follow-up begins is recorded once, and only of a program that runs.
#[test]
fn g29_where_a_followup_of_a_program_begins_is_recorded_once() {
    let mut play = tree_with_followups();
    play.must(spawn("a", None));
    program_done(&mut play, 1, "It is written.");
    play.must(followup("a", "Now test it."));
    let started = |call, of: &str, start: FollowupStart| {
        Report::FollowupStarted(FollowupStarted { call: CallId(call), attempt: 1, of: name(of), start })
    };
    play.report(started(2, "nobody", FollowupStart::Anew(NoSession::Gone)));
    play.report(started(1, "a", FollowupStart::Anew(NoSession::Gone)));
    play.report(started(2, "a", FollowupStart::Session(name("s1"))));
    play.report(started(2, "a", FollowupStart::Anew(NoSession::Gone)));
    let recorded: Vec<Event> =
        events(&play).into_iter().filter(|event| matches!(event, Event::FollowupStarted { .. })).collect();
    let start = FollowupStart::Session(name("s1"));
    assert_eq!(recorded, [Event::FollowupStarted { call: CallId(2), of: name("a"), start }]);
}

/// The sub-agents that a program names are a part of it, and a program that failed has nothing to continue.
#[test]
fn g29_only_a_program_that_completed_takes_a_followup() {
    let mut play = tree_with_followups();
    play.must(spawn("a", None));
    play.must(below("a", "sub"));
    play.must(Finish { agent: name("sub"), result: Body::text("A part.") });
    let refused = play.ask(Followup { parent: name("a"), ..followup("sub", "More.") }).unwrap_err();
    assert_eq!(refused, Refusal::NotKept { agent: name("sub"), state: "completed".to_owned() });
    play.report(Report::Lost(Lost { call: CallId(1), attempt: 1 }));
    let refused = play.ask(followup("a", "More.")).unwrap_err();
    assert_eq!(refused, Refusal::NotKept { agent: name("a"), state: "failed".to_owned() });
}

/// A program that names sessions without end fills no journal, and no other call has one.
#[test]
fn sessions_of_a_program_are_bounded() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", None));
    play.must(call("a", 100));
    let session = |call: u64, at: u32| {
        Report::Session(Session { call: CallId(call), attempt: 1, session: name(&format!("s{at}")) })
    };
    for at in 0..100 {
        play.report(session(1, at));
        play.report(session(2, at));
    }
    let named = events(&play).iter().filter(|event| matches!(event, Event::SessionNamed { .. })).count();
    assert_eq!(named, usize::from(limit::CALL_SESSIONS_MAX));
    assert!(play.world().call(CallId(2)).unwrap().session().is_none());
}

#[test]
fn o15_a_cancelled_program_ends_before_its_agent() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", None));
    play.must(below("a", "sub"));
    play.must(call("sub", 100));
    play.must(Cancel { agent: name("a"), reason: "enough".to_owned() });
    assert_eq!(end(&play, "a"), None, "its program still runs");
    let stopped = |call| Failed {
        call: CallId(call),
        attempt: 1,
        fault: Fault::new(FaultKind::Stopped),
        used: Used::NOTHING,
    };
    play.report(Report::Failed(stopped(2)));
    assert!(end(&play, "sub").is_some());
    play.report(Report::Failed(stopped(1)));
    assert!(matches!(end(&play, "a"), Some((Exit::Cancelled { reason }, None)) if reason == "enough"));
}

/// A program that fails or cannot be started says why.
#[test]
fn a_program_that_fails_or_does_not_start_fails_its_agent() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", None));
    play.must(spawn("b", None));
    let failed = Done { is_error: true, ..Done::new(CallId(1), 1, Used::NOTHING, Body::text("no login\nx")) };
    play.report(Report::Done(failed));
    let fault = Fault { message: "there is no such program".to_owned(), ..Fault::new(FaultKind::Invalid) };
    play.report(Report::Failed(Failed { call: CallId(2), attempt: 1, fault, used: Used::NOTHING }));
    let failure = |id: &str| match end(&play, id) {
        Some((Exit::Failed { error }, _)) => (error.code, error.message),
        other => panic!("{other:?}"),
    };
    assert_eq!(failure("a"), (FailureCode::ProgramFailed, "the program failed: no login".to_owned()));
    assert_eq!(failure("b"), (FailureCode::NotStarted, "there is no such program".to_owned()));
}

/// A program outlives nothing: what finishes its agent from outside stops it.
#[test]
fn finishing_the_agent_of_a_program_waits_for_its_end() {
    let mut play = tree("root $9.00");
    play.must(spawn("a", None));
    play.must(Finish { agent: name("a"), result: Body::text("enough") });
    assert_eq!(end(&play, "a"), None);
    program_done(&mut play, 1, "late");
    assert_eq!(end(&play, "a"), Some((Exit::Completed, Some("enough".to_owned()))));
}

/// The definition of a role that is no program has the bytes that it always had.
#[test]
fn a_role_without_a_program_is_written_as_before() {
    let written = serde_json::to_value(Role::new(name("m"))).unwrap();
    assert!(written.get("program").is_none());
    let tool = |play: &Scenario| {
        let asked = events(play).into_iter().find_map(|event| match event {
            Event::CallAsked { work: work @ Work::Tool(_), .. } => Some(serde_json::to_value(work).unwrap()),
            _ => None,
        });
        asked.unwrap()
    };
    let mut play = Scenario::grow("root");
    let effect = HoldFor::Tool {
        tool: name("read"),
        args: "{}".to_owned(),
        cost_nanos_max: 0,
        lost: spinney_kernel::definition::OnLost::Presumed,
    };
    play.must(Hold { agent: name("root"), effect });
    assert!(tool(&play).get("is_program").is_none());
}
