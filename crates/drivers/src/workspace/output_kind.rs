//! Outputs that tools save under names of their kind: `{kind}_{NNN}.{extension}`, numbered for each agent.

use std::io;

use cap_std::fs::Dir;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{Durability, OutputPath};

use super::outputs::{OUTPUTS, Stopped};
use super::{Workspace, folder};

/// What kind of outputs a tool makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputKind {
    /// The beginning of their names.
    pub kind: String,
    /// The end of their names, without a dot.
    pub extension: String,
}

impl Workspace {
    /// Saves an output under the next number of its kind.
    pub(crate) fn save_output(
        &self,
        kind: &OutputKind,
        bytes: &[u8],
        limits: OutputLimits,
        durability: Durability,
    ) -> Result<(), Stopped> {
        self.write_output(&next(self.folder(), kind)?, bytes, limits, durability)
    }
}

/// The name after all that are there, so that none is written twice.
fn next(agent: &Dir, OutputKind { kind, extension }: &OutputKind) -> io::Result<OutputPath> {
    let mut last = 0_u64;
    for entry in folder::open(agent, OUTPUTS)?.entries()? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(kind.as_str())?.strip_prefix('_'));
        let digits = number.and_then(|rest| rest.split('.').next());
        last = last.max(digits.and_then(|digits| digits.parse().ok()).unwrap_or_default());
    }
    let name = format!("{kind}_{:03}.{extension}", last.saturating_add(1));
    name.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}
