//! Connections of tools: facts that a report brings and nothing refuses.

use std::net::IpAddr;

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{
    Actor, CallId, Connection, ConnectionEnd, ConnectionRefusal, ConnectionTotals, Time, limit,
};
use spinney_kernel::record::Event;
use spinney_kernel::rules::Receipt;
use spinney_kernel::rules::report::{Connections, Report};
use spinney_kernel::rules::request::RecordConnections;
use spinney_testkit::Scenario;

use crate::observed::events;

fn connection(host: &str, end: ConnectionEnd) -> Connection {
    Connection {
        host: host.to_owned(),
        port: 443,
        address: Some(IpAddr::from([192, 0, 2, 1])),
        started: Time(5),
        duration_ms: 1_500,
        sent_bytes: 10,
        received_bytes: 2_000,
        end,
    }
}

fn report(call: u64, attempt: u32, ended: Vec<Connection>) -> Report {
    let omitted = ConnectionTotals::default();
    Report::Connections(Connections { call: CallId(call), attempt, ended, omitted })
}

#[test]
fn connections_of_a_running_tool_are_events() {
    let mut play = Scenario::grow("root");
    play.run("tool root read_file");
    play.clear_log();
    let refused = ConnectionEnd::Refused(ConnectionRefusal::NotGranted);
    let ended =
        vec![connection("a.example.org", ConnectionEnd::Closed), connection("b.example.org", refused)];
    assert_eq!(play.report(report(1, 1, ended)), Receipt::Applied);
    insta::assert_snapshot!(play.log(), @r"
    #1 connection to a.example.org:443 closed after 1 second, 10 bytes sent, 2000 received
    #1 connection to b.example.org:443 refused: not granted
    ");
}

/// A report that comes too late, for another attempt, or for a model call changes nothing.
#[test]
fn connections_of_what_does_not_run_are_dropped() {
    let mut play = Scenario::grow("root");
    play.run("tool root read_file\ncall root $0.10");
    let before = events(&play).len();
    let some = || vec![connection("a.example.org", ConnectionEnd::Closed)];
    for (call, attempt) in [(1, 2), (2, 1), (9, 1)] {
        assert_eq!(play.report(report(call, attempt, some())), Receipt::Stale, "{call} {attempt}");
    }
    play.run("done #1 $0.00");
    let ended = events(&play).len();
    assert_eq!(play.report(report(1, 1, some())), Receipt::Stale);
    assert_eq!(events(&play).len(), ended);
    assert!(ended > before);
}

#[test]
fn of_too_many_connections_only_the_sums_are_recorded() {
    let mut play = Scenario::grow("root");
    play.run("tool root read_file");
    let max = usize::from(limit::CALL_CONNECTIONS_MAX);
    let many = |count: usize| vec![connection("a.example.org", ConnectionEnd::Closed); count];
    play.report(report(1, 1, many(max - 1)));
    play.report(report(1, 1, many(3)));
    let recorded =
        events(&play).iter().filter(|event| matches!(event, Event::ConnectionEnded { .. })).count();
    assert_eq!(recorded, max);
    let omitted = ConnectionTotals { count: 7, refused: 1, sent_bytes: 3, received_bytes: 4 };
    let (call, attempt) = (CallId(1), 1);
    play.report(Report::Connections(Connections { call, attempt, ended: many(1), omitted }));
    let omitted: Vec<ConnectionTotals> = events(&play)
        .into_iter()
        .filter_map(|event| match event {
            Event::ConnectionsOmitted { totals, .. } => Some(totals),
            _ => None,
        })
        .collect();
    let first = ConnectionTotals { count: 2, refused: 0, sent_bytes: 20, received_bytes: 4_000 };
    let second = ConnectionTotals { count: 8, refused: 1, sent_bytes: 13, received_bytes: 2_004 };
    assert_eq!(omitted, [first, second]);
}

/// The connections of a program that the tree did not start: at most so many are events, over all of its runs, and no agent
/// records any.
#[test]
fn connections_of_a_program_outside_are_events_of_its_agent() {
    let mut play = Scenario::grow("root");
    let max = usize::from(limit::CALL_CONNECTIONS_MAX);
    let connected = |count: usize| {
        let (agent, omitted) = ("root".parse().unwrap(), ConnectionTotals::default());
        let ended = vec![connection("a.example.org", ConnectionEnd::Closed); count];
        RecordConnections { agent, ended, omitted }
    };
    let by = Actor::Agent("root".parse().unwrap());
    assert!(matches!(play.ask_as(by, connected(1)), Err(Refusal::PersonOnly { .. })));
    play.ask_as(Actor::RUNTIME, connected(max - 1)).unwrap();
    play.ask_as(Actor::RUNTIME, connected(3)).unwrap();
    let recorded =
        events(&play).iter().filter(|event| matches!(event, Event::ProgramConnected { .. })).count();
    assert_eq!(recorded, max);
    let omitted = events(&play).into_iter().find_map(|event| match event {
        Event::ProgramConnectionsOmitted { totals, .. } => Some(totals.count),
        _ => None,
    });
    assert_eq!(omitted, Some(2));
}
