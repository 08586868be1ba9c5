//! One tool call of a model: it is started, or answered at once. The model's mistakes come back as errors that it can
//! act on; none of them ends the run.

use super::approve;
use super::builtin::{self, Answer};
use super::extra_hosts::{self, ExtraHosts};
use crate::definition::Builtin;
use crate::primitives::cut;
use crate::record::{ToolCall, Work};
use crate::world::AgentIx;

use crate::definition::{Approval, Network, Refusal, ToolSpec};
use crate::primitives::{ToolName, limit};
use crate::record::{Event, ToolAsk};
use crate::rules::Draft;
use crate::rules::call::admit;

pub(super) fn act(draft: &mut Draft<'_>, ix: AgentIx, place: u32, ask: &ToolAsk) {
    let acted = known(draft, ix, ask).and_then(|known| {
        let is_approved = match approve::approval(draft, ix, known.name()) {
            Approval::Allow => true,
            Approval::Ask => approve::is_remembered(draft, ix, known.name(), ask),
            Approval::Deny => return Err(Refusal::ToolDenied { tool: known.name().clone() }),
        };
        match extra_hosts::wanted(draft, ix, known.name(), ask)? {
            ExtraHosts::Allowed(hosts) if is_approved => start(draft, ix, place, ask, (known, hosts)),
            ExtraHosts::Allowed(_) => approve::ask(draft, ix, place, ask, Network::Denied).map(|()| None),
            ExtraHosts::Unasked(hosts) => approve::ask(draft, ix, place, ask, hosts).map(|()| None),
        }
    });
    end(draft, ix, place, acted);
}

/// For a tool call whose arguments something outside the kernel could not use.
pub(super) fn refuse(draft: &mut Draft<'_>, ix: AgentIx, place: u32, ask: &ToolAsk, reason: &str) {
    let refused = known(draft, ix, ask).and_then(|known| {
        let (tool, reason) = (known.name().clone(), reason.to_owned());
        Err(Refusal::BadArguments { tool, reason })
    });
    end(draft, ix, place, refused);
}

/// For a tool call that a person approved, with these hosts beside those of its agent.
pub(super) fn approved(draft: &mut Draft<'_>, ix: AgentIx, place: u32, ask: &ToolAsk, hosts: &Network) {
    let acted = known(draft, ix, ask).and_then(|known| {
        let before = extra_hosts::remembered(draft, ix, known.name(), ask)?;
        start(draft, ix, place, ask, (known, hosts.with(&before)))
    });
    end(draft, ix, place, acted);
}

/// Returns nothing if the answer comes later.
fn start(
    draft: &mut Draft<'_>,
    ix: AgentIx,
    place: u32,
    ask: &ToolAsk,
    (known, hosts): (AskedTool, Network),
) -> Result<Option<Answer>, Refusal> {
    match known {
        AskedTool::Builtin(builtin, _) => {
            draft.answering(place, |draft| builtin::run(draft, ix, builtin, ask))
        }
        AskedTool::Tool(name, tool) => call(draft, ix, place, (name, hosts), &tool, &ask.args).map(|()| None),
    }
}

fn end(draft: &mut Draft<'_>, ix: AgentIx, place: u32, acted: Result<Option<Answer>, Refusal>) {
    match acted {
        Ok(None) => {}
        Ok(Some(given)) => answer(draft, ix, place, given, false),
        Err(refusal) => {
            let text = cut(&refusal.text(draft.rules()), limit::NOTICE_BYTES_MAX);
            answer(draft, ix, place, Answer::text(text), true);
        }
    }
}

enum AskedTool {
    Builtin(Builtin, ToolName),
    Tool(ToolName, ToolSpec),
}

impl AskedTool {
    const fn name(&self) -> &ToolName {
        match self {
            Self::Builtin(_, name) | Self::Tool(name, _) => name,
        }
    }
}

/// The tool, if it exists, is allowed, and its arguments are an object.
fn known(draft: &Draft<'_>, ix: AgentIx, ask: &ToolAsk) -> Result<AskedTool, Refusal> {
    let caps = &draft.agent(ix).terms.caps;
    let unknown = || {
        let all = draft.definition().tool_names(draft.rules());
        let known = all.filter(|name| caps.tools.has(name)).collect();
        Refusal::UnknownTool { tool: cut(&ask.tool, limit::NAME_BYTES_MAX), known }
    };
    let name: ToolName = ask.tool.parse().map_err(|_| unknown())?;
    let known = match (Builtin::named_under(draft.rules(), &name), draft.definition().tools.get(&name)) {
        (Some(builtin), _) => AskedTool::Builtin(builtin, name.clone()),
        (None, Some(tool)) => AskedTool::Tool(name.clone(), tool.clone()),
        (None, None) => return Err(unknown()),
    };
    caps.check_tool(&name)?;
    let bad = |reason: String| Refusal::BadArguments { tool: name.clone(), reason };
    let bytes_max = match &known {
        AskedTool::Builtin(builtin, _) => builtin.args_bytes_max(),
        AskedTool::Tool(..) => limit::ARGS_BYTES_MAX,
    };
    if ask.args.len() > bytes_max {
        return Err(bad(format!("{} bytes, the limit is {bytes_max}", ask.args.len())));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(&ask.args) {
        Ok(_) if ask.args.trim_start().starts_with('{') => Ok(known),
        Ok(_) => Err(bad("they are not a JSON object".to_owned())),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn call(
    draft: &mut Draft<'_>,
    ix: AgentIx,
    place: u32,
    (tool, network): (ToolName, Network),
    spec: &ToolSpec,
    args: &str,
) -> Result<(), Refusal> {
    crate::rules::request::room_for_call(draft, ix)?;
    let (cost_nanos_max, lost) = (spec.cost_nanos_max, spec.on_lost(args));
    let (args, is_program) = (String::new(), false);
    let call = ToolCall { tool, ask: Some(place), args, cost_nanos_max, lost, network, is_program };
    let work = Work::Tool(Box::new(call));
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(ix).clone());
    draft.record(Event::CallAsked { call, agent, work });
    admit(draft, call, None);
    Ok(())
}

fn answer(draft: &mut Draft<'_>, ix: AgentIx, ask: u32, given: Answer, is_error: bool) {
    // The call may have ended its own agent.
    if draft.agents().living(ix).is_some() {
        let (agent, Answer { body, value }) = (draft.agent_id(ix).clone(), given);
        draft.record(Event::ToolAnswered { agent, ask, body, is_error, value });
    }
}
