//! A random definition: few roles, small ceilings and tight limits, so all of them are hit often.

use std::sync::Arc;

use spinney_kernel::budget::{Ceilings, Price, PriceTier, Rates, Resource};
use spinney_kernel::definition::{
    Allow, Approval, BudgetSpec, Builtin, Caps, Compact, Definition, FolderAccess, FolderGrants,
    HostRequests, HostsArgument, KnownProgram, Lend, ModelSpec, Network, OnLost, OnLow, Preset,
    ProgramCommand, ProgramSpec, Recursion, Repeats, Role, Share, SharedAccess, TokenCounter, ToolSpec,
    ToolSubject, TreeLimits, Turns, Unpriced, ValueAccess, WindowSpec, WrapUp,
};
use spinney_kernel::primitives::{Body, ByName, RoleName, ToolName, limit};

use super::dice::Dice;
use super::graphs::{self, GraphParts};
use crate::fixture::parse;

/// The models of every simulated tree.
pub(super) const MODELS: [&str; 3] = ["big", "small", "odd"];
/// Each covers some of the others, and some cover none.
const HOSTS: [&str; 4] = ["*.example.org", "a.example.org", "a.example.org:443", "10.0.0.1:8080"];
/// The tools of every simulated tree.
pub(super) const TOOLS: [&str; 3] = ["read", "write", "run"];
/// The roles of every simulated tree.
pub(super) const ROLES: [&str; 4] = ["lead", "worker", "helper", "critic"];

/// A random definition.
pub(super) fn definition(dice: &mut Dice) -> Arc<Definition> {
    // Some trees have room for the large calls of outside programs.
    let scale = if dice.once_in(4) { 60_000 } else { 2_000 };
    let roles: Vec<(RoleName, Role)> = ROLES.iter().map(|name| (parse(name), role(dice))).collect();
    let mut definition = Definition {
        name: "simulated".to_owned(),
        is_kept: dice.once_in(6),
        visibility: Default::default(),
        redact: Default::default(),
        goal: "Survive.".to_owned(),
        entry: parse("lead"),
        thread: None,
        budget: BudgetSpec {
            timeout_ms: dice.once_in(3).then(|| dice.between(4_000, 60_000)),
            lend: None,
            ..budget(dice, scale)
        },
        limits: TreeLimits {
            depth_max: dice.between(1, 5) as u32,
            children_max: dice.between(1, 6) as u32,
            agents_max: dice.between(2, 40) as u32,
            parallel_max: dice.between(1, 8) as u32,
            rate: Default::default(),
        },
        models: MODELS.iter().map(|name| (parse(name), model(dice, name))).collect(),
        roles: roles.into_iter().collect(),
        tools: TOOLS.iter().map(|name| (parse(name), tool(dice))).collect(),
        shared: if dice.once_in(2) { shared(dice) } else { Default::default() },
        unpriced: if dice.once_in(2) { Unpriced::Allow } else { Unpriced::Refuse },
        durability: Default::default(),
        graph: None,
        inputs: Default::default(),
        command_tools: Default::default(),
        servers: Default::default(),
        folders: dice.once_in(2).then(|| granted(FolderGrants::default(), ("/data", FolderAccess::Write))),
        tags: Default::default(),
    };
    match dice.below(16) {
        0..6 => talkative(dice, &mut definition),
        6..8 => alike(dice, &mut definition),
        _ => {}
    }
    if dice.once_in(6) {
        let parts = GraphParts {
            roles: &["lead", "worker", "helper", "critic"],
            policies: &GraphParts::POLICIES,
            steps_max: 4,
            depth: 2,
            list: true,
            races: true,
            timeouts: true,
            budgets: true,
            shared: &["plan", "notes.a"],
        };
        graphs::plant(dice, &mut definition, parts);
    }
    Arc::new(definition)
}

/// Agents of a role share a long prompt, so calls wait until it is cached.
fn alike(dice: &mut Dice, definition: &mut Definition) {
    definition.budget = BudgetSpec::default();
    definition.limits = TreeLimits {
        depth_max: 5,
        children_max: 6,
        agents_max: 40,
        parallel_max: 8,
        ..TreeLimits::default()
    };
    for role in definition.roles.values_mut() {
        let tokens = limit::CACHED_TOKENS_MIN;
        let prompt = Body { tokens: Some(tokens.into()), ..Body::text("x".repeat(tokens as usize)) };
        role.turns = Some(Turns { prompt, turns_max: 8, output_cap: Some(120), ..Turns::default() });
        role.program = None;
        (role.budget, role.caps) = (BudgetSpec::default(), Caps::all(5));
    }
    for model in definition.models.values_mut() {
        let cached = Rates { cached_input_per_mtok: Some(1), ..Rates::flat(1_000_000, 3_000_000) };
        (model.price, model.context, model.output_max) = (Some(cached.into()), None, None);
        model.cache_wait_ms = dice.once_in(3).then(|| dice.between(1, 5_000));
    }
}

/// Agents talk much in small windows, so there are summaries.
fn talkative(dice: &mut Dice, definition: &mut Definition) {
    if dice.once_in(2) {
        definition.budget = BudgetSpec::default();
    }
    for role in definition.roles.values_mut() {
        role.budget = BudgetSpec::default();
        let size = Some(dice.between(1_200, 3_500));
        let window = Some(WindowSpec { size, compact: Compact::Summary, ..WindowSpec::default() });
        role.turns = Some(Turns { window, turns_max: 20, output_cap: Some(120), ..turns(dice) });
        role.program = None;
    }
}

/// Random ceilings; `scale` is the usual size in tokens.
pub(super) fn budget(dice: &mut Dice, scale: u64) -> BudgetSpec {
    let mut limit = Ceilings::NONE;
    for resource in Resource::ALL {
        let amount = match resource {
            Resource::Cost => dice.below(scale * 1_500),
            Resource::Tokens => dice.below(scale * 2),
            Resource::Steps | Resource::ToolCalls => dice.below(scale / 10),
            Resource::Retries => dice.below(8),
        };
        if dice.once_in(2) {
            limit = limit.with(resource, amount);
        }
    }
    BudgetSpec {
        limit,
        timeout_ms: dice.once_in(5).then(|| dice.between(1, 40_000)),
        timeout_wall: dice.once_in(3),
        lend: dice.once_in(4).then_some(Lend::Yes),
        answer_reserve: dice.once_in(2).then(|| dice.below(50) as u8),
        on_low: match dice.below(5) {
            0 => Some(OnLow::Shrink),
            1 => Some(OnLow::Downgrade(parse("small"))),
            _ => None,
        },
        wrap_up: dice.once_in(4).then_some(WrapUp::Off),
        repeats: dice.once_in(3).then(|| repeats(dice)),
    }
}

/// Rows are short in random trees.
fn repeats(dice: &mut Dice) -> Repeats {
    let notice = dice.below(3) as u32;
    Repeats { notice, end: if dice.once_in(4) { 0 } else { notice + dice.between(1, 2) as u32 } }
}

fn model(dice: &mut Dice, name: &str) -> ModelSpec {
    let mut price = Price::from(rates(dice));
    if dice.once_in(3) {
        price.tiers = vec![PriceTier { input_above: dice.below(1_000), rates: rates(dice) }];
    }
    let output_max = dice.once_in(2).then(|| dice.between(20, 300));
    // Some have no public tokenizer.
    let is_exact = output_max.is_none_or(|tokens| tokens.is_multiple_of(2));
    ModelSpec {
        price: (name != "odd").then_some(price),
        counter: if is_exact { TokenCounter::Exact } else { TokenCounter::Estimate },
        output_max,
        fallback: if name == "big" { vec![parse("small"), parse("odd")] } else { Vec::new() },
        lost: if dice.once_in(3) { OnLost::Repeatable } else { OnLost::Presumed },
        context: dice.once_in(3).then(|| dice.between(700, 5_000)),
        losses_max: None,
        cache_wait_ms: None,
        rate: Default::default(),
    }
}

fn rates(dice: &mut Dice) -> Rates {
    Rates {
        cached_input_per_mtok: dice.once_in(2).then(|| dice.below(1_000_000_000)),
        cache_write_per_mtok: dice.once_in(2).then(|| dice.below(2_000_000_000)),
        cache_write_1h_per_mtok: dice.once_in(2).then(|| dice.below(2_000_000_000)),
        reasoning_per_mtok: dice.once_in(3).then(|| dice.below(4_000_000_000)),
        ..Rates::flat(dice.below(1_500_000_000), dice.below(3_000_000_000))
    }
}

fn role(dice: &mut Dice) -> Role {
    let model = dice.pick(&MODELS).unwrap_or("big");
    let some = |dice: &mut Dice, names: &[&str]| -> Vec<String> {
        names.iter().filter(|_| !dice.once_in(6)).map(|name| (*name).to_owned()).collect()
    };
    let builtin = Builtin::ALL.iter().map(|builtin| builtin.as_str());
    let tools: Vec<&str> = TOOLS.into_iter().chain(builtin).collect();
    let mut models = some(dice, &MODELS);
    models.push(model.to_owned());
    let turns = dice.once_in(2).then(|| turns(dice));
    let program = if turns.is_none() { program(dice) } else { None };
    Role {
        model: parse(model),
        caps: Caps {
            models: Allow::list(models.iter().map(|name| parse(name))),
            below: Allow::list(dice.once_in(4).then(|| parse(model))),
            tools: Allow::list(some(dice, &tools).iter().map(|name| parse(name))),
            spawn: Allow::list(some(dice, &ROLES).iter().map(|name| parse(name))),
            network: Network::hosts(some(dice, &HOSTS).iter().map(|rule| parse(rule))),
            host_requests: if dice.once_in(8) { HostRequests::Refused } else { HostRequests::Ask },
            folders: dice.once_in(5).then(|| folders(dice)),
            depth_max: dice.between(1, 6) as u32,
        },
        budget: if dice.once_in(2) { budget(dice, 600) } else { BudgetSpec::default() },
        recursive: if dice.once_in(2) { Recursion::Allowed } else { Recursion::Refused },
        rate: Default::default(),
        program,
        turns,
    }
}

/// Some agents are programs.
fn program(dice: &mut Dice) -> Option<Box<ProgramSpec>> {
    dice.once_in(4).then(|| Box::new(ProgramSpec::new(ProgramCommand::Known(KnownProgram::Claude))))
}

/// Folders in and around each other, so that some are covered by others.
const FOLDERS: [(&str, FolderAccess); 5] = [
    ("/data", FolderAccess::Read),
    ("/data", FolderAccess::Write),
    ("/data/kept", FolderAccess::Read),
    ("/data/kept/open", FolderAccess::Write),
    ("/datas", FolderAccess::Read),
];

fn granted(grants: FolderGrants, (path, access): (&str, FolderAccess)) -> FolderGrants {
    grants.with(parse(path), access)
}

fn folders(dice: &mut Dice) -> FolderGrants {
    FOLDERS.into_iter().filter(|_| dice.once_in(2)).fold(FolderGrants::default(), granted)
}

fn turns(dice: &mut Dice) -> Turns {
    let prompt = Body { tokens: Some(dice.below(30).into()), ..Body::text("You work.") };
    let (turns_max, output_cap) = (dice.between(1, 8) as u32, Some(dice.below(120)));
    let window = dice.once_in(2).then(|| WindowSpec {
        size: dice.once_in(2).then(|| dice.between(limit::WINDOW_TOKENS_MIN, 3_000)),
        preset: if dice.once_in(2) { Preset::Dialog } else { Preset::Tools },
        clamp_note: !dice.once_in(3),
        images: dice.below(3) as u32,
        compact: dice.pick(&[Compact::Lines, Compact::Count, Compact::Summary]).unwrap_or_default(),
    });
    Turns {
        prompt,
        turns_max,
        output_cap,
        window,
        share: share(dice),
        facts_tokens: dice.once_in(2).then(|| dice.between(1, 60).into()),
        approvals: if dice.once_in(3) { approvals(dice) } else { Default::default() },
        active_ms: dice.once_in(3).then(|| dice.between(1, 6_000)),
        children_max: dice.once_in(6).then(|| dice.below(3) as u32),
        ..Turns::default()
    }
}

/// Who may read and write shared values.
fn shared(dice: &mut Dice) -> SharedAccess {
    let roles = |dice: &mut Dice| {
        dice.once_in(2).then(|| ROLES.iter().filter(|_| dice.once_in(2)).map(|name| parse(name)).collect())
    };
    let rule = |dice: &mut Dice, pattern: &str| {
        (parse(pattern), ValueAccess { read: roles(dice), write: roles(dice) })
    };
    ["*", "notes.*", "notes.a"].into_iter().map(|pattern| rule(dice, pattern)).collect()
}

fn approvals(dice: &mut Dice) -> ByName<ToolName, Approval> {
    let tools = TOOLS.into_iter().chain(["spawn_agent", "wait_agent"]);
    let policy = |tool| {
        let policy = match dice.below(8) {
            0 => Approval::Deny,
            1..4 => Approval::Ask,
            _ => return None,
        };
        Some((parse(tool), policy))
    };
    tools.filter_map(policy).collect()
}

/// A child's ceilings at its start.
pub(super) fn share(dice: &mut Dice) -> Share {
    match dice.below(6) {
        0 => Share::Briefing,
        1 => Share::Fork(dice.between(1, 4) as u32),
        2 => Share::Thread,
        _ => Share::Goal,
    }
}

fn tool(dice: &mut Dice) -> ToolSpec {
    ToolSpec {
        subject: dice.once_in(2).then(|| ToolSubject::path("path")),
        hosts: dice
            .pick(&[None, Some(HostsArgument::list("hosts")), Some(HostsArgument::url("url"))])
            .flatten(),
        cost_nanos_max: if dice.once_in(3) { dice.below(50_000) } else { 0 },
        lost: if dice.once_in(2) { OnLost::Repeatable } else { OnLost::Presumed },
        ..ToolSpec::default()
    }
}
