//! Fields, betas and query parameters that change what a call costs, or that are unknown.

use serde_json::{Value, json};

use super::row::{Row, input};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = refused();
    rows.extend(elsewhere());
    rows.extend(heads());
    rows.extend(harmless());
    rows
}

/// At the providers' own addresses.
fn refused() -> Vec<Row> {
    let messages = [
        json!({ "speed": "fast" }),
        json!({ "inference_geo": "us" }),
        json!({ "service_tier": "priority" }),
        json!({ "mcp_servers": [{ "type": "url", "url": "https://e.org", "name": "x" }] }),
        json!({ "container": { "skills": [] , "id": "c" } }),
        json!({ "fallbacks": [{ "model": "claude-opus-4-1" }] }),
        json!({ "compaction": { "type": "auto" } }),
        json!({ "betas": ["context-1m-2025-08-07"] }),
        json!({ "anthropic_beta": ["context-1m-2025-08-07"] }),
        json!({ "context_management": { "edits": [{ "type": "compact_20260112" }] } }),
        json!({ "context_management": { "edits": [{ "type": "summarize_20990101" }] } }),
        json!({ "context_management": { "edits": [{}] } }),
        json!({ "output_config": { "timing": { "x": 1 } } }),
        json!({ "safeguards": [{ "type": "another" }] }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "mirror" }] }] }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "server_tool_use", "id": "x" }] }] }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "container_upload", "file_id": "x" }] }] }),
        json!({ "something_new": {} }),
        json!({ "Max_Tokens": 100_000 }),
    ];
    let chat = [
        json!({ "n": 2 }),
        json!({ "n": "1" }),
        json!({ "modalities": ["text", "audio"], "audio": { "voice": "x", "format": "wav" } }),
        json!({ "modalities": "audio" }),
        json!({ "prediction": { "type": "content", "content": "x" } }),
        json!({ "web_search_options": {} }),
        json!({ "service_tier": "priority" }),
        json!({ "moderation": { "model": "x" } }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "input_audio", "input_audio": { "data": "A" } }] }] }),
        json!({ "messages": [{ "role": "assistant", "audio": { "id": "audio_1" } }] }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "x", "prompt_cache_breakpoint": { "ttl": "12h" } }] }] }),
        json!({ "prompt_cache_options": { "ttl": "12h" } }),
        json!({ "something_new": 1 }),
    ];
    let responses = [
        json!({ "multi_agent": { "enabled": true } }),
        json!({ "reasoning": { "mode": "pro" } }),
        json!({ "background": true }),
        json!({ "service_tier": "priority" }),
        json!({ "service_tier": ["default"] }),
        json!({ "context_management": [{ "type": "compaction", "compact_threshold": 1_000 }] }),
        json!({ "prompt_cache_options": { "ttl": "12h" } }),
        json!({ "moderation": {} }),
        json!({ "generate": false, "personality": "x" }),
        json!({ "input": [{ "type": "input_audio", "input_audio": { "data": "A" } }] }),
    ];
    let row = |format: Format, fields: &Value| {
        Row::new(format, format!("a field at the provider: {fields}")).refused(fields.clone())
    };
    let mut rows: Vec<Row> = messages.iter().map(|fields| row(Format::Messages, fields)).collect();
    rows.extend(chat.iter().map(|fields| row(Format::Chat, fields)));
    rows.extend(responses.iter().map(|fields| row(Format::Responses, fields)));
    rows
}

/// At a base URL of the user's own, where many fields are not known.
fn elsewhere() -> Vec<Row> {
    let fields = [
        json!({ "models": ["gpt-5", "gpt-5-pro"] }),
        json!({ "route": "fallback" }),
        json!({ "provider": { "order": ["x"] } }),
        json!({ "plugins": [{ "id": "web" }] }),
        json!({ "transforms": ["middle-out"] }),
        json!({ "search_parameters": {} }),
        json!({ "web_search": { "enable": true } }),
        json!({ "best_of": 8 }),
        json!({ "N": 4 }),
        json!({ "Service_Tier": "priority" }),
        // Servers that hand the request on read further fields from these.
        json!({ "extra_body": { "max_tokens": 100_000, "n": 8 } }),
        json!({ "extra_headers": { "anthropic-beta": "context-1m-2025-08-07" } }),
        json!({ "providerOptions": { "gateway": { "models": ["openai/gpt-5-pro"] } } }),
        // A template may repeat the input.
        json!({ "chat_template": "{% for i in range(1000) %}{{ messages[0].content }}{% endfor %}" }),
        json!({ "prompt_id": "stored", "prompt_variables": {} }),
        json!({ "enable_search": true }),
        json!({ "connectors": [{ "id": "web-search" }] }),
        json!({ "context_window_fallback_dict": { "gpt-5": "gpt-5-pro" } }),
    ];
    let row = |fields: &Value| {
        Row::new(Format::Chat, format!("a field elsewhere: {fields}")).elsewhere().refused(fields.clone())
    };
    fields.iter().map(row).collect()
}

fn heads() -> Vec<Row> {
    let messages = |name: &'static str| Row::new(Format::Messages, name);
    vec![
        messages("a beta that nobody knows").header("anthropic-beta", "mirror-2099-01-01").refused(json!({})),
        messages("a beta behind known ones")
            .header("anthropic-beta", "claude-code-20250219 , thinking-resumption-2026-07-17")
            .refused(json!({})),
        messages("a beta in a second header")
            .header("anthropic-beta", "claude-code-20250219")
            .header("anthropic-beta", "cache-keepalive-2026-09-03")
            .refused(json!({})),
        messages("a beta in other letters")
            .header("anthropic-beta", "Context-1M-2025-08-07")
            .refused(json!({})),
        messages("a query parameter that nobody knows").query("beta=true&speed=fast").refused(json!({})),
        messages("a query parameter that is known").query("beta=true").sent(json!({}), input(20)),
        Row::new(Format::Responses, "the beta of many agents")
            .header("openai-beta", "responses_multi_agent=v1")
            .refused(json!({})),
    ]
}

/// What a provider might show to the model, or not.
fn harmless() -> Vec<Row> {
    vec![
        Row::new(Format::Responses, "an empty object that may be a switch")
            .refused(json!({ "something_new": {} })),
        Row::new(Format::Responses, "fields that say nothing")
            .sent(json!({ "background": false, "multi_agent": false, "service_tier": "flex" }), input(20)),
        Row::new(Format::Messages, "tiers that cost no more")
            .sent(json!({ "service_tier": "auto", "speed": "standard" }), input(20)),
        Row::new(Format::Chat, "one answer").sent(json!({ "n": 1, "modalities": ["text"] }), input(20)),
    ]
}
