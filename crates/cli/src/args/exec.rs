//! The command line of `spinney exec`.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, ValueEnum};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::RequestName;
use spinney_host::defaults::GivenCeilings;
use spinney_host::exec::boxed::GivenBox;
use spinney_host::exec::options::{GivenRunOptions, HaltWait};
use spinney_host::exec::run_values;
use spinney_host::home::inside::HomeInode;
use spinney_host::user::low_policy::LowPolicy;
use spinney_kernel::budget::Price;
use spinney_kernel::definition::{TimeSpan, Usd};
use spinney_kernel::primitives::HostRule;

use super::values::{amount, tag};
use super::{NotifyOption, TrustOptions};

#[derive(Debug, Group)]
pub(crate) struct Exec {
    /// Cost ceiling of the run
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// Cost ceiling of each sub-agent (default: what is left)
    #[arg(long, value_name = "USD")]
    pub(crate) child_budget_usd: Option<Usd>,
    /// Maximum number of tokens, input and output together
    #[arg(long, value_name = "COUNT", value_parser = amount)]
    pub(crate) tokens: Option<u64>,
    /// Maximum number of model calls
    #[arg(long, value_name = "COUNT", value_parser = amount)]
    pub(crate) steps: Option<u64>,
    /// Stop the program after this time; waiting at a ceiling does not count
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<TimeSpan>,
    /// Maximum number of model calls at the same time
    #[arg(long, value_name = "COUNT", value_parser = run_values::parallel_calls)]
    pub(crate) max_parallel: Option<u32>,
    /// Maximum number of agents, the program itself included; the first call of one more is refused
    #[arg(long, value_name = "COUNT", value_parser = run_values::agents)]
    pub(crate) max_agents: Option<u32>,
    /// Tell the agents, in a line at the end of the system prompt, how much of the budget is left
    #[arg(long)]
    pub(crate) tell_remaining: bool,
    /// Your own label of the run, for `costs --by tag`; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag, conflicts_with = "resume")]
    pub(crate) tag: Vec<(String, String)>,
    /// Models that may be called, separated by commas; a name may end in `*` (default: all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = run_values::model_pattern)]
    pub(crate) models: Vec<String>,
    /// What to do with a call that does not fit under a ceiling (default: wait)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_limit: Option<LimitPolicy>,
    /// How long a call waits for a higher ceiling before the program gets an error (default: 10m)
    #[arg(long, value_name = "TIME")]
    pub(crate) halt_wait: Option<TimeSpan>,
    /// What to do with a call's output cap when the budget is low (default: shrink)
    #[arg(long, value_parser = low_policy(), value_name = "WHAT")]
    pub(crate) on_low: Option<LowPolicy>,
    /// The price of a model in dollars per million tokens: NAME=INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]; the name may end in `*`; may be repeated
    #[arg(long, value_name = "PRICE", value_parser = run_values::model_price)]
    pub(crate) price: Vec<(PricedName, Price)>,
    /// Providers whose prices apply at a custom base URL, separated by commas; the first that lists a model wins
    #[arg(long, value_name = "PROVIDERS", value_delimiter = ',', value_parser = run_values::priced_provider)]
    pub(crate) prices_of: Vec<String>,
    /// Allow a request feature whose cost the gateway cannot bound: a field, or beta:NAME, tool:TYPE …; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_field: Vec<RequestName>,
    /// Keep only counts in the journal, not requests and responses
    #[arg(long)]
    pub(crate) no_bodies: bool,
    /// The gateway's address, for programs that read it from a file (default: any free port on 127.0.0.1)
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = run_values::gateway_port)]
    pub(crate) listen: Option<u16>,
    /// Remove other providers' keys from the program's environment
    #[arg(long)]
    pub(crate) hide_keys: bool,
    /// A variable to pass to the program and keep out of the journal; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// Run the program in a box: it has this folder, its configuration and history, and no other file of yours
    #[arg(long = "box")]
    pub(crate) in_box: bool,
    /// A file or folder that the program may read in its box; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<String>,
    /// A host that the program may connect to from its box, such as api.github.com:443; without a port 80 and 443; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<HostRule>,
    /// Let the program write `.git` in its box: hooks and settings in there run outside of it
    #[arg(long)]
    pub(crate) allow_git: bool,
    /// Continue an earlier run, with its program or another; options given here replace the run's own
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    #[command(flatten)]
    pub(crate) trusted: TrustOptions,
    #[command(flatten)]
    pub(crate) told: NotifyOption,
    /// Show the live tree below the program's output; the program then has no terminal
    #[arg(long)]
    pub(crate) live: bool,
    /// Start nothing; show every option, its value and its source
    #[arg(long, conflicts_with_all = ["resume", "live"])]
    pub(crate) explain: bool,
    /// Write the result as a line of JSON after the program's output
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required_unless_present = "resume", last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

impl Exec {
    /// The options of the run itself.
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
            agents_max: self.max_agents,
            tells_remaining: self.tell_remaining,
            tags: &self.tag,
            models: &self.models,
            prices: &self.price,
            prices_of: &self.prices_of,
            halt_wait,
            no_bodies: self.no_bodies,
            listen: self.listen,
            hide_keys: self.hide_keys,
            allow_fields: &self.allow_field,
            secrets: &self.secret,
            boxed: GivenBox {
                is_wanted: self.in_box,
                read: &self.read,
                hosts: &self.allow_host,
                allow_git: self.allow_git,
            },
        }
    }

    /// The ceilings of the tree.
    pub(crate) fn given_ceilings(&self) -> GivenCeilings {
        GivenCeilings {
            cost_nanos: self.budget_usd.map(Usd::nanos),
            tokens: self.tokens,
            steps: self.steps,
            timeout_ms: self.timeout.map(TimeSpan::ms),
            on_low: self.on_low,
        }
    }

    /// Whether it has options that only a run that continues can use.
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
    /// Wait for a higher ceiling
    Wait,
    /// Return an error to the program at once
    Stop,
}

/// The values of the option, with help.
fn low_policy() -> impl TypedValueParser<Value = LowPolicy> {
    let words = LowPolicy::ALL.map(|policy| {
        PossibleValue::new(policy.as_str()).help(match policy {
            LowPolicy::Halt => "Leave the cap as it is",
            LowPolicy::Shrink => "Lower the cap to what fits and leaves room for other calls",
        })
    });
    PossibleValuesParser::new(words).try_map(|word| word.parse::<LowPolicy>())
}
