//! Whether a tree with working copies may start: git is there, each repository can be copied, and what agents leave can be
//! read in a box. It offers no tool itself; it refuses the whole tree before anything runs.

use std::path::{Path, PathBuf};

use spinney_kernel::definition::Definition;
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind};

use super::git::check_git;
use super::repository::Repository;
use crate::sandbox::{BoxLauncher, Confinement};

/// Checks the working copies of trees before they start.
#[derive(Clone, Debug)]
pub struct WorkingCopyGate {
    /// What guards boxes, if this program can.
    helper: Option<PathBuf>,
}

impl WorkingCopyGate {
    /// `helper` is as for [`BoxLauncher::new`].
    #[must_use]
    pub const fn new(helper: Option<PathBuf>) -> Self {
        Self { helper }
    }

    /// Refuses a definition whose working copies could not be made or taken over.
    ///
    /// # Errors
    /// What is missing, and what helps.
    pub async fn check(&self, definition: &Definition) -> Result<(), String> {
        let wanted = || definition.roles.iter().filter_map(|(role, it)| Some((role, it.working_copy()?)));
        if wanted().next().is_none() {
            return Ok(());
        }
        check_git().await.map_err(|error| error.to_string())?;
        let helper = self.helper.clone().ok_or(
            "git reads working copies in a box, and the `main` of this program does not call `guard_a_box`",
        )?;
        let contained = BoxLauncher::new(helper).await;
        let contained = contained.and_then(|launcher| launcher.tier(&Confinement::new("/".into())));
        contained.map_err(|refusal| {
            format!("git reads working copies in a box, and boxes do not work here: {refusal}")
        })?;
        for (role, path) in wanted() {
            let opened = Repository::open(Path::new(path.as_str())).await;
            opened
                .map_err(|error| format!("`{role}` cannot have a working copy: {}", with_source(&error)))?;
        }
        Ok(())
    }
}

pub(super) fn with_source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

impl ToolSource for WorkingCopyGate {
    fn name(&self) -> &str {
        "working_copy"
    }

    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>> {
        let gate = self.clone();
        Box::pin(async move {
            let refused = |message| Fault { message, ..Fault::new(FaultKind::Invalid) };
            gate.check(&discovery.definition).await.map(|()| Vec::new()).map_err(refused)
        })
    }
}
