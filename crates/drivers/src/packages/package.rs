//! Which package a command of a server names: `npx -y NAME@VERSION …`, or `uvx NAME@VERSION …`.

use std::fmt;

/// The longest name of a package, as its index has it.
const NAME_BYTES_MAX: usize = 214;
const VERSION_BYTES_MAX: usize = 64;

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageIndex {
    Npm,
    PyPi,
}

impl PackageIndex {
    pub const ALL: [Self; 2] = [Self::Npm, Self::PyPi];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "pypi",
        }
    }
}

/// A package, at one version if one is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    pub index: PackageIndex,
    pub name: String,
    pub version: Option<String>,
}

impl Package {
    /// The same at a version.
    #[must_use]
    pub fn at(&self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self.clone() }
    }

    /// `NAME@VERSION`, as commands have it.
    #[must_use]
    pub fn spec(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }

    fn read(index: PackageIndex, text: &str) -> Result<Self, String> {
        let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
        let (name, version) = match (at, text.split_once("==")) {
            (Some(at), _) => (&text[..at], Some(&text[at + 1..])),
            (None, Some((name, version))) if index == PackageIndex::PyPi => (name, Some(version)),
            (None, _) => (text, None),
        };
        let name = match index {
            PackageIndex::Npm if is_npm_name(name) => name.to_owned(),
            PackageIndex::PyPi if is_python_name(name) => normal(name),
            PackageIndex::Npm | PackageIndex::PyPi => {
                return Err(format!("`{text}` is not the name of a package of its index"));
            }
        };
        match version.filter(|version| *version != "latest") {
            Some(version) if !is_version(version) => {
                Err(format!("`{version}` is not one exact version: write all of its numbers"))
            }
            version => Ok(Self { index, name, version: version.map(str::to_owned) }),
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = match self.index {
            PackageIndex::Npm => "npm",
            PackageIndex::PyPi => "Python",
        };
        write!(f, "{index} package `{}`", self.spec())
    }
}

/// A command that starts a program of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageCommand {
    pub package: Package,
    /// The program, if the command names one.
    pub program: Option<String>,
    pub arguments: Vec<String>,
}

impl PackageCommand {
    /// Reads the words of a command. None if it starts something else.
    ///
    /// # Errors
    /// If it is such a command with something in it that cannot be installed before.
    pub fn read(words: &[String]) -> Option<Result<Self, String>> {
        let (first, rest) = words.split_first()?;
        match first.as_str() {
            "npx" => Some(npx(rest)),
            "uvx" => Some(uvx(rest)),
            "uv" if rest.starts_with(&["tool".to_owned(), "run".to_owned()]) => Some(uvx(&rest[2..])),
            _ => None,
        }
    }
}

fn npx(words: &[String]) -> Result<PackageCommand, String> {
    let mut words = words.iter();
    let mut package = None;
    let first = loop {
        let word = words.next();
        match word.map(String::as_str) {
            Some("-y" | "--yes" | "--quiet" | "-q" | "--") => {}
            Some("-p" | "--package") => package = words.next().cloned(),
            Some(word) if word.starts_with("--package=") => package = word.get(10..).map(str::to_owned),
            Some(word) if word.starts_with('-') => return Err(unknown("npx", word)),
            word => break word.map(str::to_owned),
        }
    };
    command(PackageIndex::Npm, package, first, words)
}

fn uvx(words: &[String]) -> Result<PackageCommand, String> {
    let mut words = words.iter();
    let mut package = None;
    let first = loop {
        let word = words.next();
        match word.map(String::as_str) {
            Some("--quiet" | "-q" | "--") => {}
            Some("--from") => package = words.next().cloned(),
            Some(word) if word.starts_with("--from=") => package = word.get(7..).map(str::to_owned),
            Some(word) if word.starts_with('-') => return Err(unknown("uvx", word)),
            word => break word.map(str::to_owned),
        }
    };
    command(PackageIndex::PyPi, package, first, words)
}

fn command(
    index: PackageIndex,
    package: Option<String>,
    first: Option<String>,
    rest: std::slice::Iter<'_, String>,
) -> Result<PackageCommand, String> {
    let (package, program) = match (package, first) {
        (Some(package), Some(program)) if is_program(&program) => (package, Some(program)),
        (Some(_), Some(program)) => return Err(format!("`{program}` is not the name of a program")),
        (None, Some(package)) => (package, None),
        (_, None) => return Err("it names no program".to_owned()),
    };
    Ok(PackageCommand {
        package: Package::read(index, &package)?,
        program,
        arguments: rest.cloned().collect(),
    })
}

fn unknown(program: &str, option: &str) -> String {
    format!("the option `{option}` of {program} is not known here: name the package and its version alone")
}

fn is_npm_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && part.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~'))
    };
    name.len() <= NAME_BYTES_MAX
        && match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
            Some(Some((scope, name))) => is_part(scope) && is_part(name),
            Some(None) => false,
            None => is_part(name),
        }
}

fn is_python_name(name: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(is_edge)
        && name.ends_with(is_edge)
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// As the index compares names.
fn normal(name: &str) -> String {
    let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    words.join("-").to_ascii_lowercase()
}

fn is_version(version: &str) -> bool {
    version.len() <= VERSION_BYTES_MAX
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'+' | b'-'))
        && !version.contains("..")
        && version.split('.').all(|part| part != "x" && part != "*")
}

fn is_program(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: &str) -> Option<Result<PackageCommand, String>> {
        PackageCommand::read(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn in_words(command: &str) -> String {
        match read(command) {
            None => "another command".to_owned(),
            Some(Err(why)) => why,
            Some(Ok(command)) => format!(
                "{}; {}; {}",
                command.package,
                command.program.unwrap_or_default(),
                command.arguments.join(" ")
            ),
        }
    }

    #[test]
    fn commands_that_download_packages_are_read() {
        for (command, read) in [
            ("npx -y @scope/server@1.2.3 /data --all", "npm package `@scope/server@1.2.3`; ; /data --all"),
            ("npx server", "npm package `server`; ; "),
            ("npx server@latest", "npm package `server`; ; "),
            ("npx --yes -p server@1.0.0-beta.1 run", "npm package `server@1.0.0-beta.1`; run; "),
            (
                "uvx mcp_server.git@2025.8.4 --repository .",
                "Python package `mcp-server-git@2025.8.4`; ; --repository .",
            ),
            ("uvx --from mcp-server==1.0 serve", "Python package `mcp-server@1.0`; serve; "),
            ("uv tool run server@0.1", "Python package `server@0.1`; ; "),
            ("uv run server.py", "another command"),
            ("python3 server.py", "another command"),
        ] {
            assert_eq!(in_words(command), read, "{command}");
        }
    }

    /// G28: a command cannot name anything that is not one package of an index.
    #[test]
    fn g28_what_is_not_one_package_of_an_index_is_refused() {
        for command in [
            "npx ../server",
            "npx git+https://host/x",
            "npx https://host/x.tgz",
            "npx @scope",
            "npx a/b",
            "npx",
            "npx server@^1.2.0",
            "npx server@1",
            "npx server@1.x",
            "npx server@next",
            "npx server@1.2.3/../..",
            "npx --node-options=x server",
            "uvx --index-url http://host x",
            "uvx --with y x",
            "uvx ./server",
            "uvx --from git+https://host/x y",
            "uvx server[extra]",
            "uvx --from server ../x",
            "uvx server>=1.0",
        ] {
            assert!(matches!(read(command), Some(Err(_))), "{command}: {}", in_words(command));
        }
    }
}
