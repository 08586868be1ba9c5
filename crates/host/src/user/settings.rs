//! The settings of the user's configuration by their names, and changing them: `budget.cost_usd`, `allow_hosts`,
//! `prices.gpt-5`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};
use spinney::tree_file::{FileError, nearest};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::RequestName;
use spinney_kernel::definition::{Count, PriceKeys, TimeSpan, Usd};

use super::allowed_host::AllowedHost;
use super::box_allowance::BoxAllowance;
use super::configuration::{
    AllowedField, BYTES_MAX, Ceiling, Configuration, ConfigurationError, EnvFilePath, NotifyCommand,
    VariableName, read_price, written_price, written_usd,
};
use super::draft::{Draft, Saved};
use super::low_policy::LowPolicy;
use super::toml_text::{self, TomlText, TomlTextError};
use crate::text_file::FileFault;

/// Why a setting cannot have a value.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The environment names no home folder.
    #[error("there is no folder for a configuration: set HOME or XDG_CONFIG_HOME")]
    NoFolder,
    /// The file cannot be read.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The file or its folder cannot be used.
    #[error(transparent)]
    File(#[from] FileFault),
    /// The text of the file cannot be changed.
    #[error(transparent)]
    Text(#[from] TomlTextError),
    /// The changed text would be refused.
    #[error("the file would become invalid")]
    Invalid(#[source] FileError),
    /// The file is written in a way that we cannot change.
    #[error("{} cannot be changed in place: edit it by hand", path.display())]
    NotInPlace {
        /// The file.
        path: PathBuf,
    },
    /// The changed file would not be read any more.
    #[error("{} would have more than {BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A value is not of its kind.
    #[error("{0}")]
    Value(String),
    /// None or several were given.
    #[error("it takes one value")]
    OneValue,
    /// Values are added to a list and removed from it.
    #[error("it is a list")]
    IsAList,
    /// A value is set.
    #[error("it is not a list")]
    NotAList,
    /// It has others below it.
    #[error("name {what}, such as {example}")]
    HasOthers {
        /// What it has.
        what: &'static str,
        /// One of them.
        example: &'static str,
    },
    /// It is not in the list.
    #[error("`{0}` is not in it")]
    NotInList(String),
}

/// What was to be done with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// Give it a value.
    Set,
    /// Add to a list.
    Add,
    /// Remove from a list.
    Remove,
    /// Remove it whole.
    Unset,
}

impl SettingChange {
    const fn verb(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Add => "add to",
            Self::Remove => "remove from",
            Self::Unset => "unset",
        }
    }
}

/// A setting that was not changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} `{name}`", change.verb())]
pub struct UnchangedSetting {
    /// What was to be done.
    pub change: SettingChange,
    /// Its name.
    pub name: String,
    /// The cause.
    #[source]
    pub why: Box<SettingError>,
}

/// A name that no setting has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownSetting(String);

fn bad(error: impl fmt::Display) -> SettingError {
    SettingError::Value(error.to_string())
}

/// More digits of a float are not exact.
const FLOAT_DIGITS_MAX: usize = 15;

/// A setting by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// All default ceilings.
    Budget,
    /// One of them.
    Ceiling(Ceiling),
    /// What happens first to a call that does not fit.
    OnLow,
    /// Hosts that may be sent the user's keys.
    AllowHosts,
    /// What a program may send although its cost has no bound.
    AllowField,
    /// What tree files may take from the boxes of their commands.
    AllowBox,
    /// Prices of models.
    Prices,
    /// Of a model, or of several whose names begin alike.
    Price(PricedName),
    /// The command that is started when a run ends, halts or asks.
    Notify,
    /// Files of variables.
    EnvFiles,
    /// Variables whose values are redacted.
    RedactEnv,
}

/// The names that people can write. A price is named by its model.
pub const NAMES: [&str; 12] = [
    "budget.cost_usd",
    "budget.tokens",
    "budget.steps",
    "budget.timeout",
    "on_low",
    "allow_hosts",
    "allow_field",
    "allow_box",
    "prices.MODEL",
    "notify",
    "env_files",
    "redact_env",
];

impl FromStr for Setting {
    type Err = UnknownSetting;

    fn from_str(name: &str) -> Result<Self, UnknownSetting> {
        if let Some(model) = name.strip_prefix("prices.").filter(|model| !model.is_empty()) {
            return model.parse().map(Self::Price).map_err(|error| UnknownSetting(error.to_string()));
        }
        let of_budget = name.strip_prefix("budget.");
        if let Some(ceiling) =
            of_budget.and_then(|key| Ceiling::ALL.into_iter().find(|ceiling| ceiling.key() == key))
        {
            return Ok(Self::Ceiling(ceiling));
        }
        Ok(match name {
            "budget" => Self::Budget,
            "on_low" => Self::OnLow,
            "allow_hosts" => Self::AllowHosts,
            "allow_field" => Self::AllowField,
            "allow_box" => Self::AllowBox,
            "prices" => Self::Prices,
            "notify" => Self::Notify,
            "env_files" => Self::EnvFiles,
            "redact_env" => Self::RedactEnv,
            _ => {
                let help = nearest::help(name, NAMES, "settings");
                return Err(UnknownSetting(format!("unknown setting `{name}`: {help}")));
            }
        })
    }
}

impl Setting {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Budget => "budget".to_owned(),
            Self::Ceiling(ceiling) => format!("budget.{}", ceiling.key()),
            Self::OnLow => "on_low".to_owned(),
            Self::AllowHosts => "allow_hosts".to_owned(),
            Self::AllowField => "allow_field".to_owned(),
            Self::AllowBox => "allow_box".to_owned(),
            Self::Prices => "prices".to_owned(),
            Self::Price(model) => format!("prices.{model}"),
            Self::Notify => "notify".to_owned(),
            Self::EnvFiles => "env_files".to_owned(),
            Self::RedactEnv => "redact_env".to_owned(),
        }
    }

    /// Its values, as `set` and `add` take them; none if it is not set. A setting with others below it has one for each,
    /// with its name.
    pub fn values(&self, of: &Configuration) -> Vec<(String, Vec<String>)> {
        let one = |value: Option<String>| value.map(|value| (self.name(), vec![value])).into_iter().collect();
        let each = |values: Vec<Vec<String>>| values.into_iter().map(|value| (self.name(), value)).collect();
        match self {
            Self::Budget => {
                Ceiling::ALL.into_iter().flat_map(|ceiling| Self::Ceiling(ceiling).values(of)).collect()
            }
            Self::Ceiling(ceiling) => one(of.budget.get(*ceiling).map(|most| ceiling.written(most))),
            Self::OnLow => one(of.on_low.map(|policy| policy.as_str().to_owned())),
            Self::AllowHosts => each(of.allow_hosts().iter().map(|host| vec![host.to_string()]).collect()),
            Self::AllowField => {
                let written = |field: &AllowedField| vec![field.program.clone(), field.name.to_string()];
                each(of.allow_field.iter().map(written).collect())
            }
            Self::AllowBox => each(of.allow_box().iter().map(|what| vec![what.to_string()]).collect()),
            Self::Prices => {
                of.prices.keys().flat_map(|model| Self::Price(model.clone()).values(of)).collect()
            }
            Self::Price(model) => one(of.prices.get(model).map(|keys| written_price(&keys.price()))),
            Self::Notify => of.notify.iter().map(|command| (self.name(), command.words().to_vec())).collect(),
            Self::EnvFiles => each(of.env_files.iter().map(|file| vec![file.to_string()]).collect()),
            Self::RedactEnv => each(of.redact_env.iter().map(|name| vec![name.to_string()]).collect()),
        }
    }

    /// The same for programs: a list for settings that are lists, null for what is not set.
    pub fn json(&self, of: &Configuration) -> Value {
        let values = self.values(of);
        match self {
            Self::AllowHosts | Self::AllowBox | Self::EnvFiles | Self::RedactEnv => {
                json!(values.iter().flat_map(|(_, value)| value).collect::<Vec<_>>())
            }
            Self::AllowField => {
                let written = |field: &AllowedField| json!({ "program": field.program, "name": field.name.to_string() });
                Value::Array(of.allow_field.iter().map(written).collect())
            }
            Self::Notify => json!(of.notify.as_ref().map(NotifyCommand::words)),
            Self::Budget | Self::Prices => {
                let name = |name: &str| name.split_once('.').map_or(name, |(_, below)| below).to_owned();
                Value::Object(
                    values.iter().map(|(below, value)| (name(below), json!(value.first()))).collect(),
                )
            }
            Self::Ceiling(_) | Self::OnLow | Self::Price(_) => {
                json!(values.first().and_then(|(_, value)| value.first()))
            }
        }
    }

    fn changed(
        &self,
        change: SettingChange,
        how: impl FnOnce(&mut Draft) -> Result<(), SettingError>,
    ) -> Result<Saved, UnchangedSetting> {
        Draft::change(how).map_err(|why| UnchangedSetting { change, name: self.name(), why: Box::new(why) })
    }

    /// Gives it this value.
    pub fn set(&self, values: &[String]) -> Result<Saved, UnchangedSetting> {
        let one = || match values {
            [value] => Ok(value.as_str()),
            _ => Err(SettingError::OneValue),
        };
        self.changed(SettingChange::Set, |draft| {
            let Draft { text, configuration } = draft;
            match self {
                Self::Ceiling(ceiling) => {
                    let budget = &mut configuration.budget;
                    let literal = match ceiling {
                        Ceiling::Cost => {
                            let most: Usd = one()?.parse().map_err(bad)?;
                            budget.cost_usd = Some(most);
                            usd_literal(most)
                        }
                        Ceiling::Tokens | Ceiling::Steps => {
                            let most = Count::try_from(typed(one()?)).map_err(bad)?;
                            let key = if *ceiling == Ceiling::Tokens {
                                &mut budget.tokens
                            } else {
                                &mut budget.steps
                            };
                            *key = Some(most);
                            most.count().to_string()
                        }
                        Ceiling::Timeout => {
                            let most = TimeSpan::try_from(typed(one()?)).map_err(bad)?;
                            budget.timeout = Some(most);
                            toml_text::text(&ceiling.written(most.ms()))
                        }
                    };
                    Ok(text.set(&["budget", ceiling.key()], &literal)?)
                }
                Self::OnLow => {
                    let policy: LowPolicy = one()?.parse().map_err(bad)?;
                    configuration.on_low = Some(policy);
                    Ok(text.set(&["on_low"], &toml_text::text(policy.as_str()))?)
                }
                Self::Notify => {
                    let command = NotifyCommand::new(with_whole_program(values)?).map_err(bad)?;
                    let words: Vec<String> =
                        command.words().iter().map(|word| toml_text::text(word)).collect();
                    configuration.notify = Some(command);
                    Ok(text.set(&["notify"], &format!("[{}]", words.join(", ")))?)
                }
                Self::Price(model) => {
                    let keys = read_price(one()?).map_err(bad)?;
                    set_price(text, model.as_str(), &keys)?;
                    configuration.prices.insert(model.clone(), keys);
                    Ok(())
                }
                Self::AllowHosts | Self::AllowField | Self::AllowBox | Self::EnvFiles | Self::RedactEnv => {
                    Err(SettingError::IsAList)
                }
                Self::Budget => {
                    Err(SettingError::HasOthers { what: "one of its settings", example: "budget.cost_usd" })
                }
                Self::Prices => Err(SettingError::HasOthers { what: "the model", example: "prices.gpt-5" }),
            }
        })
    }

    /// Adds values to a list.
    pub fn add(&self, values: &[String]) -> Result<Saved, UnchangedSetting> {
        self.changed(SettingChange::Add, |draft| {
            let Draft { text, configuration } = draft;
            match self {
                Self::AllowHosts => values.iter().try_for_each(|value| {
                    let host: AllowedHost = value.parse().map_err(bad)?;
                    if !configuration.allow_hosts.contains(&host) {
                        text.add_item("allow_hosts", &toml_text::text(&host.to_string()))?;
                        configuration.allow_hosts.push(host);
                    }
                    Ok(())
                }),
                Self::EnvFiles => values.iter().try_for_each(|value| {
                    let file: EnvFilePath = whole_path(value)?.parse().map_err(bad)?;
                    if !configuration.env_files.contains(&file) {
                        text.add_item("env_files", &toml_text::text(&file.to_string()))?;
                        configuration.env_files.push(file);
                    }
                    Ok(())
                }),
                Self::RedactEnv => values.iter().try_for_each(|value| {
                    let name: VariableName = value.parse().map_err(bad)?;
                    if !configuration.redact_env.contains(&name) {
                        text.add_item("redact_env", &toml_text::text(&name.to_string()))?;
                        configuration.redact_env.push(name);
                    }
                    Ok(())
                }),
                Self::AllowBox => values.iter().try_for_each(|value| {
                    let what: BoxAllowance = value.parse().map_err(bad)?;
                    if !configuration.allow_box.contains(&what) {
                        text.add_item("allow_box", &toml_text::text(&what.to_string()))?;
                        configuration.allow_box.push(what);
                    }
                    Ok(())
                }),
                Self::AllowField => fields(values)?.into_iter().try_for_each(|field| {
                    if !configuration.allow_field.contains(&field) {
                        let (program, name) =
                            (toml_text::text(&field.program), toml_text::text(&field.name.to_string()));
                        text.add_table_item("allow_field", &[("program", program), ("name", name)])?;
                        configuration.allow_field.push(field);
                    }
                    Ok(())
                }),
                _ => Err(SettingError::NotAList),
            }
        })
    }

    /// Removes values from a list.
    pub fn remove(&self, values: &[String]) -> Result<Saved, UnchangedSetting> {
        self.changed(SettingChange::Remove, |draft| {
            let Draft { text, configuration } = draft;
            match self {
                Self::AllowHosts => values.iter().try_for_each(|value| {
                    let host: AllowedHost = value.parse().map_err(bad)?;
                    take("allow_hosts", text, &mut configuration.allow_hosts, &host, &host.to_string())
                }),
                Self::EnvFiles => values.iter().try_for_each(|value| {
                    // As it is written, or as it would be added.
                    let file = match value.parse() {
                        Ok(file) => file,
                        Err(_) => whole_path(value)?.parse().map_err(bad)?,
                    };
                    take("env_files", text, &mut configuration.env_files, &file, value)
                }),
                Self::RedactEnv => values.iter().try_for_each(|value| {
                    let name: VariableName = value.parse().map_err(bad)?;
                    take("redact_env", text, &mut configuration.redact_env, &name, value)
                }),
                Self::AllowBox => values.iter().try_for_each(|value| {
                    let what: BoxAllowance = value.parse().map_err(bad)?;
                    take("allow_box", text, &mut configuration.allow_box, &what, value)
                }),
                Self::AllowField => fields(values)?.into_iter().try_for_each(|field| {
                    let shown = format!("{} {}", field.program, field.name);
                    take("allow_field", text, &mut configuration.allow_field, &field, &shown)
                }),
                _ => Err(SettingError::NotAList),
            }
        })
    }

    /// Removes it; nothing if it is not set.
    pub fn unset(&self) -> Result<Saved, UnchangedSetting> {
        self.changed(SettingChange::Unset, |draft| {
            let Draft { text, configuration } = draft;
            match self {
                Self::Budget => {
                    configuration.budget = Default::default();
                    Ok(text.remove(&["budget"])?)
                }
                Self::Ceiling(ceiling) => {
                    let budget = &mut configuration.budget;
                    match ceiling {
                        Ceiling::Cost => budget.cost_usd = None,
                        Ceiling::Tokens => budget.tokens = None,
                        Ceiling::Steps => budget.steps = None,
                        Ceiling::Timeout => budget.timeout = None,
                    }
                    Ok(text.remove(&["budget", ceiling.key()])?)
                }
                Self::OnLow => {
                    configuration.on_low = None;
                    Ok(text.remove(&["on_low"])?)
                }
                Self::AllowHosts => {
                    configuration.allow_hosts.clear();
                    Ok(text.remove(&["allow_hosts"])?)
                }
                Self::AllowBox => {
                    configuration.allow_box.clear();
                    Ok(text.remove(&["allow_box"])?)
                }
                Self::AllowField => {
                    configuration.allow_field.clear();
                    Ok(text.remove(&["allow_field"])?)
                }
                Self::Prices => {
                    configuration.prices.clear();
                    Ok(text.remove(&["prices"])?)
                }
                Self::Price(model) => {
                    configuration.prices.remove(model);
                    Ok(text.remove(&["prices", model.as_str()])?)
                }
                Self::Notify => {
                    configuration.notify = None;
                    Ok(text.remove(&["notify"])?)
                }
                Self::EnvFiles => {
                    configuration.env_files.clear();
                    Ok(text.remove(&["env_files"])?)
                }
                Self::RedactEnv => {
                    configuration.redact_env.clear();
                    Ok(text.remove(&["redact_env"])?)
                }
            }
        })
    }
}

fn usd_literal(usd: Usd) -> String {
    let written = written_usd(usd.nanos());
    let digits = written.bytes().filter(u8::is_ascii_digit).count();
    if written.contains('.') && digits > FLOAT_DIGITS_MAX { toml_text::text(&written) } else { written }
}

/// What a person typed, as a file would have it: digits are a number.
fn typed(value: &str) -> Value {
    value.parse().map_or_else(|_| Value::from(value), |number: u64| Value::from(number))
}

fn set_price(text: &mut TomlText, model: &str, keys: &PriceKeys) -> Result<(), TomlTextError> {
    let rates = [
        ("input_per_mtok_usd", Some(keys.input_per_mtok_usd)),
        ("output_per_mtok_usd", Some(keys.output_per_mtok_usd)),
        ("cached_input_per_mtok_usd", keys.cached_input_per_mtok_usd),
        ("cache_write_per_mtok_usd", keys.cache_write_per_mtok_usd),
    ];
    if text.has(&["prices", model])? {
        return rates.into_iter().try_for_each(|(key, rate)| match rate {
            Some(rate) => text.set(&["prices", model, key], &usd_literal(rate)),
            None => text.remove(&["prices", model, key]),
        });
    }
    let given = rates.into_iter().filter_map(|(key, rate)| Some((key, usd_literal(rate?))));
    text.add_table(&["prices", model], &given.collect::<Vec<_>>())
}

/// A program and the names that it may send.
fn fields(values: &[String]) -> Result<Vec<AllowedField>, SettingError> {
    let Some((program, names)) = values.split_first().filter(|(_, names)| !names.is_empty()) else {
        return Err(bad("write a program and what it may send, such as claude tool:web_search_20250305"));
    };
    let field = |name: &String| {
        let name: RequestName = name.parse().map_err(bad)?;
        Ok(AllowedField { program: program.clone(), name })
    };
    names.iter().map(field).collect()
}

fn take<T: PartialEq>(
    key: &str,
    text: &mut TomlText,
    list: &mut Vec<T>,
    item: &T,
    shown: &str,
) -> Result<(), SettingError> {
    if !list.contains(item) {
        return Err(SettingError::NotInList(shown.to_owned()));
    }
    // A person may have written it twice.
    while let Some(at) = list.iter().position(|known| known == item) {
        list.remove(at);
        text.remove_item(key, at)?;
    }
    Ok(())
}

/// A path as the configuration has it: what a person types is meant in this folder.
fn whole_path(path: &str) -> Result<String, SettingError> {
    if path.starts_with("~/") {
        return Ok(path.to_owned());
    }
    let whole = std::path::absolute(path).map_err(|error| bad(format!("`{path}` is not a path: {error}")))?;
    let whole = whole.into_os_string().into_string();
    whole.map_err(|whole| bad(format!("{} cannot be written in a configuration", whole.display())))
}

fn with_whole_program(words: &[String]) -> Result<Vec<String>, SettingError> {
    let mut words = words.to_vec();
    if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
        *program = whole_path(program)?;
    }
    Ok(words)
}
