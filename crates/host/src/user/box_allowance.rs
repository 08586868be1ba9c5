//! What the user allows a tree file to have beyond a whole box: `signals`, `none`, a variable, `env:NAME`, a folder,
//! `read:PATH` and `write:PATH`, working copies of a repository, `copy:PATH`, a server of tools, `mcp:COMMAND`, tools of one
//! that have changed, `mcp-tools:CODE`, or a program as an agent, `program:COMMAND`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use spinney_kernel::definition::{BoxWalls, FolderAccess};
use spinney_kernel::primitives::limit::NAME_BYTES_MAX;
use spinney_kernel::primitives::{FolderPath, HostRule};

const HOST: &str = "host:";
const SERVER: &str = "mcp:";
const PROGRAM: &str = "program:";

/// Something that a file alone cannot have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoxAllowance {
    /// A weaker box, or none.
    Walls(BoxWalls),
    /// A variable of the user's environment.
    Env(String),
    /// A folder of the user, with everything in it.
    Folder {
        /// What may be done in it.
        access: FolderAccess,
        /// Absolute.
        path: FolderPath,
    },
    /// Working copies of a repository.
    Copy(FolderPath),
    /// Connections to a host. Users allow it with the hosts that may be sent their keys.
    Host(HostRule),
    /// To start a server of tools: its variables and its whole command, as
    /// [`ToolServer::allowance`](spinney_kernel::definition::ToolServer::allowance) has them.
    Server(String),
    /// To start a program as an agent: its name or its whole command, without the task.
    Program(String),
    /// Tools of a server that say something else of themselves than before: the code of that change.
    ServerTools(String),
}

impl BoxAllowance {
    /// The key of a file that asks for it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Walls(_) | Self::Env(_) => "box",
            Self::Folder { access, .. } => access.as_str(),
            Self::Copy(_) => "working_copy",
            Self::Host(_) => "network",
            Self::Server(_) | Self::ServerTools(_) => "mcp",
            Self::Program(_) => "program",
        }
    }
}

/// A text that names nothing of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotABoxAllowance(String);

impl fmt::Display for NotABoxAllowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.chars().take(60).collect();
        write!(
            f,
            "`{text}` is nothing that can be allowed: write `signals`, `none`, `env:NAME`, `read:PATH`, `write:PATH` or `copy:PATH` with an absolute path, `mcp:COMMAND`, `mcp-tools:CODE` or `program:COMMAND`"
        )
    }
}

impl std::error::Error for NotABoxAllowance {}

impl FromStr for BoxAllowance {
    type Err = NotABoxAllowance;

    fn from_str(text: &str) -> Result<Self, NotABoxAllowance> {
        match text {
            "signals" => Ok(Self::Walls(BoxWalls::OpenToSignals)),
            "none" => Ok(Self::Walls(BoxWalls::None)),
            other if other.len() > SERVER.len() && other.starts_with(SERVER) => {
                Ok(Self::Server(other[SERVER.len()..].to_owned()))
            }
            other if other.len() > PROGRAM.len() && other.starts_with(PROGRAM) => {
                Ok(Self::Program(other[PROGRAM.len()..].to_owned()))
            }
            other => Self::named(other).ok_or_else(|| NotABoxAllowance(text.to_owned())),
        }
    }
}

impl BoxAllowance {
    /// From a text that was written here: users name hosts elsewhere.
    pub(crate) fn remembered(text: &str) -> Option<Self> {
        match text.strip_prefix(HOST) {
            Some(rule) => rule.parse().ok().map(Self::Host),
            None => text.parse().ok(),
        }
    }

    fn named(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let access = match kind {
            "env" => return is_variable(name).then(|| Self::Env(name.to_owned())),
            "copy" => return name.parse().ok().map(Self::Copy),
            "mcp-tools" => return is_code(name).then(|| Self::ServerTools(name.to_owned())),
            "read" => FolderAccess::Read,
            "write" => FolderAccess::Write,
            _ => return None,
        };
        Some(Self::Folder { access, path: name.parse().ok()? })
    }
}

/// Whether a text can be the code of a change.
fn is_code(code: &str) -> bool {
    code.len() == 16 && code.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text can be the name of a variable.
fn is_variable(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_letter)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl fmt::Display for BoxAllowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Walls(BoxWalls::None) => f.write_str("none"),
            Self::Walls(BoxWalls::OpenToSignals | BoxWalls::Whole) => f.write_str("signals"),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::Folder { access, path } => write!(f, "{}:{path}", access.as_str()),
            Self::Copy(path) => write!(f, "copy:{path}"),
            Self::Host(rule) => write!(f, "{HOST}{rule}"),
            Self::Server(command) => write!(f, "{SERVER}{command}"),
            Self::Program(command) => write!(f, "{PROGRAM}{command}"),
            Self::ServerTools(code) => write!(f, "mcp-tools:{code}"),
        }
    }
}

impl<'de> Deserialize<'de> for BoxAllowance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_written_as_it_is_read() {
        for text in [
            "signals",
            "none",
            "env:CI",
            "env:_A1",
            "read:/a/b",
            "write:/a b",
            "copy:/a/b",
            "mcp:$KEY npx \"a b\"",
            "program:claude",
            "program:agent --task {{ goal }}",
            "mcp-tools:0123456789abcdef",
        ] {
            assert_eq!(text.parse::<BoxAllowance>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "all",
            "env:",
            "env:A=B",
            "env:1A",
            "env:A B",
            "CI",
            "read:a",
            "write:/",
            "read:/a/..",
            "copy:a",
            "mcp-tools:1",
        ] {
            let error = wrong.parse::<BoxAllowance>().unwrap_err().to_string();
            assert!(error.contains("write `signals`, `none`, `env:NAME`, `read:PATH`"), "{error}");
        }
    }
}
