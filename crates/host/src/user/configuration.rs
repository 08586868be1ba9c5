//! The user's own configuration: what a run may spend by default, where keys may go, and what is started or read for it.
//! Nothing of a project can change it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use spinney::tree_file::{FileError, KeyFile};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::{Permitted, RequestName};
use spinney_kernel::budget::Price;
use spinney_kernel::definition::{Count, PriceKeys, TimeSpan, Usd};
use spinney_kernel::primitives::limit::NAME_BYTES_MAX;

use super::allowed_host::AllowedHost;
use super::box_allowance::BoxAllowance;
use super::folders;
use super::low_policy::LowPolicy;
use super::trusted_file::{self, UntrustedFile};

/// The name of its file.
pub const FILE: &str = "config.toml";
/// The largest file that is read, in bytes.
pub(super) const BYTES_MAX: u64 = 1024 * 1024;
/// Most files of variables: each is read by every run.
const ENV_FILES_MAX: usize = 16;

/// The user's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a configuration")]
pub struct Configuration {
    pub(super) budget: DefaultBudget,
    pub(super) on_low: Option<LowPolicy>,
    pub(super) allow_hosts: Vec<AllowedHost>,
    pub(super) allow_field: Vec<AllowedField>,
    pub(super) allow_box: Vec<BoxAllowance>,
    pub(super) prices: BTreeMap<PricedName, PriceKeys>,
    pub(super) notify: Option<NotifyCommand>,
    pub(super) env_files: Vec<EnvFilePath>,
    pub(super) redact_env: Vec<VariableName>,
}

/// Why the user's configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// Its file cannot be read, or others may have written it.
    #[error(transparent)]
    Untrusted(#[from] UntrustedFile),
    /// Something in it is wrong.
    #[error(transparent)]
    Wrong(#[from] FileError),
}

/// The ceilings of a run that says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a default budget")]
pub struct DefaultBudget {
    pub(super) cost_usd: Option<Usd>,
    pub(super) tokens: Option<Count>,
    pub(super) steps: Option<Count>,
    pub(super) timeout: Option<TimeSpan>,
}

/// A ceiling that has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ceiling {
    /// Dollars.
    Cost,
    /// Tokens in and out.
    Tokens,
    /// Calls of models.
    Steps,
    /// Time.
    Timeout,
}

impl Ceiling {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cost, Self::Tokens, Self::Steps, Self::Timeout];

    /// Its key in a budget.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cost => "cost_usd",
            Self::Tokens => "tokens",
            Self::Steps => "steps",
            Self::Timeout => "timeout",
        }
    }

    /// An amount of it, as people write it.
    pub fn written(self, amount: u64) -> String {
        match self {
            Self::Cost => written_usd(amount),
            Self::Tokens | Self::Steps => amount.to_string(),
            Self::Timeout => written_span(amount),
        }
    }
}

impl DefaultBudget {
    /// In nano-dollars, tokens, steps or milliseconds.
    pub fn get(&self, ceiling: Ceiling) -> Option<u64> {
        match ceiling {
            Ceiling::Cost => self.cost_usd.map(Usd::nanos),
            Ceiling::Tokens => self.tokens.map(Count::count),
            Ceiling::Steps => self.steps.map(Count::count),
            Ceiling::Timeout => self.timeout.map(TimeSpan::ms),
        }
    }
}

/// A name that a program may send although its cost has no bound.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "`program` and `name`")]
pub struct AllowedField {
    /// The program.
    pub program: String,
    /// What it may send.
    #[serde(deserialize_with = "parsed")]
    pub name: RequestName,
}

/// The command that is started when a run ends, halts or asks a person: a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyCommand(Vec<String>);

/// Words that cannot be such a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACommand {
    /// There are none, or the first is empty.
    #[error("the program is missing: write one, such as notify-send")]
    NoProgram,
    /// Its program is another one in each folder.
    #[error(
        "`{0}` is a relative path, which means a different file in each folder: write an absolute path, or a name in PATH"
    )]
    Relative(String),
    /// No program can be given such a word.
    #[error("a word contains a NUL character")]
    Nul,
}

impl NotifyCommand {
    /// Checks the words.
    pub fn new(words: Vec<String>) -> Result<Self, NotACommand> {
        let program = words.first().filter(|program| !program.is_empty()).ok_or(NotACommand::NoProgram)?;
        if program.contains('/') && !program.starts_with('/') {
            return Err(NotACommand::Relative(program.clone()));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(NotACommand::Nul);
        }
        Ok(Self(words))
    }

    /// Reads a line that a person gave: words between spaces. A relative path is one in the current folder.
    pub fn from_line(line: &str) -> Result<Self, NotACommand> {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if let Some(program) = words.first_mut().filter(|program| program.contains('/'))
            && let Ok(path) = std::path::absolute(&*program)
            && let Some(path) = path.to_str()
        {
            *program = path.to_owned();
        }
        Self::new(words)
    }

    /// The program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// The program.
    pub fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl<'de> Deserialize<'de> for NotifyCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A file of variables: an absolute path, or one that begins with `~/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFilePath(String);

/// A text that names no file of variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEnvFile {
    /// It is another file in each folder.
    #[error(
        "`{0}` is a relative path, which means a different file in each folder: write an absolute path, or one that begins with ~/"
    )]
    Relative(String),
    /// No file has such a path.
    #[error("`{0}` is not the path of a file")]
    NotAPath(String),
    /// The user's home folder is unknown.
    #[error("`{0}` needs HOME, which is not set")]
    NoHome(String),
}

impl EnvFilePath {
    /// Where it is.
    pub fn path(&self) -> Result<PathBuf, NotAnEnvFile> {
        match self.0.strip_prefix("~/") {
            None => Ok(PathBuf::from(&self.0)),
            Some(below) => {
                let home = folders::user_home().ok_or_else(|| NotAnEnvFile::NoHome(self.0.clone()))?;
                Ok(home.join(below))
            }
        }
    }
}

impl FromStr for EnvFilePath {
    type Err = NotAnEnvFile;

    fn from_str(text: &str) -> Result<Self, NotAnEnvFile> {
        if !text.starts_with('/') && !text.starts_with("~/") {
            return Err(NotAnEnvFile::Relative(text.to_owned()));
        }
        if text.contains('\0') || text.ends_with('/') {
            return Err(NotAnEnvFile::NotAPath(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for EnvFilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EnvFilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

/// The name of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableName(String);

/// A text that no variable is named by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the name of a variable: write a name such as MY_TOKEN, and never its value")]
pub struct NotAVariableName;

impl FromStr for VariableName {
    type Err = NotAVariableName;

    fn from_str(text: &str) -> Result<Self, NotAVariableName> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if begins && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_letter) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAVariableName)
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VariableName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// The path of its file. None if there is no home folder.
pub fn path() -> Option<PathBuf> {
    Some(folders::configuration()?.join(FILE))
}

impl Configuration {
    /// The user's. Without a file it says nothing.
    pub fn read() -> Result<Self, ConfigurationError> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match trusted_file::read(&path, BYTES_MAX)? {
            Some(text) => Ok(Self::parse(&path, &text)?),
            None => Ok(Self::default()),
        }
    }

    /// Reads a text; errors name the path.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let file: KeyFile<Self> = KeyFile::parse(&path.display().to_string(), text)?;
        if file.keys.env_files.len() > ENV_FILES_MAX {
            let count = file.keys.env_files.len();
            return Err(file.bad_key(
                &["env_files"],
                format!("{count} files are more than the limit of {ENV_FILES_MAX}"),
            ));
        }
        Ok(file.keys)
    }

    /// Default ceilings.
    pub const fn budget(&self) -> &DefaultBudget {
        &self.budget
    }

    /// What happens first to a call that does not fit.
    pub const fn on_low(&self) -> Option<LowPolicy> {
        self.on_low
    }

    /// The hosts that may be sent the user's keys, beside those of the providers.
    pub fn allow_hosts(&self) -> &[AllowedHost] {
        &self.allow_hosts
    }

    /// What tree files may take from the boxes of their commands.
    pub fn allow_box(&self) -> &[BoxAllowance] {
        &self.allow_box
    }

    /// The names that a program may send although their cost has no bound.
    pub fn allowed_fields(&self, program: &str) -> Permitted {
        let own = self.allow_field.iter().filter(|field| field.program == program);
        own.map(|field| field.name.clone()).collect()
    }

    /// The price of a model, by the name that its provider has for it.
    pub fn price(&self, model: &str) -> Option<Price> {
        PricedName::find(&self.prices, model).map(PriceKeys::price)
    }

    /// All prices.
    pub fn prices(&self) -> impl Iterator<Item = (&PricedName, Price)> {
        self.prices.iter().map(|(name, keys)| (name, keys.price()))
    }

    /// The command that is started when a run ends, halts or asks.
    pub const fn notify(&self) -> Option<&NotifyCommand> {
        self.notify.as_ref()
    }

    /// Files of variables.
    pub fn env_files(&self) -> &[EnvFilePath] {
        &self.env_files
    }

    /// Variables whose values are redacted in everything that is shown.
    pub fn redact_env(&self) -> impl Iterator<Item = &str> {
        self.redact_env.iter().map(|name| name.0.as_str())
    }
}

/// Dollars without their sign, as short as they can be written.
pub fn written_usd(nanos: u64) -> String {
    const DOLLAR: u64 = 1_000_000_000;
    let fraction = format!("{:09}", nanos % DOLLAR);
    match fraction.trim_end_matches('0') {
        "" => (nanos / DOLLAR).to_string(),
        fraction => format!("{}.{fraction}", nanos / DOLLAR),
    }
}

/// A time in the largest unit that fits it exactly.
pub fn written_span(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

/// A price as [`read_price`] takes it: input, output, cached input, writing to a cache.
pub fn written_price(price: &Price) -> String {
    let cached = price.cached_input_per_mtok;
    // A rate that is left out in the middle is the rate of plain input.
    let cached = cached.or_else(|| price.cache_write_per_mtok.map(|_| price.input_per_mtok));
    let rates = [Some(price.input_per_mtok), Some(price.output_per_mtok), cached, price.cache_write_per_mtok];
    rates.into_iter().flatten().map(written_usd).collect::<Vec<_>>().join(",")
}

/// `INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]`, in dollars per million tokens.
pub fn read_price(text: &str) -> Result<PriceKeys, String> {
    let wrong = || format!("`{text}` is not INPUT,OUTPUT in dollars per million tokens, such as 1.25,10");
    read_rates(text)?.ok_or_else(wrong)
}

/// None if they are too few or too many.
pub fn read_rates(text: &str) -> Result<Option<PriceKeys>, String> {
    let rates: Result<Vec<Usd>, String> =
        text.split(',').map(|rate| rate.trim().parse::<Usd>().map_err(|error| error.to_string())).collect();
    let rates = rates?;
    let ([input, output] | [input, output, _] | [input, output, _, _]) = rates.as_slice() else {
        return Ok(None);
    };
    Ok(Some(PriceKeys {
        input_per_mtok_usd: *input,
        output_per_mtok_usd: *output,
        cached_input_per_mtok_usd: rates.get(2).copied(),
        cache_write_per_mtok_usd: rates.get(3).copied(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configuration, String> {
        Configuration::parse(Path::new("config.toml"), text).map_err(|error| format!("{error:#}"))
    }

    const WHOLE: &str = "
on_low = 'halt'
allow_hosts = ['OpenRouter.ai', '127.0.0.1:8080']
notify = ['notify-send', 'Spinney']
env_files = ['~/.config/keys.env', '/etc/keys.env']

[budget]
cost_usd = 5
tokens = 200_000
steps = 60
timeout = '30m'

[[allow_field]]
program = 'claude'
name = 'tool:web_search'

[prices.'gpt-4.1']
input_per_mtok_usd = 2
output_per_mtok_usd = 8
cached_input_per_mtok_usd = 0.5
";

    #[test]
    fn every_key_is_read() {
        let whole = read(WHOLE).unwrap();
        let budget =
            Ceiling::ALL.map(|ceiling| whole.budget().get(ceiling).map(|most| ceiling.written(most)));
        assert_eq!(budget, ["5", "200000", "60", "30m"].map(|most| Some(most.to_owned())));
        assert_eq!(whole.on_low(), Some(LowPolicy::Halt));
        let hosts: Vec<String> = whole.allow_hosts().iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["openrouter.ai", "127.0.0.1:8080"]);
        assert_eq!(whole.allowed_fields("claude"), Permitted::from(["tool:web_search".parse().unwrap()]));
        assert_eq!(whole.allowed_fields("codex"), Permitted::new());
        assert_eq!(written_price(&whole.price("gpt-4.1").unwrap()), "2,8,0.5");
        assert_eq!(whole.price("gpt-4"), None);
        assert_eq!(whole.notify().unwrap().words(), ["notify-send", "Spinney"]);
        assert_eq!(whole.env_files().len(), 2);
    }

    #[test]
    fn marks_and_line_ends_of_other_systems_change_nothing() {
        let whole = read(WHOLE).unwrap();
        assert_eq!(read(&format!("\u{feff}{WHOLE}")).unwrap(), whole);
        assert_eq!(read(&WHOLE.replace('\n', "\r\n")).unwrap(), whole);
        for empty in ["", "\n", "# nothing yet\n", "\u{feff}"] {
            assert_eq!(read(empty).unwrap(), Configuration::default());
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let wrong = [
            "=",
            "buget = { cost_usd = 5 }",
            "budget = { cost = 5 }",
            "budget = 5",
            "budget = { cost_usd = -1 }",
            "budget = { timeout = '5 minutes' }",
            "budget = { tokens = 1.5 }",
            "on_low = 'shrnk'",
            "on_low = true",
            "allow_hosts = 'openrouter.ai'",
            "allow_hosts = ['https://openrouter.ai/v1']",
            "allow_hosts = [1]",
            "allow_field = 1",
            "[[allow_field]]\nprogram = 'x'",
            "[[allow_field]]\nprogram = 'x'\nname = 'a b'",
            "[[allow_field]]\nprogram = 'x'\nname = 'a'\nwhy = 'b'",
            "[prices.m]\ninput_per_mtok_usd = 1",
            "prices = { m = 1 }",
            "notify = 'notify-send Spinney'",
            "notify = []",
            "notify = ['./notify.sh']",
            "env_files = ['.env']",
            "env_files = '/a'",
            "on_low = 'halt'\non_low = 'shrink'",
        ];
        let told: Vec<String> = wrong.iter().map(|text| read(text).unwrap_err()).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        config.toml:1:1: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
        config.toml:1:1: unknown key `buget`: did you mean `budget`?
        config.toml:1:12: unknown key `cost`: known keys: cost_usd, tokens, steps, timeout
        config.toml:1:10: `budget`: expected the keys of a default budget, found the number 5
        config.toml:1:23: `budget.cost_usd`: `-1` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals
        config.toml:1:22: `budget.timeout`: `5 minutes` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds
        config.toml:1:21: `budget.tokens`: `1.5` is not a count: write a whole number from 0 to 1000000000000000, without quotes
        config.toml:1:10: `on_low`: unknown value `shrnk`: did you mean `shrink`?
        config.toml:1:10: `on_low`: expected one of halt, shrink, found `true`
        config.toml:1:15: `allow_hosts`: expected a list, found text `openrouter.ai`
        config.toml:1:16: `allow_hosts`: `https://openrouter.ai/v1` is not a host: leave out the scheme and the path; write a name or an address with an optional port, such as openrouter.ai or 127.0.0.1:8080
        config.toml:1:16: `allow_hosts`: expected text, found the number 1: put it in quotes
        config.toml:1:15: `allow_field`: expected a list, found the number 1
        config.toml:1:1: `name` is missing: write `name = …`
        config.toml:3:8: `allow_field.name`: `a b` is not a name in a request: write the name of a field, or beta:NAME, query:NAME, tool:TYPE, block:TYPE, item:TYPE or edit:TYPE
        config.toml:4:1: unknown key `why`: known keys: program, name
        config.toml:1:1: `output_per_mtok_usd` is missing: write `output_per_mtok_usd = …`
        config.toml:1:16: `prices.m`: expected the keys of a price, found the number 1
        config.toml:1:10: `notify`: expected a list, found text `notify-send Spinney`
        config.toml:1:10: `notify`: the program is missing: write one, such as notify-send
        config.toml:1:10: `notify`: `./notify.sh` is a relative path, which means a different file in each folder: write an absolute path, or a name in PATH
        config.toml:1:14: `env_files`: `.env` is a relative path, which means a different file in each folder: write an absolute path, or one that begins with ~/
        config.toml:1:13: `env_files`: expected a list, found text `/a`
        config.toml:2:1: duplicate key `on_low`: delete one of them
        ");
        let many = format!("env_files = [{}]", "'/a',".repeat(17));
        insta::assert_snapshot!(read(&many).unwrap_err(), @"config.toml:1:1: 17 files are more than the limit of 16");
    }

    #[test]
    fn values_are_written_as_people_write_them() {
        assert_eq!([5_000_000_000, 500_000_000, 1].map(written_usd), ["5", "0.5", "0.000000001"]);
        assert_eq!([86_400_000, 5_400_000, 90_000, 1_500].map(written_span), ["1d", "90m", "90s", "1500ms"]);
        let mut price = Price::flat(1_000_000_000, 2_000_000_000);
        assert_eq!(written_price(&price), "1,2");
        price.cache_write_per_mtok = Some(1_250_000_000);
        assert_eq!(written_price(&price), "1,2,1,1.25");
    }
}
