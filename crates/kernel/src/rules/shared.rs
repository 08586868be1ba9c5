//! Shared values: who may read and write them, their versions and sizes, and their end.

use crate::context::SharedText;
use crate::definition::{Refusal, SharedAccess, ValueAccess};
use crate::primitives::{Actor, Body, OutsiderKind, RoleName, TokenCount, ValueName, limit};
use crate::record::{Event, ValueForm, ValueRead};
use crate::rules::Draft;
use crate::world::{AgentIx, SharedHeader, bytes_of};

/// What an agent asked to write.
pub(crate) struct Writing {
    pub(crate) name: ValueName,
    pub(crate) text: SharedText,
    /// Of what its readers are shown, if counted.
    pub(crate) tokens: Option<TokenCount>,
    /// The version that the value must have; 0 if there must be none.
    pub(crate) expect_version: Option<u64>,
}

/// Writes a value for an agent, and returns its version.
pub(crate) fn write(draft: &mut Draft<'_>, ix: AgentIx, writing: &Writing) -> Result<u64, Refusal> {
    let Writing { name, text, tokens, expect_version } = writing;
    check_reserved(name)?;
    check(draft, ix, name, "write", SharedAccess::may_write, |rule| rule.write.as_ref())?;
    // Before the text is copied.
    check_size(name, text.bytes() as u64)?;
    check_version(draft, name, *expect_version)?;
    let by = Actor::Agent(draft.agent_id(ix).clone());
    put(draft, name, text.body(*tokens), by)
}

/// Writes a value for someone outside, whom no access rule concerns, and returns its version.
pub(crate) fn write_from_outside(
    draft: &mut Draft<'_>,
    by: &Actor,
    name: &ValueName,
    text: &SharedText,
    tokens: Option<TokenCount>,
    expect_version: Option<u64>,
) -> Result<u64, Refusal> {
    check_reserved(name)?;
    check_version(draft, name, expect_version)?;
    put(draft, name, text.body(tokens), by.clone())
}

fn check_reserved(name: &ValueName) -> Result<(), Refusal> {
    if name.is_reserved() { Err(Refusal::ReservedValue { name: name.clone() }) } else { Ok(()) }
}

fn check_version(draft: &Draft<'_>, name: &ValueName, expected: Option<u64>) -> Result<(), Refusal> {
    let version = draft.shared().find(name).map_or(0, |header| header.version);
    match expected.filter(|expected| *expected != version) {
        Some(expected) => Err(Refusal::ValueVersion { name: name.clone(), version, expected }),
        None => Ok(()),
    }
}

/// Writes a value whatever the access rules say: for what the tree itself writes. Returns its version.
pub(crate) fn put(draft: &mut Draft<'_>, name: &ValueName, value: Body, by: Actor) -> Result<u64, Refusal> {
    put_as(draft, name, value, ValueForm::Json, by)
}

/// The same with a body that may be a long text instead of JSON.
pub(crate) fn put_as(
    draft: &mut Draft<'_>,
    name: &ValueName,
    value: Body,
    form: ValueForm,
    by: Actor,
) -> Result<u64, Refusal> {
    let store = draft.shared();
    let bytes = bytes_of(&value);
    check_size(name, bytes)?;
    let (count, count_max) = (store.len(), limit::VALUES_MAX);
    let before = store.find(name);
    if before.is_none() && count >= count_max {
        return Err(Refusal::ValuesLimit { name: name.clone(), count, count_max });
    }
    let all = store.bytes() - before.map_or(0, |header| header.bytes) + bytes;
    if all > limit::VALUES_BYTES_MAX as u64 {
        let bytes_max = limit::VALUES_BYTES_MAX as u64;
        return Err(Refusal::ValuesFull { name: name.clone(), bytes: all, bytes_max });
    }
    let version = before.map_or(0, |header| header.version) + 1;
    let at = draft.now();
    draft.record(Event::ValueWritten { name: name.clone(), value, form, by, version, at });
    Ok(version)
}

/// What an agent reads before the value itself, and which value that is.
pub(crate) fn read(draft: &Draft<'_>, ix: AgentIx, name: &ValueName) -> Result<(Body, ValueRead), Refusal> {
    check(draft, ix, name, "read", SharedAccess::may_read, |rule| rule.read.as_ref())?;
    let unknown = || Refusal::UnknownValue { name: name.clone() };
    let header = draft.shared().find(name).ok_or_else(unknown)?;
    let before = Body::text(format!("{}:\n", described(name, header)));
    let (version, rest) = (header.version, header.rest.clone());
    Ok((before, ValueRead { name: name.clone(), version, rest }))
}

/// One line for each value that an agent may read, as far as a text may be long.
pub(crate) fn list(draft: &Draft<'_>, ix: AgentIx, prefix: &str) -> Body {
    let (role, access) = (&draft.agent(ix).terms.role, &draft.definition().shared);
    let shown = |name: &ValueName| name.as_str().starts_with(prefix) && access.may_read(role, name);
    let mut text = String::new();
    for (name, header) in draft.shared().all().filter(|(name, _)| shown(name)) {
        let line = described(name, header);
        // Room for the mark of what is left out.
        if text.len() + line.len() + 8 > limit::TEXT_BYTES_MAX {
            text.push_str("…\n");
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    Body::text(if text.is_empty() { "no shared values".to_owned() } else { text })
}

/// No agent can read the values after the root's end.
pub(crate) fn clear(draft: &mut Draft<'_>) {
    let count = draft.shared().len() as u32;
    if count > 0 {
        draft.record(Event::ValuesCleared { count });
    }
}

/// Without its time: the same tree says the same, however fast it runs.
fn described(name: &ValueName, header: &SharedHeader) -> String {
    let SharedHeader { version, by, bytes, .. } = header;
    let by = match by {
        Actor::Agent(agent) => agent.as_str(),
        Actor::Outside(outsider) => match outsider.kind {
            OutsiderKind::Person => "person",
            // Without names, which no model needs. A phrase is never an agent's id; `person` is reserved.
            kind => kind.phrase(),
        },
    };
    format!("{name} version {version}, {bytes} bytes, written by {by}")
}

fn check_size(name: &ValueName, bytes: u64) -> Result<(), Refusal> {
    let bytes_max = limit::VALUE_BYTES_MAX as u64;
    if bytes > bytes_max {
        return Err(Refusal::ValueTooLarge { name: name.clone(), bytes, bytes_max });
    }
    Ok(())
}

/// The rules of an agent's own role decide, not those of its spawner.
fn check(
    draft: &Draft<'_>,
    ix: AgentIx,
    name: &ValueName,
    verb: &str,
    may: fn(&SharedAccess, &RoleName, &ValueName) -> bool,
    allowed: fn(&ValueAccess) -> Option<&std::collections::BTreeSet<RoleName>>,
) -> Result<(), Refusal> {
    let (role, access) = (&draft.agent(ix).terms.role, &draft.definition().shared);
    if may(access, role, name) {
        return Ok(());
    }
    let allowed = access.rule(name).and_then(allowed).into_iter().flatten().cloned().collect();
    Err(Refusal::ValueNotAllowed { name: name.clone(), role: role.clone(), verb: verb.to_owned(), allowed })
}
