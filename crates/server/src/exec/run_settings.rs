//! The settings of a gateway, from the options of its run and what the user says.

use std::time::Duration;

use spinney_drivers::wire::NotRequestName;
use spinney_host::exec::environment::{AnthropicKey, UserEnvironment};
use spinney_host::exec::options::RunOptions;
use spinney_host::user::configuration::Configuration;

use crate::gateway::{
    AskPerson, Bodies, GatewaySettings, ModelRules, OnLimit, UpstreamKey, UpstreamServer, UpstreamServers,
    WaitTimes,
};

/// The settings of the gateway of a run. `program` is the name that the user's configuration knows it by; without a way to
/// ask a person, nothing beyond what they allowed passes.
///
/// # Errors
/// If a name that the program may send is not one.
pub fn gateway_settings(
    options: &RunOptions,
    configuration: &Configuration,
    user: &UserEnvironment,
    program: &str,
    ask_person: Option<AskPerson>,
) -> Result<GatewaySettings, NotRequestName> {
    let mut permitted = configuration.allowed_fields(program);
    permitted.extend(options.allowed_fields()?);
    Ok(GatewaySettings {
        servers: servers(user),
        models: ModelRules {
            allowed: options.models.clone(),
            prices: options.prices_with(configuration),
            prices_of: options.prices_of.clone(),
        },
        child_cost_nanos: options.child_cost_nanos,
        agents_max: options.agents_max,
        tells_remaining: options.tells_remaining,
        on_limit: on_limit(options),
        bodies: if options.no_bodies { Bodies::Dropped } else { Bodies::Kept },
        waiting: WaitTimes::default(),
        upstream: Default::default(),
        permitted,
        ask_person,
        secrets: user.secrets().map(str::to_owned).collect(),
    })
}

/// Where calls go, with the user's keys.
fn servers(user: &UserEnvironment) -> UpstreamServers {
    let server = |base_url: &Option<String>, key: Option<UpstreamKey>, key_variable| UpstreamServer {
        base_url: base_url.clone(),
        key,
        key_variable,
        kind: None,
    };
    let anthropic = user.anthropic_key.clone().map(|key| match key {
        AnthropicKey::ApiKey(text) => UpstreamKey::ApiKey(text),
        AnthropicKey::AuthToken(text) => UpstreamKey::Bearer(text),
    });
    let open_ai = user.open_ai_key.clone().map(UpstreamKey::Bearer);
    let gemini = user.gemini_key.clone().map(UpstreamKey::Google);
    UpstreamServers {
        anthropic: server(&user.anthropic_base_url, anthropic, "ANTHROPIC_API_KEY"),
        open_ai: server(&user.open_ai_base_url, open_ai, "OPENAI_API_KEY"),
        gemini: server(&user.gemini_base_url, gemini, "GEMINI_API_KEY"),
    }
}

/// What happens to a call that does not fit under a ceiling.
#[must_use]
pub fn on_limit(options: &RunOptions) -> OnLimit {
    options.halt_wait_ms().map_or(OnLimit::Stop, |ms| OnLimit::Wait(Duration::from_millis(ms)))
}
