//! The laws of starting: whether an attempt or an agent was allowed to start, or rightly given up, checked against the
//! world just before.

use spinney_kernel::budget::{Amounts, CacheWrites, Fit, Price, Resource, ResourceSet};
use spinney_kernel::definition::{Recursion, Unpriced};
use spinney_kernel::primitives::{AgentId, CallId, Time};
use spinney_kernel::record::{Attachment, Event, Exit, ModelCall, Outcome, Spawned, Work};
use spinney_kernel::world::{Agent, AgentIx, Call, World};

use super::clocks::deadline;
use super::fitted;
use super::law::{Law, hold};

/// The most that a call can cost, from its definition alone: the dearest kind of input and of output among the rates
/// for short inputs and each tier that its input can reach, but for writes that its request cannot cause. Prices of the
/// simulator have no dates.
pub(super) fn dearest(price: &Price, work: &ModelCall, output_cap: u64) -> u64 {
    let input_tokens = work.input_tokens;
    let tiers = price.tiers.iter().filter(|tier| input_tokens > tier.input_above).map(|tier| tier.rates);
    let costs = std::iter::once(price.rates_at(Time(0), 0)).chain(tiers).map(|rates| {
        let plain = rates.input_per_mtok;
        let write = rates.cache_write_per_mtok.unwrap_or(plain);
        let cached = rates.cached_input_per_mtok.unwrap_or(plain);
        let hour = rates.cache_write_1h_per_mtok.unwrap_or(write);
        let write = match work.writes() {
            CacheWrites::None => plain,
            CacheWrites::Minutes => write,
            CacheWrites::Hour => write.max(hour),
        };
        let input = u128::from(plain.max(cached).max(write));
        let output = u128::from(rates.reasoning_per_mtok.unwrap_or(0).max(rates.output_per_mtok));
        let sum = u128::from(input_tokens) * input + u128::from(output_cap) * output;
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    });
    costs.max().unwrap_or_default()
}

/// The state just before an event.
pub(super) struct Before<'w> {
    /// The world.
    pub(super) world: &'w World,
    /// The time.
    pub(super) now: Time,
    /// Whether nothing ever exceeded its hold or was charged from outside.
    pub(super) exact: bool,
}

impl Before<'_> {
    /// Checks an event; only starts, spawns, halts and ends matter.
    pub(super) fn judge(&self, event: &Event) -> Law {
        if let Event::AgentSpawned(spawned) = event {
            return self.birth(spawned);
        }
        if let Event::CallSwitched { call: id, model, output_cap } = event {
            return fitted::judge_switch(self.world, *id, model, *output_cap);
        }
        if let Event::TreeHalted { call, account, short, also, .. } = event {
            let also = also.iter().map(|other| (&other.account, &other.short));
            let lacks: Vec<_> = std::iter::once((account, short)).chain(also).collect();
            return fitted::judge_halt(self.world, *call, &lacks);
        }
        if let Event::CallEnded { call, outcome: Outcome::Failed { .. }, .. } = event {
            return self.gives_up(*call);
        }
        if let Event::AgentEnding { agent, exit, .. } | Event::AgentEnded { agent, exit, .. } = event {
            return self.names_time(agent, exit);
        }
        let Event::CallStarted { call: id, held, .. } = event else { return Ok(()) };
        let Some(call) = self.world.call(*id) else { return Err(format!("{id} started and is not open")) };
        self.allowed(*id, call)?;
        let agent = self.world.agents().agent(call.agent);
        self.rights(*id, agent, call)?;
        fitted::judge_start(self.world, *id, call)?;
        hold(*held == self.worst(call), || {
            format!("{id} holds {held:?}, its worst case is {:?}", self.worst(call))
        })?;
        if self.exact { self.room(call.agent, held) } else { Ok(()) }
    }

    /// A retry that is refused for time says so, and a turn that does not fit names its ceiling: they do not end with
    /// the fault of the attempt before. Only a tree without retries left does that.
    fn gives_up(&self, id: CallId) -> Law {
        let Some(call) = self.world.call(id).filter(|call| !call.is_running()) else { return Ok(()) };
        hold(self.in_time(call.agent), || format!("{id} failed, and its agent's time was up"))?;
        // Its provider was down before it was checked whether it fits.
        if matches!(&call.work, Work::Model(work) if self.world.is_broken(&work.model, self.now)) {
            return Ok(());
        }
        let account = self.world.agents().agent(call.agent).account;
        match self.world.ledger().fit(account, &self.worst(call)) {
            Fit::Never(_, short) if call.work.is_turn() => hold(short.resource == Resource::Retries, || {
                format!("{id} failed, and did not fit: {short:?}")
            }),
            Fit::Never(..) | Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => Ok(()),
        }
    }

    /// An agent whose time is up does not end because its process died.
    fn names_time(&self, agent: &AgentId, exit: &Exit) -> Law {
        let is_lost = matches!(exit, Exit::Failed { error } if error.code == "model_lost");
        let ix = self.world.agents().find(agent).filter(|_| is_lost);
        hold(ix.is_none_or(|ix| self.in_time(ix)), || {
            format!("{agent} ended because of a lost call, and its time was up")
        })
    }

    /// An agent is spawned within the limits of its tree, in time, and not as a copy of an ancestor.
    fn birth(&self, spawned: &Spawned) -> Law {
        let agents = self.world.agents();
        let Some(parent) = spawned.parent.as_ref().and_then(|id| agents.find(id)) else { return Ok(()) };
        let (id, limits) = (&spawned.agent, self.world.definition().limits);
        let agent_terms = &agents.agent(parent).terms;
        // The graph bounds how deep and wide it is itself, and its own agents share a role.
        if let Attachment::Step { .. } = spawned.attachment {
            hold(agents.len() < limits.agents_max as usize, || format!("{id} is one too many"))?;
            return hold(self.in_time(parent), || format!("{id} was spawned when its parent's time was up"));
        }
        hold(agent_terms.depth < agent_terms.caps.depth_max.min(limits.depth_max), || {
            format!("{id} is too deep")
        })?;
        let siblings = agents.children(parent).count();
        hold(siblings < limits.children_max as usize, || format!("{id} has {siblings} siblings"))?;
        hold(agents.len() < limits.agents_max as usize, || format!("{id} is one too many"))?;
        hold(self.in_time(parent), || format!("{id} was spawned when its parent's time was up"))?;
        // It stands for a graph and takes no turns; the roles of its steps count.
        if spawned.role.is_of_graphs() {
            return Ok(());
        }
        hold(agent_terms.caps.spawn.has(&spawned.role), || {
            format!("{id} has a role its parent may not spawn")
        })?;
        let role = self.world.definition().roles.get(&spawned.role);
        let once = role.is_none_or(|role| role.recursive == Recursion::Refused);
        let mut path = std::iter::once(parent).chain(agents.above(parent));
        let again = path.any(|ix| agents.agent(ix).terms.role == spawned.role);
        hold(!(once && again), || format!("{id} repeats a role of its ancestors"))
    }

    fn in_time(&self, ix: AgentIx) -> bool {
        deadline(self.world, ix).is_none_or(|at| at > self.now)
    }

    /// Nothing that blocks calls is in force.
    fn allowed(&self, id: CallId, call: &Call) -> Law {
        let world = self.world;
        let line: Vec<AgentIx> =
            std::iter::once(call.agent).chain(world.agents().above(call.agent)).collect();
        let limits = world.definition().limits;
        hold(world.halted().is_none(), || format!("{id} started in a halted tree"))?;
        hold(!world.is_suspended(), || format!("{id} started in a tree that nobody runs"))?;
        hold(!line.iter().any(|ix| world.agents().agent(*ix).paused), || {
            format!("{id} started while paused")
        })?;
        hold(self.in_time(call.agent), || format!("{id} started when its agent's time was up"))?;
        // A program takes none.
        let has_slot = call.work.is_program()
            || call.work.of_tool().is_some()
            || world.calls().running() < limits.parallel_max;
        hold(has_slot, || format!("{id} started without a slot"))?;
        let Work::Model(work) = &call.work else { return Ok(()) };
        hold(!world.is_broken(&work.model, self.now), || format!("{id} started on a broken model"))?;
        let limited = world.rate_limit(&work.model).is_some_and(|until| until > self.now);
        hold(!limited, || format!("{id} started on a limited model"))
    }

    /// The agent may use what it calls, and nothing unpriced is called while money is limited.
    fn rights(&self, id: CallId, agent: &Agent, call: &Call) -> Law {
        let caps = &agent.terms.caps;
        match &call.work {
            Work::Tool(work) if work.is_program => Ok(()),
            Work::Tool(work) => hold(caps.tools.has(&work.tool), || format!("{id} has no right to its tool")),
            Work::Model(work) => {
                let definition = self.world.definition();
                // Which models a program calls is not its role's to say.
                let role = definition.roles.get(&agent.terms.role);
                let is_program = role.is_some_and(|role| role.program.is_some());
                hold(is_program || caps.models.has(&work.model), || {
                    format!("{id} has no right to its model")
                })?;
                let priced = definition.models.get(&work.model).is_some_and(|model| model.price.is_some());
                let limited = self.world.ledger().left(agent.account).get(Resource::Cost).is_some();
                let fine = priced || !limited || definition.unpriced == Unpriced::Allow;
                hold(fine, || format!("{id} started on a model without a price"))
            }
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => Err(format!("{id} is nothing that starts")),
        }
    }

    /// The most the attempt can use, computed from the definition: every input token at the dearest rate.
    fn worst(&self, call: &Call) -> Amounts {
        let retries = u64::from(call.is_retry());
        match &call.work {
            Work::Model(work) => {
                let price = self.world.definition().price(&work.model);
                let nanos = price.map_or(0, |price| dearest(price, work, work.output_cap));
                let tokens = work.input_tokens + work.output_cap;
                // A summary is not a step.
                let steps = u64::from(work.summary.is_none());
                Amounts::cost(nanos).with(Resource::Tokens, tokens).with(Resource::Steps, steps)
            }
            Work::Tool(work) if work.is_program => Amounts::ZERO,
            Work::Tool(work) => Amounts::cost(work.cost_nanos_max).with(Resource::ToolCalls, 1),
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => Amounts::ZERO,
        }
        .with(Resource::Retries, retries)
    }

    /// At every account up the chain there is room for what is spent, for everything that runs below, and for this;
    /// above the asker without touching the reserve, unless it was lent what it uses.
    fn room(&self, asker: AgentIx, held: &Amounts) -> Law {
        let agents = self.world.agents();
        let mut lent = ResourceSet::EMPTY;
        for ix in std::iter::once(asker).chain(agents.above(asker)) {
            let account = self.world.ledger().account(agents.agent(ix).account);
            let below = |call: &Call| call.agent == ix || agents.above(call.agent).any(|above| above == ix);
            let running = self.world.calls().all().filter(|(_, call)| call.is_running() && below(call));
            let sum = running.fold(account.spent.plus(held), |sum, (_, call)| sum.plus(&call.held()));
            for resource in Resource::ALL {
                let free = ix == asker || lent.has(resource);
                let reserve = if free { 0 } else { account.terms.reserve.get(resource) };
                let Some(limit) = account.terms.limit.get(resource) else { continue };
                let fits = held.get(resource) == 0 || sum.get(resource) <= limit.saturating_sub(reserve);
                hold(fits, || {
                    format!("{} would pass its {resource} ceiling: {sum:?} of {limit}", agents.id(ix))
                })?;
            }
            lent = lent.union(account.terms.lends);
        }
        Ok(())
    }
}
