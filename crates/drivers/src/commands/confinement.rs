//! From what an agent has to what its commands may touch. This is the one place that says it: the agent's own folders, and
//! the folders of its rights.

use std::path::PathBuf;

use spinney_kernel::definition::{BoxSpec, BoxWalls, Caps, HostRequests, Network};
use spinney_kernel::port::{FolderAccess, Rights};
use spinney_kernel::primitives::{HostRule, RemoteHost};

use super::covers::FolderCovers;
use super::permissions::BoxPermissions;
use crate::sandbox::{BoxLimits, BoxNetwork, BoxTierChoice, BoxWeakness, Confinement, LocalhostMeaning};
use crate::workspace::CommandFolders;

/// The box of an agent's commands. What the user has not allowed is an error.
pub(super) fn confinement(
    folders: CommandFolders,
    rights: &Rights,
    covers: FolderCovers,
    spec: &BoxSpec,
    permissions: &BoxPermissions,
    tier: BoxTierChoice,
) -> Result<Confinement, String> {
    if let Some(lacking) = permissions.lacks(spec) {
        return Err(format!("{lacking} needs the user's permission"));
    }
    let mut confinement = Confinement::new(folders.scratch);
    confinement.write.push(folders.outputs);
    confinement.read = folders.ours;
    // A folder in both lists may be written.
    let written = |path: &PathBuf| rights.access(path) == Some(FolderAccess::Write);
    let granted =
        rights.folders.iter().filter(|folder| folder.access == FolderAccess::Write || !written(&folder.path));
    confinement.folders = granted.cloned().collect();
    let FolderCovers { hidden, read_only, reserved } = covers;
    (confinement.hidden, confinement.read_only, confinement.reserved) = (hidden, read_only, reserved);
    confinement.network = asked_network(box_network(&rights.network), rights.host_requests);
    confinement.limits = limits(spec);
    confinement.tier = tier;
    confinement.weaknesses = weaknesses(spec.walls);
    let values = permissions.environment.iter().filter(|(name, _)| spec.env.contains(*name));
    confinement.environment =
        values.filter_map(|(name, value)| Some((name.into(), value.clone()?))).collect();
    Ok(confinement)
}

/// What boxes of an agent may be connected to at most: one that may ask for hosts may be allowed some.
pub(super) fn network_at_most(caps: &Caps) -> BoxNetwork {
    asked_network(box_network(&caps.network), caps.host_requests)
}

/// One that may ask for hosts reads what it was refused, and so what to ask for.
fn asked_network(granted: BoxNetwork, requests: HostRequests) -> BoxNetwork {
    match (granted, requests) {
        (BoxNetwork::None, HostRequests::Ask) => BoxNetwork::Proxied { localhost: LocalhostMeaning::Box },
        (network, HostRequests::Ask | HostRequests::Refused) => network,
    }
}

/// What boxes of an agent with this network are connected to. What old journals granted without naming a host is nothing.
#[must_use]
pub fn box_network(granted: &Network) -> BoxNetwork {
    let localhost = RemoteHost::Name("localhost".into());
    let names_this_machine = |rule: &HostRule| {
        rule.address().is_some_and(|address| address.is_loopback())
            || rule.ports().iter().any(|port| rule.has(&localhost, *port))
    };
    match granted {
        Network::Denied | Network::Any => BoxNetwork::None,
        Network::Hosts(rules) if rules.is_empty() => BoxNetwork::None,
        Network::Hosts(rules) if rules.iter().any(names_this_machine) => {
            BoxNetwork::Proxied { localhost: LocalhostMeaning::Machine }
        }
        Network::Hosts(_) => BoxNetwork::Proxied { localhost: LocalhostMeaning::Box },
    }
}

/// The limits of a file, or the defaults.
pub(super) fn limits(spec: &BoxSpec) -> BoxLimits {
    let default = BoxLimits::default();
    BoxLimits {
        processes: spec.processes.unwrap_or(default.processes),
        memory_bytes: spec.memory_bytes.unwrap_or(default.memory_bytes),
        disk_bytes: spec.disk_bytes.unwrap_or(default.disk_bytes),
    }
}

pub(super) fn weaknesses(walls: BoxWalls) -> Vec<BoxWeakness> {
    match walls {
        BoxWalls::Whole => Vec::new(),
        BoxWalls::OpenToSignals => vec![BoxWeakness::Signals],
        BoxWalls::None => vec![BoxWeakness::Unboxed],
    }
}
