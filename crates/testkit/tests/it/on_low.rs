//! When a call does not fit: stop, shrink it, or use a cheaper model; and models without a known price.

use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Allow, BudgetSpec, Definition, ModelSpec, OnLow, Refusal, Unpriced};
use spinney_kernel::primitives::ModelName;
use spinney_kernel::record::Effect;
use spinney_kernel::rules::request::{Hold, HoldFor, Request, Spawn};
use spinney_testkit::{Scenario, check};

use crate::observed::{attempts, effects, name, person, refused};

/// V19 (on_low: halt): the agent ends with its progress.
#[test]
fn v19_by_default_an_agent_whose_call_does_not_fit_ends() {
    insta::assert_snapshot!(check("root $9.00 / a $0.50", "call a $0.51"), @"
    #1 asked by a
    #1 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.00, held $0.00, asked $0.51: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of a), spent nothing
    root idle, of $9.00
      a exhausted
    ");
}

/// V19 (on_low: shrink): the output cap is reduced to what fits, by money and by tokens, at every account.
#[test]
fn v19_shrink_lowers_the_output_cap_to_what_fits() {
    let script = "call a $0.90\ndone #1 $0.484\ncall a $0.10\ndone #2 $0.016\ncall a $0.10";
    insta::assert_snapshot!(check("root $9.00 / a $0.50 shrink", script), @"
    #1 asked by a
    #1 switched: m, cap 500
    #1 started: held $0.50 tokens=500 steps=1
    #1 ended: done, spent $0.484 tokens=484 steps=1
    #2 asked by a
    #2 switched: m, cap 16
    #2 started: held $0.016 tokens=16 steps=1
    #2 ended: done, spent $0.016 tokens=16 steps=1
    #3 asked by a
    #3 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.50, held $0.00, asked $0.10: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of a), spent $0.50 tokens=500 steps=2
    root idle, spent $0.50 tokens=500 steps=2, of $9.00
      a exhausted, spent $0.50 tokens=500 steps=2
    ");
    insta::assert_snapshot!(check("root $9.00 / a tokens=300 / b shrink", "call b $0.90"), @"
    #1 asked by b
    #1 switched: m, cap 300
    #1 started: held $0.30 tokens=300 steps=1
    root idle, held $0.30 tokens=300 steps=1, of $9.00
      a idle, held $0.30 tokens=300 steps=1, of $9.00 tokens=300
        b running, held $0.30 tokens=300 steps=1, of $9.00 tokens=300
    ");
}

/// V19 (on_low: shrink): input is paid first; an output cap that is too small is refused.
#[test]
fn v19_shrink_leaves_room_for_the_input_and_never_asks_for_a_stub() {
    let mut play = Scenario::grow("root / a tokens=150 shrink\nroot / b tokens=150 shrink");
    let ask = |agent: &str, input_tokens| {
        let effect = HoldFor::Model { model: None, input_tokens, output_cap: None };
        person(Request::Hold(Hold { agent: name(agent), effect }))
    };
    play.input(ask("a", 50)).unwrap();
    play.input(ask("b", 135)).unwrap();
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by a
    #1 switched: m, cap 100
    #1 started: held $0.10 tokens=150 steps=1
    #2 asked by b
    #2 ended: refused (tokens ceiling of `b`: limit 150, spent 0, held 0, asked 16135: answer with what you have, or ask for less), spent nothing
    b ended: exhausted (tokens of b), spent nothing
    root idle, held $0.10 tokens=150 steps=1
      a running, held $0.10 tokens=150 steps=1, of tokens=150
      b exhausted
    ");
}

/// V19 (on_low: downgrade): the call uses the cheaper model, and if that does not fit either, the agent ends.
#[test]
fn v19_downgrade_goes_to_the_cheaper_model() {
    let script = "call a $0.90\ndone #1 $0.09\ncall a $5.00";
    insta::assert_snapshot!(check("root $9.00 / a $0.50 downgrade=cheap", script), @"
    #1 asked by a
    #1 switched: cheap, cap 900
    #1 started: held $0.09 tokens=900 steps=1
    #1 ended: done, spent $0.09 tokens=900 steps=1
    #2 asked by a
    #2 switched: cheap, cap 5000
    #2 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.09, held $0.00, asked $0.50: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of a), spent $0.09 tokens=900 steps=1
    root idle, spent $0.09 tokens=900 steps=1, of $9.00
      a exhausted, spent $0.09 tokens=900 steps=1
    ");
}

/// V19 (on_low: downgrade): rights still bind: a model the agent may not call is not called to save money, and a spawn
/// that asks for it is refused.
#[test]
fn v19_downgrade_never_leads_to_a_model_that_is_not_allowed() {
    let downgrade = || Some(OnLow::Downgrade(name("cheap")));
    let mut play = Scenario::grow_as("root $9.00 / a $0.50", |tree| {
        tree.roles[1].caps.models = Allow::only([name("m")]);
        tree.roles[1].budget.on_low = downgrade();
    });
    play.run("call a $0.90");
    assert_eq!((attempts(&play), play.view("a").status.to_string()), (0, "exhausted".to_owned()));
    let budget = BudgetSpec { on_low: downgrade(), ..BudgetSpec::default() };
    let refusal =
        refused(&mut play, person(Request::Spawn(Spawn { budget, ..Scenario::spawn("root", "a") })));
    assert_eq!(refusal, Refusal::ModelNotAllowed { model: name("cheap"), allowed: vec![name("m")] });
}

/// A call that moves to another model keeps within that model's largest output.
#[test]
fn a_call_that_goes_to_another_model_keeps_within_that_models_output() {
    let small = |definition: &mut Definition| {
        definition.models[1].output_max = Some(40);
    };
    let mut play = Scenario::grow_as("root $9.00 / a $0.50 downgrade=cheap\nroot / b\nroot / c", small);
    play.run("call a $0.90\ncall b $0.90\nfailed #2 server\nopen m\ncall c $0.90");
    let caps: Vec<u64> =
        play.world().calls().all().map(|(_, call)| call.held().get(Resource::Tokens)).collect();
    assert_eq!(caps, [40, 40, 40]);
}

/// V19 (unpriced), G5 (unknown price): a model without a price under a cost ceiling is refused, never counted as zero.
#[test]
fn v19_a_model_without_a_price_is_refused_under_a_cost_ceiling() {
    let mut play = Scenario::grow("root $1.00 / a\nroot / b");
    let free: ModelName = name("free");
    let call = |agent: &str| {
        let effect = HoldFor::Model { model: Some(name("free")), input_tokens: 1, output_cap: None };
        person(Request::Hold(Hold { agent: name(agent), effect }))
    };
    assert_eq!(refused(&mut play, call("a")), Refusal::Unpriced { model: free.clone() });
    let spawn = Spawn { model: Some(free.clone()), ..Scenario::spawn("root", "b") };
    assert_eq!(refused(&mut play, person(Request::Spawn(spawn))), Refusal::Unpriced { model: free });
}

/// V19 (unpriced): without a cost ceiling there is nothing to protect; with `unpriced: allow` the file permits it.
#[test]
fn v19_a_model_without_a_price_runs_where_cost_is_unlimited_or_the_file_allows_it() {
    insta::assert_snapshot!(check("root tokens=1000 / a", "call a $0.10 model=free\ndone #1 $0.05"), @"
    #1 asked by a
    #1 started: held tokens=100 steps=1
    #1 ended: done, spent tokens=50 steps=1
    root idle, spent tokens=50 steps=1, of tokens=1000
      a idle, spent tokens=50 steps=1, of tokens=1000
    ");
    let mut play = Scenario::grow_as("root $1.00 / a", |definition| definition.unpriced = Unpriced::Allow);
    play.run("call a $0.10 model=free\ndone #1 $0.05");
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by a
    #1 started: held tokens=100 steps=1
    #1 ended: done, spent tokens=50 steps=1
    root idle, spent tokens=50 steps=1, of $1.00
      a idle, spent tokens=50 steps=1, of $1.00
    ");
}

/// A fallback without a price is also skipped.
#[test]
fn v19_a_fallback_without_a_price_is_never_called_under_a_ceiling() {
    let mut play = Scenario::grow_as("root $1.00 / a", |definition| {
        definition.models[0] = ModelSpec { fallback: vec![name("free")], ..definition.models[0].clone() };
    });
    let recorded = effects(&mut play, "call a $0.10\nfailed #1 auth");
    assert!(
        !recorded
            .iter()
            .any(|effect| matches!(effect, Effect::CallModel { model, .. } if model.as_str() == "free"))
    );
    insta::assert_snapshot!(play.log(), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 ended: failed (Auth), spent nothing
    ");
}
