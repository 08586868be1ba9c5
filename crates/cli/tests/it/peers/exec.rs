//! Claude Code and Codex under `spinney exec`: the tree that their calls make, and its bill.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use spinney_kernel::budget::Usage;

use super::outside::{DONE, KEY, OAKS, Program, TASK, ended, play};
use crate::provider::{Answer, Provider, Question};
use crate::test_folder::{Playing, TestFolder};

/// Starts a program with its task under `spinney exec`.
pub(super) fn exec(stage: &TestFolder, program: Program, provider: &Provider, options: &[&str]) -> Playing {
    exec_with(stage, program, provider, options, &[])
}

/// The same with more arguments of the program.
pub(super) fn exec_with(
    stage: &TestFolder,
    program: Program,
    provider: &Provider,
    options: &[&str],
    more: &[&str],
) -> Playing {
    // The provider is at an address of ours, and charges what the real one does.
    let prices_of = match program {
        Program::ClaudeCode => "anthropic",
        Program::Codex => "openai",
    };
    let start = [env!("CARGO_BIN_EXE_spinney"), "exec", "--prices-of", prices_of];
    let start = start.into_iter().chain(options.iter().copied()).chain(["--"]);
    let more = more.iter().map(|&word| word.to_owned());
    let words: Vec<String> = start.map(str::to_owned).chain(program.words()).chain(more).collect();
    play(stage, &words, &program.environment(stage, provider))
}

/// What a usage costs, in nano-dollars, by the list prices of October 2026 and with nothing of ours in between.
pub(super) const fn cost_nanos(program: Program, usage: Usage) -> u64 {
    let Usage { input, cached_input, cache_write, cache_write_1h, output, reasoning, .. } = usage;
    match program {
        // claude-sonnet-4-5: $3, $0.30, $3.75, $6 and $15 for a million.
        Program::ClaudeCode => {
            3_000 * input
                + 300 * cached_input
                + 3_750 * cache_write
                + 6_000 * cache_write_1h
                + 15_000 * (output + reasoning)
        }
        // gpt-6.1-sol: $2, $0.10, $2.50 and $10 for a million.
        Program::Codex => {
            2_000 * input + 100 * cached_input + 2_500 * cache_write + 10_000 * (output + reasoning)
        }
    }
}

/// What the provider would write on its bill for each agent, by the name that the program gives it.
pub(super) fn billed(program: Program, provider: &Provider) -> BTreeMap<Option<String>, u64> {
    let mut billed = BTreeMap::new();
    for (question, answer) in provider.answered() {
        *billed.entry(program.agent(&question)).or_default() += cost_nanos(program, answer.usage);
    }
    billed
}

/// What the journal has of an agent.
#[derive(Debug, Default)]
pub(super) struct BookedAgent {
    goal: String,
    cost_nanos: u64,
}

/// What the journal has of each agent, by its path.
pub(super) fn booked(events: &[Value]) -> BTreeMap<String, BookedAgent> {
    let mut booked = BTreeMap::<_, BookedAgent>::new();
    for event in events {
        let agent = || event["path"].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "agent_spawned" => {
                booked.entry(agent()).or_default().goal = event["goal"].as_str().unwrap().to_owned();
            }
            "call_ended" | "attempt_failed" => {
                let spent = event["spent"]["cost_nanos"].as_u64().unwrap_or_default();
                booked.entry(agent()).or_default().cost_nanos += spent;
            }
            _ => {}
        }
    }
    booked
}

/// Each agent of the program is an agent of the tree, and has what the provider bills for it. Returns the paths of the
/// agents by the names that the program gives them.
pub(super) fn assert_bill(
    program: Program,
    provider: &Provider,
    events: &[Value],
) -> BTreeMap<String, String> {
    let (billed, booked) = (billed(program, provider), booked(events));
    assert_eq!(billed.len(), booked.len(), "{program:?} {billed:?} {booked:?}");
    let (root, main) = booked.first_key_value().unwrap();
    assert_eq!(main.cost_nanos, billed[&None], "{program:?} {booked:?}");
    let parts = billed.iter().filter_map(|(name, nanos)| Some((name.clone()?, *nanos)));
    let paths = parts.map(|(name, nanos)| {
        let (path, agent) = booked.iter().find(|(_, agent)| agent.goal.contains(&name)).unwrap();
        assert_eq!(agent.cost_nanos, nanos, "{program:?} {name} {booked:?}");
        (name, path.clone())
    });
    let paths = paths.collect();
    // The root pays for itself and for all agents below it.
    let ends = |event: &&Value| event["type"] == "agent_ended" && event["path"] == root.as_str();
    let total = &events.iter().find(ends).unwrap()["spent"]["cost_nanos"];
    assert_eq!(total.as_u64(), Some(billed.values().sum()), "{program:?}");
    paths
}

/// G10: each sub-agent of a real program is an agent of the tree below the main one, and what is booked for each is what
/// the provider bills for it, to the nano-dollar.
#[test]
fn g10_each_sub_agent_of_a_real_program_is_an_agent_and_pays_for_itself() {
    for program in Program::ALL {
        let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
        let ended = ended(exec(&stage, program, &provider, &["--budget-usd", "20"]));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        let events = stage.spinney(&["events", "last", "--json"]).json();
        let paths = assert_bill(program, &provider, &events);
        assert_eq!(paths.len(), 2, "{program:?}");
        assert!(paths.values().all(|path| path.split('/').count() == 2), "{program:?} {paths:?}");

        let verified = stage.spinney(&["replay", "last", "--verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let told = format!("{}{}", ended.out, ended.err);
        assert!(!told.contains(KEY), "{program:?}: {told}");
        // In the home of the run, and in the home of the program.
        let found =
            Command::new("grep").args(["-rla", KEY, "."]).current_dir(stage.folder()).output().unwrap();
        assert_eq!(String::from_utf8(found.stdout).unwrap(), "", "the user's key is for the provider alone");
    }
}

/// G10 (by the real programs): an agent below a sub-agent is also below it in the tree.
#[test]
fn g10_a_sub_agent_of_a_sub_agent_is_below_it_in_the_tree() {
    const LEAVES: &str = "Describe the leaves.";
    for program in Program::ALL {
        let stage = TestFolder::new();
        let provider = Provider::new(move |question| {
            if question.has(LEAVES) {
                let usage = Usage { input: 401, cached_input: 89, output: 43, ..Usage::default() };
                return Answer::says("The leaves are green.", usage);
            }
            if question.has(TASK) || !question.has(OAKS) {
                return program.answer(question);
            }
            let usage = Usage { input: 409, output: 47, ..Usage::default() };
            match question.results.is_empty() {
                true => program.spawns(Answer::says("One more.", usage), "leaves", LEAVES),
                false => program.waits(question, 1).unwrap_or_else(|| program.answer(question)),
            }
        });
        let ended = ended(exec(&stage, program, &provider, &["--budget-usd", "20"]));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        let events = stage.spinney(&["events", "last", "--json"]).json();
        let paths = assert_bill(program, &provider, &events);
        let path_of = |task: &str| {
            let asked = |(question, _): &&(Question, Answer)| question.has(task) && !question.has(TASK);
            let answered = provider.answered();
            let (question, _) = answered.iter().find(asked).unwrap();
            paths[&program.agent(question).unwrap()].clone()
        };
        let (oaks, leaves) = (path_of(OAKS), path_of(LEAVES));
        assert!(leaves.starts_with(&format!("{oaks}/")), "{program:?} {oaks} {leaves}");
        assert_eq!((oaks.split('/').count(), paths.len()), (2, 3), "{program:?} {paths:?}");
    }
}
