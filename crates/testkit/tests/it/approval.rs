//! Tools with an approval policy: allow, ask, deny.

use insta::assert_snapshot;
use proptest::prelude::*;
use spinney_kernel::definition::{
    Approval, ApprovalScope, Definition, HostRequests, HostsArgument, Network, Refusal, RememberedApproval,
    SubjectKind, SubjectPattern, ToolSubject,
};
use spinney_kernel::primitives::{CallId, RoleName, ToolName};
use spinney_kernel::record::{Event, Work};
use spinney_kernel::rules::request::Answer;
use spinney_testkit::Scenario;

use crate::observed::name;

/// A play in which a role has a policy for a tool.
fn play(fixture: &str, policies: &[(&str, &str, Approval)]) -> Scenario {
    Scenario::grow_as(fixture, |tree: &mut Definition| {
        for (role, tool, approval) in policies {
            let role =
                tree.roles.get_mut(&name::<RoleName>(role)).and_then(|role| role.turns.as_mut()).unwrap();
            role.approvals.insert(name(tool), *approval);
        }
    })
}

fn recorded(play: &mut Scenario, script: &str) -> String {
    let before = play.log().lines().count();
    play.run(script);
    play.log().lines().skip(before).filter(|line| !line.contains("asked by")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_is_called_when_a_person_says_yes_and_the_others_do_not_wait() {
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Ask)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 Both. | write {\"text\":\"x\"} | read {}
        done #3
        answer #2 Yes.
        done #4
        said #5 Written.
    "), @r#"
    #1 ended: done, spent $0.005 tokens=5 steps=1
    #2 root asks: May `root` call `write` with {"text":"x"}? Answer yes, or say why not.
    #3 started: held tool_calls=1
    #3 ended: done, spent tool_calls=1
    #2 ended: approved, spent nothing
    #4 started: held tool_calls=1
    #4 ended: done, spent tool_calls=1
    #5 started: held $0.10 tokens=667 steps=1
    #5 ended: done, spent $0.008 tokens=8 steps=1
    root ended: completed, spent $0.013 tokens=13 steps=2 tool_calls=2
    "#);
}

#[test]
fn a_denial_reaches_the_model_with_the_reason_and_the_run_continues() {
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Ask)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 I write. | write {\"text\":\"x\"}
        answer #2 Not into that file
        said #3 Then not.
    "), @r#"
    #1 ended: done, spent $0.008 tokens=8 steps=1
    #2 root asks: May `root` call `write` with {"text":"x"}? Answer yes, or say why not.
    #2 ended: refused (a person refused your call of `write`: Not into that file; do without it, or ask for something else), spent nothing
    #3 started: held $0.10 tokens=1148 steps=1
    #3 ended: done, spent $0.009 tokens=9 steps=1
    root ended: completed, spent $0.017 tokens=17 steps=2
    "#);
}

#[test]
fn a_denied_tool_is_refused_without_a_question() {
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Deny)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 I write. | write {}
        said #2 Then not.
    "), @"
    #1 ended: done, spent $0.008 tokens=8 steps=1
    root tool 0 error: `write` is denied here by the tree's author: do without it
    #2 started: held $0.10 tokens=684 steps=1
    #2 ended: done, spent $0.009 tokens=9 steps=1
    root ended: completed, spent $0.017 tokens=17 steps=2
    ");
}

/// A role cannot get around its policy through a child.
#[test]
fn a_policy_holds_for_everything_below_its_role() {
    let fixture = "root $9.00 turns=20 / helper later turns=3";
    let mut play = play(fixture, &[("root", "write", Approval::Deny), ("helper", "write", Approval::Allow)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 You write. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"}
        said #3 I write. | write {}
    "), @"
    #1 ended: done, spent $0.01 tokens=10 steps=1
    h spawned by root: $8.99
    #3 started: held $0.10 tokens=579 steps=1
    h's active time runs: 600000ms left
    #3 ended: done, spent $0.008 tokens=8 steps=1
    h tool 0 error: `write` is denied here by the tree's author: do without it
    #4 started: held $0.10 tokens=685 steps=1
    ");
}

#[test]
fn a_spawn_can_need_a_persons_leave_too() {
    let fixture = "root $9.00 turns=20 / helper later turns=3";
    let mut play = play(fixture, &[("root", "spawn_agent", Approval::Ask)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 You do it. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Help.\",\"id\":\"h\"} | spawn_agent {\"agent\":\"nobody\",\"goal\":\"Help.\"}
        answer #2 ok
        answer #3 ok
        said #5 Helped.
        said #6 Done.
    "), @r#"
    #1 ended: done, spent $0.01 tokens=10 steps=1
    #2 root asks: May `root` call `spawn_agent` with {"agent":"helper","goal":"Help.","id":"h"}? Answer yes, or say why not.
    #3 root asks: May `root` call `spawn_agent` with {"agent":"nobody","goal":"Help."}? Answer yes, or say why not.
    #2 ended: approved, spent nothing
    h spawned by root: $8.99
    #5 started: held $0.10 tokens=578 steps=1
    h's active time runs: 600000ms left
    #3 ended: approved, spent nothing
    root tool 1 error: unknown role `nobody`: choose one of `root`, `helper`
    #5 ended: done, spent $0.007 tokens=7 steps=1
    h ended: completed, spent $0.007 tokens=7 steps=1
    #4 ended: children h completed, spent nothing
    #6 started: held $0.10 tokens=911 steps=1
    #6 ended: done, spent $0.005 tokens=5 steps=1
    root ended: completed, spent $0.022 tokens=22 steps=3
    "#);
}

#[test]
fn an_approval_that_times_out_is_a_no() {
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Ask)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 I write. | write {}
        pass 86400s
        said #3 Then not.
    "), @"
    #1 ended: done, spent $0.008 tokens=8 steps=1
    #2 root asks: May `root` call `write` with {}? Answer yes, or say why not.
    #2 ended: refused (no answer in time on whether you may call `write`: do without it, or ask for something else), spent nothing
    #3 started: held $0.10 tokens=1138 steps=1
    #3 ended: done, spent $0.009 tokens=9 steps=1
    root ended: completed, spent $0.017 tokens=17 steps=2
    ");
}

/// A tree in which `write` needs approval, and its `path` is what a person approves.
fn with_subject(fixture: &str, subject: &ToolSubject) -> Scenario {
    Scenario::grow_as(fixture, |tree: &mut Definition| {
        let root =
            tree.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut()).unwrap();
        root.approvals.insert(name("write"), Approval::Ask);
        tree.tools.get_mut(&name::<ToolName>("write")).unwrap().subject = Some(subject.clone());
    })
}

/// G15: `always` covers the agent, the tool and the pattern that were shown, and nothing else: another agent, another
/// folder and a path that leaves it are asked about again.
#[test]
fn g15_always_for_this_agent_covers_what_was_shown_and_no_more() {
    let mut play = with_subject("root $9.00 turns=20 / helper later turns=9", &ToolSubject::path("path"));
    assert_snapshot!(recorded(&mut play, "
        said #1 One. | write {\"path\":\"out/a\",\"text\":\"x\"}
        answer #2 always for this agent: out/*
        done #3
        said #4 More. | write {\"path\":\"out/b\",\"text\":\"y\"} | write {\"path\":\"in/b\"} | write {\"path\":\"out/../b\"} | write {\"path\":\"out/a\",\"path\":\"in/a\"} | read {\"path\":\"out/b\"}
        answer #6 no
        answer #7 no
        answer #8 no
        done #5
        done #9
        said #10 You. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"}
        said #12 I. | write {\"path\":\"out/c\"}
    "), @r#"
    #1 ended: done, spent $0.004 tokens=4 steps=1
    #2 root asks: May `root` call `write` with {"path":"out/a","text":"x"}? Answer yes, or say why not.
    root may always call write with out/*, for this agent
    #2 ended: approved, spent nothing
    #3 started: held tool_calls=1
    #3 ended: done, spent tool_calls=1
    #4 started: held $0.10 tokens=649 steps=1
    #4 ended: done, spent $0.005 tokens=5 steps=1
    #5 started: held tool_calls=1
    #6 root asks: May `root` call `write` with {"path":"in/b"}? Answer yes, or say why not.
    #7 root asks: May `root` call `write` with {"path":"out/../b"}? Answer yes, or say why not.
    #8 root asks: May `root` call `write` with {"path":"out/a","path":"in/a"}? Answer yes, or say why not.
    #9 started: held tool_calls=1
    #6 ended: refused (a person refused your call of `write`: no; do without it, or ask for something else), spent nothing
    #7 ended: refused (a person refused your call of `write`: no; do without it, or ask for something else), spent nothing
    #8 ended: refused (a person refused your call of `write`: no; do without it, or ask for something else), spent nothing
    #5 ended: done, spent tool_calls=1
    #9 ended: done, spent tool_calls=1
    #10 started: held $0.10 tokens=2457 steps=1
    #10 ended: done, spent $0.004 tokens=4 steps=1
    h spawned by root: $8.987
    #12 started: held $0.10 tokens=579 steps=1
    h's active time runs: 600000ms left
    #12 ended: done, spent $0.002 tokens=2 steps=1
    #13 h asks: May `h` call `write` with {"path":"out/c"}? Answer yes, or say why not.
    h's active time stands: 600000ms left
    "#);
}

/// G15: for the tree it covers every agent, and calls that wait for the same approval are made at once.
#[test]
fn g15_always_for_this_tree_covers_every_agent_and_what_waits() {
    let mut play = with_subject("root $9.00 turns=20 / helper later turns=9", &ToolSubject::path("path"));
    assert_snapshot!(recorded(&mut play, "
        said #1 Three. | write {\"path\":\"out/a\"} | write {\"path\":\"out/b\"} | write {\"path\":\"in/c\"}
        answer #3 always for this tree: out/*
        answer #4 no
        done #5
        done #6
        said #7 You. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"}
        said #9 I. | write {\"path\":\"out/c\"}
    "), @r#"
    #1 ended: done, spent $0.006 tokens=6 steps=1
    #2 root asks: May `root` call `write` with {"path":"out/a"}? Answer yes, or say why not.
    #3 root asks: May `root` call `write` with {"path":"out/b"}? Answer yes, or say why not.
    #4 root asks: May `root` call `write` with {"path":"in/c"}? Answer yes, or say why not.
    root may always call write with out/*, for this tree
    #2 ended: approved, spent nothing
    #5 started: held tool_calls=1
    #3 ended: approved, spent nothing
    #6 started: held tool_calls=1
    #4 ended: refused (a person refused your call of `write`: no; do without it, or ask for something else), spent nothing
    #5 ended: done, spent tool_calls=1
    #6 ended: done, spent tool_calls=1
    #7 started: held $0.10 tokens=1245 steps=1
    #7 ended: done, spent $0.004 tokens=4 steps=1
    h spawned by root: $8.99
    #9 started: held $0.10 tokens=579 steps=1
    h's active time runs: 600000ms left
    #9 ended: done, spent $0.002 tokens=2 steps=1
    #10 started: held tool_calls=1
    "#);
}

/// G15: a pattern that is wider than what was shown, or does not cover the call itself, is refused, and the question stays
/// open.
#[test]
fn g15_a_pattern_is_never_wider_than_what_was_shown() {
    let command = ToolSubject::command("command");
    for (subject, call, pattern, is_fine) in [
        (&command, r#"{"command":"git status -s"}"#, "git status*", true),
        (&command, r#"{"command":["git","status","-s"]}"#, "git status -s", true),
        (&command, r#"{"command":"git status -s"}"#, "git status -*", true),
        (&command, r#"{"command":"git status -s"}"#, "git*", false),
        (&command, r#"{"command":"git status -s"}"#, "*", false),
        (&command, r#"{"command":"git status -s"}"#, "git status -v*", false),
        (&command, r#"{"command":"git status; rm x"}"#, "git status*", false),
        (&command, r#"{"command":"git status; rm x"}"#, "git status; rm x", true),
        (&command, r#"{"command":"rm *"}"#, "rm *", false),
        (&command, r#"{"command":"rm *"}"#, r"rm \*", true),
        (&command, r#"{"command":"a\u202eb"}"#, "a\u{202e}b", false),
        (&command, r#"{"cmd":"git status"}"#, "git status*", false),
        (&ToolSubject::path("path"), r#"{"path":"a/b/c"}"#, "a/b/*", true),
        (&ToolSubject::path("path"), r#"{"path":"a/b/c"}"#, "a/*", false),
        (&ToolSubject::path("path"), r#"{"path":"a"}"#, "*", false),
    ] {
        let mut play = with_subject("root $9.00 turns=20", subject);
        play.run(&format!("said #1 I do. | write {call}"));
        let Ok(pattern) = pattern.parse();
        let remember = RememberedApproval { scope: ApprovalScope::Tree, pattern };
        let refused = play.ask(Answer::always(CallId(2), remember)).err();
        assert_eq!(refused.is_none(), is_fine, "{call} {refused:?}");
        if let Some(refusal) = refused {
            assert!(matches!(refusal, Refusal::ApprovalTooWide { .. }), "{refusal}");
            assert!(play.world().call(CallId(2)).is_some(), "the question stays open");
        }
    }
}

/// Without a subject all arguments count, as they are.
#[test]
fn a_tool_without_a_subject_is_approved_with_exactly_its_arguments() {
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Ask)]);
    assert_snapshot!(recorded(&mut play, "
        said #1 I write. | write {\"text\":\"x\"}
        answer #2 always for this agent: {\"text\":\"x\"}
        done #3
        said #4 Again. | write {\"text\":\"x\"} | write {\"text\":\"xy\"}
    "), @r#"
    #1 ended: done, spent $0.008 tokens=8 steps=1
    #2 root asks: May `root` call `write` with {"text":"x"}? Answer yes, or say why not.
    root may always call write with {"text":"x"}, for this agent
    #2 ended: approved, spent nothing
    #3 started: held tool_calls=1
    #3 ended: done, spent tool_calls=1
    #4 started: held $0.10 tokens=638 steps=1
    #4 ended: done, spent $0.006 tokens=6 steps=1
    #5 started: held tool_calls=1
    #6 root asks: May `root` call `write` with {"text":"xy"}? Answer yes, or say why not.
    "#);
}

/// A tree in which `write` names hosts in `hosts` and `read` an address in `url`. Its agents have `a.org:443`, and those of
/// these roles may ask for more.
fn hosts_play(fixture: &str, asking: &[&str]) -> Scenario {
    Scenario::grow_as(fixture, |tree: &mut Definition| {
        for (role, terms) in &mut tree.roles {
            terms.caps.network = Network::hosts([name("a.org:443")]);
            let requests = asking.contains(&role.as_str());
            terms.caps.host_requests = if requests { HostRequests::Ask } else { HostRequests::Refused };
        }
        let mut tool = |tool, hosts| tree.tools.get_mut(&name::<ToolName>(tool)).unwrap().hosts = Some(hosts);
        tool("write", HostsArgument::list("hosts"));
        tool("read", HostsArgument::url("url"));
    })
}

/// The hosts that each tool call got beside those of its agent.
fn allowed(play: &Scenario) -> Vec<(CallId, String)> {
    let tool = |event: &Event| match event {
        Event::CallAsked { call, work: Work::Tool(work), .. } => Some((*call, work.network.to_string())),
        _ => None,
    };
    play.batches().iter().flat_map(|batch| &batch.events).filter_map(tool).collect()
}

/// G26 (asking): a question names exactly the hosts that a call lacks, a yes adds them to that call alone, and a no is what
/// the agent reads. What it has needs no question.
#[test]
fn g26_a_person_allows_hosts_for_one_call_and_what_is_refused_is_read() {
    let mut play = hosts_play("root $9.00 turns=20", &["root"]);
    assert_snapshot!(recorded(&mut play, "
        said #1 Four. | write {\"hosts\":[\"B.org:443\",\"a.org:443\"]} | read {\"url\":\"http://c.org:8080/x\"} | read {\"url\":\"https://a.org/x\"} | write {\"hosts\":[\"*.b.org\"]}
        answer #2 yes
        answer #3 not that one
        done #4
        done #5
        said #6 Again. | write {\"hosts\":[\"b.org:443\"]}
    "), @r#"
    #1 ended: done, spent $0.005 tokens=5 steps=1
    #2 root asks: May `root` connect to `b.org:443` and call `write` with {"hosts":["B.org:443","a.org:443"]}? Answer yes, or say why not.
    #3 root asks: May `root` connect to `c.org:8080` and call `read` with {"url":"http://c.org:8080/x"}? Answer yes, or say why not.
    #4 started: held tool_calls=1
    root tool 3 error: bad arguments for `write`: `*.b.org` is more than one host: name each that you need; write one JSON object with the fields it takes
    #2 ended: approved, spent nothing
    #5 started: held tool_calls=1
    #3 ended: refused (a person refused your call of `read`: not that one; do without it, or ask for something else), spent nothing
    #4 ended: done, spent tool_calls=1
    #5 ended: done, spent tool_calls=1
    #6 started: held $0.10 tokens=1638 steps=1
    #6 ended: done, spent $0.006 tokens=6 steps=1
    #7 root asks: May `root` connect to `b.org:443` and call `write` with {"hosts":["b.org:443"]}? Answer yes, or say why not.
    "#);
    let hosts = |call, hosts: &str| (CallId(call), hosts.to_owned());
    assert_eq!(allowed(&play), [hosts(4, "no host"), hosts(5, "`b.org:443`")]);
    let caps = &play.world().agents().agent(play.world().agents().root().unwrap()).terms.caps;
    assert_eq!(caps.network.to_string(), "`a.org:443`", "its rights are what they were");
}

/// G26 (asking), G15: what is remembered is for calls of that tool to those hosts, of the agent or of every agent that may
/// ask; calls that wait for the same are made.
#[test]
fn g26_hosts_are_remembered_for_a_tool_and_for_agents_that_may_ask() {
    let mut play =
        hosts_play("root $9.00 turns=20 / helper later turns=9 / quiet later turns=9", &["root", "helper"]);
    assert_snapshot!(recorded(&mut play, "
        said #1 Three. | write {\"hosts\":[\"b.org:443\",\"c.org:443\"]} | write {\"hosts\":[\"c.org:443\"]} | read {\"url\":\"https://b.org/\"}
        answer #2 always for this tree, hosts b.org:443, c.org:443
        answer #4 always for this agent, hosts b.org:443
        done #5
        done #6
        done #7
        said #8 You. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"} | spawn_agent {\"agent\":\"quiet\",\"goal\":\"Write.\",\"id\":\"q\"}
        said #10 I. | write {\"hosts\":[\"b.org:443\"]} | read {\"url\":\"https://b.org/\"} | write {\"hosts\":[\"b.org:80\"]}
        said #12 I. | write {\"hosts\":[\"b.org:443\"]} | read {\"url\":\"https://b.org/\"}
    "), @r#"
    #1 ended: done, spent $0.006 tokens=6 steps=1
    #2 root asks: May `root` connect to `b.org:443`, `c.org:443` and call `write` with {"hosts":["b.org:443","c.org:443"]}? Answer yes, or say why not.
    #3 root asks: May `root` connect to `c.org:443` and call `write` with {"hosts":["c.org:443"]}? Answer yes, or say why not.
    #4 root asks: May `root` connect to `b.org:443` and call `read` with {"url":"https://b.org/"}? Answer yes, or say why not.
    root may always call write with b.org:443, c.org:443, for this tree
    #2 ended: approved, spent nothing
    #5 started: held tool_calls=1
    #3 ended: approved, spent nothing
    #6 started: held tool_calls=1
    root may always call read with b.org:443, for this agent
    #4 ended: approved, spent nothing
    #7 started: held tool_calls=1
    #5 ended: done, spent tool_calls=1
    #6 ended: done, spent tool_calls=1
    #7 ended: done, spent tool_calls=1
    #8 started: held $0.10 tokens=942 steps=1
    #8 ended: done, spent $0.004 tokens=4 steps=1
    h spawned by root: $8.99
    #10 started: held $0.10 tokens=753 steps=1
    q spawned by root: $8.99
    #12 started: held $0.10 tokens=674 steps=1
    h's active time runs: 600000ms left
    q's active time runs: 600000ms left
    #10 ended: done, spent $0.002 tokens=2 steps=1
    #13 started: held tool_calls=1
    #14 h asks: May `h` connect to `b.org:443` and call `read` with {"url":"https://b.org/"}? Answer yes, or say why not.
    #15 h asks: May `h` connect to `b.org:80` and call `write` with {"hosts":["b.org:80"]}? Answer yes, or say why not.
    #12 ended: done, spent $0.002 tokens=2 steps=1
    q tool 0 error: not granted here: `b.org:443`; granted here is `a.org:443`, and you may not ask for more: do without
    #16 started: held tool_calls=1
    "#);
}

/// G26 (asking): a remembered answer has the hosts that were shown, neither more nor others.
#[test]
fn g26_remembered_hosts_are_never_more_than_what_was_shown() {
    let ask = r#"{"hosts":["b.org:443","c.org:443"]}"#;
    for (hosts, is_fine) in [
        (&["b.org:443", "c.org:443"][..], true),
        (&["b.org:443"], false),
        (&["b.org:443", "c.org:443", "d.org:443"], false),
        (&["b.org", "c.org"], false),
        (&["*.b.org", "c.org:443"], false),
        (&[], false),
    ] {
        let mut play = hosts_play("root $9.00 turns=20", &["root"]);
        play.run(&format!("said #1 I do. | write {ask}"));
        let pattern = SubjectPattern::Hosts(hosts.iter().map(|host| name(host)).collect());
        let remember = RememberedApproval { scope: ApprovalScope::Tree, pattern };
        let refused = play.ask(Answer::always(CallId(2), remember)).err();
        assert_eq!(refused.is_none(), is_fine, "{hosts:?} {refused:?}");
    }
    // Neither kind of question takes what the other one is about.
    for pattern in [SubjectPattern::Beginning(String::new()), SubjectPattern::Exact(ask.to_owned())] {
        let mut play = hosts_play("root $9.00 turns=20", &["root"]);
        play.run(&format!("said #1 I do. | write {ask}"));
        let remember = RememberedApproval { scope: ApprovalScope::Tree, pattern };
        assert!(matches!(
            play.ask(Answer::always(CallId(2), remember)).err(),
            Some(Refusal::ApprovalTooWide { .. })
        ));
    }
    let mut play = play("root $9.00 turns=20", &[("root", "write", Approval::Ask)]);
    play.run("said #1 I do. | write {}");
    let pattern = SubjectPattern::Hosts([name("b.org:443")].into());
    let remember = RememberedApproval { scope: ApprovalScope::Tree, pattern };
    assert!(play.ask(Answer::always(CallId(2), remember)).is_err());
}

/// G26 (asking), X6: an agent that may not ask is told so, and cannot start one that may.
#[test]
fn g26_x6_asking_for_hosts_is_a_right_that_only_shrinks() {
    let mut play = hosts_play("root $9.00 turns=20 / helper later turns=9", &["helper"]);
    assert_snapshot!(recorded(&mut play, "
        said #1 I. | write {\"hosts\":[\"b.org:443\"]} | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"} | read {\"url\":\"https://b.org/\"}
    "), @r#"
    #1 ended: done, spent $0.002 tokens=2 steps=1
    root tool 0 error: not granted here: `b.org:443`; granted here is `a.org:443`, and you may not ask for more: do without
    root tool 1 error: this agent may not ask a person for hosts, so agents below it may not either: spawn another role
    #2 started: held tool_calls=1
    "#);
    assert_eq!(allowed(&play), [(CallId(2), "no host".to_owned())], "the tool refuses it, as a connection");
}

/// G26 (asking), X6: what a person allowed an agent is nothing that it can give to others.
#[test]
fn g26_x6_allowed_hosts_are_not_passed_on() {
    let mut play =
        Scenario::grow_as("root $9.00 turns=20 / helper later turns=9", |tree: &mut Definition| {
            for (role, terms) in &mut tree.roles {
                terms.caps.network = match role.as_str() {
                    "helper" => Network::hosts([name("b.org:443")]),
                    _ => Network::Denied,
                };
                terms.caps.host_requests = HostRequests::Ask;
            }
            tree.tools.get_mut(&name::<ToolName>("write")).unwrap().hosts =
                Some(HostsArgument::list("hosts"));
        });
    assert_snapshot!(recorded(&mut play, "
        said #1 I. | write {\"hosts\":[\"b.org:443\"]}
        answer #2 always for this tree, hosts b.org:443
        done #3
        said #4 You. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Write.\",\"id\":\"h\"}
    "), @r#"
    #1 ended: done, spent $0.002 tokens=2 steps=1
    #2 root asks: May `root` connect to `b.org:443` and call `write` with {"hosts":["b.org:443"]}? Answer yes, or say why not.
    root may always call write with b.org:443, for this tree
    #2 ended: approved, spent nothing
    #3 started: held tool_calls=1
    #3 ended: done, spent tool_calls=1
    #4 started: held $0.10 tokens=723 steps=1
    #4 ended: done, spent $0.004 tokens=4 steps=1
    root tool 0 error: not granted here: `b.org:443`; granted here is no host: do without, or ask a person to grant it
    #5 started: held $0.10 tokens=915 steps=1
    "#);
}

/// G26 (asking): a tool that needs approval and names hosts asks one question about both. What is remembered of it is its
/// hosts, so the tool is asked about again.
#[test]
fn g26_one_question_is_about_a_call_and_its_hosts() {
    let mut play = hosts_play("root $9.00 turns=20", &["root"]);
    let mut definition = Definition::clone(play.world().definition());
    let root = definition.roles.get_mut(&name::<RoleName>("root")).unwrap();
    root.turns.as_mut().unwrap().approvals.insert(name("write"), Approval::Ask);
    play = Scenario::grow_as("root $9.00 turns=20", |tree: &mut Definition| *tree = definition);
    assert_snapshot!(recorded(&mut play, "
        said #1 I. | write {\"hosts\":[\"b.org:443\"]} | write {\"hosts\":[\"b.org:443\"]}
        answer #2 always for this agent, hosts b.org:443
        answer #3 yes
        done #4
        done #5
        said #6 I. | write {\"hosts\":[\"b.org:443\"]}
    "), @r#"
    #1 ended: done, spent $0.002 tokens=2 steps=1
    #2 root asks: May `root` connect to `b.org:443` and call `write` with {"hosts":["b.org:443"]}? Answer yes, or say why not.
    #3 root asks: May `root` connect to `b.org:443` and call `write` with {"hosts":["b.org:443"]}? Answer yes, or say why not.
    root may always call write with b.org:443, for this agent
    #2 ended: approved, spent nothing
    #4 started: held tool_calls=1
    #3 ended: approved, spent nothing
    #5 started: held tool_calls=1
    #4 ended: done, spent tool_calls=1
    #5 ended: done, spent tool_calls=1
    #6 started: held $0.10 tokens=872 steps=1
    #6 ended: done, spent $0.002 tokens=2 steps=1
    #7 root asks: May `root` call `write` with {"hosts":["b.org:443"]}? Answer yes, or say why not.
    "#);
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        proptest::sample::select(vec!["a", "b", "/", "..", " ", "*", "\\", ";", "git", "status", "\n"]),
        0..8,
    )
    .prop_map(|parts| parts.concat())
}

fn patterns() -> impl Strategy<Value = SubjectPattern> {
    (text(), any::<bool>()).prop_map(|(text, is_exact)| {
        if is_exact { SubjectPattern::Exact(text) } else { SubjectPattern::Beginning(text) }
    })
}

proptest! {
    /// G15: a narrower pattern covers nothing that the wider one does not.
    #[test]
    fn g15_a_pattern_that_is_within_another_covers_no_more(
        wide in patterns(), narrow in patterns(), subject in text()
    ) {
        if wide.covers_all_of(&narrow) && narrow.covers(&subject) {
            prop_assert!(wide.covers(&subject), "{wide} {narrow} {subject:?}");
        }
    }

    /// G15: what is offered covers the call that it is offered for.
    #[test]
    fn g15_the_offer_covers_its_own_call(subject in text()) {
        for kind in [None, Some(SubjectKind::Path), Some(SubjectKind::Command)] {
            prop_assert!(SubjectPattern::offered(kind, &subject).covers(&subject));
        }
    }

    /// What a person reads is what is remembered.
    #[test]
    fn a_pattern_is_read_back_as_it_is_written(shown in patterns()) {
        let is_written = !matches!(&shown, SubjectPattern::Beginning(text) if text.ends_with('\\'));
        prop_assume!(is_written);
        prop_assert_eq!(shown.to_string().parse(), Ok(shown));
    }
}
