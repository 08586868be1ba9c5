//! The tool calls of a simulated model: existing tools, missing tools, invalid arguments.

use spinney_kernel::definition::Compact;
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::{ToolAsk, Work};
use spinney_kernel::world::{Call, World};

use super::dice::Dice;
use super::graphs::{self, GraphParts};
use super::moves::an_agent;
use super::random_definition::{ROLES, TOOLS};
use crate::fixture::parse;

/// The tool calls of one answer; often none, because that ends the agent. An agent whose window is summarized lives
/// longer, so its window fills up.
pub(super) fn asks(dice: &mut Dice, world: &World, call: &Call) -> Vec<ToolAsk> {
    let role = world.definition().roles.get(&world.agents().agent(call.agent).terms.role);
    let window = role.and_then(|role| role.turns.as_ref()?.window.as_ref());
    let sums_up = window.is_some_and(|window| window.compact == Compact::Summary);
    let is_summary = matches!(call.work, Work::Model(_)) && !call.work.is_turn();
    let is_last = if is_summary { !dice.once_in(8) } else { dice.once_in(if sums_up { 12 } else { 3 }) };
    let count = if is_last { 0 } else { dice.between(1, 4) };
    (0..count).map(|number| ask(dice, world, number)).collect()
}

/// An agent that has ended, if there is one.
fn a_finished(dice: &mut Dice, world: &World, other: &AgentId) -> AgentId {
    let ended = world.agents().all().filter(|ix| world.agents().ended(*ix).is_some());
    let ended: Vec<AgentId> = ended.map(|ix| world.agents().id(ix).clone()).collect();
    dice.pick(&ended).unwrap_or_else(|| other.clone())
}

fn key(dice: &mut Dice) -> &'static str {
    dice.pick(&["plan", "notes.a", "notes.b", "pipeline.progress"]).unwrap_or("plan")
}

fn writing(dice: &mut Dice) -> String {
    let value = match dice.below(8) {
        0 => "null".to_owned(),
        // Head and tail are shown of it.
        1 => format!("\"{}\"", "x".repeat(40_000)),
        _ => format!("[{}, \"a\"]", dice.below(3)),
    };
    let expect =
        if dice.once_in(3) { format!(r#","expect_version":{}"#, dice.below(3)) } else { String::new() };
    format!(r#"{{"key":"{}","value":{value}{expect}}}"#, key(dice))
}

/// Hosts that most agents do not have.
fn with_hosts(dice: &mut Dice) -> String {
    let host = dice.pick(&["b.test:443", "c.test:443", "a.example.org:443", "*.test", "127.0.0.1:80"]);
    let host = host.unwrap_or("b.test:443");
    let more = if dice.once_in(3) { r#", "c.test:443""# } else { "" };
    format!(r#"{{"path":"a","hosts":["{host}"{more}],"url":"https://{host}/"}}"#)
}

fn is_written(world: &World, key: &str) -> bool {
    world.shared().find(&parse(key)).is_some()
}

/// A graph that a model writes, as a rule without a problem.
fn pipeline(dice: &mut Dice, world: &World) -> String {
    let list = world.definition().inputs.contains_key("list");
    let is_declared =
        |key: &&&str| world.definition().shared.rule(&parse(key)).is_some() || is_written(world, key);
    let shared: Vec<&str> = ["plan", "notes.b"].iter().filter(is_declared).copied().collect();
    let parts = GraphParts {
        roles: &ROLES,
        policies: &GraphParts::POLICIES,
        steps_max: 3,
        depth: 1,
        list,
        races: true,
        timeouts: true,
        budgets: true,
        shared: &shared,
    };
    graphs::graph(dice, parts).to_string()
}

fn ask(dice: &mut Dice, world: &World, number: u64) -> ToolAsk {
    let agent = an_agent(dice, world);
    let (tool, args) = match dice.below(25) {
        0..6 => {
            let role = dice.pick(&ROLES).unwrap_or("worker");
            let more = match dice.below(4) {
                0 => r#","detach":true"#,
                1 => r#","budget":{"tokens":900,"lend":true}"#,
                2 => r#","budget":{"cost_usd":0.0003},"timeout":2"#,
                _ => "",
            };
            ("spawn_agent", format!(r#"{{"agent":"{role}","goal":"Part {}."{more}}}"#, dice.below(9)))
        }
        6 => ("wait_agent", format!(r#"{{"agents":["{agent}"]}}"#)),
        7 => {
            ("followup_task", format!(r#"{{"agent":"{}","task":"More."}}"#, a_finished(dice, world, &agent)))
        }
        8 => ("send_message", format!(r#"{{"to":"{agent}","text":"hello"}}"#)),
        9 => ("list_agents", "{}".to_owned()),
        10 => ("cancel_agent", format!(r#"{{"agent":"{agent}"}}"#)),
        11..13 => ("ask_human", r#"{"question":"Which?","timeout":3}"#.to_owned()),
        13 => ("no_such_tool", "{}".to_owned()),
        14 => ("spawn_agent", r#"{"agent":"wor"#.to_owned()),
        15 => ("read", "[1]".to_owned()),
        16 => ("\u{0}", "{}".to_owned()),
        17 => ("list_context", "{}".to_owned()),
        18..20 => ("read_context", format!(r#"{{"key":"{}"}}"#, key(dice))),
        20..22 => ("write_context", writing(dice)),
        22 => ("run_pipeline", pipeline(dice, world)),
        23 => (dice.pick(&TOOLS).unwrap_or("read"), with_hosts(dice)),
        _ => (dice.pick(&TOOLS).unwrap_or("read"), r#"{"path":"a"}"#.to_owned()),
    };
    ToolAsk {
        id: format!("c{number}"),
        tool: tool.to_owned(),
        args,
        tokens: dice.once_in(2).then(|| dice.below(20).into()),
        told_tokens: None,
    }
}
