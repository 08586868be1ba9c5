//! What the user allows a tree file to take: from the box of its commands `signals` or `none`, a variable, `env:NAME`, or a
//! copy of a repository, `copy:PATH`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use spinney_kernel::definition::BoxWalls;
use spinney_kernel::primitives::FolderPath;
use spinney_kernel::primitives::limit::NAME_BYTES_MAX;

/// Something that a file alone cannot have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoxAllowance {
    /// A weaker box, or none.
    Walls(BoxWalls),
    /// A variable of the user's environment.
    Env(String),
    /// Working copies of a repository.
    Copy(FolderPath),
}

impl BoxAllowance {
    /// The key of an agent that asks for it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Walls(_) | Self::Env(_) => "box",
            Self::Copy(_) => "working_copy",
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
            "`{text}` is nothing that can be allowed: write `signals`, `none`, `env:NAME` or `copy:PATH`"
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
            other => {
                let env = other.strip_prefix("env:").filter(|name| is_variable(name));
                let copy = other.strip_prefix("copy:").and_then(|path| path.parse().ok());
                let named = env.map(|name| Self::Env(name.to_owned())).or(copy.map(Self::Copy));
                named.ok_or_else(|| NotABoxAllowance(text.to_owned()))
            }
        }
    }
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
            Self::Copy(path) => write!(f, "copy:{path}"),
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
        for text in ["signals", "none", "env:CI", "env:_A1", "copy:/home/user/my project"] {
            assert_eq!(text.parse::<BoxAllowance>().unwrap().to_string(), text);
        }
        for wrong in
            ["", "all", "env:", "env:A=B", "env:1A", "env:A B", "CI", "copy:", "copy:here", "copy:/a/../b"]
        {
            let error = wrong.parse::<BoxAllowance>().unwrap_err().to_string();
            assert!(error.contains("write `signals`, `none`, `env:NAME` or `copy:PATH`"), "{error}");
        }
    }
}
