//! Counts instructions, and builds the programs to compare with: rig's agents, a crate outside the workspace
//! (`bench/rig`), if it can be fetched.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer;

/// Instructions of a program that takes this many turns, from its start to its end.
pub(crate) fn instructions(program: &Path, words: &[&str], turns: u32) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--log-fd=1"]);
    let printed = peer::run(command.arg(program).args(words).arg(turns.to_string()))?;
    let counted =
        printed.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.replace(',', ""));
    let counted = counted.ok_or_else(|| format!("valgrind counted nothing: {printed}"))?;
    counted.trim().parse().map_err(|error| format!("{counted}: {error}"))
}

/// Builds rig's loops and returns their folder, or says why that is not possible.
pub(crate) fn rig() -> Result<PathBuf, String> {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rig");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/rig/Cargo.toml");
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    peer::run(command.arg("--target-dir").arg(&target))?;
    Ok(target.join("release"))
}
