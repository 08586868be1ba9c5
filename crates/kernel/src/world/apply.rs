//! Applies events: how each one changes the world. It cannot fail and decides nothing. An event that does not fit the
//! world is a bug, which stops this tree only.

use std::sync::Arc;

use super::{Halt, Subject, World};
use crate::budget::{AccountIx, Amounts, Waiter};
use crate::context::Goal;
use crate::definition::{Builtin, Definition, Graph, ModelSpec};
use crate::primitives::{
    AgentId, Body, CallId, Category, Envelope, ModelName, Running, Seq, Time, TimerId, TokenCount, limit,
};
use crate::record::{
    Adjusted, Alarm, Attachment, BreakerState, ChildCall, ChildEnd, Clamped, Event, Exit, FrameIx, Header,
    HeldBy, ModelCall, NamedValue, NodeEnd, Outcome, Said, Shortened, Span, Spawned, StartOf, Tie, TurnKind,
    ValueRead, WaitFor, WaitReason, Work,
};
use crate::window::{Room, Window};
use crate::world::{
    Agent, AgentIx, AgentState, AgentTerms, Call, CallStage, EndNote, Ended, NewAgent, Phase, Progress,
    QueuedMessage,
};
use crate::{context, window};

impl World {
    pub fn apply(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        match event {
            Event::TreeStarted { rules, definition, .. } => self.tree_started(*rules, definition),
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::AgentPaused { agent } => self.set_paused(agent, true),
            Event::AgentUnpaused { agent } => self.set_paused(agent, false),
            Event::AgentRedirected { agent, running, instruction, tokens } => {
                self.redirected(agent, *running, instruction_tokens(instruction, *tokens));
            }
            Event::MessageSent { to, body, envelope, .. } => self.message_sent(to, body, envelope),
            Event::MessagePublished { .. }
            | Event::CheckpointMade { .. }
            | Event::ConnectionsOmitted { .. }
            | Event::ProgramConnectionsOmitted { .. } => {}
            Event::WindowSet { agent, size, first, clamped } => {
                self.window_set(agent, *size, *first, *clamped);
            }
            Event::ContextShared { from, to, spans, as_is, replaces } => {
                self.window_mut(to).remove(replaces);
                self.share_context(from, to, spans, *as_is);
            }
            Event::ThreadJoined { agent, of, bound } => self.joined(of, agent, *bound),
            Event::ThreadLeft { agent, of, bound } => self.left(of, agent, *bound),
            Event::ContextCut { agent, cut, shortened, .. } => {
                self.window_mut(agent).cut(cut);
                shortened.iter().for_each(|shortened| self.shortened(shortened));
            }
            Event::ContextRestored(restored) => self.restored(restored),
            Event::AgentEnding { agent, exit, result } => {
                self.ending(agent, EndNote { exit: exit.clone(), result: result.clone() });
            }
            Event::AgentEnded { agent, exit, result, .. } => self.ended(agent, exit, result.as_ref()),
            Event::CallAsked { call, agent, work } => self.call_asked(*call, agent, work),
            Event::WaitStarted { call, agent, wait, alarm, ask } => {
                self.asked(*call, *ask, agent, Work::Wait(wait.clone()), Some(*alarm));
            }
            Event::QuestionAsked { call, agent, question, alarm, ask } => {
                self.graphs.asked(self.place(agent), *call);
                self.asked(*call, *ask, agent, Work::Question(question.clone()), Some(*alarm));
            }
            Event::CallWaiting { call, why, account, alarm } => {
                self.waits(*call, *why, account.as_ref(), *alarm);
            }
            Event::CallStarted { call, attempt, held, at, leads } => {
                self.started(*call, *attempt, held, *at, *leads);
            }
            Event::FirstToken { call } => self.prefixes.cached(*call),
            Event::ConnectionEnded { call, .. } => self.calls.call_mut(*call).connections += 1,
            Event::ProgramConnected { .. } => self.program_connections += 1,
            Event::SessionNamed { call, session } => self.calls.call_mut(*call).past_mut().name(session),
            Event::FollowupStarted { call, .. } => self.calls.call_mut(*call).past_mut().begin_followup(),
            Event::CallResumed { call } => self.calls.call_mut(*call).past_mut().losses += 1,
            Event::CallSwitched { call, model, output_cap } => self.switched(*call, model, *output_cap),
            Event::AttemptFailed { call, fault, spent, presumed, .. } => {
                self.settled(*call, spent, presumed);
                self.calls.call_mut(*call).past_mut().take(fault.as_ref());
            }
            Event::CallHeldBack { call, by, until } => self.call_held_back(*call, *by, *until),
            Event::CallEnded { call, outcome, spent, presumed, input_tokens, .. } => {
                self.call_ended(*call, outcome, spent, presumed, *input_tokens);
            }
            Event::ToolAnswered { agent, ask, body, value, .. } => {
                self.answered(agent, *ask, body, value.as_deref());
            }
            Event::ValueWritten { name, value, form, by, version, at } => {
                self.shared.write(name, value, *form, by, *version, *at);
            }
            Event::ValuesCleared { .. } => self.shared.clear(),
            Event::Charged { agent, amounts, .. } => self.ledger.charge(self.account(agent), amounts),
            Event::ClockSet { agent, clock, left_ms, early_ms, alarm } => {
                self.clock_set(agent, *clock, *left_ms, *early_ms, *alarm);
            }
            Event::GraphStarted { agent, graph } => self.graph_started(agent, graph.as_ref()),
            Event::GraphReplanned { agent, change, running } => {
                self.graphs.replanned(self.place(agent), change, *running);
            }
            Event::NodeStarted(start) => self.graphs.node_started(self.place(&start.graph), start),
            Event::NodeEnded { graph, frame, end, .. } => self.node_ended(graph, *frame, end),
            Event::WrapUpStarted { agent, stops } => self.wrap_up_started(agent, *stops),
            Event::ApprovalRemembered { agent, tool, scope, pattern } => {
                self.approvals.remember(self.place(agent), tool, *scope, pattern);
            }
            Event::RepeatsNoticed { agent, tool, count, count_max } => {
                self.noticed(agent, tool, *count, *count_max);
            }
            Event::TreeHalted { account, call, short, also, .. } => {
                self.halted = Some(Halt::new(*call, account, short, also));
            }
            Event::TreeUnhalted => self.halted = None,
            Event::TreeSuspended => self.suspended = true,
            Event::TreeContinued => self.suspended = false,
            Event::TreeSealed { kind, at } => self.sealed = Some((kind.clone(), *at)),
            Event::TreeUnsealed => self.sealed = None,
            Event::TreeBranched(branched) => self.branched(branched),
            Event::LimitRaised { agent, add, add_ms } => self.raised(agent, add, *add_ms),
            Event::TreeAdjusted(adjusted) => self.adjusted(adjusted),
            Event::ModelAdded { model, spec } => self.model_added(model, spec),
            Event::BreakerChanged { model, breaker } => self.set_breaker(model, *breaker, None),
            Event::RateLimited { model, until } => self.rate_limited(model, *until),
        }
    }

    fn tree_started(&mut self, rules: u32, definition: &Arc<Definition>) {
        self.rules = rules;
        self.shared.start(definition);
        self.definition = Some(Arc::clone(definition));
    }

    fn call_asked(&mut self, call: CallId, agent: &AgentId, work: &Work) {
        let ask = if let Work::Tool(work) = work { work.ask } else { None };
        self.asked(call, ask, agent, work.clone(), None);
    }

    fn rate_limited(&mut self, model: &ModelName, until: Time) {
        self.gates.entry(model.clone()).or_default().limited_until = Some(until);
    }

    pub(super) fn place(&self, id: &AgentId) -> AgentIx {
        match self.agents.find(id) {
            Some(ix) => ix,
            None => unreachable!("agent {id} exists"),
        }
    }

    fn account(&self, agent: &AgentId) -> AccountIx {
        self.agent(self.place(agent)).account
    }

    fn spawned(&mut self, spawned: &Spawned) {
        let parent = spawned.parent.as_ref().map(|id| self.place(id));
        let account = self.ledger.open(parent.map(|ix| self.agent(ix).account), spawned.terms);
        let role = self.definition().roles.get(&spawned.role);
        let recursive = role.map(|role| role.recursive).unwrap_or_default();
        let ix = self.agents.insert(spawned, &NewAgent { parent, account, recursive });
        // The lowest free index is used first, so the list grows by at most one.
        match self.owners.get_mut(account.place()) {
            Some(owner) => *owner = ix,
            None => self.owners.push(ix),
        }
        if let Some(turns) = self.definition().roles.get(&spawned.role).and_then(|role| role.turns.as_ref()) {
            let schema = spawned.output_schema.as_deref();
            let goal = Goal { text: &spawned.goal, tokens: None, schema };
            let first = context::first_tokens(self.definition(), &spawned.caps, turns, goal);
            let definition = self.definition.clone();
            let window = &mut self.agents.agent_mut(ix).progress.window;
            definition.iter().for_each(|definition| window.open(first, definition));
        }
        for letter in self.unspawned.remove(&spawned.agent).unwrap_or_default() {
            self.agents.agent_mut(ix).take(letter);
        }
        self.wound(ix);
        if let (Attachment::Step { frame }, Some(parent)) = (spawned.attachment, parent) {
            self.graphs.spawned(ix, parent, frame);
        }
        if let (Attachment::Call { call, ask }, Some(parent)) = (spawned.attachment, &spawned.parent) {
            self.asked(call, ask, parent, Work::Child(ChildCall { agent: spawned.agent.clone() }), None);
        }
    }

    fn model_added(&mut self, name: &ModelName, spec: &ModelSpec) {
        let Some(definition) = &mut self.definition else { unreachable!("a running tree has a definition") };
        Arc::make_mut(definition).models.insert(name.clone(), spec.clone());
    }

    fn wrap_up_started(&mut self, id: &AgentId, stops: bool) {
        self.progress_mut(id).set_time_short(true);
        if stops {
            self.stopped(id);
        }
    }

    fn noticed(&mut self, id: &AgentId, tool: &str, count: u32, count_max: u32) {
        let rules = self.rules;
        self.progress_mut(id).noticed(tool, count, count_max, rules);
    }

    fn raised(&mut self, id: &AgentId, add: &Amounts, add_ms: u64) {
        self.ledger.raise(self.account(id), add);
        self.extended(id, add_ms);
        for member in self.agents.subtree(self.place(id)) {
            self.agents.forget_lost(member);
        }
    }

    fn adjusted(&mut self, adjusted: &Adjusted) {
        let Adjusted { agent, limit, parallel_max, on_low, timeout_ms, sources: _ } = adjusted;
        self.ledger.set_ceilings(self.account(agent), limit);
        let Some(definition) = &mut self.definition else { unreachable!("a running tree has a definition") };
        let definition = Arc::make_mut(definition);
        if let Some(parallel_max) = parallel_max {
            definition.limits.parallel_max = *parallel_max;
        }
        if let Some(on_low) = on_low {
            definition.budget.on_low = Some(on_low.clone());
            for role in definition.roles.values_mut() {
                role.budget.on_low = Some(on_low.clone());
            }
        }
        if let Some(timeout_ms) = timeout_ms {
            self.timeout_given(agent, *timeout_ms);
        }
        for member in self.agents.subtree(self.place(agent)) {
            self.agents.forget_lost(member);
            if let Some(on_low) = on_low {
                Arc::make_mut(&mut self.agents.agent_mut(member).terms).on_low = on_low.clone();
            }
        }
    }

    fn set_paused(&mut self, id: &AgentId, paused: bool) {
        let ix = self.place(id);
        self.agents.agent_mut(ix).paused = paused;
    }

    fn progress_mut(&mut self, agent: &AgentId) -> &mut Progress {
        let ix = self.place(agent);
        &mut self.agents.agent_mut(ix).progress
    }

    fn window_mut(&mut self, agent: &AgentId) -> &mut Window {
        &mut self.progress_mut(agent).window
    }

    fn share_context(&mut self, from: &AgentId, to: &AgentId, spans: &[Span], as_is: bool) {
        let mut known = self.window_of(self.place(from)).clone();
        if let Some(tokens) = self.briefing_tokens(self.place(from)).filter(|_| !as_is) {
            known.begin_with(tokens);
        }
        let (around, is_old) = (context::SharedAs::under(self.rules).tokens(), self.rules < 3);
        let progress = self.progress_mut(to);
        let before = progress.window.tokens();
        progress.window.receive(from, &known, spans, as_is, around, is_old);
        progress.tokens = progress.tokens.saturating_add(progress.window.tokens() - before);
    }

    /// The tokens of an agent's first message as others see it. Under rules 2 they saw all of it.
    fn briefing_tokens(&self, ix: AgentIx) -> Option<TokenCount> {
        let agent = self.agents.living(ix).filter(|_| self.rules >= 3)?;
        let turns = self.definition().roles.get(&agent.terms.role)?.turns.as_ref()?;
        let first = agent.progress.window.headers().first()?.counted();
        Some(context::briefing_tokens(self.definition(), &agent.terms.caps, turns, first))
    }

    /// The window of an agent, or of a completed child that can get another task.
    fn window_of(&self, ix: AgentIx) -> &Window {
        if let Some(agent) = self.agents.living(ix) {
            return &agent.progress.window;
        }
        match self.agents.parent(ix).and_then(|parent| self.agents.finished(parent, ix)) {
            Some(finished) => &finished.window,
            None => unreachable!("what {} knew is not kept", self.agents.id(ix)),
        }
    }

    fn window_set(&mut self, agent: &AgentId, size: u64, first: TokenCount, clamped: Option<Clamped>) {
        self.window_mut(agent).bound(size, first);
        if let Some(clamped) = clamped.filter(|clamped| clamped.is_told) {
            self.note_clamped(agent, size, clamped);
        }
    }

    fn joined(&mut self, head: &AgentId, reader: &AgentId, bound: Option<u64>) {
        self.threads.join(self.place(head), self.place(reader), bound);
    }

    fn left(&mut self, head: &AgentId, reader: &AgentId, bound: Option<u64>) {
        self.threads.leave(self.place(head), self.place(reader), bound);
    }

    /// Notifies an agent that its child's window is smaller than its own.
    fn note_clamped(&mut self, child: &AgentId, size: u64, clamped: Clamped) {
        let Some(parent) = self.agent(self.place(child)).family.parent else { return };
        let text = context::clamp_text(child.as_str(), size, clamped.parent_size);
        let tokens = TokenCount::of_bytes(text.len());
        let progress = &mut self.agents.agent_mut(parent).progress;
        progress.read(tokens);
        let note = Header::new(tokens.plus(limit::MESSAGE_TOKENS), Category::Internal, Tie::Free);
        progress.window.push(note);
    }

    fn message_sent(&mut self, to: &AgentId, body: &Body, envelope: &Envelope) {
        let room = Room::new(context::heard_tokens(body, envelope), body.parts());
        self.delivered(to, room, envelope.category);
    }

    fn delivered(&mut self, to: &AgentId, room: Room, category: Category) {
        let letter = QueuedMessage { seq: self.seq, room: room.plus(limit::SENDER_TOKENS), category };
        match self.agents.find(to) {
            Some(ix) => self.agents.agent_mut(ix).take(letter),
            None => self.unspawned.entry(to.clone()).or_default().push(letter),
        }
    }

    fn redirected(&mut self, agent: &AgentId, running: Running, tokens: TokenCount) {
        self.delivered(agent, tokens.into(), Category::Dialog);
        if running.stops() {
            self.stopped(agent);
        }
    }

    fn stopped(&mut self, id: &AgentId) {
        for call in self.agent(self.place(id)).open.clone() {
            self.calls.call_mut(call).stopped = true;
        }
    }

    fn ending(&mut self, id: &AgentId, end_note: EndNote) {
        let ix = self.place(id);
        let agent = self.agents.agent_mut(ix);
        assert!(agent.state.phase().may_become(Phase::Ending), "how an agent ends is decided once");
        agent.state = AgentState::Ending(Box::new(end_note));
        let account = agent.account;
        if agent.family.parent.is_none() {
            self.ended_clocks.clone_from(&agent.clocks);
        }
        self.clocks_gone(ix);
        self.ledger.shut(account);
    }

    fn ended(&mut self, id: &AgentId, exit: &Exit, result: Option<&Body>) {
        let ix = self.place(id);
        let agent = self.agents.agent_mut(ix);
        let (account, role, depth) = (agent.account, agent.terms.role.clone(), agent.terms.depth);
        let parent = agent.family.parent;
        let detached = agent.attachment == Attachment::Detached;
        let tokens = result.map_or(agent.progress.last_tokens(), context::shown_tokens);
        if let Some(result) = result {
            self.agents.answered(ix, result);
            self.step_answered(ix, result, false);
        }
        if parent.is_none() {
            self.keep_root(ix);
        }
        self.graphs.gone(ix);
        self.outputs.gone(ix);
        self.approvals.gone(ix);
        if let Some(parent) = parent.filter(|parent| *exit == Exit::Completed && self.follows_up(*parent, ix))
        {
            self.agents.finish(ix, parent);
        }
        self.clocks_gone(ix);
        if let (Some(parent), Exit::Exhausted { .. }) = (parent, exit) {
            self.agents.lose(parent, ix);
        }
        let presumed = self.ledger.account(account).presumed.clone();
        let (exit_kind, at, spent) = (exit.kind(), self.seq, self.ledger.close(account));
        self.agents.retire(ix, Ended { role, parent, depth, exit: exit_kind, at, tokens, spent, presumed });
        match parent {
            Some(parent) if detached => {
                let facts = self.facts_tokens(parent).times(2);
                let tokens_shown = context::child_tokens(exit.kind(), tokens).plus(facts);
                let room = Room::from(tokens_shown).plus(limit::SENDER_TOKENS);
                let letter = QueuedMessage { seq: self.seq, room, category: Category::Output };
                self.agents.agent_mut(parent).take(letter);
            }
            Some(_) => {}
            // The tree is over, so the halt no longer matters.
            None => self.halted = None,
        }
    }

    /// Whether a parent may give a child another task after it has completed.
    fn follows_up(&self, parent: AgentIx, child: AgentIx) -> bool {
        let is_program = |terms: &AgentTerms| {
            self.definition().roles.get(&terms.role).is_some_and(|role| role.program.is_some())
        };
        let Some(above) = self.agents.living(parent).map(|parent| &parent.terms) else { return false };
        let agent = self.agent(child);
        above.caps.tools.has(Builtin::FollowupTask.as_str())
            && match is_program(&agent.terms) {
                // What a program names below it is a part of it.
                true => self.rules >= 8 && !is_program(above),
                false => agent.progress.window.can_go_on(),
            }
    }

    fn asked(&mut self, id: CallId, ask: Option<u32>, agent: &AgentId, work: Work, alarm: Option<Alarm>) {
        let ix = self.place(agent);
        let why = match &work {
            Work::Model(_) | Work::Tool(_) => None,
            Work::Child(_) | Work::Wait(WaitFor::Children { .. }) => Some(WaitReason::Children),
            Work::Wait(WaitFor::Message) => Some(WaitReason::Message),
            Work::Question(_) => Some(WaitReason::Person),
        };
        let agent = self.agents.agent_mut(ix);
        if let Work::Model(ModelCall { summary: Some(covers), .. }) = &work {
            // Not a turn: what is unread stays unread.
            agent.progress.set_failed(None);
            agent.progress.window.summary_asked(&covers.spans);
        } else if let Work::Model(work) = &work
            && work.outside.is_none()
        {
            match &work.wrap_up {
                // The packet is cut, the context is not.
                Some(wrap_up) if wrap_up.cut.is_some() => agent.progress.asked_with_less(),
                Some(_) | None => agent.progress.asked(work.counted()),
            }
            agent.progress.window.asked(work.wrap_up.is_none().then(|| work.counted()));
            let reason = work.wrap_up.as_ref().map(|wrap_up| &wrap_up.reason);
            agent.progress.asked_to_wrap_up(&work.model, reason);
            agent.progress.window.forget_summary();
            // An agent that takes turns reads everything before its next turn.
            if self
                .definition
                .as_ref()
                .and_then(|d| d.roles.get(&agent.terms.role))
                .is_some_and(|role| role.turns.is_some())
            {
                agent.progress.count_calls();
                if !agent.inbox.is_empty() {
                    agent.progress.anew();
                }
                agent.inbox.clear();
                if work.wrap_up.is_some() {
                    agent.progress.add_last_call_note();
                }
                agent.progress.window.read();
            }
        }
        // Results are in request order; a tool that needs approval returns later.
        let is_behind = |open: &&CallId| self.calls.find(**open).and_then(Call::ask) > ask;
        let behind = ask.map_or(0, |_| agent.open.iter().rev().take_while(is_behind).count());
        agent.open.insert(agent.open.len() - behind, id);
        agent.kinds.waits += u16::from(matches!(work, Work::Wait(_)));
        agent.kinds.unasked += u16::from(ask.is_none());
        self.calls.insert(id, ix, work, ask);
        if let Some(why) = why {
            self.waiting(id, why, alarm);
        }
    }

    fn waits(&mut self, call: CallId, why: WaitReason, account: Option<&AgentId>, alarm: Option<Alarm>) {
        self.waiting(call, why, alarm);
        self.in_line(call, account, why);
    }

    fn waiting(&mut self, id: CallId, why: WaitReason, alarm: Option<Alarm>) {
        self.ledger.line_leave(id.0);
        self.calls.move_to(id, CallStage::Waiting(why));
        let old = std::mem::replace(&mut self.calls.call_mut(id).timer, alarm.map(|alarm| alarm.timer));
        self.clear_timer(old);
        self.set_timer(alarm, Subject::Call(id));
    }

    /// Puts a call that waits for budget in line at the account that blocks it.
    fn in_line(&mut self, id: CallId, blocked: Option<&AgentId>, why: WaitReason) {
        let (WaitReason::Budget { ask }, Some(blocked)) = (why, blocked) else { return };
        let ix = self.calls.call_mut(id).agent;
        let (at, blocked) = (self.agent(ix).account, self.agent(self.place(blocked)).account);
        self.ledger.line_join(id.0, Waiter { at, blocked, ask });
    }

    fn started(
        &mut self,
        id: CallId,
        attempt: u32,
        held: &Amounts,
        start: Option<Time>,
        leads: Option<Time>,
    ) {
        self.ledger.line_leave(id.0);
        self.calls.move_to(id, CallStage::Running { held: *held, start });
        let call = self.calls.call_mut(id);
        call.attempt = attempt;
        let (ix, timer) = (call.agent, call.timer.take());
        let is_turn = call.work.is_turn() && call.work.of_tool().is_none();
        let is_ordinary = is_turn && call.work.wrap_up().is_none();
        let is_outside = call.work.outside().is_some();
        self.clear_timer(timer);
        if is_outside && let Some(program) = self.program_above(ix) {
            self.agents.agent_mut(program).given_up = None;
        }
        let agent = self.agents.agent_mut(ix);
        if is_ordinary {
            agent.progress.goes_on();
        }
        agent.running += 1;
        self.ledger.hold(agent.account, held);
        if let Some(since) = leads {
            self.prefixes.lead(id, self.prefix_of(id), since);
        }
    }

    fn switched(&mut self, id: CallId, model: &ModelName, output_cap: u64) {
        let call = self.calls.call_mut(id);
        let Work::Model(work) = &mut call.work else { unreachable!("only a model call is switched") };
        let asked = std::mem::replace(&mut work.output_cap, output_cap);
        let is_fitted =
            self.rules >= 6 && work.outside.is_some() && work.model == *model && output_cap < asked;
        if work.model != *model {
            // What another provider reported says nothing about this one.
            work.input_tokens = work.counted_tokens.take().unwrap_or(work.input_tokens);
            let old = std::mem::replace(&mut work.model, model.clone());
            let past = call.past_mut();
            past.tried.push(old);
            (past.not_before, past.breaker_waits) = (None, 0);
        }
        if is_fitted {
            call.past_mut().asked_cap.get_or_insert(asked);
        }
    }

    fn shortened(&mut self, shortened: &Shortened) {
        let call = self.calls.call_mut(shortened.call);
        call.past_mut().is_shortened = true;
        let ix = call.agent;
        let Work::Model(work) = &mut call.work else { unreachable!("only a model call has a packet") };
        let gone = work.counted().saturating_sub(shortened.input_tokens);
        (work.input_tokens, work.counted_tokens) = (shortened.input_tokens, None);
        let progress = &mut self.agents.agent_mut(ix).progress;
        work.estimate = progress.window.is_estimated().then(|| progress.window.used());
        // Messages that came since are in the window and not in the packet, so a report of it corrects nothing.
        progress.window.asked(None);
        progress.tokens = progress.tokens.saturating_sub(gone);
    }

    fn settled(&mut self, id: CallId, spent: &Amounts, presumed: &Amounts) {
        let call = self.calls.call_mut(id);
        let (ix, held) = (call.agent, call.held());
        self.prefixes.end(id);
        self.calls.move_to(id, CallStage::Asked);
        let agent = self.agents.agent_mut(ix);
        agent.running -= 1;
        self.ledger.settle(agent.account, &held, spent);
        self.ledger.presume(agent.account, presumed);
    }

    fn set_breaker(&mut self, model: &ModelName, breaker: BreakerState, until: Option<Time>) {
        let gate = self.gates.entry(model.clone()).or_default();
        (gate.breaker, gate.broken_until) = (breaker, until);
    }

    /// The attempt was never made, so the next one has its number.
    fn call_held_back(&mut self, id: CallId, by: HeldBy, until: Time) {
        self.settled(id, &Amounts::ZERO, &Amounts::ZERO);
        let call = self.calls.call_mut(id);
        call.attempt -= 1;
        let past = call.past_mut();
        let asked_cap = past.asked_cap.take();
        if let (Work::Model(work), Some(asked)) = (&mut call.work, asked_cap) {
            work.output_cap = asked;
        }
        let past = call.past_mut();
        match by {
            HeldBy::Breaker => {
                past.breaker_waits += 1;
                let Work::Model(work) = &call.work else { unreachable!("only a model call is held back") };
                let model = work.model.clone();
                self.set_breaker(&model, BreakerState::Open, Some(until));
            }
            HeldBy::Provider | HeldBy::ModelRate | HeldBy::RoleRate | HeldBy::TreeRate => {
                past.not_before = Some(until);
            }
        }
    }

    fn call_ended(
        &mut self,
        id: CallId,
        outcome: &Outcome,
        spent: &Amounts,
        presumed: &Amounts,
        input_tokens: Option<u64>,
    ) {
        let tokens_shown = self.outcome_tokens(id, outcome);
        let call = self.calls.call_mut(id);
        let (ix, is_running, timer) = (call.agent, call.is_running(), call.timer.take());
        let (is_wait, is_void) = (matches!(call.work, Work::Wait(_)), call.is_void);
        let (is_model, ask) = (matches!(call.work, Work::Model(_)), call.ask());
        let (is_outside, is_program) = (call.work.outside().is_some(), call.work.is_program());
        let continues = matches!(&call.work, Work::Model(model) if model.continues);
        let is_after_answer = matches!(&call.work, Work::Question(question) if question.is_after_answer);
        if let Work::Question(question) = &call.work {
            let value = if question.form.schema().is_some() { NamedValue::json } else { NamedValue::text };
            let answer =
                if let Outcome::Answered { answer, .. } = outcome { Some(answer.clone()) } else { None };
            self.graphs.question_ended(id, answer.map(value));
        }
        let call = self.calls.call_mut(id);
        let is_summary = is_model && !call.work.is_turn();
        let turn_model = if let Work::Model(work) = &call.work { Some(work.model.clone()) } else { None };
        let turn_model = turn_model.filter(|_| !is_summary);
        let turn = if call.work.wrap_up().is_some() { TurnKind::Last } else { TurnKind::Ordinary };
        self.outputs.change(ix, outcome.files(), outcome.removed());
        if let Outcome::Done { .. } = outcome {
            self.prefixes.cached(id);
        }
        if is_running {
            self.settled(id, spent, presumed);
        }
        self.clear_timer(timer);
        self.ledger.line_leave(id.0);
        if is_outside {
            self.given_up(ix, outcome);
        }
        let rank = ask.map(|ask| self.rank(ix, ask));
        self.calls.remove(id);
        let rules = self.rules;
        let agent = self.agents.agent_mut(ix);
        if let Some(place) = agent.open.iter().position(|open| *open == id) {
            agent.open.remove(place);
        }
        agent.kinds.waits -= u16::from(is_wait);
        agent.kinds.unasked -= u16::from(ask.is_none());
        if is_program {
            return self.program_answered(ix, outcome);
        }
        // The context of an outside program is its own, and what a person wrote after an answer came as a message.
        if is_void || is_outside || is_after_answer {
            return;
        }
        if let (Outcome::Done { .. }, Some(model), Some(tokens)) = (outcome, turn_model, input_tokens) {
            agent.progress.window.reported(&model, tokens);
        }
        let mut is_answer = false;
        if is_summary {
            agent.progress.window.summary_ended(window::came_to(outcome, self.seq));
        } else if *outcome == Outcome::Approved {
            // The tool that runs now will answer.
        } else if let Some(rank) = rank {
            let parts = if let Outcome::Done { body, .. } = outcome { body.parts() } else { &[] };
            agent.progress.answered(rank, &Room::new(tokens_shown, parts));
            ask.into_iter().for_each(|ask| agent.progress.tool_ended(ask, outcome));
        } else if !is_model {
            agent.progress.read(tokens_shown);
        } else if let Some(Said { body, asks, mismatch }) = outcome.said(turn, rules) {
            let thought = body.thought().map_or(0, |thought| thought.tokens);
            let thought = TokenCount::exact(thought);
            agent.progress.said(self.seq, tokens_shown, thought, !asks.is_empty());
            if rules >= 5 {
                agent.progress.asked_tools(asks, agent.terms.repeats);
            }
            is_answer = asks.is_empty() && mismatch.is_none();
            if let Some(mismatch) = mismatch {
                agent.progress.missed(TokenCount::of_bytes(mismatch.note().len()));
            }
        } else if let Outcome::Done { .. } = outcome {
            agent.progress.said_nothing();
        } else {
            agent.progress.set_failed(Some(outcome.clone()));
        }
        match outcome {
            Outcome::Message { seq } => agent.remove_message(*seq),
            // What a wait returned must not be read twice.
            Outcome::Children { ended } | Outcome::Expired { ended } => {
                ended.iter().for_each(|end| agent.remove_message(end.seq));
            }
            Outcome::Done { .. }
            | Outcome::Failed { .. }
            | Outcome::Lost
            | Outcome::Cancelled
            | Outcome::Refused { .. }
            | Outcome::Approved
            | Outcome::NobodyLeft
            | Outcome::Answered { .. } => {}
        }
        if let (Outcome::Done { body, .. }, true) = (outcome, is_answer) {
            self.agents.answered(ix, body);
            // An answer that continues a cut one contains both texts. Rules 5 added the first text again.
            self.step_answered(ix, body, continues && rules < 6);
        }
    }

    fn node_ended(&mut self, graph: &AgentId, frame: FrameIx, end: &NodeEnd) {
        self.graphs.node_ended(self.place(graph), frame, end);
    }

    fn graph_started(&mut self, agent: &AgentId, graph: Option<&Arc<Graph>>) {
        let ix = self.place(agent);
        match graph.or(self.definition().graph.as_ref()).map(Arc::clone) {
            Some(graph) => self.graphs.start(ix, graph),
            None => unreachable!("a graph that is not in its event is in the definition"),
        }
    }

    /// Keeps the answer of a step's agent: the graph hands it on. It is JSON where a schema asks for that.
    pub(super) fn step_answered(&mut self, ix: AgentIx, body: &Body, continues: bool) {
        if self.graphs.member(ix).is_none() {
            return;
        }
        let body = Body { text: body.text.clone(), tokens: body.tokens, beside: body.beside.clone() };
        let body = body.only_text().with_thought(None);
        let value = if self.has_schema(ix) { NamedValue::json(body) } else { NamedValue::text(body) };
        self.graphs.answered(ix, value, continues);
    }

    /// Whether a schema says what a step's agent answers: the step's own, or its role's.
    fn has_schema(&self, ix: AgentIx) -> bool {
        let own = self.graphs.member(ix).and_then(|(run, frame)| {
            let run = self.graphs.run(run)?;
            let frame = run.frame(frame).filter(|frame| frame.of == StartOf::Node)?;
            run.graph().node(frame.node).step()?.output_schema.as_ref()
        });
        own.is_some() || self.turns_of(ix).is_some_and(|turns| turns.output_schema.is_some())
    }

    /// The tokens of a call's result, facts included.
    fn outcome_tokens(&self, id: CallId, outcome: &Outcome) -> TokenCount {
        let tokens_shown = context::outcome_tokens(outcome, self.rules, |end| self.tokens_of(end));
        let Some(Call { agent, work, .. }) = self.call(id) else { return tokens_shown };
        let facts = self.facts_tokens(*agent);
        // What is left, and what each child used.
        let (lines, around) = match (work, outcome) {
            (Work::Model(_), _) => (0, TokenCount::ZERO),
            (Work::Wait(wait), Outcome::Children { ended } | Outcome::Expired { ended }) => {
                (1 + ended.len() as u64, context::wait_tokens(wait))
            }
            (Work::Child(_), _) => (2, TokenCount::ZERO),
            (Work::Tool(_) | Work::Wait(_) | Work::Question(_), _) => (1, TokenCount::ZERO),
        };
        tokens_shown.plus(facts.times(lines)).plus(around)
    }

    fn answered(&mut self, agent: &AgentId, ask: u32, body: &Body, value: Option<&ValueRead>) {
        let ix = self.place(agent);
        let value = value.and_then(|read| self.shared.find(&read.name)).map(|header| header.tokens);
        let shown = context::shown_tokens(body).plus(value.unwrap_or_default());
        let tokens = shown.plus(self.facts_tokens(ix));
        let (rank, room) = (self.rank(ix, ask), Room::new(tokens, body.parts()));
        let progress = &mut self.agents.agent_mut(ix).progress;
        progress.answered(rank, &room);
        progress.tool_answered(ask, body);
    }

    /// How many tools requested earlier in the agent's last answer have returned: all except the open ones.
    pub(super) fn rank(&self, ix: AgentIx, ask: u32) -> usize {
        let Agent { open, kinds, .. } = self.agent(ix);
        let is_before = |call: &CallId| self.call(*call).and_then(Call::ask).is_some_and(|open| open < ask);
        // Tools run in request order, and there may be a thousand of them.
        let before = match kinds.unasked {
            0 => open.partition_point(is_before),
            _ => open.iter().filter(|call| is_before(call)).count(),
        };
        (ask as usize).saturating_sub(before)
    }

    /// The tokens of an ended child's result or progress.
    fn tokens_of(&self, end: &ChildEnd) -> TokenCount {
        let ended = self.agents.find(&end.agent).and_then(|ix| self.agents.ended(ix));
        ended.map(|ended| ended.tokens).unwrap_or_default()
    }

    pub(super) fn set_timer(&mut self, alarm: Option<Alarm>, subject: Subject) {
        if let Some(Alarm { timer, at }) = alarm {
            self.timers.last = self.timers.last.max(timer.number());
            self.timers.pending.insert(timer, (at, subject));
        }
    }

    pub(super) fn clear_timer(&mut self, timer: Option<TimerId>) {
        if let Some(timer) = timer {
            self.timers.pending.remove(&timer);
        }
    }
}

/// An uncounted instruction counts by its bytes.
fn instruction_tokens(text: &str, counted: Option<TokenCount>) -> TokenCount {
    let bytes = text.len();
    counted.map_or(TokenCount::of_bytes(bytes), |tokens| tokens.at_most(bytes as u64))
}
