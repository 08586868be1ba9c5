//! The laws of shared values: versions rise by one, sizes and access hold, and nothing is left at the root's end.

use spinney_kernel::primitives::{Actor, AgentId, RoleName, Time, ValueName, limit};
use spinney_kernel::record::Event;
use spinney_kernel::world::World;

use super::law::{Law, hold};

/// Judges an event by the world before it.
pub(super) fn judge(before: &World, now: Time, event: &Event) -> Law {
    match event {
        Event::ValueWritten { name, value, by, version, at, .. } => {
            let bytes = value.rest().map_or(value.text.len() as u64, |rest| rest.bytes);
            written(before, name, by, *version, bytes)?;
            hold(*at == now, || format!("{name} was written at {at:?}, and it is {now:?}"))
        }
        Event::ToolAnswered { agent, value: Some(read), .. } => {
            let current = before.shared().find(&read.name);
            hold(current.is_some_and(|header| header.version == read.version), || {
                format!("{agent} read version {} of {}: {current:?}", read.version, read.name)
            })?;
            let may =
                role(before, agent).is_some_and(|role| before.definition().shared.may_read(role, &read.name));
            hold(may, || format!("{agent} may not read {}", read.name))
        }
        Event::ValuesCleared { count } => {
            let there = before.shared().len();
            hold(there == *count as usize && there > 0, || format!("{count} of {there} values were cleared"))
        }
        Event::AgentEnded { agent, .. } => {
            let is_root = before.agents().root().is_some_and(|root| before.agents().id(root) == agent);
            hold(!is_root || before.shared().is_empty(), || {
                "the root ended before its values were cleared".to_owned()
            })
        }
        _ => Ok(()),
    }
}

fn written(before: &World, name: &ValueName, by: &Actor, version: u64, bytes: u64) -> Law {
    let store = before.shared();
    let old = store.find(name);
    hold(version == old.map_or(0, |old| old.version) + 1, || {
        format!("{name} got version {version} after {old:?}")
    })?;
    let all: u64 = store.all().filter(|(other, _)| *other != name).map(|(_, header)| header.bytes).sum();
    hold(bytes <= limit::VALUE_BYTES_MAX as u64 && all + bytes <= limit::VALUES_BYTES_MAX as u64, || {
        format!("{name} has {bytes} bytes beside {all}")
    })?;
    let count = store.all().filter(|(other, _)| *other != name).count() + 1;
    hold(count <= limit::VALUES_MAX, || format!("there are {count} values"))?;
    let Actor::Agent(agent) = by else { return Ok(()) };
    // What a graph writes is its definition's decision, for a step whose agent has ended, or for a group.
    if role(before, agent).is_none_or(RoleName::is_of_graphs) {
        return Ok(());
    }
    let may = role(before, agent).is_some_and(|role| before.definition().shared.may_write(role, name));
    hold(may && !name.is_reserved(), || format!("{agent} may not write {name}"))
}

fn role<'w>(world: &'w World, agent: &AgentId) -> Option<&'w RoleName> {
    let ix = world.agents().find(agent)?;
    world.agents().living(ix).map(|agent| &agent.terms.role)
}
