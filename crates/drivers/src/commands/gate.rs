//! Whether a tree may start: every role that runs commands can have its box on this machine, and the user allows what its
//! file asks for. It offers no tool itself; it refuses the whole tree before anything runs.

use spinney_kernel::definition::{Definition, RUN_COMMAND, Role};
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind, RoleName};

use super::confinement::{limits, weaknesses};
use super::remedy::refusal_remedy;
use super::tool::Commands;
use crate::sandbox::{BoxRefusal, Confinement};

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
        // A tree that started has the tools that it was started with.
        let is_offered = definition.tools.is_empty() || definition.tools.contains_key(RUN_COMMAND);
        let roles: Vec<(&RoleName, &Role)> =
            definition.roles_with_commands().filter(|_| is_offered).collect();
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
            let tier = launcher.tier(&confinement);
            tier.map_err(|refusal| format!("commands of `{role}` cannot be contained: {}", said(&refusal)))?;
        }
        Ok(())
    }
}

pub(super) fn said(refusal: &BoxRefusal) -> String {
    refusal_remedy(refusal).map_or_else(|| refusal.to_string(), |remedy| format!("{refusal}: {remedy}"))
}
