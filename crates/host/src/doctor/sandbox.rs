//! Whether commands of agents can be contained on this machine: what it enforces, what would be refused, and what helps.

use serde::Serialize;
use spinney_drivers::commands::{namespace_remedy, refusal_remedy};
use spinney_drivers::sandbox::{
    BoxLauncher, BoxRefusal, BoxTier, Confinement, NamespaceSupport, SeccompSupport, can_guard_boxes,
};

use spinney_drivers::working_copies::check_git;

use crate::inside::OURSELVES;

/// What commands of agents have on this machine.
#[derive(Serialize)]
#[non_exhaustive]
pub struct BoxFinding {
    /// Whether `run_command` works without anything that a user has to allow.
    pub ok: bool,
    /// 1 or 2; none if commands would be refused.
    pub tier: Option<u8>,
    /// The version of Landlock; 0 if there is none.
    pub landlock_abi: u32,
    /// Whether system calls can be filtered.
    pub filters: bool,
    /// Whether namespaces work for this user.
    pub namespaces: bool,
    /// What would be refused, each with its reason.
    pub refused: Vec<String>,
    /// What helps.
    pub remedies: Vec<String>,
}

impl BoxFinding {
    /// Tries it.
    pub async fn look() -> Self {
        if !can_guard_boxes() {
            return Self::failed("the `main` of this program does not call `guard_a_box`");
        }
        match BoxLauncher::new(OURSELVES.into()).await {
            Ok(launcher) => {
                let mut finding = Self::new(&launcher);
                if let Err(error) = check_git().await {
                    finding.refused.push(format!("working copies: {error}"));
                }
                finding
            }
            Err(error) => Self::failed(&error.to_string()),
        }
    }

    fn failed(error: &str) -> Self {
        Self {
            ok: false,
            tier: None,
            landlock_abi: 0,
            filters: false,
            namespaces: false,
            refused: vec![format!("commands: {error}")],
            remedies: Vec::new(),
        }
    }

    fn new(launcher: &BoxLauncher) -> Self {
        let machine = launcher.machine();
        let tier = launcher.tier(&Confinement::new("/".into()));
        let mut finding = Self {
            ok: tier.is_ok(),
            tier: match &tier {
                Ok(BoxTier::Namespaces) => Some(2),
                Ok(BoxTier::Landlock) => Some(1),
                Ok(BoxTier::Unboxed) | Err(_) => None,
            },
            landlock_abi: machine.landlock_abi(),
            filters: machine.seccomp == SeccompSupport::Works,
            namespaces: machine.namespaces == NamespaceSupport::Work,
            refused: Vec::new(),
            remedies: Vec::new(),
        };
        match &tier {
            Err(refusal) => {
                finding.refused.push(format!("commands: {refusal}"));
                finding.remedies.extend(refusal_remedy(refusal).map(str::to_owned));
                if matches!(refusal, BoxRefusal::Signals { .. }) {
                    finding.remedies.push("or write `box: { allow: [signals] }` and allow it".to_owned());
                }
            }
            Ok(BoxTier::Namespaces | BoxTier::Unboxed) => {}
            Ok(BoxTier::Landlock) => {
                for needs in [
                    "folders with something read-only or hidden in them",
                    "commands with a network",
                    "programs in a box",
                ] {
                    finding.refused.push(format!("{needs}: they need namespaces"));
                }
                finding.remedies.extend(namespace_remedy(&machine.namespaces).map(str::to_owned));
            }
        }
        finding
    }

    /// One line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let tier = match self.tier {
            Some(2) => "commands run in a box of tier 2",
            Some(_) => "commands run in a box of tier 1",
            None => "commands are refused",
        };
        let has = |is_there: bool| if is_there { "work" } else { "do not work" };
        format!(
            "{tier}: Landlock {}, filters {}, namespaces {}",
            self.landlock_abi,
            has(self.filters),
            has(self.namespaces)
        )
    }
}

#[cfg(test)]
mod tests {
    use spinney_drivers::sandbox::LandlockSupport;

    use super::*;

    #[test]
    fn a_box_is_described_in_one_line() {
        let finding = BoxFinding { tier: Some(1), landlock_abi: 7, filters: true, ..BoxFinding::failed("") };
        let line = "commands run in a box of tier 1: Landlock 7, filters work, namespaces do not work";
        assert_eq!(finding.line(), line);
        let refusal = BoxRefusal::Landlock { found: LandlockSupport::Disabled, needed: 3 };
        assert!(refusal_remedy(&refusal).is_some_and(|remedy| remedy.contains("lsm=")));
    }
}
