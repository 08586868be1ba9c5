//! Ceilings lent to a child, the reserve for an agent's own answer, and what an agent has left.

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::{BudgetSpec, Lend, Refusal};
use spinney_kernel::rules::request::{Request, Spawn, Start};
use spinney_testkit::{Scenario, check, fixture};

use crate::observed::{name, person, refused};

/// V19 (lend): a lent ceiling is held at every ancestor at once, is available to the child whatever others ask, is not
/// counted twice when the child uses it, and returns when the child ends.
#[test]
fn v19_a_lent_ceiling_is_guaranteed_to_the_child_and_returns_when_it_ends() {
    let script = "
        tool root read $0.50
        tool root read $0.40
        call b $0.60
        done #3 $0.50
        call b $0.10
        done #4 $0.05
        finish b ok
        done #2
        tool root read $0.45";
    insta::assert_snapshot!(check("root $1.00 / a / b $0.60 lend", script), @"
    #1 asked by root
    #1 ended: refused (cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, lent $0.60, asked $0.50: answer with what you have, or ask for less), spent nothing
    #2 asked by root
    #2 started: held $0.40 tool_calls=1
    #3 asked by b
    #3 started: held $0.60 tokens=600 steps=1
    #3 ended: done, spent $0.50 tokens=500 steps=1
    #4 asked by b
    #4 started: held $0.10 tokens=100 steps=1
    #4 ended: done, spent $0.05 tokens=50 steps=1
    b ended: completed, spent $0.55 tokens=550 steps=2
    #2 ended: done, spent tool_calls=1
    #5 asked by root
    #5 started: held $0.45 tool_calls=1
    root running, spent $0.55 tokens=550 steps=2 tool_calls=1, held $0.45 tool_calls=1, of $1.00
      a idle, spent $0.55 tokens=550 steps=2, of $1.00
        b completed, spent $0.55 tokens=550 steps=2
    ");
}

/// V19 (lend): a ceiling that does not fit up the chain is not lent, and a lend of nothing is refused.
#[test]
fn v19_what_does_not_fit_is_not_lent() {
    let mut play = Scenario::grow("root $1.00 / a $0.60 lend\nroot / b");
    let lend = |limit: Ceilings| Spawn {
        id: Some(name("c")),
        budget: BudgetSpec { lend: Some(Lend::Yes), ..BudgetSpec::with_limit(limit) },
        ..Scenario::spawn("root", "b")
    };
    let too_much = lend(Ceilings::NONE.with(Resource::Cost, 500_000_000));
    let refusal = refused(&mut play, person(Request::Spawn(too_much)));
    insta::assert_snapshot!(refusal, @"cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, lent $0.60, asked $0.50: answer with what you have, or ask for less");
    let nothing = refused(&mut play, person(Request::Spawn(lend(Ceilings::NONE))));
    assert_eq!(nothing, Refusal::LendWithoutCeiling);
}

/// V19 (lend): a lender below a lender asks only for what its parent was lent.
#[test]
fn v19_what_was_lent_can_be_lent_on_without_counting_twice() {
    let script = "call c $0.30\ndone #1 $0.20\nfinish b ok\ncall a $0.35\nfinish a ok";
    insta::assert_snapshot!(check("root $1.00 / a $0.60 lend / b $0.40 lend / c", script), @"
    #1 asked by c
    #1 started: held $0.30 tokens=300 steps=1
    #1 ended: done, spent $0.20 tokens=200 steps=1
    b ending: completed
    c ended: cancelled (`b` ended), spent $0.20 tokens=200 steps=1
    b ended: completed, spent $0.20 tokens=200 steps=1
    #2 asked by a
    #2 started: held $0.35 tokens=350 steps=1
    a ending: completed
    root idle, spent $0.20 tokens=200 steps=1, held tokens=350 steps=1, lent $0.40, of $1.00
      a ending, spent $0.20 tokens=200 steps=1, held $0.35 tokens=350 steps=1, of $0.60
        b completed, spent $0.20 tokens=200 steps=1
          c cancelled, spent $0.20 tokens=200 steps=1
    ");
}

/// V19 (lend): raising a lent ceiling lends more, or is refused if that is not available.
#[test]
fn v19_a_lent_ceiling_is_raised_by_lending_more() {
    let script = "raise a $0.30\nraise a $0.30\ncall a $0.90";
    insta::assert_snapshot!(check("root $1.00 / a $0.60 lend", script), @"
    a raised by $0.30
    refused: cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, lent $0.90, asked $0.30: answer with what you have, or ask for less
    #1 asked by a
    #1 started: held $0.90 tokens=900 steps=1
    root idle, held tokens=900 steps=1, lent $0.90, of $1.00
      a running, held $0.90 tokens=900 steps=1, of $0.90
    ");
}

/// V19 (answer_reserve): what descendants spend, hold and are lent leaves the reserve, which the agent itself may use.
#[test]
fn v19_descendants_leave_the_reserve_and_the_agent_answers_with_it() {
    let script = "call a $0.90\ndone #1 $0.90\ncall a $0.01\nspawn root b as a\ncall root $0.10\ndone #3 $0.10\nfinish root ok";
    insta::assert_snapshot!(check("root $1.00 tokens=10000 reserve=10% / a", script), @"
    #1 asked by a
    #1 started: held $0.90 tokens=900 steps=1
    #1 ended: done, spent $0.90 tokens=900 steps=1
    #2 asked by a
    #2 ended: refused (cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.90, held $0.00, asked $0.01: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of root), spent $0.90 tokens=900 steps=1
    refused: cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.90, held $0.00: answer with what you have, or ask for less
    #3 asked by root
    #3 started: held $0.10 tokens=100 steps=1
    #3 ended: done, spent $0.10 tokens=100 steps=1
    root ended: completed, spent $1.00 tokens=1000 steps=2
    root completed, spent $1.00 tokens=1000 steps=2
      a exhausted, spent $0.90 tokens=900 steps=1
    ");
}

/// V19 (answer_reserve): held and lent amounts of descendants count against it as well as spent ones.
#[test]
fn v19_the_reserve_is_kept_from_holds_and_lends_too() {
    let held = "call a $0.50\ncall b $0.40\ncall c $0.01";
    insta::assert_snapshot!(check("root $1.00 reserve=10% / a\nroot / b\nroot / c", held), @"
    #1 asked by a
    #1 started: held $0.50 tokens=500 steps=1
    #2 asked by b
    #2 started: held $0.40 tokens=400 steps=1
    #3 asked by c
    #3 waiting: budget of root
    root idle, held $0.90 tokens=900 steps=2, of $1.00
      a running, held $0.50 tokens=500 steps=1, of $0.90
      b running, held $0.40 tokens=400 steps=1, of $0.90
      c waiting: budget, of $0.90
    ");
    let lent = "spawn root a as x $0.91 lend\nspawn root a as x $0.90 lend\nspawn root b as x";
    insta::assert_snapshot!(check("root $1.00 reserve=10% / x later", lent), @"
    refused: cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.00, held $0.00, asked $0.91: answer with what you have, or ask for less
    a spawned by root: $0.90
    refused: cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.00, held $0.00, lent $0.90: answer with what you have, or ask for less
    root idle, lent $0.90, of $1.00
      a idle, of $0.90
    ");
}

/// V19 (answer_reserve): by default an agent that takes turns and may delegate keeps a tenth of cost and tokens, or one
/// call and at most half, and a step; other agents keep nothing. It is fixed: a raise is for work.
#[test]
fn v19_the_default_reserve_is_for_those_who_may_hand_work_down() {
    let reserve_of = |fixture: &str, raise: &str| {
        let mut definition = fixture::definition(&fixture::plants(fixture));
        definition.limits.depth_max = 3;
        let mut play = Scenario::seed();
        play.must(Request::Start(Start::new(definition)));
        play.run(raise);
        let account = play.world().agents().agent(play.world().agents().root().unwrap()).account;
        let reserve = play.world().ledger().account(account).terms.reserve;
        Resource::ALL.map(|resource| reserve.get(resource))
    };
    let lead = "steps=10 tool_calls=10 retries=10 turns=9 reserve=default";
    assert_eq!(reserve_of(&format!("root $100 tokens=100050 {lead}"), ""), [10_000_000_000, 10_005, 1, 0, 0]);
    assert_eq!(reserve_of(&format!("root $1.00 tokens=1005 {lead}"), ""), [500_000_000, 502, 1, 0, 0]);
    let raised = reserve_of(&format!("root $1.00 tokens=1005 {lead}"), "raise root $9.00");
    assert_eq!(raised, [500_000_000, 502, 1, 0, 0]);
    assert_eq!(reserve_of(&format!("root $1.00 tokens=1005 {lead} tools=read"), ""), [0; 5]);
    assert_eq!(reserve_of("root $1.00 tokens=1005 steps=10 reserve=default", ""), [0; 5]);
}

/// V19 (remaining): what an agent has left is the least that any account up the chain leaves it at this moment.
#[test]
fn v19_remaining_is_the_least_that_any_account_up_the_chain_leaves() {
    let mut play =
        Scenario::grow("root $1.00 tokens=5000 steps=9 reserve=10% / a $0.80 / b $0.70 tokens=300\nroot / c");
    let remaining = |play: &Scenario, agent: &str| {
        let left = play.view(agent).remaining;
        [Resource::Cost, Resource::Tokens, Resource::Steps]
            .map(|resource| left.and_then(|left| left.get(resource)).unwrap_or(u64::MAX))
    };
    assert_eq!(remaining(&play, "b"), [700_000_000, 300, 9]);
    assert_eq!(remaining(&play, "root"), [1_000_000_000, 5000, 9]);
    play.run("call c $0.25");
    assert_eq!(remaining(&play, "b"), [650_000_000, 300, 8], "a running hold counts");
    play.run("done #1 $0.15\nspawn root d as c $0.30 lend");
    assert_eq!(remaining(&play, "b"), [450_000_000, 300, 8], "what is lent counts, what returned does not");
    assert_eq!(remaining(&play, "root"), [550_000_000, 4850, 8], "its own reserve is its own");
    assert_eq!(
        play.view("root").remaining.and_then(|left| left.get(Resource::ToolCalls)),
        None,
        "no ceiling leaves everything"
    );
}
