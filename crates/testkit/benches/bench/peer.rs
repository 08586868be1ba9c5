//! Comparable libraries from PyPI, measured in the same run if Python is present. Each is a script beside the bench
//! that prints one JSON object, run in its own virtual environment below the build's temporary folder.

use std::path::PathBuf;
use std::process::Command;

/// A peer's script and its requirements.
pub(crate) struct Script {
    /// The environment; scripts with the same packages share one.
    pub(crate) home: &'static str,
    /// Packages to install, with versions.
    pub(crate) packages: &'static [&'static str],
    /// The script's path, from the crate's folder.
    pub(crate) path: &'static str,
}

/// What another needs.
pub(crate) struct Peer(serde_json::Value);

impl Peer {
    /// One figure: nanoseconds, calls per second, or bytes.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }
}

/// Installs and measures a peer, or says why that is not possible.
pub(crate) fn measure(script: &Script) -> Result<Peer, String> {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(script.home);
    let python = home.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(script.packages))?;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(script.path);
    let printed = run(Command::new(&python).arg(path).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    serde_json::from_str(&printed).map(Peer).map_err(|error| error.to_string())
}

/// Runs a command and returns its output; on failure, its last line with an error, or its last line.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let named = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{named}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut lines = said.trim().lines();
        let why = lines.clone().rfind(|line| line.to_lowercase().starts_with("error")).or(lines.next_back());
        return Err(format!("{named}: {}", why.unwrap_or("it failed without a word")));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}
