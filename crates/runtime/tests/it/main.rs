//! The budget handle, trees and the tree file from outside: one module per topic, through the public API only.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod acting;
mod asked_models;
mod asking_tools;
mod attempts;
mod bad_input;
mod branching;
mod budget_keys;
mod caching;
mod cancelling;
mod ceilings;
mod chain;
mod charging;
mod checkpoints;
mod child_of_its_own;
mod cleaning;
mod clock;
mod clock_set_back;
mod clocks;
mod clocks_after_a_crash;
mod closing;
mod continuing;
mod counting;
mod cut_answers;
mod deep;
mod drivers_per_tree;
mod embedding;
mod ending;
mod executor;
mod failing_journal;
mod falling_back;
mod faulty_models;
mod function_tools;
mod graph_controls;
mod graph_file_errors;
mod graph_files;
mod graph_scenarios;
mod graph_shared_inputs;
mod graphs;
mod guarding;
mod handing_over;
mod hash_chain;
mod hooking;
mod interfering_models;
mod kept;
mod key_files;
mod leases;
mod lending;
mod limiting;
mod line;
mod looping;
mod many_watchers;
mod misbehaving;
mod money;
mod network_keys;
mod outage;
mod output_schema;
mod owners;
mod parallel;
mod pausing;
mod peers;
mod pipeline_bounds;
mod program_keys;
mod questions;
mod racing_the_end;
mod raising;
mod reasoning;
mod recovering;
mod redaction;
mod removing;
mod replanning;
mod reserving;
mod resuming_late;
mod retrying;
mod rolling_back;
mod run_and_check;
mod running;
mod settling;
mod sharing_values;
mod shutting_down;
mod slow_journal;
mod snapshots;
mod source_files;
mod spawning;
mod stopping;
mod summarising;
mod suspending;
mod tagging;
mod tailing;
mod three_levels;
mod too_long;
mod tool_sources;
mod tree_file;
mod tree_file_check;
mod tree_file_errors;
mod tree_file_inputs;
mod tree_file_schema;
mod turns;
mod watching;
mod watching_by_many;
mod watching_past;
mod windows;
mod wrapping_up;

use spinney::budget::{Amounts, Budget, Limits, spend};

fn usd(text: &str) -> Amounts {
    spend::usd(text).unwrap()
}

fn limit(text: &str) -> Limits {
    Limits::usd(text).unwrap()
}

fn root(text: &str) -> Budget {
    Budget::root(limit(text)).unwrap()
}

/// Spends through a hold, as a call would.
fn spend_at(budget: &Budget, text: &str) {
    budget.try_hold(usd(text)).unwrap().settle(usd(text)).unwrap();
}

/// Parses an id or a name.
fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error:?}"))
}
