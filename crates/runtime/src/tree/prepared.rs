//! Effects with everything that they need, made from the tree's state when they are decided. Most wait until their
//! events are durable while the tree continues, so starting one must not read the tree again.

use std::path::Path;
use std::sync::Arc;

use spinney_kernel::context::{Contexts, Origin, Packet, ProgramPast};
use spinney_kernel::definition::{ProgramSpec, Role};
use spinney_kernel::port::blobs::BlobReader;
use spinney_kernel::port::{AgentFolder, Rights, model, tool};
use spinney_kernel::primitives::{AgentId, CallId, ModelName, SessionId, limit};
use spinney_kernel::record::{Alarm, Effect, ModelCall, Work};
use spinney_kernel::world::World;

use super::effects::Ticket;
use super::hooked::Hooked;
use crate::call_limits::CallRates;
use crate::hooks::{Target, TreeHooks};

pub(super) enum Prepared {
    SetTimer(Alarm),
    /// Each still ends in its own report.
    StopCalls(Vec<CallId>),
    CallModel(Box<ModelStart>),
    CallTool(Box<ToolStart>),
}

pub(super) struct ModelStart {
    pub(super) ticket: Ticket,
    pub(super) attempt: model::ModelAttempt,
    pub(super) hooked: Option<Box<Hooked>>,
    /// Whether calls with the same prompt prefix wait for its first token.
    pub(super) leads: bool,
    /// Whether a program makes it that is an agent of the tree.
    pub(super) is_of_program: bool,
    /// Upper bound.
    pub(super) input_tokens: u64,
    pub(super) rates: CallRates,
}

/// The program of an agent.
pub(super) struct ProgramToRun {
    pub(super) spec: Arc<ProgramSpec>,
    /// Where it continues after a crash.
    pub(super) session: Option<SessionId>,
    /// What it continues with a follow-up.
    pub(super) past: Option<Arc<ProgramPast>>,
}

pub(super) struct ToolStart {
    pub(super) ticket: Ticket,
    pub(super) attempt: tool::ToolAttempt,
    /// The agent's model, which the tool may ask.
    pub(super) model: ModelName,
    pub(super) timeout_ms: u64,
    /// How many bytes of the output are shown whole, if the tool sets that.
    pub(super) shown_bytes: Option<u32>,
    /// If it is the program of its agent.
    pub(super) program: Option<ProgramToRun>,
    pub(super) hooked: Option<Box<Hooked>>,
}

/// What effects are prepared from: the tree just after the decision, and what its home gives to every call.
pub(super) struct Preparing<'a> {
    pub(super) world: &'a World,
    pub(super) contexts: &'a Contexts,
    pub(super) blobs: &'a BlobReader,
    pub(super) hooks: Option<&'a Arc<dyn TreeHooks>>,
    /// The folder of all trees, if they have workspaces.
    pub(super) workspaces: Option<&'a Arc<Path>>,
}

impl Prepared {
    /// The attempt that it makes, if any.
    pub(super) const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::CallModel(start) => Some(start.ticket),
            Self::CallTool(start) => Some(start.ticket),
            Self::SetTimer(_) | Self::StopCalls(_) => None,
        }
    }
}

impl Preparing<'_> {
    pub(super) fn prepare(&self, effect: Effect) -> Option<Prepared> {
        match effect {
            Effect::SetTimer { timer, at } => Some(Prepared::SetTimer(Alarm { timer, at })),
            Effect::StopCalls { agent } => {
                let agents = self.world.agents();
                let living = agents.living(agents.find(&agent)?)?;
                Some(Prepared::StopCalls(living.open.iter().copied().collect()))
            }
            Effect::CallModel { call, attempt, agent, model, output_cap, key } => {
                let ix = self.world.agents().find(&agent)?;
                let living = self.world.agents().living(ix)?;
                let Work::Model(work) = &self.world.call(call)?.work else { return None };
                let ModelCall { input_tokens, summary, wrap_up, continues, .. } = work;
                let contexts = self.contexts;
                let of_tool = work.outside.as_deref().filter(|outside| outside.of_tool.is_some());
                let (purpose, packet) = match (of_tool, summary, wrap_up) {
                    (Some(asked), ..) => {
                        (model::Purpose::OfTool, Packet::of_message(&asked.request.text, *input_tokens))
                    }
                    (None, Some(_), _) => {
                        (model::Purpose::Summary, contexts.summary_packet(&agent, *input_tokens)?)
                    }
                    (None, None, Some(_)) => {
                        (model::Purpose::WrapUp, contexts.last_packet(&agent, *input_tokens)?)
                    }
                    (None, None, None) => {
                        let purpose =
                            if *continues { model::Purpose::Continue } else { model::Purpose::Turn };
                        (purpose, contexts.packet(&agent, *input_tokens)?)
                    }
                };
                let ticket = Ticket { call, attempt };
                let origin = Arc::clone(contexts.origin(&agent)?);
                let mut attempt = model::ModelAttempt::new(origin, call, key, model, packet);
                attempt.turn = living.progress.turns + 1;
                attempt.purpose = purpose;
                attempt.attempt = ticket.attempt;
                attempt.output_cap = output_cap;
                attempt.output_schema =
                    contexts.output_schema(&agent).filter(|_| purpose.is_answer()).cloned();
                attempt.blobs = self.blobs.clone();
                attempt.remaining = self.world.ledger().remaining(living.account);
                attempt.rights = self.rights(&agent);
                attempt.workspace = self.workspace(&attempt.origin);
                let (origin, target) = (&attempt.origin, Target::Model(attempt.model.clone()));
                let hooked = Hooked::around(self.hooks, self.world, ticket, origin, target, &attempt.key);
                let (leads, input_tokens) = (self.world.leads(call), *input_tokens);
                let definition = self.world.definition();
                let rates = CallRates {
                    model: definition.models.get(&attempt.model).map(|model| model.rate).unwrap_or_default(),
                    role: definition
                        .roles
                        .get(&attempt.origin.role)
                        .map(|role| role.rate)
                        .unwrap_or_default(),
                    tree: definition.limits.rate,
                };
                let role = definition.roles.get(&attempt.origin.role);
                let is_of_program = work.outside.is_some() && role.is_some_and(|role| role.program.is_some());
                let start = ModelStart { ticket, attempt, hooked, leads, is_of_program, input_tokens, rates };
                Some(Prepared::CallModel(Box::new(start)))
            }
            Effect::CallTool { call, attempt, agent, tool, ask, args, key } => {
                let origin = self.contexts.origin(&agent).map(Arc::clone)?;
                let asked = ask.and_then(|ask| self.contexts.ask(&agent, ask));
                let args = asked.map_or(args, |ask| ask.args.clone());
                let definition = self.world.definition();
                let role = definition.roles.get(&origin.role);
                let spec = definition.tools.get(&tool);
                let running = self.world.call(call)?;
                let Work::Tool(work) = &running.work else { return None };
                let program = role.and_then(|role| role.program.as_deref()).filter(|_| work.is_program);
                let program = program.map(|spec| ProgramToRun {
                    spec: Arc::new(spec.clone()),
                    session: running.session().cloned(),
                    past: self.contexts.program_past(&agent).cloned(),
                });
                // Only its agent's time ends a program.
                let default_ms =
                    if program.is_some() { limit::TIMEOUT_MS_MAX } else { limit::TOOL_TIMEOUT_MS };
                let timeout_ms = spec.and_then(|spec| spec.timeout_ms).unwrap_or(default_ms);
                let shown_bytes = spec.and_then(|spec| spec.shown_bytes);
                let ticket = Ticket { call, attempt };
                let mut attempt = tool::ToolAttempt::new(origin, call, key, tool, args);
                attempt.attempt = ticket.attempt;
                attempt.outputs = role.map(Role::outputs).unwrap_or_default();
                attempt.sandbox = role.map(Role::sandbox).unwrap_or_default();
                attempt.working_copy = role.and_then(Role::working_copy).cloned();
                attempt.durability = definition.durability;
                attempt.rights = self.rights(&agent);
                // What a person allowed is this call's alone.
                attempt.rights.network = attempt.rights.network.with(&work.network);
                attempt.workspace = self.workspace(&attempt.origin);
                let (origin, target) = (&attempt.origin, Target::Tool(attempt.tool.clone()));
                let hooked = Hooked::around(self.hooks, self.world, ticket, origin, target, &attempt.key);
                let model = self.world.agents().living(running.agent)?.terms.model.clone();
                let start = ToolStart { ticket, attempt, model, timeout_ms, shown_bytes, program, hooked };
                Some(Prepared::CallTool(Box::new(start)))
            }
        }
    }

    fn rights(&self, agent: &AgentId) -> Rights {
        let agents = self.world.agents();
        let living = agents.find(agent).and_then(|ix| agents.living(ix));
        living.map(|living| Rights::from(living.terms.caps.as_ref())).unwrap_or_default()
    }

    fn workspace(&self, origin: &Arc<Origin>) -> Option<AgentFolder> {
        self.workspaces.map(|root| AgentFolder::new(Arc::clone(root), Arc::clone(origin)))
    }
}
