//! What a model gives to `run_command`. What bounds a command beside its time is not here: the tree file says that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use spinney_kernel::definition::{HostsArgument, TimeSpan};
use spinney_kernel::port::Rights;

use crate::sandbox::{BoxedCommand, BoxedInput};

pub(super) const DESCRIPTION: &str = "run a program on this machine, in a box {command, cwd?, timeout?, stdin?, hosts?}, and get its exit code and what it printed; it begins in a folder of yours where it may write, with no network but your hosts; files that it leaves in `outputs/` there are kept";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"command":{"description":"the program and its arguments as a list of texts, such as [\"python3\", \"test.py\"], or one text: a line for the shell"},"cwd":{"type":"string","description":"the folder to begin in, such as outputs; your own if left out"},"timeout":{"type":"string","description":"such as 30s or 10m, 2m if left out, at most 1h"},"stdin":{"type":"string","description":"what it reads from its standard input"},"hosts":{"type":"array","items":{"type":"string"},"description":"hosts that it needs and you do not have, such as api.example.org:443; a person is asked, if you may ask"}},"required":["command"],"additionalProperties":false}"#;

const TIMEOUT: Duration = Duration::from_secs(120);
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Of each stream so many bytes from its beginning and from its end are returned.
pub(super) const KEPT_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    command: WrittenCommand,
    cwd: Option<PathBuf>,
    timeout: Option<TimeSpan>,
    #[serde(default)]
    stdin: String,
    /// The kernel has read them: the rights of the call have those that a person allowed.
    #[serde(rename = "hosts")]
    _hosts: Option<IgnoredAny>,
}

/// The argument that names hosts.
pub(super) fn hosts_argument() -> HostsArgument {
    HostsArgument::list("hosts")
}

/// Refuses hosts that a call names and does not have: nothing would connect to them.
pub(super) fn check_hosts(args: &str, rights: &Rights) -> Result<(), String> {
    let lacking = hosts_argument().of_call(args)?.beyond(&rights.network);
    if lacking.is_denied() {
        return Ok(());
    }
    Err(format!("not granted here: {lacking}; granted here is {}: do without `hosts`", rights.network))
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`command` must be a list of texts, or one text for the shell")]
enum WrittenCommand {
    List(Vec<String>),
    Line(String),
}

impl Args {
    /// The command, which begins where `cwd` says from the agent's own folder, or else in `begin`.
    pub(super) fn command(self, scratch: &Path, begin: Option<&Path>) -> Result<BoxedCommand, String> {
        let arguments: Vec<OsString> = match self.command {
            WrittenCommand::List(words) => words.into_iter().map(OsString::from).collect(),
            WrittenCommand::Line(line) => ["sh".into(), "-c".into(), line.into()].into(),
        };
        let has_nul = |text: &std::ffi::OsStr| text.as_encoded_bytes().contains(&0);
        let folder = self.cwd.map_or_else(|| begin.map(Path::to_owned), |cwd| Some(scratch.join(cwd)));
        if arguments.iter().any(|word| has_nul(word))
            || folder.as_ref().is_some_and(|folder| has_nul(folder.as_os_str()))
        {
            return Err("a command has no zero bytes: leave them out".to_owned());
        }
        if arguments.first().is_none_or(|program| program.is_empty()) {
            return Err("`command` is empty: name a program, such as [\"ls\", \"-l\"]".to_owned());
        }
        let timeout = self.timeout.map_or(TIMEOUT, |span| Duration::from_millis(span.ms()));
        if timeout.is_zero() || timeout > TIMEOUT_MAX {
            return Err("`timeout` is out of bounds: write from 1ms to 1h".to_owned());
        }
        let mut command = BoxedCommand::new(arguments);
        command.folder = folder;
        command.input = BoxedInput::Bytes(self.stdin.into_bytes());
        command.timeout = timeout;
        command.kept_bytes = KEPT_BYTES;
        Ok(command)
    }
}
