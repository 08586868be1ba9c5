//! Every key of a tree file, one struct per place. A key that is not here is refused, so none is silently ignored.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, json};
use spinney_kernel::definition::{
    Approval, BudgetKeys, ByteSize, CacheTime, Compact, Count, OnLow, Percent, Preset, PriceKeys, Repeats,
    ServerScope, Share, SpanOrOff, Tags, TimeSpan, Timeout, Unpriced, Usd, Visibility, WrapUp,
};
use spinney_kernel::primitives::{
    ByName, Durability, HostRule, ModelName, RoleName, ServerName, ThreadId, ToolName, ValuePattern,
};

use super::programs::WrittenProgram;
use super::redact::WrittenRedaction;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a tree")]
pub(super) struct TreeKeys {
    pub(super) name: String,
    pub(super) goal: Option<String>,
    #[serde(default)]
    pub(super) budget: BudgetKeys,
    #[serde(default)]
    pub(super) limits: TreeLimitKeys,
    pub(super) models: ByName<ModelName, ModelKeys>,
    pub(super) agents: ByName<RoleName, AgentKeys>,
    pub(super) entry: Option<RoleName>,
    pub(super) pipeline: Option<PipelineKeys>,
    #[serde(rename = "box")]
    pub(super) sandbox: Option<WrittenBox>,
    pub(super) read: Option<Vec<String>>,
    pub(super) write: Option<Vec<String>>,
    #[serde(default)]
    pub(super) durability: Durability,
    #[serde(default)]
    pub(super) unpriced: Unpriced,
    pub(super) thread: Option<ThreadId>,
    #[serde(default)]
    pub(super) tags: Tags,
    #[serde(default)]
    pub(super) shared: ByName<ValuePattern, ValueAccessKeys>,
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, InputKeys>,
    #[serde(default)]
    pub(super) tools: ByName<ToolName, CommandToolKeys>,
    #[serde(default)]
    pub(super) mcp: ByName<ServerName, ServerKeys>,
    pub(super) redact: Option<WrittenRedaction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a server")]
pub(super) struct ServerKeys {
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) auth: Option<ServerAuthKeys>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) timeout: Option<TimeSpan>,
    pub(super) per: Option<ServerScope>,
    #[serde(default)]
    pub(super) sampling: bool,
    #[serde(default)]
    pub(super) network: Vec<HostRule>,
    #[serde(default)]
    pub(super) read: Vec<String>,
    #[serde(default)]
    pub(super) write: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the name of a variable with a key, as `{ key_env: NOTES_TOKEN }`")]
pub(super) struct ServerAuthKeys {
    pub(super) key_env: String,
    pub(super) header: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a tool")]
pub(super) struct CommandToolKeys {
    pub(super) description: String,
    pub(super) args: Option<Value>,
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) repeatable: bool,
    pub(super) timeout: Option<TimeSpan>,
    pub(super) kind: Option<String>,
    pub(super) extension: Option<String>,
}

/// The kernel reads it.
#[derive(Deserialize)]
pub(super) struct PipelineKeys(pub(super) Value);

/// The roles that may read and write shared values; every role if absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "`read` and `write`, each a list of agents")]
pub(super) struct ValueAccessKeys {
    pub(super) read: Option<Vec<RoleName>>,
    pub(super) write: Option<Vec<RoleName>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of an input, such as `{ default: … }`")]
pub(super) struct InputKeys {
    #[serde(rename = "type")]
    pub(super) kind: Option<InputWord>,
    pub(super) default: Option<InputValue>,
    pub(super) env: Option<String>,
    pub(super) description: Option<String>,
}

/// Any value.
#[derive(Clone, Deserialize)]
pub(super) struct InputValue(pub(super) Value);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputWord {
    Text,
    Json,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the limits of a tree")]
pub(super) struct TreeLimitKeys {
    pub(super) depth: Option<Count>,
    pub(super) children: Option<Count>,
    pub(super) agents: Option<Count>,
    pub(super) parallel: Option<Count>,
    #[serde(default)]
    pub(super) rate: RateKeys,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a rate")]
pub(super) struct RateKeys {
    pub(super) requests_per_min: Option<Count>,
    pub(super) tokens_per_min: Option<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a model")]
pub(super) struct ModelKeys {
    pub(super) provider: String,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) key_env: Option<String>,
    pub(super) params: Option<ParamKeys>,
    pub(super) script: Option<String>,
    pub(super) max_output: Option<Count>,
    pub(super) context: Option<Count>,
    pub(super) attempts_lost_max: Option<Count>,
    pub(super) cache_wait: Option<SpanOrOff>,
    pub(super) price: Option<WrittenPrice>,
    #[serde(default)]
    pub(super) rate: RateKeys,
    #[serde(default)]
    pub(super) fallback: Vec<ModelName>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the parameters of a model")]
pub(super) struct ParamKeys {
    pub(super) temperature: Option<Number>,
    pub(super) top_p: Option<Number>,
    pub(super) reasoning_effort: Option<String>,
    pub(super) thinking: Option<ThinkingWord>,
    pub(super) thinking_budget: Option<Count>,
    pub(super) cache: Option<CacheTime>,
    #[serde(default)]
    pub(super) stop: Vec<String>,
    pub(super) seed: Option<i64>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThinkingWord {
    Adaptive,
}

/// Numbers, or the name of a model in the price table.
pub(super) enum WrittenPrice {
    Keys(PriceKeys),
    SameAs(String),
}

impl<'de> Deserialize<'de> for WrittenPrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PriceVisitor)
    }
}

struct PriceVisitor;

impl<'de> Visitor<'de> for PriceVisitor {
    type Value = WrittenPrice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keys of a price, or `provider/model`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenPrice, E> {
        Ok(WrittenPrice::SameAs(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenPrice, A::Error> {
        PriceKeys::deserialize(MapAccessDeserializer::new(map)).map(WrittenPrice::Keys)
    }
}

/// The keys of a box, or `none`.
pub(super) enum WrittenBox {
    Keys(BoxKeys),
    None,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a box")]
pub(super) struct BoxKeys {
    pub(super) processes: Option<Count>,
    pub(super) memory: Option<ByteSize>,
    pub(super) disk: Option<ByteSize>,
    pub(super) env: Option<Vec<String>>,
    pub(super) allow: Option<Vec<BoxAllow>>,
}

/// What a box may do without.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", expecting = "`signals`")]
pub(super) enum BoxAllow {
    Signals,
}

impl<'de> Deserialize<'de> for WrittenBox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoxVisitor)
    }
}

struct BoxVisitor;

impl<'de> Visitor<'de> for BoxVisitor {
    type Value = WrittenBox;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keys of a box, or `none`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenBox, E> {
        match text {
            "none" => Ok(WrittenBox::None),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenBox, A::Error> {
        BoxKeys::deserialize(MapAccessDeserializer::new(map)).map(WrittenBox::Keys)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of an agent")]
pub(super) struct AgentKeys {
    pub(super) model: Option<ModelName>,
    pub(super) program: Option<WrittenProgram>,
    #[serde(default)]
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) tools: Vec<ToolName>,
    pub(super) subagents: Option<Vec<RoleName>>,
    #[serde(default)]
    pub(super) subagent_models: Vec<ModelName>,
    #[serde(default)]
    pub(super) approvals: ByName<ToolName, Approval>,
    #[serde(default)]
    pub(super) limits: WrittenLimits,
    #[serde(default)]
    pub(super) budget: AgentBudgetKeys,
    #[serde(default)]
    pub(super) rate: RateKeys,
    #[serde(default)]
    pub(super) recursive: bool,
    pub(super) share: Option<Share>,
    pub(super) output_schema: Option<Value>,
    pub(super) window: Option<WindowKeys>,
    #[serde(rename = "box")]
    pub(super) sandbox: Option<WrittenBox>,
    pub(super) read: Option<Vec<String>>,
    pub(super) write: Option<Vec<String>>,
    #[serde(default)]
    pub(super) network: Vec<HostRule>,
    pub(super) working_copy: Option<String>,
    pub(super) questions: Option<QuestionKeys>,
    #[serde(default)]
    pub(super) visibility: Visibility,
    #[serde(default)]
    pub(super) tool_visibility: ByName<ToolName, Visibility>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "what applies to questions")]
pub(super) struct QuestionKeys {
    pub(super) timeout: Option<TimeSpan>,
    pub(super) on_timeout: Option<Unanswered>,
    pub(super) default: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", expecting = "`fail`, `default` or `cancel`")]
pub(super) enum Unanswered {
    Fail,
    Default,
    Cancel,
}

/// The keys of a budget, with one that only agents have that are programs.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a budget")]
pub(super) struct AgentBudgetKeys {
    pub(super) cost_usd: Option<Usd>,
    pub(super) tokens: Option<Count>,
    pub(super) steps: Option<Count>,
    pub(super) tool_calls: Option<Count>,
    pub(super) retries: Option<Count>,
    pub(super) timeout: Option<Timeout>,
    pub(super) lend: Option<bool>,
    pub(super) answer_reserve: Option<Percent>,
    pub(super) on_low: Option<OnLow>,
    pub(super) wrap_up: Option<WrapUp>,
    pub(super) repeats: Option<Repeats>,
    pub(super) halt_wait: Option<TimeSpan>,
}

impl AgentBudgetKeys {
    /// Those of every budget.
    pub(super) fn keys(&self) -> BudgetKeys {
        BudgetKeys {
            cost_usd: self.cost_usd,
            tokens: self.tokens,
            steps: self.steps,
            tool_calls: self.tool_calls,
            retries: self.retries,
            timeout: self.timeout,
            lend: self.lend,
            answer_reserve: self.answer_reserve,
            on_low: self.on_low.clone(),
            wrap_up: self.wrap_up,
            repeats: self.repeats,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a window")]
pub(super) struct WindowKeys {
    pub(super) size: Option<Count>,
    pub(super) preset: Option<Preset>,
    pub(super) images: Option<Count>,
    pub(super) compact: Option<Compact>,
    pub(super) clamp_note: Option<Switch>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", expecting = "`on` or `off`")]
pub(super) enum Switch {
    On,
    Off,
}

/// The limits of an agent: its keys, or the name of a preset.
#[derive(Default)]
pub(super) struct WrittenLimits(pub(super) AgentLimitKeys);

impl WrittenLimits {
    pub(super) const SEED_001: &str = "seed-001";
}

impl<'de> Deserialize<'de> for WrittenLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitsVisitor)
    }
}

struct LimitsVisitor;

impl<'de> Visitor<'de> for LimitsVisitor {
    type Value = WrittenLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limits of an agent, or `{}`", WrittenLimits::SEED_001)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenLimits, E> {
        if text != WrittenLimits::SEED_001 {
            return Err(E::invalid_value(Unexpected::Str(text), &self));
        }
        let keys = json!({
            "max_steps": 20,
            "max_tokens_per_step": 2_000,
            "max_output_files": 10,
            "max_output_size_bytes": 1_000_000,
        });
        AgentLimitKeys::deserialize(keys).map(WrittenLimits).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenLimits, A::Error> {
        AgentLimitKeys::deserialize(MapAccessDeserializer::new(map)).map(WrittenLimits)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the limits of an agent")]
pub(super) struct AgentLimitKeys {
    pub(super) max_steps: Option<Count>,
    pub(super) max_tokens_per_step: Option<Count>,
    pub(super) max_output_files: Option<Count>,
    pub(super) max_output_size_bytes: Option<Count>,
    pub(super) timeout: Option<TimeSpan>,
    pub(super) depth: Option<Count>,
    pub(super) children: Option<Count>,
}
