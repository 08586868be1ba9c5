//! Later calls: what a provider counted for an earlier call lowers the bound of the next one, but only for what it showed
//! to the model then.

use serde_json::{Value, json};

use super::row::{Row, input};
use crate::provider::Format;

const LONG: u64 = 20_000;

fn long(letter: &str) -> String {
    letter.repeat(20_000)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = edits();
    rows.extend(thinking());
    rows.extend(choices());
    rows.extend(blocks());
    rows
}

fn messages(list: &[Value]) -> Value {
    json!({ "messages": list })
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// The provider leaves something out, and then shows it.
fn edits() -> Vec<Row> {
    let tool = |at: usize| {
        let (id, letter) = (format!("t{at}"), ["a", "b", "c"][at]);
        [
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": id, "name": "f", "input": {} }] }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": long(letter) }] }),
        ]
    };
    let edits = json!({ "edits": [{ "type": "clear_tool_uses_20250919", "trigger": { "type": "tool_uses", "value": 2 } }] });
    let cleared = |order: &[usize]| {
        let list: Vec<Value> = order.iter().flat_map(|at| tool(*at)).collect();
        with(messages(&list), "context_management", edits.clone())
    };
    let whole = |order: &[usize]| messages(&order.iter().flat_map(|at| tool(*at)).collect::<Vec<_>>());
    let row = |name: &'static str| Row::new(Format::Messages, name);
    let said = |list: &[&str]| -> Value {
        json!({ "input": list.iter().map(|letter| json!({ "role": "user", "content": format!("{letter} ").repeat(5_000) })).collect::<Vec<_>>() })
    };
    let truncated = |list: &[&str]| with(said(list), "truncation", json!("auto"));
    let cleared_note = |clear_at: Value| {
        let mut note = json!({ "role": "system", "content": long("n") });
        note["clear_at"] = clear_at;
        let (first, last) =
            (json!({ "role": "user", "content": "a" }), json!({ "role": "user", "content": "b" }));
        (messages(&[first.clone(), note.clone(), last]), messages(&[first, note]))
    };
    let (gone, shown) = cleared_note(json!("next_user_message"));
    let (_, kept) = cleared_note(json!("never"));
    let removed = |with_removal: bool| {
        let removal =
            json!({ "type": "tool_removal", "tool": { "type": "tool_reference", "tool_name": "f" } });
        let content = if with_removal { json!([removal]) } else { json!("hi") };
        json!({ "messages": [{ "role": "user", "content": content }],
            "tools": [{ "name": "f", "description": long("d"), "input_schema": {} }] })
    };
    vec![
        row("cleared tool results that are shown again, because there are fewer")
            .sent(cleared(&[0, 1, 2]), input(LONG))
            .sent(cleared(&[0, 1]), input(2 * LONG)),
        row("cleared tool results in another order")
            .sent(cleared(&[0, 1, 2]), input(LONG))
            .sent(cleared(&[2, 1, 0]), input(3 * LONG)),
        row("cleared tool results with another before them")
            .sent(cleared(&[0, 1]), input(LONG))
            .sent(cleared(&[2, 0, 1]), input(3 * LONG)),
        row("cleared tool results without the edit").sent(cleared(&[0, 1]), input(500)).sent(whole(&[0, 1]), input(2 * LONG)),
        row("cleared tool results with another edit").sent(cleared(&[0, 1]), input(500)).sent(
            with(whole(&[0, 1]), "context_management", json!({ "edits": [{ "type": "clear_tool_uses_20250919", "keep": { "type": "tool_uses", "value": 9 } }] })),
            input(2 * LONG),
        ),
        row("a system message that was cleared, and then never is").sent(gone.clone(), input(50)).sent(kept, input(LONG)),
        row("a system message that was cleared, and then is the last").sent(gone, input(50)).sent(shown, input(LONG)),
        row("a tool that was removed, and then is not").sent(removed(true), input(100)).sent(removed(false), input(LONG)),
        Row::new(Format::Responses, "truncated items that are shown again")
            .sent(truncated(&["a", "b"]), input(100))
            .sent(truncated(&["a"]), input(5_000)),
        Row::new(Format::Responses, "truncated items without truncation")
            .sent(truncated(&["a", "b"]), input(100))
            .sent(said(&["a", "b"]), input(10_000)),
        Row::new(Format::Chat, "messages that a server cut off, and then does not")
            .elsewhere()
            .sent(json!({ "messages": [{ "role": "user", "content": long("a") }], "truncate_prompt_tokens": 10 }), input(10))
            .sent(json!({ "messages": [{ "role": "user", "content": long("a") }] }), input(LONG)),
    ]
}

/// Thinking of earlier turns is left out, and that of the current one is not.
fn thinking() -> Vec<Row> {
    let thought = |part: Value, later: bool| {
        let mut list = vec![
            json!({ "role": "user", "content": "a" }),
            json!({ "role": "assistant", "content": [part] }),
        ];
        list.extend(later.then(|| json!({ "role": "user", "content": "b" })));
        messages(&list)
    };
    let anthropic = |name: &'static str, part: Value| {
        let row = Row::new(Format::Messages, name);
        row.sent(thought(part.clone(), true), input(50)).sent(thought(part, false), input(LONG))
    };
    let reasoned = |field: &str, later: bool| {
        let mut said = json!({ "role": "assistant", "content": "x" });
        said[field] = json!(long("r"));
        let mut list = vec![json!({ "role": "user", "content": "a" }), said];
        list.push(json!({ "role": if later { "user" } else { "tool" }, "content": "b" }));
        messages(&list)
    };
    let chat = |field: &'static str| {
        let row = Row::new(Format::Chat, format!("reasoning of an earlier turn in `{field}`")).elsewhere();
        row.sent(reasoned(field, true), input(50)).sent(reasoned(field, false), input(LONG))
    };
    let kept = |kwargs: Value| with(reasoned("reasoning_content", true), "chat_template_kwargs", kwargs);
    // A summary in the clear: its size is in the request, but the model sees it in the current turn only.
    let items = |later: bool| {
        let mut list = vec![
            json!({ "role": "user", "content": "a" }),
            json!({ "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": long("r ") }] }),
        ];
        list.push(json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" }));
        list.push(json!({ "type": "function_call_output", "call_id": "c", "output": "ok" }));
        list.extend(later.then(|| json!({ "role": "user", "content": "b" })));
        json!({ "input": list })
    };
    vec![
        anthropic(
            "thinking of an earlier turn",
            json!({ "type": "thinking", "thinking": long("t"), "signature": "s" }),
        ),
        anthropic(
            "redacted thinking of an earlier turn",
            json!({ "type": "redacted_thinking", "data": long("t") }),
        ),
        chat("reasoning_content"),
        chat("reasoning"),
        chat("reasoning_details"),
        Row::new(Format::Chat, "reasoning that a template leaves out, and then does not")
            .elsewhere()
            .sent(kept(json!({ "clear_thinking": true })), input(50))
            .sent(kept(json!({ "clear_thinking": false })), input(LONG)),
        Row::new(Format::Chat, "reasoning that a setting of thinking leaves out, and then does not")
            .elsewhere()
            .sent(
                with(reasoned("reasoning_content", true), "thinking", json!({ "type": "enabled" })),
                input(50),
            )
            .sent(
                with(
                    reasoned("reasoning_content", true),
                    "thinking",
                    json!({ "type": "enabled", "clear_thinking": false }),
                ),
                input(LONG),
            ),
        Row::new(Format::Responses, "reasoning items of an earlier turn")
            .sent(items(true), input(50))
            .sent(items(false), input(LONG)),
    ]
}

/// Fields that decide whether the tools are shown.
fn choices() -> Vec<Row> {
    let tools = json!([{ "type": "function", "function": { "name": "f", "description": long("d"), "parameters": {} } }]);
    let body = |choice: &str| json!({ "tools": tools, "tool_choice": choice });
    let old = |choice: &str| json!({ "functions": [{ "name": "f", "description": long("d") }], "function_call": choice });
    vec![
        Row::new(Format::Chat, "tools that are left out while none may be called")
            .elsewhere()
            .sent(body("none"), input(20))
            .sent(body("auto"), input(LONG)),
        Row::new(Format::Chat, "functions that are left out while none may be called")
            .elsewhere()
            .sent(old("none"), input(20))
            .sent(old("auto"), input(LONG)),
        Row::new(Format::Messages, "tools that are left out while none may be called, of messages")
            .sent(
                json!({ "tools": [{ "name": "f", "description": long("d"), "input_schema": {} }], "tool_choice": { "type": "none" } }),
                input(20),
            )
            .sent(
                json!({ "tools": [{ "name": "f", "description": long("d"), "input_schema": {} }], "tool_choice": { "type": "auto" } }),
                input(LONG),
            ),
    ]
}

/// Blocks that look like known ones.
fn blocks() -> Vec<Row> {
    let said = |parts: &[Value]| messages(&[json!({ "role": "user", "content": parts })]);
    let text = |letter: &str| json!({ "type": "text", "text": long(letter) });
    let marked = |letter: &str| with(text(letter), "cache_control", json!({ "type": "ephemeral" }));
    let row = |name: &'static str| Row::new(Format::Messages, name);
    let tool = |defer: bool| json!({ "tools": [{ "name": "f", "description": long("d"), "input_schema": {}, "defer_loading": defer }] });
    let many = |count: usize| json!({ "messages": vec![json!({ "role": "user", "content": "ab" }); count] });
    vec![
        row("one block, and then the same one twice")
            .sent(said(&[text("a")]), input(LONG))
            .sent(said(&[text("a"), text("a")]), input(2 * LONG)),
        row("a block with a mark of the cache, and then twice without")
            .sent(said(&[marked("a")]), input(LONG))
            .sent(said(&[text("a"), text("a")]), input(2 * LONG)),
        row("a deferred tool that is shown in the second call")
            .sent(tool(true), input(20))
            .sent(tool(true), input(LONG)),
        row("a deferred tool that is not deferred any more")
            .sent(tool(true), input(20))
            .sent(tool(false), input(LONG)),
        row("more blocks than are compared, and then fewer")
            .sent(many(20_001), input(100_000))
            .sent(many(19_000), input(95_000)),
        row("another model with the same input")
            .sent(said(&[text("a")]), input(500))
            .sent(with(said(&[text("a")]), "model", json!("claude-sonnet-4-5-20250929")), input(LONG)),
        Row::new(Format::Chat, "the same message under another role")
            .sent(messages(&[json!({ "role": "user", "content": "a b ".repeat(5_000) })]), input(5_000))
            .sent(messages(&[json!({ "role": "tool", "content": "a b ".repeat(5_000) })]), input(10_000)),
        Row::new(Format::Chat, "parallel calls of one agent")
            .parallel()
            .sent(json!({ "messages": [{ "role": "user", "content": "a b ".repeat(5_000) }] }), input(10_000))
            .sent(json!({ "messages": [{ "role": "user", "content": "a b ".repeat(5_000) }] }), input(10_000))
            .sent(
                json!({ "messages": [{ "role": "user", "content": "a b ".repeat(5_000) }] }),
                input(10_000),
            ),
        Row::new(Format::Chat, "a call that its program sends again")
            .sent(json!({ "seed": 1 }), input(20))
            .sent(json!({ "seed": 1 }), input(20))
            .sent(json!({ "seed": 1 }), input(20)),
    ]
}
