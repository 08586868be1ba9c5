//! A play: a tree from a fixture, driven line by line. Every decision is kept, so it can be replayed.

use std::sync::Arc;

use spinney_journal::Batch;
use spinney_kernel::context::Frame;
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::primitives::{Actor, AgentId, Time, TreeId};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::report::Report;
use spinney_kernel::rules::request::{Spawn, Start, Verb};
use spinney_kernel::rules::{Decision, Input, InputKind, InputReply, Receipt};
use spinney_kernel::world::World;

use crate::fixture::{self, FixtureAgent, SpawnTime, parse};
use crate::{render, script};

/// A tree that a test drives.
#[derive(Clone, Debug)]
pub struct Scenario {
    world: World,
    now: Time,
    draws: u64,
    batches: Vec<Batch>,
    log: Vec<String>,
}

/// Runs a script on a fixture and returns what happened: one line per event or refusal, then the tree. This is the one
/// check behind every snapshot of the kernel's rules.
#[must_use]
pub fn check(fixture: &str, script: &str) -> String {
    let mut play = Scenario::grow(fixture);
    play.run(script);
    format!("{}\n{}", play.log(), play.tree())
}

impl Scenario {
    /// Creates a tree from a fixture.
    ///
    /// # Panics
    /// If the text is not a fixture, or its tree is refused.
    #[must_use]
    pub fn grow(fixture: &str) -> Self {
        let plants = fixture::plants(fixture);
        Self::grow_with(&plants, fixture::shared(&plants))
    }

    /// Creates a tree from a fixture after changing its definition.
    ///
    /// # Panics
    /// If the text is not a fixture, or its tree is refused.
    #[must_use]
    pub fn grow_as(fixture: &str, change: impl FnOnce(&mut Definition)) -> Self {
        let plants = fixture::plants(fixture);
        let mut definition = fixture::definition(&plants);
        change(&mut definition);
        Self::grow_with(&plants, Arc::new(definition))
    }

    /// Creates a tree from a fixture under an older version of the rules.
    ///
    /// # Panics
    /// If the text is not a fixture, or its tree is refused.
    #[must_use]
    pub fn grow_under(rules: u32, fixture: &str) -> Self {
        let plants = fixture::plants(fixture);
        let mut play = Self::seed();
        play.world = World::under(rules, play.world.tree());
        play.grown(&plants, fixture::shared(&plants))
    }

    fn grow_with(plants: &[FixtureAgent], definition: Arc<Definition>) -> Self {
        Self::seed().grown(plants, definition)
    }

    fn grown(self, plants: &[FixtureAgent], definition: Arc<Definition>) -> Self {
        let mut play = self;
        play.must(Start::new(definition));
        for plant in plants.iter().skip(1).filter(|plant| plant.birth == SpawnTime::Now) {
            let (name, parent) = (parse(&plant.name), plant.parent.as_deref().unwrap_or_default());
            play.must(Spawn {
                id: Some(name),
                budget: plant.budget.clone(),
                collect: plant.collect,
                ..Self::spawn(parent, &plant.name)
            });
        }
        play.log.clear();
        play
    }

    /// A tree that has not started.
    #[must_use]
    pub fn seed() -> Self {
        let world = World::new(TreeId::new([7; 16]));
        Self { world, now: Time(1_000), draws: 0, batches: Vec::new(), log: Vec::new() }
    }

    /// A request to spawn `role` under `parent`, without options.
    #[must_use]
    pub fn spawn(parent: &str, role: &str) -> Spawn {
        Spawn {
            parent: parse(parent),
            role: parse(role),
            goal: format!("Do the part of {role}."),
            goal_tokens: None,
            id: None,
            model: None,
            tools: None,
            budget: Default::default(),
            collect: Default::default(),
            share: None,
            messages: Vec::new(),
            talks: false,
            frame: Frame::default(),
        }
    }

    /// Runs a script, one command per line; the module `script` lists them.
    ///
    /// # Panics
    /// On an unknown command.
    pub fn run(&mut self, script: &str) -> &mut Self {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            script::run_line(self, line);
        }
        self
    }

    /// Decides a person's request.
    ///
    /// # Errors
    /// The refusal.
    pub fn ask<V: Verb>(&mut self, verb: V) -> Result<V::Reply, Refusal> {
        self.ask_as(Actor::PERSON, verb)
    }

    /// Decides an agent's request.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// If the reply belongs to another verb.
    pub fn ask_as<V: Verb>(&mut self, by: Actor, verb: V) -> Result<V::Reply, Refusal> {
        let decision = self.input(InputKind::Request { by, request: Box::new(verb.into()) })?;
        let InputReply::Request(reply) = decision.reply else {
            panic!("a request has the reply of a report")
        };
        match reply.try_into() {
            Ok(reply) => Ok(reply),
            Err(_) => panic!("a request has the reply of another one"),
        }
    }

    /// Decides a person's request that must not be refused.
    ///
    /// # Panics
    /// If it is refused.
    pub fn must<V: Verb>(&mut self, verb: V) -> V::Reply {
        self.ask(verb).unwrap_or_else(|refusal| panic!("refused: {refusal}"))
    }

    /// Decides a report.
    ///
    /// # Panics
    /// Never: a report is not refused.
    pub fn report(&mut self, report: Report) -> Receipt {
        match self.input(InputKind::Report(report)).map(|decision| decision.reply) {
            Ok(InputReply::Report(receipt)) => receipt,
            Ok(InputReply::Request(_)) => panic!("a report has the reply of a request"),
            Err(refusal) => panic!("a report was refused: {refusal}"),
        }
    }

    /// Advances the clock; no timer fires on its own.
    pub fn pass(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
    }

    /// Decides one input, and records it with its events.
    ///
    /// # Errors
    /// The refusal.
    pub fn input(&mut self, what: InputKind) -> Result<Decision<InputReply>, Refusal> {
        self.draws += 1;
        let input = Input { now: self.now, draw: self.draws, what };
        let decided = decide(&mut self.world, &input);
        match &decided {
            Ok(decision) => {
                self.log.extend(decision.events.iter().map(render::event));
                if decision.reply == InputReply::Report(Receipt::Stale) {
                    self.log.push("stale".to_owned());
                }
                self.batches.push(Batch { input, events: decision.events.clone() });
            }
            Err(refusal) => self.log.push(format!("refused: {refusal}")),
        }
        decided
    }

    /// The current time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The current world.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Every input so far with its decision: the journal.
    #[must_use]
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// What happened, one line per event or refusal.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.join("\n")
    }

    /// Clears the log; the tree stays.
    pub fn clear_log(&mut self) -> &mut Self {
        self.log.clear();
        self
    }

    /// The tree as text, one agent per line.
    #[must_use]
    pub fn tree(&self) -> String {
        render::tree(&self.world)
    }

    /// One agent, by its name in the fixture.
    ///
    /// # Panics
    /// If it does not exist.
    #[must_use]
    pub fn view(&self, name: &str) -> spinney_kernel::world::AgentView {
        let id: AgentId = parse(name);
        match self.world.agents().find(&id) {
            Some(ix) => self.world.view(ix),
            None => panic!("no agent is called {name}"),
        }
    }
}
