//! The plot: derives a tree and everything around it from a seed. Everything here is a pure function of the seed and a
//! position, so a crash changes no answer.

use spinney_kernel::budget::{Ceilings, Price, Resource};
use spinney_kernel::definition::{
    Approval, BudgetSpec, Caps, Compact, Definition, ModelSpec, OnLost, OnLow, OutputSchema, RateLimit,
    Recursion, Role, Share, TreeLimits, Turns, Unpriced, WindowSpec, WrapUp,
};
use spinney_kernel::primitives::{AgentId, Body, RoleName};

use super::super::dice::Dice;
use super::super::graphs::{self, GraphParts};
use crate::fixture::parse;

/// The roles of every plot.
pub(super) const ROLES: [&str; 3] = ["lead", "worker", "helper"];
/// The models of every plot; the first falls back to the second.
pub(super) const MODELS: [&str; 2] = ["big", "small"];

/// The schema of structured answers.
pub(super) const SCHEMA: &str =
    r#"{"type":"object","required":["said"],"properties":{"said":{"type":"string"}}}"#;

/// How much may happen in a tree, and so how much a crash may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One effect at a time, with tight ceilings, messages, detached children and people: a crash changes nothing.
    Serial,
    /// Concurrent effects, with failures and retries, without anything that depends on timing: a crash changes nothing.
    Parallel,
    /// Everything at once: deadlines, models that bill, tools that cannot be repeated, people at any time. The result
    /// may depend on the crash; the laws may not.
    Wild,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Serial, Self::Parallel, Self::Wild];

    /// Whether a crash must change nothing.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        match self {
            Self::Serial | Self::Parallel => true,
            Self::Wild => false,
        }
    }
}

/// A tree as the seed defines it.
#[derive(Clone, Debug)]
pub(super) struct SimTree {
    pub(super) seed: u64,
    pub(super) mode: Mode,
    /// Whether people do more than answer and raise.
    pub(super) meddling: bool,
    /// Whether they stop running calls. What a stopped call is billed depends on the crash.
    pub(super) stops: bool,
}

impl SimTree {
    pub(super) fn new(seed: u64, mode: Mode) -> Self {
        let plot = Self { seed, mode, meddling: true, stops: true };
        match mode {
            Mode::Serial | Mode::Parallel => {
                let meddling = !plot.dice("meddling").once_in(3);
                let stops = meddling && plot.dice("stops").once_in(2);
                Self { meddling, stops, ..plot }
            }
            Mode::Wild => plot,
        }
    }

    /// The random generator of a position.
    pub(super) fn dice(&self, place: &str) -> Dice {
        let mut hash = 0xCBF2_9CE4_8422_2325_u64 ^ self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in place.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Dice::new(hash)
    }

    /// How a model's lost call is treated.
    pub(super) fn lost(&self, name: &str) -> OnLost {
        let billed = self.mode == Mode::Wild && self.dice(&format!("lost/{name}")).once_in(2);
        if billed { OnLost::Presumed } else { OnLost::Repeatable }
    }

    /// Whether its tree runs a graph instead of an agent that decides.
    pub(super) fn is_graph(&self) -> bool {
        self.dice("graph").once_in(3)
    }

    /// The root of its tree.
    pub(super) fn root(&self) -> AgentId {
        let role = if self.is_graph() { RoleName::of_graphs() } else { parse("lead") };
        AgentId::of_role(&role)
    }

    /// What its graphs have. Who wins a race, what a failure cancels and what a ceiling stops depends on timing where
    /// several effects run at once, and a crash changes when they end.
    pub(super) fn graph_parts(&self) -> GraphParts<'static> {
        let policies = match self.mode {
            Mode::Serial | Mode::Wild => &GraphParts::POLICIES[..],
            Mode::Parallel => &GraphParts::POLICIES[1..],
        };
        GraphParts {
            // Helpers spawn no agents: a graph has many steps, and the process dies after each batch of them.
            roles: &["helper", "helper", "helper", "worker"],
            policies,
            steps_max: 3,
            depth: 1 + u32::from(self.dice("deep graph").once_in(6)),
            list: self.is_graph(),
            races: self.mode != Mode::Parallel,
            timeouts: self.mode == Mode::Wild,
            shared: if self.mode == Mode::Serial { &["notes"] } else { &[] },
            budgets: self.mode == Mode::Wild || (self.mode == Mode::Serial && !self.stops),
        }
    }

    /// The tree.
    pub(super) fn definition(&self) -> Definition {
        let mut definition = self.plain_definition();
        if self.is_graph() {
            graphs::plant(&mut self.dice("planted"), &mut definition, self.graph_parts());
        }
        definition
    }

    fn plain_definition(&self) -> Definition {
        let mut dice = self.dice("definition");
        let (depth_max, children_max, agents_max, parallel_max) = match self.mode {
            Mode::Serial => (dice.between(1, 2), dice.between(1, 4), dice.between(3, 9), 1),
            // Which agent hits a limit on agents depends on timing.
            Mode::Parallel => (dice.between(1, 2), 16, 500, dice.between(2, 8)),
            Mode::Wild => (dice.between(1, 3), dice.between(1, 4), dice.between(3, 12), dice.between(1, 6)),
        };
        Definition {
            is_kept: false,
            visibility: Default::default(),
            redact: Default::default(),
            name: "whole".to_owned(),
            goal: "Come through.".to_owned(),
            entry: parse("lead"),
            thread: None,
            budget: self.root_budget(&mut dice),
            limits: TreeLimits {
                depth_max: depth_max as u32,
                children_max: children_max as u32,
                agents_max: agents_max as u32,
                parallel_max: parallel_max as u32,
                rate: self.rate("tree"),
            },
            models: MODELS.iter().map(|name| (parse(name), self.model(name))).collect(),
            roles: ROLES.iter().map(|name| (parse(name), self.role(name))).collect(),
            tools: Default::default(),
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

    fn root_budget(&self, dice: &mut Dice) -> BudgetSpec {
        let mut limit = Ceilings::NONE;
        let tight = match self.mode {
            Mode::Serial => !self.stops,
            Mode::Parallel => false,
            Mode::Wild => dice.once_in(2),
        };
        if tight {
            limit = limit.with(Resource::Cost, dice.between(2_800_000, 28_000_000));
            if dice.once_in(2) {
                limit = limit.with(Resource::Tokens, dice.between(3_300, 28_000));
            }
            if dice.once_in(3) {
                limit = limit.with(Resource::ToolCalls, dice.between(1, 6));
            }
        }
        let on_low = match dice.below(4) {
            0 => Some(OnLow::Shrink),
            1 => Some(OnLow::Downgrade(parse("small"))),
            _ => None,
        };
        // Without a deadline a hanging model would block a wild tree forever.
        let timeout_ms = (self.mode == Mode::Wild).then(|| dice.between(2_000, 200_000));
        let answer_reserve = dice.once_in(2).then(|| dice.below(30) as u8);
        let timeout_wall = self.dice("wall").once_in(3);
        BudgetSpec { limit, timeout_ms, timeout_wall, answer_reserve, on_low, ..BudgetSpec::default() }
    }

    /// Whether agents get a last call before they end for want of room.
    fn wrap_up(&self) -> Option<WrapUp> {
        self.dice("wrap up").once_in(3).then_some(WrapUp::Off)
    }

    fn model(&self, name: &str) -> ModelSpec {
        let small = name == "small";
        let per_token = if small { 200 } else { 1_000 };
        let price = Price::flat(per_token * 1_000_000, per_token * 3_000_000);
        let fallback = if small { Vec::new() } else { vec![parse("small")] };
        let lost = self.lost(name);
        let rate = self.rate(name);
        ModelSpec { price: Some(price), fallback, lost, rate, ..ModelSpec::default() }
    }

    /// A rate, where waiting for it may change what happens.
    fn rate(&self, of: &str) -> RateLimit {
        let mut dice = self.dice(&format!("rate/{of}"));
        let is_limited = self.mode == Mode::Wild && dice.once_in(4);
        RateLimit {
            requests_per_min: is_limited.then(|| dice.between(5, 40)),
            tokens_per_min: (is_limited && dice.once_in(2)).then(|| dice.between(4_000, 60_000)),
        }
    }

    /// Whether the provider of a model fails most of the time.
    pub(super) fn is_failing(&self) -> bool {
        self.mode == Mode::Wild && self.dice("failing").once_in(5)
    }

    /// Whether agents of a role talk much, and their models summarize what leaves their windows.
    pub(super) fn sums_up(&self, role: &str) -> bool {
        self.dice(&format!("sums up/{role}")).once_in(3)
    }

    /// Whether the answers of a role have a schema.
    pub(super) fn is_shaped(&self, role: &str) -> bool {
        self.dice(&format!("shaped/{role}")).once_in(3)
    }

    /// How long agents of a role may work. In cases where a crash must change nothing, the limit is out of reach: what
    /// a crash cuts off is done again and counts again.
    fn active_ms(&self, role: &str) -> u64 {
        let mut dice = self.dice(&format!("active/{role}"));
        match self.mode {
            Mode::Wild if dice.once_in(2) => dice.between(300, 8_000),
            Mode::Serial | Mode::Parallel | Mode::Wild => 24 * 60 * 60 * 1_000,
        }
    }

    fn role(&self, name: &str) -> Role {
        let mut dice = self.dice(&format!("role/{name}"));
        let prompt = Body::text(format!("You are the {name}."));
        let (turns_max, output_cap) = (dice.between(3, 7) as u32, Some(dice.between(150, 400)));
        let window = dice
            .once_in(2)
            .then(|| WindowSpec { size: Some(dice.between(3_060, 5_360)), ..WindowSpec::default() });
        let share = match dice.below(6) {
            0 | 1 => Share::Briefing,
            2 => Share::Thread,
            _ => Share::Goal,
        };
        let mut turns = Turns { prompt, turns_max, output_cap, window, share, ..Turns::default() };
        turns.active_ms = Some(self.active_ms(name));
        if dice.once_in(4) {
            let tool = if dice.once_in(2) { "note" } else { "post" };
            turns.approvals.insert(parse(tool), Approval::Ask);
        }
        if self.sums_up(name) {
            summed_up(&mut turns);
        }
        if self.is_shaped(name) {
            turns.output_schema = OutputSchema::read(SCHEMA).ok().map(Box::new);
        }
        // Helpers spawn no agents, so their own ceilings do not depend on timing.
        let own = match self.mode {
            Mode::Serial | Mode::Wild => dice.once_in(4),
            Mode::Parallel => name == "helper" && dice.once_in(2),
        };
        let mut limit = Ceilings::NONE;
        if own && !(self.stops && self.mode.is_exact()) {
            limit = limit.with(Resource::Tokens, dice.between(3_160, 10_160));
            limit = limit.with(Resource::Retries, dice.between(0, 3));
        }
        let mut caps = Caps::all(3);
        if name == "helper" {
            caps.depth_max = 0;
        }
        Role {
            model: parse(MODELS[usize::from(name == "helper" && dice.once_in(2))]),
            caps,
            budget: BudgetSpec { wrap_up: self.wrap_up(), ..BudgetSpec::with_limit(limit) },
            recursive: if dice.once_in(2) { Recursion::Allowed } else { Recursion::Refused },
            rate: self.rate(name),
            program: None,
            turns: Some(turns),
        }
    }
}

/// A role with a small window.
fn summed_up(turns: &mut Turns) {
    turns.prompt.text.push_str(&" Take your time.".repeat(40));
    turns.turns_max += 4;
    let size = Some(3_735);
    turns.window = Some(WindowSpec { size, compact: Compact::Summary, ..WindowSpec::default() });
}
