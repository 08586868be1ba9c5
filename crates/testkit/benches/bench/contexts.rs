//! The cost of a packet in a long context: it depends on the window, not on the context.

use std::time::Instant;

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::Contexts;
use spinney_kernel::definition::WindowSpec;
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, RoleName, Time, TokenCount, TreeId};
use spinney_kernel::record::{StopReason, ToolAsk};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Request, Start};
use spinney_kernel::rules::{Input, InputKind};
use spinney_kernel::world::World;

use spinney_testkit::fixture;

use crate::alloc::{count, live_bytes};
use crate::measure::{median, row, time, verdict};

/// Messages of a short context, and of a long one.
const SHORT: u64 = 100;
const LONG: u64 = 100_000;
/// Turns that are measured at each end.
const TURNS: u64 = 400;
/// A window of about fifty messages.
const WINDOW: u64 = 6_400;
/// Bytes of a message, and its tokens.
const BYTES: usize = 400;
const TOKENS: u64 = 100;

/// Prints the table.
pub(crate) fn run() {
    let mut talk = Talk::new();
    talk.until(SHORT);
    let early = talk.measured();
    talk.until(LONG);
    let late = talk.measured();
    let ratio = late / early;
    let relation = format!("{ratio:.2}x (at most 1.5x: {})", verdict(ratio <= 1.5));
    let what = format!("a turn and its packet, {LONG} messages");
    row(&what, &time(late), &format!("{} ({SHORT})", time(early)), &relation);
    let grown = grown();
    let relation = format!("at most 160: {}", verdict(grown <= 160.0));
    row("bytes that stay of a message left out", &format!("{grown:.1}"), "", &relation);
    let held = talk.world.agents().find(&talk.agent).and_then(|ix| talk.world.agents().living(ix));
    let held = held.map_or(0, |agent| agent.progress.window.headers().len());
    row("messages in the window", &held.to_string(), "", "");
}

/// Growth in bytes per message, from a short context to a long one.
fn grown() -> f64 {
    count();
    let mut talk = Talk::new();
    talk.until(SHORT);
    let before = live_bytes();
    talk.until(LONG);
    // The size of the window varies slightly from turn to turn.
    live_bytes().saturating_sub(before) as f64 / (LONG - SHORT) as f64
}

/// An agent that calls a tool in each turn, forever.
struct Talk {
    world: World,
    contexts: Contexts,
    agent: AgentId,
    call: u64,
    messages: u64,
    now: u64,
}

impl Talk {
    fn new() -> Self {
        let tree = TreeId::new([1; 16]);
        let mut plan = fixture::definition(&fixture::plants("root turns=1000000"));
        let root: RoleName = "root".parse().unwrap_or_else(|error| panic!("{error}"));
        let turns = plan.roles.get_mut(&root).and_then(|role| role.turns.as_mut());
        if let Some(turns) = turns {
            turns.window = Some(WindowSpec { size: Some(WINDOW), ..WindowSpec::default() });
        }
        let agent = AgentId::of_role(&root);
        let mut talk = Self {
            world: World::new(tree),
            contexts: Contexts::new(tree),
            agent,
            call: 0,
            messages: 1,
            now: 0,
        };
        let start = Start { goal_tokens: Some(TokenCount::exact(10)), ..Start::new(plan) };
        talk.input(InputKind::Request { by: Actor::PERSON, request: Box::new(Request::Start(start)) });
        talk
    }

    fn input(&mut self, what: InputKind) {
        self.now += 1;
        let input = Input { now: Time(self.now), draw: 0, what };
        let decision = decide(&mut self.world, &input).unwrap_or_else(|refusal| panic!("{refusal}"));
        decision.events.iter().for_each(|event| self.contexts.apply(event));
    }

    fn done(&mut self, asks: Vec<ToolAsk>) {
        self.call += 1;
        let body = Body { tokens: Some(TokenCount::exact(TOKENS)), ..Body::text("w".repeat(BYTES)) };
        let (call, used) = (CallId(self.call), Used::Tokens(Usage::default()));
        let done = Done {
            call,
            attempt: 1,
            used,
            body,
            asks,
            refused: Vec::new(),
            is_error: false,
            mismatch: None,
            stop: StopReason::End,
            files: Vec::new(),
            removed: Vec::new(),
            exit: None,
        };
        self.input(InputKind::Report(Report::Done(done)));
        self.messages += 1;
    }

    /// A turn: the model calls a tool, the tool returns, and the next packet is ready.
    fn turn(&mut self) {
        let (id, tool, args) = ("c1".to_owned(), "read".to_owned(), "{}".to_owned());
        self.done(vec![ToolAsk { id, tool, args, tokens: Some(TokenCount::exact(4)), told_tokens: None }]);
        self.done(Vec::new());
        let packet = self.contexts.packet(&self.agent, 0);
        assert!(packet.is_some_and(|packet| !packet.messages.is_empty()));
    }

    fn until(&mut self, messages: u64) {
        while self.messages < messages {
            self.turn();
        }
    }

    /// The median time of a turn, in nanoseconds.
    fn measured(&mut self) -> f64 {
        let once = |talk: &mut Self| {
            let start = Instant::now();
            talk.turn();
            start.elapsed().as_nanos() as f64
        };
        median((0..TURNS).map(|_| once(self)).collect())
    }
}
