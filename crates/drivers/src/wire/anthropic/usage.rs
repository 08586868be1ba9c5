//! Usage as Anthropic counts it: input, cache reads and cache writes are counted separately, and writes are divided by
//! lifetime, if the server divides them.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::ServedFrom;
use crate::wire::fault::WireFault;
use crate::wire::json::{count, read};
use crate::wire::reported_cost::reported_cost;
use crate::wire::usage_report::{UsageReport, is_dearer_tier, says_other_than};

/// What Anthropic bills for a web search, in nano-USD: $10 for 1,000.
const WEB_SEARCH_NANOS: u64 = 10_000_000;

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    /// The model of this call, if the answer lists several calls.
    model: Option<Value>,
    /// The kind of this call, if the answer lists several calls.
    #[serde(rename = "type")]
    kind: Option<Value>,
}

#[derive(Deserialize)]
struct CacheCreation {
    #[serde(default, deserialize_with = "count")]
    ephemeral_5m_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

/// The parts of the usage that change the price of an answer.
#[derive(Deserialize)]
struct Terms {
    server_tool_use: Option<Value>,
    service_tier: Option<Value>,
    speed: Option<Value>,
    inference_geo: Option<Value>,
    /// The model calls that one request caused.
    iterations: Option<Value>,
}

/// What a usage object says.
pub(super) struct MessageUsage {
    pub(super) report: UsageReport,
    /// The number of uses of tools that the provider runs.
    pub(super) server_tools: u64,
}

pub(super) fn usage(usage: &RawValue, from: ServedFrom) -> Result<MessageUsage, WireFault> {
    let counts: Usage = read("usage", usage.get())?;
    let terms: Terms = read("usage", usage.get())?;
    let tools = ServerTools::read(terms.server_tool_use.as_ref(), from);
    let is_dearer = is_dearer_tier(terms.service_tier.as_ref())
        || says_other_than(terms.speed.as_ref(), &["standard"])
        || says_other_than(terms.inference_geo.as_ref(), &["global", "not_available"]);
    let (report, calls) = (counts.report(), Calls::read(terms.iterations.as_ref()));
    let report = match calls.sum {
        Some(sum) if sum.covers(&report) => sum,
        Some(sum) => report.combined(sum),
        None => report,
    };
    let report = UsageReport {
        apart_nanos: tools.nanos,
        has_unknown_price: is_dearer || tools.has_unknown_price || calls.has_unknown_price,
        ..report
    };
    Ok(MessageUsage { report: report.with_cost(reported_cost(usage)?), server_tools: tools.uses })
}

impl Usage {
    fn report(&self) -> UsageReport {
        let parts = self.cache_creation.as_ref();
        UsageReport {
            fresh_input: self.input_tokens,
            cache_read: self.cache_read_input_tokens,
            cache_written: self.cache_creation_input_tokens,
            cache_written_5m: parts.and_then(|parts| parts.ephemeral_5m_input_tokens),
            cache_written_1h: parts.and_then(|parts| parts.ephemeral_1h_input_tokens),
            output: self.output_tokens,
            ..UsageReport::default()
        }
    }
}

/// Tools that the provider ran.
#[derive(Default)]
struct ServerTools {
    uses: u64,
    nanos: u64,
    has_unknown_price: bool,
}

impl ServerTools {
    fn read(counts: Option<&Value>, from: ServedFrom) -> Self {
        let mut tools = Self::default();
        let Some(counts) = counts.filter(|counts| !counts.is_null()) else { return tools };
        let Some(counts) = counts.as_object() else { return Self { has_unknown_price: true, ..tools } };
        for (name, count) in counts {
            let uses = count.as_u64().unwrap_or_default();
            tools.uses = tools.uses.saturating_add(uses);
            match (name.as_str(), from) {
                _ if count.is_null() || count.as_u64() == Some(0) => {}
                ("web_search_requests", ServedFrom::Provider) if count.is_u64() => {
                    tools.nanos = tools.nanos.saturating_add(uses.saturating_mul(WEB_SEARCH_NANOS));
                }
                // Fetched pages are billed as input; there is no extra fee.
                ("web_fetch_requests", ServedFrom::Provider) if count.is_u64() => {}
                _ => tools.has_unknown_price = true,
            }
        }
        tools
    }
}

/// The model calls of one answer.
#[derive(Default)]
struct Calls {
    sum: Option<UsageReport>,
    has_unknown_price: bool,
}

impl Calls {
    /// Whether a call has an unknown kind or another model, and so perhaps another price.
    fn read(list: Option<&Value>) -> Self {
        let mut calls = Self::default();
        let Some(list) = list.filter(|list| !list.is_null()) else { return calls };
        let Some(list) = list.as_array() else { return Self { has_unknown_price: true, ..calls } };
        let mut model = None;
        for call in list {
            let Ok(call) = Usage::deserialize(call) else {
                calls.has_unknown_price = true;
                continue;
            };
            let is_other = call.model.is_some() && model.is_some() && call.model != model;
            calls.has_unknown_price |=
                is_other || says_other_than(call.kind.as_ref(), &["message", "compaction"]);
            let report = call.report();
            model = call.model.or(model);
            calls.sum = Some(calls.sum.map_or(report, |sum| sum.plus(report)));
        }
        calls
    }
}
