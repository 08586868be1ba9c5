//! The cost of one child in the kernel: spawn, one model call held and settled, exit.

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, Time, TreeId};
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{
    Collect, Finish, Hold, HoldFor, HoldReply, Request, Spawn, SpawnReply, Start,
};
use spinney_kernel::rules::{Reply, decide_report, decide_request};
use spinney_kernel::world::World;

use spinney_testkit::{Scenario, fixture};

use crate::measure::{at_least, least_on, row, time};
use crate::peer::Peer;

/// Children of one tree in sequence: the default maximum of agents.
const LIVES: u32 = 999;

/// Nanoseconds for one child's life.
pub(crate) fn life_ns() -> f64 {
    least_on(LIVES, || Nursery::new(LIVES + 1), Nursery::live_once)
}

/// Prints the table; `lives` were measured at several moments of the run.
pub(crate) fn run(lives: &[f64], peer: Option<&Peer>) {
    let ours = lives.iter().copied().fold(f64::INFINITY, f64::min);
    let other = peer.map(|peer| peer.figure("spawn_call"));
    let relation = other.map_or_else(String::new, |other| at_least(other / ours, 50.0));
    let other = other.map_or_else(String::new, |other| format!("{} (veronica)", time(other)));
    row("spawn + 1 call + exit", &time(ours), &other, &relation);
}

/// A root that spawns one child after the other.
pub(crate) struct Nursery {
    world: World,
    born: u32,
    spawn: Spawn,
}

impl Nursery {
    pub(crate) fn new(agents_max: u32) -> Self {
        let plants = fixture::plants("root $1000000.00 tokens=1000000000000\nroot / child");
        let mut definition = fixture::definition(&plants);
        definition.limits.agents_max = agents_max;
        definition.limits.children_max = agents_max;
        let spawn = Spawn { collect: Collect::Detached, ..Scenario::spawn("root", "child") };
        let mut nursery = Self { world: World::new(TreeId::new([3; 16])), born: 0, spawn };
        nursery.ask(&Request::Start(Start::new(definition)));
        nursery
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Reply {
        let draw = u64::from(self.born);
        match decide_request(&mut self.world, Time(1), draw, &Actor::PERSON, request) {
            Ok(decision) => decision.reply,
            Err(refusal) => panic!("refused: {refusal}"),
        }
    }

    /// An idle child.
    pub(crate) fn spawn(&mut self) -> AgentId {
        self.born += 1;
        let reply = self.ask(&Request::Spawn(self.spawn.clone()));
        let Reply::Spawn(SpawnReply { agent, .. }) = reply else { panic!("not spawned: {reply:?}") };
        agent
    }

    pub(crate) fn hold(&mut self, agent: AgentId) -> CallId {
        let effect = HoldFor::Model { model: None, input_tokens: 100, output_cap: Some(200) };
        let reply = self.ask(&Request::Hold(Hold { agent, effect }));
        let Reply::Hold(HoldReply::Started { call }) = reply else { panic!("not started: {reply:?}") };
        call
    }

    pub(crate) fn settle(&mut self, call: CallId) {
        let used = Used::Tokens(Usage { input: 100, output: 50, ..Usage::default() });
        let done = Report::Done(Done::new(call, 1, used, Body::default()));
        decide_report(&mut self.world, Time(1), u64::from(self.born), &done);
    }

    pub(crate) fn finish(&mut self, agent: AgentId) {
        self.ask(&Request::Finish(Finish { agent, result: Body::text("done") }));
    }

    fn live_once(&mut self) {
        let agent = self.spawn();
        let call = self.hold(agent.clone());
        self.settle(call);
        self.finish(agent);
    }
}
