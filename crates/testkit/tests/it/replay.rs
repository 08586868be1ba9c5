//! Journals: decisions can be written, read, applied and made again, with the same world from every cut.

use std::collections::BTreeSet;

use spinney_journal::Batch;
use spinney_kernel::budget::{AmountError, Resource, Shortfall};
use spinney_kernel::definition::{FolderAccess, FolderGrants, Network, Refusal};
use spinney_kernel::primitives::Time;
use spinney_kernel::record::Event;
use spinney_kernel::rules::Input;
use spinney_kernel::rules::decide;
use spinney_kernel::world::World;

use spinney_testkit::Scenario;

use crate::bad_input::all_refusals;
use crate::observed::{name, refusals};

/// A long and varied run: every verb, report, event, outcome and reason to wait.
fn life() -> Scenario {
    let fixture = "root $5.00 tokens=90000 steps=40 retries=9 timeout=90s / a $2.00 lend reserve=20% / b / c\n\
         root / d $0.50 shrink timeout=20s\nroot / e downgrade=cheap $0.30\nroot / f $1.00";
    let mut play = Scenario::grow_as(fixture, |tree| tree.limits.parallel_max = 7);
    play.run(
        "ask root Go? cancel\nanswer #1 yes
         call b $0.50\ncall c $0.70\ncall a $0.20\ntool c read $0.01 repeatable\ntool f write $0.02
         rate cheap 2s\ncall f $0.10 model=cheap\nopen m\ncall d $0.20\nclose m\ncall e $0.40
         call f $0.60\ncall f $0.60\ncall f $0.01
         failed #2 server $0.05\nfailed #3 rate_limit $0.10 after=2s\nlost #5\nlost #6\nlost #4\npass 3s
         send f hello\nwait f message\nwait f message timeout=2s\nask f Which? default=blue timeout=5s
         ask c Why? timeout=50s\nwait root for a d\nwait root for e f any timeout=9s\npass 6s
         pause a\ncall c $0.10\ndone #10 $0.10\nunpause a\ndone #3 $0.90\ndone #2 $0.04
         redirect f elsewhere\nredirect c again stop\ncharge d $0.60 tokens=5\ncall d $0.10
         raise e $1.00\nraise a $0.50\nspawn root g as d attached\nspawn g h as c tokens=50\ncall h $0.04
         fail g broken\ndone #4 $0.20\ndone #5 $0.01\nfailed #8 auth\nanswer #99 no\npass 20s
         call root $4.00\nraise root $4.00\nfinish f ok\ncancel a\npass 1s",
    );
    for call in 1..40 {
        play.run(&format!("failed #{call} stopped $0.01"));
    }
    play.run("finish root done\ndone #1\ncall root $0.10");
    assert!(play.world().is_over(), "{}", play.tree());
    play
}

/// Writes a value as JSON, checks that it reads back as the same value, and returns the JSON.
macro_rules! round {
    ($type:ty, $value:expr) => {{
        let json = serde_json::to_string($value).unwrap();
        let read: $type = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(&read, $value, "{json}");
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    }};
}

/// The name of the variant at a path.
fn tag(value: &serde_json::Value, path: &str) -> Option<String> {
    let at = value.pointer(path)?;
    at.as_str().or_else(|| at.as_object()?.keys().next().map(String::as_str)).map(str::to_owned)
}

/// Everything that a varied run records can be written as JSON and read back as the same value.
#[test]
fn every_input_and_event_reads_back_as_it_was_written() {
    let play = life();
    let mut seen: [BTreeSet<String>; 5] = Default::default();
    let [inputs, events, outcomes, exits, waits] = &mut seen;
    for batch in play.batches() {
        round!(Batch, batch);
        let input = round!(Input, &batch.input);
        inputs.extend(tag(&input, "/what/request/request/verb").or_else(|| tag(&input, "/what/report/kind")));
        for event in &batch.events {
            let json = round!(Event, event);
            events.extend(tag(&json, "/type"));
            outcomes.extend(tag(&json, "/outcome/end"));
            exits.extend(tag(&json, "/exit/state"));
            waits.extend(tag(&json, "/why"));
        }
    }
    let lines = seen.map(|words| words.into_iter().collect::<Vec<_>>().join(" "));
    insta::assert_snapshot!(lines.join("\n"), @"
    answer ask breaker cancel charge done fail failed finish hold lost pause raise rate redirect send spawn start timer unpause wait
    agent_ended agent_ending agent_paused agent_redirected agent_spawned agent_unpaused attempt_failed breaker_changed call_asked call_ended call_resumed call_started call_switched call_waiting charged clock_set limit_raised message_sent question_asked rate_limited tree_halted tree_started tree_unhalted wait_started
    answered cancelled children done expired failed lost message refused
    cancelled completed exhausted failed
    backoff budget halted paused rate slot
    ");
}

/// One of every refusal that has its own kind of fields.
fn one_of_each() -> Vec<Refusal> {
    let (agent, model, role, tool) = (|| name("a"), || name("m"), || name("r"), || name("t"));
    let short = Shortfall {
        resource: Resource::ToolCalls,
        limit: 7,
        reserve: 1,
        spent: 2,
        held: 3,
        lent: 1,
        asked: 9,
    };
    let what = || "goal".to_owned();
    vec![
        Refusal::TreeNotStarted,
        Refusal::TreeEnded,
        Refusal::TreeHalted,
        Refusal::TreeCannotMove,
        Refusal::AgentStopped { agent: agent(), stopped: name("b") },
        Refusal::DuplicateId { agent: agent() },
        Refusal::DepthLimit { depth: 3, depth_max: 3 },
        Refusal::RoleCycle { role: role(), path: vec!["a".to_owned(), "r".to_owned()] },
        Refusal::ChildrenLimit { live: 2, live_max: 2 },
        Refusal::AgentsLimit { agents: 2, agents_max: 2 },
        Refusal::RoleNotAllowed { role: role(), allowed: vec![role()] },
        Refusal::ModelNotAllowed { model: model(), allowed: vec![model()] },
        Refusal::ToolNotAllowed { tools: vec![tool()], allowed: Vec::new() },
        Refusal::NetworkNotAllowed,
        Refusal::FolderNotAllowed {
            folders: FolderGrants::default().with(name("/a"), FolderAccess::Write),
            allowed: FolderGrants::default().with(name("/a"), FolderAccess::Read),
        },
        Refusal::HostNotAllowed {
            hosts: Network::hosts([name("*.example.org")]),
            allowed: Network::hosts([name("a.example.org:443")]),
        },
        Refusal::HostRequestsNotAllowed,
        Refusal::HostsNotAskable { hosts: Network::hosts([name("b.org:443")]), allowed: Network::Denied },
        Refusal::LendWithoutCeiling,
        Refusal::Ceiling { account: agent(), short },
        Refusal::Unpriced { model: model() },
        Refusal::Amount(AmountError::TooLarge { what: what(), amount: u64::MAX }),
        Refusal::Amount(AmountError::NotUsd { text: "NaN".to_owned() }),
        Refusal::BadTimeout { ms: 0, ms_max: 1 },
        Refusal::BadReserve { percent: 91, percent_max: 90 },
        Refusal::DeadlinePassed { agent: agent(), deadline: Time(u64::MAX), late_ms: 1 },
        Refusal::OpenCallsLimit { open: 64, open_max: 64 },
        Refusal::ModelUnavailable { model: model() },
        Refusal::TooMany { what: what(), count: 2, count_max: 1 },
        Refusal::InboxFull { agent: agent(), waiting: 1 },
        Refusal::AlreadyPaused { agent: agent() },
    ]
}

/// Every refusal reads back as it was written.
#[test]
fn every_refusal_reads_back_as_it_was_written() {
    let mut all = all_refusals();
    all.extend(refusals(&life()));
    all.extend(one_of_each());
    let codes: BTreeSet<String> =
        all.iter().filter_map(|refusal| tag(&round!(Refusal, refusal), "/code")).collect();
    insta::assert_snapshot!(codes.into_iter().collect::<Vec<_>>().join(" "), @"agent_ended agent_stopped agents_limit already_paused amount bad_reserve bad_timeout ceiling children_limit deadline_passed depth_limit duplicate_id folder_not_allowed forwarded host_not_allowed host_requests_not_allowed hosts_not_askable inbox_full lend_without_ceiling model_not_allowed model_unavailable network_not_allowed not_a_child not_paused not_yours nothing_to_wait_for open_calls_limit person_only role_cycle role_not_allowed text_empty text_too_long too_many tool_not_allowed tree_cannot_move tree_ended tree_halted tree_not_started tree_started_before unknown_agent unknown_model unknown_question unknown_role unpriced");
}

/// Deciding the stored inputs again gives the same events and the same world.
#[test]
fn deciding_again_gives_the_same_events_and_world() {
    let play = life();
    let mut world = World::new(play.world().tree());
    for batch in play.batches() {
        let stored: Batch = serde_json::from_value(round!(Batch, batch)).unwrap();
        let decision = decide(&mut world, &stored.input).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(decision.events, batch.events);
    }
    assert_eq!(&world, play.world());
}

/// From every cut between two batches, applying the rest of the events gives the same world, and so does deciding the
/// rest of the inputs on a world that was only applied.
#[test]
fn applying_from_every_cut_gives_the_same_world() {
    let play = life();
    let batches = play.batches();
    let mut prefix = World::new(play.world().tree());
    for cut in 0..=batches.len() {
        let (mut applied, mut decided) = (prefix.clone(), prefix.clone());
        for batch in &batches[cut..] {
            batch.events.iter().for_each(|event| applied.apply(event));
            let decision = decide(&mut decided, &batch.input).unwrap_or_else(|refusal| panic!("{refusal}"));
            assert_eq!(decision.events, batch.events, "after {cut} batches");
        }
        assert_eq!((&applied, &decided), (play.world(), play.world()), "after {cut} batches");
        if let Some(batch) = batches.get(cut) {
            batch.events.iter().for_each(|event| prefix.apply(event));
        }
    }
}
