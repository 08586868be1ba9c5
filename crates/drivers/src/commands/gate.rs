//! Whether a tree may start: every role that runs commands can have its box on this machine, and the user allows what its
//! file asks for. It offers no tool itself; it refuses the whole tree before anything runs.

use std::path::PathBuf;

use spinney_kernel::definition::{Definition, RUN_COMMAND, Role};
use spinney_kernel::port::{OfferedTool, Pending, Rights, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind, RoleName};

use super::confinement::{limits, network_at_most, weaknesses};
use super::covers::FolderCovers;
use super::program::boxed;
use super::remedy::refusal_remedy;
use super::tool::Commands;
use crate::sandbox::{BoxNetwork, BoxRefusal, Confinement};

impl ToolSource for Commands {
    fn name(&self) -> &str {
        RUN_COMMAND
    }

    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>> {
        let commands = self.clone();
        Box::pin(async move {
            let checked = commands.check(&discovery.definition).await;
            let refused = |message| Fault { message, ..Fault::new(FaultKind::Invalid) };
            checked.map(|()| Vec::new()).map_err(refused)
        })
    }
}

impl Commands {
    /// Refuses a definition whose commands would not be contained as it says, or need what the user has not allowed.
    pub async fn check(&self, definition: &Definition) -> Result<(), String> {
        let roles: Vec<(&RoleName, &Role)> = definition.roles_with_commands().collect();
        if roles.is_empty() {
            return Ok(());
        }
        if let Some(weaker) = definition.weaker_boxes_below().first() {
            return Err(format!(
                "{weaker}: give `{}` the same, or do not let it start `{}`",
                weaker.above, weaker.below
            ));
        }
        let prepared = self.prepared()?;
        for (role, settings) in &roles {
            if let Some(lacking) = prepared.permissions.lacks(&settings.sandbox()) {
                return Err(format!("`{role}` asks for {lacking}, which its file alone cannot give it"));
            }
        }
        let launcher = self.launcher(&prepared).await.map_err(|refusal| said(&refusal))?;
        for (role, settings) in roles {
            let spec = settings.sandbox();
            let mut confinement = Confinement::new("/".into());
            confinement.limits = limits(&spec);
            confinement.tier = self.tier_choice();
            confinement.weaknesses = weaknesses(spec.walls);
            confinement.network = network_at_most(&settings.caps);
            if settings.program.is_some() {
                confinement = boxed(confinement, spec.walls, &settings.caps.network);
            }
            if let Some(folder) = self.uncovered(definition, settings) {
                // It stands for all of them: they are found when a command starts.
                confinement.read_only.push(folder);
            }
            let is_about_folders = !confinement.read_only.is_empty();
            let tier = launcher.tier(&confinement);
            tier.map_err(|refusal| {
                let otherwise = match () {
                    () if is_about_folders => OTHERWISE,
                    () if confinement.network != BoxNetwork::None => OTHERWISE_FETCH,
                    () => "",
                };
                format!("commands of `{role}` cannot be contained: {}{otherwise}", said(&refusal))
            })?;
        }
        Ok(())
    }

    /// A folder of a role's agents in which something must be kept from their commands. A role without a list has what one
    /// above it has, which may be any.
    fn uncovered(&self, definition: &Definition, role: &Role) -> Option<PathBuf> {
        let grants = role.caps.folders.clone().unwrap_or_else(|| definition.all_folders());
        let mut rights =
            grants.iter().map(|(path, access)| Rights::none().with_folder(path.as_str(), access));
        let rights = rights.find(|rights| FolderCovers::are_needed(rights, self.hidden()))?;
        rights.folders.into_iter().next().map(|folder| folder.path)
    }
}

/// What else helps where a box cannot keep parts of a folder.
const OTHERWISE: &str =
    "; or grant folders for reading only that do not contain the home, and let commands work on copies";

/// What else helps where a box cannot be connected to some hosts only.
const OTHERWISE_FETCH: &str =
    "; or take `network`, also from `approvals`, from the agents that run commands: `fetch` works without it";

pub(crate) fn said(refusal: &BoxRefusal) -> String {
    refusal_remedy(refusal).map_or_else(|| refusal.to_string(), |remedy| format!("{refusal}: {remedy}"))
}
