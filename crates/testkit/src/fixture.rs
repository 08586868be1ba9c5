//! Trees from text: `root $1.00 / a $0.60 / b` creates three agents, one below the other.
//!
//! One path per line; a repeated name is the same agent. A name is followed by its terms, separated by spaces: `$0.60`,
//! `tokens=100`, `steps=3`, `tool_calls=2`, `retries=1`, `timeout=5s`, `wall=5s` (a wall-clock timeout), `active=5s`
//! (active time), `lend`, `reserve=20%` (default: none; `reserve=default` is the default of tree files), `wrap` (it
//! gets a last call before it ends for want of room), `repeats=3,6` (it is warned after three identical tool calls in a row
//! and ends after six; default: not counted), `out=2000` (the output cap of its turns, default 100), `shrink`,
//! `downgrade=cheap`, `attached`, `turns=20` (it takes turns on its own), `summed=1600` (its window has this many
//! tokens, and its model summarizes what leaves it), `tools=snapshot,read` (it may call only these), `later` (the role
//! exists, but no agent is spawned). Each agent has its own role name. The model `m` costs $0.001 per output token
//! and nothing for input, so `$0.20` is a call of 200 tokens; `cheap` costs a tenth of that, `free` has no price, and
//! `m` falls back to `cheap`.

use std::sync::Arc;

use spinney_kernel::budget::{Ceilings, Price, Resource, nanos_from_usd};
use spinney_kernel::definition::{
    Allow, BudgetSpec, Caps, Compact, Definition, Lend, ModelSpec, OnLost, OnLow, Repeats, Role, ToolSpec,
    TreeLimits, Turns, Unpriced, WindowSpec, WrapUp,
};
use spinney_kernel::primitives::{ToolName, limit};
use spinney_kernel::rules::request::Collect;

/// What one output token of the model `m` costs.
pub const NANOS_PER_TOKEN: u64 = 1_000_000;

/// One agent of a fixture.
#[derive(Clone, Debug)]
pub struct FixtureAgent {
    /// Its name: both id and role.
    pub name: String,
    /// Its parent's name; `None` for the root.
    pub parent: Option<String>,
    /// Its ceilings.
    pub budget: BudgetSpec,
    /// How its result is collected.
    pub collect: Collect,
    /// When it is spawned.
    pub birth: SpawnTime,
    /// How many turns it may take on its own, if any.
    pub turns: Option<u32>,
    /// Its active time, if not the default.
    pub active_ms: Option<u64>,
    /// The most output tokens of one turn.
    pub output_cap: u64,
    /// The size of its window, if its model summarizes what leaves it.
    pub summed: Option<u64>,
    /// The tools that it may call; `None` is all.
    pub tools: Option<Vec<ToolName>>,
}

/// When an agent of a fixture is spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnTime {
    /// With the tree.
    Now,
    /// By a script, or never.
    Later,
}

/// The agents of a fixture, parents before children.
///
/// # Panics
/// If the text is not a fixture; the message names the word.
#[must_use]
pub fn plants(text: &str) -> Vec<FixtureAgent> {
    let mut found: Vec<FixtureAgent> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut parent: Option<String> = None;
        for segment in line.split('/').map(str::trim) {
            let (name, terms) = segment.split_once(' ').unwrap_or((segment, ""));
            if !found.iter().any(|plant| plant.name == name) {
                let (budget, collect) = budget(terms);
                let later = terms.split_whitespace().any(|term| term == "later");
                let birth = if later { SpawnTime::Later } else { SpawnTime::Now };
                let term =
                    |name| terms.split_whitespace().find_map(|term| term.strip_prefix(name)).map(number);
                let (turns, summed) = (term("turns=").map(|turns| turns as u32), term("summed="));
                let active = terms.split_whitespace().find_map(|term| term.strip_prefix("active="));
                let active_ms = active.map(millis);
                let tools = terms.split_whitespace().find_map(|term| term.strip_prefix("tools="));
                let tools = tools.map(|tools| tools.split(',').map(parse).collect());
                let (name, output_cap) = (name.to_owned(), term("out=").unwrap_or(100));
                found.push(FixtureAgent {
                    name,
                    parent,
                    budget,
                    collect,
                    birth,
                    turns,
                    active_ms,
                    output_cap,
                    summed,
                    tools,
                });
            }
            parent = Some(name.to_owned());
        }
    }
    found
}

/// Parses ceilings.
///
/// # Panics
/// On an unknown word; the message names it.
#[must_use]
pub fn budget(words: &str) -> (BudgetSpec, Collect) {
    let mut budget = BudgetSpec {
        answer_reserve: Some(0),
        wrap_up: Some(WrapUp::Off),
        repeats: Some(Repeats::OFF),
        ..BudgetSpec::default()
    };
    let mut collect = Collect::Detached;
    for word in words.split_whitespace() {
        match word.split_once('=') {
            None if word.starts_with('$') => {
                let nanos = nanos_from_usd(word).unwrap_or_else(|error| panic!("{error}"));
                budget.limit = budget.limit.with(Resource::Cost, nanos);
            }
            None if word == "lend" => budget.lend = Some(Lend::Yes),
            None if word == "shrink" => budget.on_low = Some(OnLow::Shrink),
            None if word == "detached" => collect = Collect::Detached,
            None if word == "later" => {}
            None if word == "wrap" => budget.wrap_up = Some(WrapUp::On),
            Some(("reserve", "default")) => budget.answer_reserve = None,
            None if word == "attached" => collect = Collect::Call,
            Some(("reserve", percent)) => {
                budget.answer_reserve = Some(number(percent.trim_end_matches('%')) as u8);
            }
            Some(("repeats", counts)) => budget.repeats = Some(repeats(counts)),
            Some(("turns" | "active" | "summed" | "tools" | "out", _)) => {}
            Some(("downgrade", model)) => budget.on_low = Some(OnLow::Downgrade(parse(model))),
            Some(("timeout", span)) => budget.timeout_ms = Some(millis(span)),
            Some(("wall", span)) => {
                (budget.timeout_ms, budget.timeout_wall) = (Some(millis(span)), true);
            }
            Some((name, amount)) => {
                budget.limit = budget.limit.with(resource(name), number(amount));
            }
            None => panic!("`{word}` is no term of a fixture"),
        }
    }
    (budget, collect)
}

/// The definition for a fixture's agents: every role may do everything, limits are the defaults.
#[must_use]
pub fn definition(plants: &[FixtureAgent]) -> Definition {
    let root = plants.first();
    let roles = plants.iter().map(|plant| (parse(&plant.name), role(plant))).collect();
    let price = |output_per_mtok| Some(Price::flat(0, output_per_mtok));
    let per_mtok = NANOS_PER_TOKEN * 1_000_000;
    let m = ModelSpec { price: price(per_mtok), fallback: vec![parse("cheap")], ..ModelSpec::default() };
    let cheap = ModelSpec { price: price(per_mtok / 10), ..ModelSpec::default() };
    Definition {
        is_kept: false,
        visibility: Default::default(),
        redact: Default::default(),
        name: "fixture".to_owned(),
        goal: "Grow.".to_owned(),
        entry: root.map_or_else(|| parse("root"), |plant| parse(&plant.name)),
        thread: None,
        budget: root.map(|plant| plant.budget.clone()).unwrap_or_default(),
        limits: TreeLimits { depth_max: limit::DEPTH_CAP, ..TreeLimits::default() },
        models: [(parse("m"), m), (parse("cheap"), cheap), (parse("free"), ModelSpec::default())]
            .into_iter()
            .collect(),
        roles,
        tools: [(parse("read"), tool(OnLost::Repeatable)), (parse("write"), tool(OnLost::Presumed))]
            .into_iter()
            .collect(),
        shared: Default::default(),
        unpriced: Unpriced::Refuse,
        durability: Default::default(),
        graph: None,
        inputs: Default::default(),
        command_tools: Default::default(),
        servers: Default::default(),
        folders: None,
        tags: Default::default(),
    }
}

/// A role that may do everything.
fn role(plant: &FixtureAgent) -> Role {
    let window = plant.summed.map(|size| WindowSpec {
        size: Some(size),
        compact: Compact::Summary,
        ..WindowSpec::default()
    });
    let BudgetSpec { answer_reserve, wrap_up, repeats, .. } = plant.budget;
    let budget = BudgetSpec { answer_reserve, wrap_up, repeats, ..BudgetSpec::with_limit(Ceilings::NONE) };
    Role {
        model: parse("m"),
        caps: Caps {
            tools: plant.tools.as_ref().map_or(Allow::All, |tools| Allow::only(tools.iter().cloned())),
            ..Caps::all(limit::DEPTH_CAP)
        },
        budget,
        recursive: Default::default(),
        rate: Default::default(),
        program: None,
        turns: plant.turns.map(|turns_max| Turns {
            turns_max,
            output_cap: Some(plant.output_cap),
            active_ms: plant.active_ms,
            window,
            ..Turns::default()
        }),
    }
}

/// `3,6` is a notice after three and the end after six.
fn repeats(text: &str) -> Repeats {
    let (notice, end) = text.split_once(',').unwrap_or_else(|| panic!("`{text}` is no pair such as 3,6"));
    Repeats { notice: number(notice) as u32, end: number(end) as u32 }
}

fn tool(lost: OnLost) -> ToolSpec {
    ToolSpec { lost, ..ToolSpec::default() }
}

/// The same, shared as requests carry it.
#[must_use]
pub fn shared(plants: &[FixtureAgent]) -> Arc<Definition> {
    Arc::new(definition(plants))
}

/// A resource by its name.
pub(crate) fn resource(name: &str) -> Resource {
    match Resource::ALL.into_iter().find(|resource| resource.to_string() == name) {
        Some(resource) => resource,
        None => panic!("`{name}` is no resource"),
    }
}

pub(crate) fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// `5s` or `200ms` in milliseconds.
pub(crate) fn millis(text: &str) -> u64 {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(ms), _) => number(ms),
        (None, Some(s)) => number(s) * 1_000,
        (None, None) => panic!("`{text}` is no time: write 5s or 200ms"),
    }
}

/// Parses an id or name of a fixture.
pub(crate) fn parse<T: std::str::FromStr<Err = spinney_kernel::primitives::IdError>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
