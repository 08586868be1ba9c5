//! Very deep and very wide trees: no walk recurses, and charging is linear in the depth.

use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Definition, Recursion, TreeLimits};
use spinney_kernel::primitives::limit;
use spinney_kernel::rules::request::{Collect, Request, Spawn};
use spinney_testkit::Scenario;

use crate::observed::{name, turn};

fn boundless(tree: &mut Definition) {
    tree.limits = TreeLimits {
        depth_max: limit::DEPTH_CAP,
        children_max: limit::AGENTS_CAP,
        agents_max: limit::AGENTS_CAP,
        ..tree.limits
    };
    tree.roles[0].recursive = Recursion::Allowed;
}

fn child(parent: &str, number: u64) -> Request {
    Request::Spawn(Spawn {
        id: Some(name(&format!("c{number}"))),
        goal: format!("Part {number}."),
        collect: Collect::Detached,
        ..Scenario::spawn(parent, "root")
    })
}

/// V11 (decision part): a chain ten thousand deep holds, settles, is topped up and cancelled without any overflow.
#[test]
fn a_chain_ten_thousand_deep_is_charged_at_every_level() {
    let mut play = Scenario::grow_as("root $9.00", boundless);
    let mut parent = "root".to_owned();
    for number in 1..=10_000 {
        play.must(child(&parent, number));
        parent = format!("c{number}");
    }
    play.run("call c10000 $0.20\ncall c5000 $0.10\nraise root $1.00\ndone #1 $0.20\ndone #2 $0.10");
    play.run("charge c10000 $0.05\ncall c10000 $9.60");
    assert_eq!(play.view("c10000").spent.get(Resource::Cost), 250_000_000);
    for agent in ["root", "c1", "c4999", "c5000"] {
        assert_eq!(play.view(agent).spent.get(Resource::Cost), 350_000_000, "{agent}");
    }
    assert_eq!(play.view("c10000").remaining.and_then(|left| left.get(Resource::Cost)), Some(50_000_000));
    play.run("cancel root\nfailed #3 stopped $0.01");
    assert!(play.world().is_over());
    assert_eq!(play.world().ledger().len(), 0);
}

/// V11 (decision part): a parent with a hundred thousand children is charged by each of them, exactly.
#[test]
fn a_parent_with_a_hundred_thousand_children_is_charged_by_each() {
    let mut play = Scenario::grow_as("root $100.00", boundless);
    for number in 1..=100_000 {
        play.must(child("root", number));
    }
    play.clear_log();
    for number in (1..=100_000).step_by(2) {
        let call = number / 2 + 1;
        play.run(&format!("call c{number} $0.001\ndone #{call} $0.001"));
    }
    let spent = turn(50_000).with(Resource::Steps, 50_000);
    assert_eq!((play.view("root").spent, play.view("c1").spent), (spent, turn(1)));
    play.run("cancel root");
    assert!(play.world().is_over());
    assert_eq!(play.world().agents().len(), 100_001);
}
