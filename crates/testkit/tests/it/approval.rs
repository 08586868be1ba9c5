//! Tools with an approval policy: allow, ask, deny.

use insta::assert_snapshot;
use proptest::prelude::*;
use spinney_kernel::definition::{
    Approval, ApprovalScope, Definition, Refusal, RememberedApproval, SubjectKind, SubjectPattern,
    ToolSubject,
};
use spinney_kernel::primitives::{CallId, RoleName, ToolName};
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
