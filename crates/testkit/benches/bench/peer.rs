//! The original of the parent-linked budget, veronica-core 3.10.0 from PyPI, measured in the same run where Python
//! is present.

use std::path::PathBuf;
use std::process::Command;

/// What the original needs.
pub(crate) struct Peer(serde_json::Value);

impl Peer {
    /// One figure: nanoseconds, calls per second, or bytes.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }
}

/// Installs and measures the original; says why if that is not possible.
pub(crate) fn measure() -> Option<Peer> {
    match try_measure() {
        Ok(peer) => Some(peer),
        Err(why) => {
            println!("veronica-core is not measured: {why}");
            None
        }
    }
}

fn try_measure() -> Result<Peer, String> {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("veronica");
    let python = home.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "veronica-core==3.10.0"]))?;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/bench/veronica.py");
    let printed = run(Command::new(&python).arg(script))?;
    serde_json::from_str(&printed).map(Peer).map_err(|error| error.to_string())
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}
