//! Tools: those that the provider runs, those whose definitions are the provider's, and those that are named and not
//! sent.

use serde_json::{Value, json};

use super::row::{Row, input};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = run_by_provider();
    rows.extend(definitions());
    rows
}

fn run_by_provider() -> Vec<Row> {
    let messages = [
        json!({ "type": "web_search_20250305", "name": "web_search" }),
        json!({ "type": "web_search_20991231", "name": "web_search" }),
        json!({ "type": "web_fetch_20250910", "name": "web_fetch" }),
        json!({ "type": "code_execution_20250825", "name": "code_execution" }),
        json!({ "type": "computer_toolset_20260801" }),
        json!({ "type": "mcp_toolset", "mcp_server_name": "x" }),
        json!({ "type": "advisor_20260301", "name": "advisor" }),
        json!({ "type": "tool_search_tool_bm25", "name": "search" }),
        json!({ "name": "f", "input_schema": {}, "allowed_callers": ["code_execution_20250825"] }),
    ];
    let responses = [
        json!({ "type": "web_search" }),
        json!({ "type": "web_search_preview_2025_03_11" }),
        json!({ "type": "file_search", "vector_store_ids": ["v"] }),
        json!({ "type": "code_interpreter", "container": { "type": "auto" } }),
        json!({ "type": "image_generation" }),
        json!({ "type": "mcp", "server_label": "x", "server_url": "https://e.org" }),
        json!({ "type": "tool_search" }),
        json!({ "type": "shell", "environment": { "type": "container_auto" } }),
        json!({ "type": "namespace", "name": "n", "tools": [{ "type": "web_search" }] }),
        json!({ "type": "function", "name": "f", "allowed_callers": ["programmatic"] }),
        json!({ "type": "WEB_SEARCH" }),
    ];
    let chat =
        [json!({ "type": "web_search" }), json!({ "type": "mcp" }), json!({ "type": "builtin_function" })];
    // One server turns on a search by a key alone.
    let untyped = [
        json!({ "googleSearch": {} }),
        json!({ "url_context": {} }),
        json!({ "type": null, "code_execution": {} }),
    ];
    let row = |format: Format, tool: &Value| {
        let name = format!("a tool that the provider runs: {tool}");
        Row::new(format, name).refused(json!({ "tools": [tool] }))
    };
    let mut rows: Vec<Row> = messages.iter().map(|tool| row(Format::Messages, tool)).collect();
    rows.extend(responses.iter().map(|tool| row(Format::Responses, tool)));
    rows.extend(chat.iter().chain(&untyped).map(|tool| row(Format::Chat, tool).elsewhere()));
    let hidden = json!([{ "type": "additional_tools", "tools": [{ "type": "web_search" }] }]);
    rows.push(
        Row::new(Format::Responses, "a search among the tools of an item")
            .refused(json!({ "input": hidden })),
    );
    let addition = json!([{ "type": "tool_addition", "tool": { "type": "tool_definition",
        "definition": { "type": "web_search_20250305", "name": "web_search" } } }]);
    rows.push(
        Row::new(Format::Messages, "a search that is added in a message")
            .refused(json!({ "messages": [{ "role": "user", "content": addition }] })),
    );
    rows
}

fn definitions() -> Vec<Row> {
    let defined = [
        json!({ "type": "apply_patch" }),
        json!({ "type": "computer" }),
        json!({ "type": "local_shell" }),
        json!({ "type": "shell" }),
        json!({ "type": "tool_search", "execution": "client" }),
    ];
    let added = json!([{ "type": "additional_tools", "tools": defined }]);
    let description = "d".repeat(10_000);
    let deferred =
        json!([{ "name": "f", "description": description, "input_schema": {}, "defer_loading": true }]);
    let found = |times: usize| {
        let reference = json!({ "type": "tool_reference", "tool_name": "f" });
        json!([{ "type": "tool_result", "tool_use_id": "t", "content": vec![reference; times] }])
    };
    let namespace = json!([{ "type": "namespace", "name": "n", "tools":
        [{ "type": "function", "name": "f", "description": "a b ".repeat(2_500), "defer_loading": true }] }]);
    let more = |name: &str| {
        json!({ "type": "tool_addition", "tool": { "type": "tool_definition",
        "definition": { "type": name, "name": "x" } } })
    };
    let additions =
        ["bash_20250124", "text_editor_20250728", "computer_20251124", "memory_20250818"].map(more);
    vec![
        Row::new(Format::Messages, "tools that the provider defines").sent(
            json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }, { "type": "text_editor_20250728", "name": "e" },
                { "type": "computer_20251124", "name": "computer", "display_width_px": 1, "display_height_px": 1 }] }),
            input(245 + 700 + 735 + 499 + 346),
        ),
        Row::new(Format::Responses, "tools that the provider defines, of responses")
            .sent(json!({ "tools": defined }), input(5 * 700)),
        Row::new(Format::Responses, "tools that the provider defines, in an item").sent(json!({ "input": added }), input(5 * 700)),
        Row::new(Format::Messages, "tools that the provider defines, added in a message")
            .sent(json!({ "messages": [{ "role": "user", "content": additions }] }), input(245 + 700 + 735 + 499 + 346)),
        Row::new(Format::Messages, "a deferred tool that is found once")
            .sent(json!({ "tools": deferred, "messages": [{ "role": "user", "content": found(1) }] }), input(10_000)),
        Row::new(Format::Messages, "a deferred tool that is found ten times")
            .sent(json!({ "tools": deferred, "messages": [{ "role": "user", "content": found(10) }] }), input(100_000)),
        Row::new(Format::Responses, "a deferred tool in a namespace, shown in the second call")
            .sent(json!({ "tools": namespace }), input(20))
            .sent(json!({ "tools": namespace }), input(5_000)),
    ]
}
