//! Hosts that a tool call names and its agent was not granted. If the agent may ask, a person allows them for the call, or for
//! calls of the same tool from now on. They become rights of the call and of nothing else: what an agent has, and what
//! it may give to agents below it, stays what it was.

use crate::definition::{HostRequests, HostsKind, Network, Refusal};
use crate::primitives::ToolName;
use crate::record::ToolAsk;
use crate::world::{AgentIx, World};

pub(super) enum ExtraHosts {
    /// A person allowed them before, or there are none.
    Allowed(Network),
    /// A person has to be asked.
    Unasked(Network),
}

/// What a call needs beside the hosts of its agent.
///
/// # Errors
/// If it names something else than hosts, or the agent may not ask for them.
pub(super) fn wanted(
    world: &World,
    ix: AgentIx,
    tool: &ToolName,
    ask: &ToolAsk,
) -> Result<ExtraHosts, Refusal> {
    let (kind, hosts) = beyond(world, ix, tool, ask)?;
    if hosts.is_denied() {
        return Ok(ExtraHosts::Allowed(hosts));
    }
    let Some(living) = world.agents().living(ix) else { return Ok(ExtraHosts::Allowed(Network::Denied)) };
    let caps = &living.terms.caps;
    match (caps.host_requests, kind) {
        (HostRequests::Ask, _) if hosts.beyond(&world.approvals().hosts(ix, tool)).is_denied() => {
            Ok(ExtraHosts::Allowed(hosts))
        }
        (HostRequests::Ask, _) => Ok(ExtraHosts::Unasked(hosts)),
        (HostRequests::Refused, HostsKind::List) => {
            Err(Refusal::HostsNotAskable { hosts, allowed: caps.network.clone() })
        }
        // The tool refuses it, so that the attempt is recorded as a connection.
        (HostRequests::Refused, HostsKind::Url) => Ok(ExtraHosts::Allowed(Network::Denied)),
    }
}

/// What was allowed before of the hosts that a call needs.
pub(super) fn remembered(
    world: &World,
    ix: AgentIx,
    tool: &ToolName,
    ask: &ToolAsk,
) -> Result<Network, Refusal> {
    Ok(match wanted(world, ix, tool, ask)? {
        ExtraHosts::Allowed(hosts) => hosts,
        ExtraHosts::Unasked(_) => Network::Denied,
    })
}

fn beyond(
    world: &World,
    ix: AgentIx,
    tool: &ToolName,
    ask: &ToolAsk,
) -> Result<(HostsKind, Network), Refusal> {
    let argument = world.definition().tools.get(tool).and_then(|spec| spec.hosts.as_ref());
    let (Some(argument), Some(living)) = (argument, world.agents().living(ix)) else {
        return Ok((HostsKind::List, Network::Denied));
    };
    let hosts = argument.of_call(&ask.args);
    let hosts = hosts.map_err(|reason| Refusal::BadArguments { tool: tool.clone(), reason })?;
    Ok((argument.kind, hosts.beyond(&living.terms.caps.network)))
}
