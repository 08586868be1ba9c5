//! The command line of `spinney exec`.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, ValueEnum};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::RequestName;
use spinney_host::defaults::GivenCeilings;
use spinney_host::exec::options::{GivenRunOptions, HaltWait};
use spinney_host::exec::run_values;
use spinney_host::home::inside::HomeInode;
use spinney_host::user::low_policy::LowPolicy;
use spinney_kernel::budget::Price;
use spinney_kernel::definition::{TimeSpan, Usd};

use super::TrustOptions;
use super::values::count;

#[derive(Debug, Group)]
pub(crate) struct Exec {
    /// The most that the run may cost
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// The most that each sub-agent may cost (default: what is left)
    #[arg(long, value_name = "USD")]
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
    #[arg(long, value_name = "COUNT", value_parser = run_values::parallel_calls)]
    pub(crate) max_parallel: Option<u32>,
    /// Models that may be called, separated by commas; `*` at the end of a name stands for the rest (default: all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = run_values::model_pattern)]
    pub(crate) models: Vec<String>,
    /// What happens to a call that does not fit under a ceiling (default: wait)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_limit: Option<LimitPolicy>,
    /// How long a call waits for a higher ceiling before its program gets an error (default: 10m)
    #[arg(long, value_name = "TIME")]
    pub(crate) halt_wait: Option<TimeSpan>,
    /// What happens first to a call that does not fit (default: shrink)
    #[arg(long, value_parser = low_policy(), value_name = "WHAT")]
    pub(crate) on_low: Option<LowPolicy>,
    /// The price of a model in dollars per million tokens: NAME=INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]; `*` at the end of a name stands for the rest; may be repeated
    #[arg(long, value_name = "PRICE", value_parser = run_values::model_price)]
    pub(crate) price: Vec<(PricedName, Price)>,
    /// Whose prices apply to models at a base URL of your own, separated by commas: the first that knows a model
    #[arg(long, value_name = "PROVIDERS", value_delimiter = ',', value_parser = run_values::priced_provider)]
    pub(crate) prices_of: Vec<String>,
    /// Allow something whose cost the gateway cannot bound: a field, or beta:NAME, tool:TYPE …; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_field: Vec<RequestName>,
    /// Keep only counts in the journal, and no requests and responses
    #[arg(long)]
    pub(crate) no_bodies: bool,
    /// The address of the gateway, for programs that take it from a file: 127.0.0.1 and a port (default: any free port)
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = run_values::gateway_port)]
    pub(crate) listen: Option<u16>,
    /// Remove keys of other providers from the environment of the program
    #[arg(long)]
    pub(crate) hide_keys: bool,
    /// A variable that the program gets and no journal keeps; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// Continue an earlier run, with its program or another one; other options replace those of the run
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    #[command(flatten)]
    pub(crate) trusted: TrustOptions,
    /// Show the live tree below the output of the program, which then has no terminal of its own
    #[arg(long)]
    pub(crate) live: bool,
    /// Start nothing, and show every option, its value and where that comes from
    #[arg(long, conflicts_with_all = ["resume", "live"])]
    pub(crate) explain: bool,
    /// Write the result as a line of JSON, after the output of the program
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required_unless_present = "resume", last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

impl Exec {
    /// What it says about the run itself.
    pub(crate) fn run_options(&self) -> GivenRunOptions<'_> {
        let halt_wait = match (self.on_limit, self.halt_wait) {
            (Some(LimitPolicy::Stop), _) => Some(HaltWait::Never),
            (Some(LimitPolicy::Wait) | None, Some(wait)) => Some(HaltWait::Ms(wait.ms())),
            (Some(LimitPolicy::Wait), None) => Some(HaltWait::Usual),
            (None, None) => None,
        };
        GivenRunOptions {
            program: &self.program,
            child_cost_nanos: self.child_budget_usd.map(Usd::nanos),
            models: &self.models,
            prices: &self.price,
            prices_of: &self.prices_of,
            halt_wait,
            no_bodies: self.no_bodies,
            listen: self.listen,
            hide_keys: self.hide_keys,
            allow_fields: &self.allow_field,
            secrets: &self.secret,
        }
    }

    /// What it says about the ceilings of the tree.
    pub(crate) fn given_ceilings(&self) -> GivenCeilings {
        GivenCeilings {
            cost_nanos: self.budget_usd.map(Usd::nanos),
            tokens: self.tokens,
            steps: self.steps,
            timeout_ms: self.timeout.map(TimeSpan::ms),
            on_low: self.on_low,
        }
    }

    /// Whether it asks for something that only a run that goes on can have.
    pub(crate) fn wants_more_than_a_result(&self) -> bool {
        let ceilings = self.given_ceilings() != GivenCeilings::default();
        ceilings || self.max_parallel.is_some() || self.run_options() != GivenRunOptions::default()
    }
}

#[derive(Debug, Group)]
pub(crate) struct ExecGuard {
    /// The home of the run, as other processes read it in our command line
    #[arg(long)]
    pub(crate) of_home: HomeInode,
    #[arg(required = true, last = true)]
    pub(crate) program: Vec<OsString>,
}

/// What happens to a call that does not fit under a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitPolicy {
    /// It waits for a higher ceiling
    Wait,
    /// Its program gets an error at once
    Stop,
}

/// The words of a policy, with what each does.
fn low_policy() -> impl TypedValueParser<Value = LowPolicy> {
    let words = LowPolicy::ALL.map(|policy| {
        PossibleValue::new(policy.as_str()).help(match policy {
            LowPolicy::Halt => "Its output cap stays as it is",
            LowPolicy::Shrink => "Its output cap is lowered to fit and to leave room for other calls",
        })
    });
    PossibleValuesParser::new(words).try_map(|word| word.parse::<LowPolicy>())
}
