//! Tools with an approval policy: allow, ask, deny.

use insta::assert_snapshot;
use spinney_kernel::definition::{Approval, Definition};
use spinney_kernel::primitives::RoleName;
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
    #2 ended: refused (a person did not let you call `write`: Not into that file; do without it, or ask for something else), spent nothing
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
    root tool 1 error: no role is called `nobody`: choose one of `root`, `helper`
    #5 ended: done, spent $0.007 tokens=7 steps=1
    h ended: completed, spent $0.007 tokens=7 steps=1
    #4 ended: children h completed, spent nothing
    #6 started: held $0.10 tokens=916 steps=1
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
    #2 ended: refused (nobody said in time whether you may call `write`: do without it, or ask for something else), spent nothing
    #3 started: held $0.10 tokens=1138 steps=1
    #3 ended: done, spent $0.009 tokens=9 steps=1
    root ended: completed, spent $0.017 tokens=17 steps=2
    ");
}
