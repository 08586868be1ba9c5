//! The command line of `spinney exec`.

use std::ffi::OsString;

use clap::{Args as Group, ValueEnum};
use spinney::tree_file::nearest;
use spinney_drivers::prices::{NoPrice, PriceTable};
use spinney_kernel::budget::Price;
use spinney_kernel::definition::{OnLow, TimeSpan, Usd};

use super::values::count;

#[derive(Debug, Group)]
pub(crate) struct Exec {
    /// The most that the run may cost
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// The most that each sub-agent may cost (default: what is left)
    #[arg(long, value_name = "USD", requires = "program")]
    pub(crate) child_budget_usd: Option<Usd>,
    /// Most tokens, input and output together
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pub(crate) tokens: Option<u64>,
    /// Most model calls
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pub(crate) steps: Option<u64>,
    /// End the program after this time; time at a ceiling does not count
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<TimeSpan>,
    /// Most model calls at the same time
    #[arg(long, value_name = "COUNT", value_parser = parallel)]
    pub(crate) max_parallel: Option<u32>,
    /// Models that may be called, separated by commas; `*` at the end of a name stands for the rest (default: all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = model, requires = "program")]
    pub(crate) models: Vec<String>,
    /// What happens to a call that no ceiling allows
    #[arg(long, value_enum, default_value_t = LimitPolicy::Wait, value_name = "WHAT", requires = "program")]
    pub(crate) on_limit: LimitPolicy,
    /// How long a call waits for a higher ceiling before its program gets an error
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "program")]
    pub(crate) halt_wait: TimeSpan,
    /// What happens first to a call that does not fit
    #[arg(long, value_enum, default_value_t = LowPolicy::Halt, value_name = "WHAT")]
    pub(crate) on_low: LowPolicy,
    /// The price of a model in dollars per million tokens: NAME=INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]; may be repeated
    #[arg(long, value_name = "PRICE", value_parser = price, requires = "program")]
    pub(crate) price: Vec<(String, Price)>,
    /// Whose prices apply to models at a base URL of your own
    #[arg(long, value_name = "PROVIDER", value_parser = provider, requires = "program")]
    pub(crate) prices_of: Option<String>,
    /// Keep only counts in the journal, and no requests and responses
    #[arg(long, requires = "program")]
    pub(crate) no_bodies: bool,
    /// Continue the ledger of an earlier run, with its program or another one
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["budget_usd", "tokens", "steps", "timeout", "max_parallel", "on_low"]
    )]
    pub(crate) resume: Option<String>,
    /// Show the live tree below the output of the program, which then has no terminal of its own
    #[arg(long)]
    pub(crate) live: bool,
    /// Write the result as a line of JSON, after the output of the program
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required_unless_present = "resume", last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Group)]
pub(crate) struct ExecGuard {
    /// The process that asks for it
    #[arg(long)]
    pub(crate) parent: i32,
    /// The limit of open files for the program
    #[arg(long)]
    pub(crate) open_files: Option<u64>,
    /// Whether the program must not reach the terminal
    #[arg(long)]
    pub(crate) no_terminal: bool,
    #[arg(required = true, last = true)]
    pub(crate) program: Vec<OsString>,
}

/// What happens to a call that no ceiling allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitPolicy {
    /// It waits for a higher ceiling
    Wait,
    /// Its program gets an error at once
    Stop,
}

/// What happens first to a call that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowPolicy {
    /// Nothing
    Halt,
    /// Its output cap is lowered to what fits
    Shrink,
}

impl LowPolicy {
    pub(crate) const fn on_low(self) -> OnLow {
        match self {
            Self::Halt => OnLow::Halt,
            Self::Shrink => OnLow::Shrink,
        }
    }
}

fn model(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() {
        Err("write the names of models, such as claude-*".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

/// A provider of the price table.
fn provider(text: &str) -> Result<String, String> {
    let table = PriceTable::embedded().map_err(|error| error.to_string())?;
    let Err(none @ NoPrice::UnknownProvider { .. }) = table.find(text, "") else {
        return Ok(text.to_owned());
    };
    let mut known: Vec<&str> = table.models().map(|(provider, _)| provider).collect();
    known.dedup();
    Err(format!("{none}: {}", nearest::help(text, known, "providers")))
}

fn parallel(text: &str) -> Result<u32, String> {
    const MOST: u32 = 10_000;
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| format!("write a whole number from 1 to {MOST}"))
}

/// `NAME=INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]`, in dollars per million tokens.
fn price(text: &str) -> Result<(String, Price), String> {
    let wrong =
        || format!("`{text}` is not NAME=INPUT,OUTPUT in dollars per million tokens, such as gpt-5=1.25,10");
    let (name, rates) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let rates: Result<Vec<u64>, String> = rates
        .split(',')
        .map(|rate| rate.trim().parse::<Usd>().map(|usd| usd.nanos()).map_err(|error| error.to_string()))
        .collect();
    let rates = rates?;
    let ([input, output] | [input, output, ..]) = rates.as_slice() else { return Err(wrong()) };
    if rates.len() > 4 {
        return Err(wrong());
    }
    let mut price = Price::flat(*input, *output);
    price.cached_input_per_mtok = rates.get(2).copied();
    price.cache_write_per_mtok = rates.get(3).copied();
    Ok((name.to_owned(), price))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_a_name_and_two_to_four_rates() {
        let (name, two) = price("gpt-5=1.25,10").unwrap();
        assert_eq!((name.as_str(), two), ("gpt-5", Price::flat(1_250_000_000, 10_000_000_000)));
        let (_, four) = price("m=1,2,0.1,1.25").unwrap();
        assert_eq!(four.cached_input_per_mtok, Some(100_000_000));
        assert_eq!(four.cache_write_per_mtok, Some(1_250_000_000));
        for wrong in ["m", "m=", "=1,2", "m=1", "m=1,x", "m=1,2,3,4,5", "m=-1,2"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }
}
