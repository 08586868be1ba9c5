//! Input that is not in the request: files, URLs, stored items and answers, and what only the provider can read.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Reply, Row, input, usage, whole};
use crate::provider::Format;

/// The whole context of `claude-sonnet-4-5`, of `gpt-5` and of `gpt-4o`.
const SONNET: u64 = 200_000;
const GPT_5: u64 = 400_000 - 64;
const GPT_4O: u64 = 128_000 - 64;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = documents();
    rows.extend(images());
    rows.extend(items());
    rows.extend(opaque());
    rows.extend(sent_back());
    rows
}

fn said(content: Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": content }] })
}

fn item(item: Value) -> Value {
    json!({ "input": [{ "role": "user", "content": "hi" }, item] })
}

fn documents() -> Vec<Row> {
    let messages = |name, content| {
        // The page behind a URL grows between the calls.
        let body = said(content);
        Row::new(Format::Messages, name).sent(body.clone(), input(40)).sent(body, input(SONNET - 64))
    };
    let document = |source: Value| json!([{ "type": "document", "source": source }]);
    let url = json!({ "type": "url", "url": "https://example.org/a.pdf" });
    let nested = json!([{ "type": "tool_result", "tool_use_id": "t", "content": document(url.clone()) }]);
    let inner = json!({ "type": "content", "content": document(url.clone()) });
    let chat = |name, file: Value| {
        let body = said(json!([{ "type": "file", "file": file }]));
        Row::new(Format::Chat, name).sent(body.clone(), input(40)).sent(body, input(GPT_5))
    };
    let responses = |name, part: Value| {
        let body = item(json!({ "role": "user", "content": [part] }));
        Row::new(Format::Responses, name).sent(body.clone(), input(40)).sent(body, input(GPT_5))
    };
    vec![
        messages("a document behind a URL that grows", document(url.clone())),
        messages("a document by its id", document(json!({ "type": "file", "file_id": "file_1" }))),
        messages("a document of a kind that nobody knows", document(json!({ "type": "mirror", "x": 1 }))),
        messages("a document without a source", json!([{ "type": "document" }])),
        messages("a document in a tool result", nested),
        messages("a document in a document", document(inner)),
        Row::new(Format::Messages, "a PDF of many pages in few bytes").sent(
            said(document(json!({ "type": "base64", "media_type": "application/pdf", "data": "AAAA" }))),
            input(SONNET - 64),
        ),
        Row::new(Format::Messages, "a document in the system prompt")
            .sent(json!({ "system": document(url.clone()) }), input(SONNET - 64)),
        Row::new(Format::Messages, "a document behind a URL, elsewhere")
            .elsewhere()
            .sent(said(document(url.clone())), input(SONNET - 64)),
        Row::new(Format::Messages, "a content that is one document and no list")
            .elsewhere()
            .sent(said(json!({ "type": "document", "source": url.clone() })), input(SONNET - 64)),
        Row::new(Format::Messages, "a system prompt that is one document and no list")
            .sent(json!({ "system": { "type": "document", "source": url } }), input(SONNET - 64)),
        Row::new(Format::Messages, "a list of parts in a list of parts").elsewhere().sent(
            said(json!([[{ "type": "document", "source": { "type": "file", "file_id": "f" } }]])),
            input(SONNET - 64),
        ),
        Row::new(Format::Responses, "a list of items in a list of items")
            .elsewhere()
            .sent(json!({ "input": [[{ "type": "item_reference", "id": "msg_1" }]] }), input(GPT_5)),
        chat("a file by its id", json!({ "file_id": "file-1" })),
        chat(
            "a file with its bytes",
            json!({ "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA" }),
        ),
        Row::new(Format::Chat, "a content that is one file and no list")
            .elsewhere()
            .sent(said(json!({ "type": "file", "file": { "file_id": "f" } })), input(GPT_5)),
        responses("an input file by its id", json!({ "type": "input_file", "file_id": "file-1" })),
        responses(
            "an input file by its URL",
            json!({ "type": "input_file", "file_url": "https://example.org/a" }),
        ),
        Row::new(Format::Responses, "a file that stands for a message")
            .sent(item(json!({ "type": "input_file", "file_id": "file-1" })), input(GPT_5)),
        Row::new(Format::Responses, "a file in the output of a tool").sent(
            item(json!({ "type": "function_call_output", "call_id": "c",
                "output": [{ "type": "input_file", "file_id": "file-1" }] })),
            input(GPT_5),
        ),
        Row::new(Format::Chat, "a file on a model whose context is small")
            .model("gpt-4o")
            .sent(said(json!([{ "type": "file", "file": { "file_id": "f" } }])), input(GPT_4O)),
        // The context of this model is 1,047,576 tokens; lists write a million.
        Row::new(Format::Chat, "a file on a model whose context is rounded in lists")
            .model("gpt-4.1")
            .sent(said(json!([{ "type": "file", "file": { "file_id": "f" } }])), input(1_047_576 - 64)),
        Row::new(Format::Messages, "a document with the beta of the large context")
            .header("anthropic-beta", "context-1m-2025-08-07")
            .sent(said(document(json!({ "type": "url", "url": "https://example.org" }))), input(999_000)),
    ]
}

fn images() -> Vec<Row> {
    let anthropic = |name, source: Value| {
        let body = said(json!([{ "type": "image", "source": source }]));
        // A small one at first, and then the largest.
        Row::new(Format::Messages, name).sent(body.clone(), input(30)).sent(body, input(4_784 + 30))
    };
    let chat = |name, url: &str| {
        let body = said(json!([{ "type": "image_url", "image_url": { "url": url, "detail": "original" } }]));
        Row::new(Format::Chat, name).sent(body.clone(), input(100)).sent(body, input(36_000))
    };
    let responses = |name, part: Value| {
        let body = item(json!({ "role": "user", "content": [part] }));
        Row::new(Format::Responses, name)
            .model("gpt-6.1-sol")
            .sent(body.clone(), input(100))
            .sent(body, input(36_000))
    };
    let pages = |url: &str| said(json!([{ "type": "image_url", "image_url": { "url": url } }]));
    vec![
        anthropic("an image behind a URL that changes", json!({ "type": "url", "url": "https://example.org/a.png" })),
        anthropic("an image by its id", json!({ "type": "file", "file_id": "file_1" })),
        Row::new(Format::Messages, "an image with its bytes").sent(
            said(json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }])),
            input(4_784),
        ),
        Row::new(Format::Messages, "a hundred images in one tool result").sent(
            said(json!([{ "type": "tool_result", "tool_use_id": "t", "content":
                vec![json!({ "type": "image", "source": { "type": "url", "url": "https://e.org" } }); 30] }])),
            input(30 * 4_784),
        ),
        Row::new(Format::Messages, "a PDF that is said to be an image").sent(
            said(json!([{ "type": "image", "source": { "type": "base64", "media_type": "Application/PDF", "data": "AAAA" } }])),
            input(SONNET - 64),
        ),
        // Other servers do not make images smaller: 16,384 tokens is what several of them take.
        Row::new(Format::Messages, "an image at a server that does not make it smaller")
            .elsewhere()
            .sent(
                said(json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }])),
                input(16_384),
            ),
        chat("an image behind a URL", "https://example.org/a.png"),
        Row::new(Format::Chat, "an image in a data URL with capitals").sent(pages("DATA:image/PNG;base64,AAAA"), input(36_000)),
        Row::new(Format::Chat, "an image on the model that counts it dearest")
            .model("gpt-4o-mini")
            .sent(pages("https://example.org/a.png"), input(48_169)),
        Row::new(Format::Chat, "a PDF in the data URL of an image").sent(pages("data:application/pdf;base64,AAAA"), input(GPT_5)),
        Row::new(Format::Chat, "a drawing in the data URL of an image").sent(pages("data:image/svg+xml;base64,AAAA"), input(36_000)),
        Row::new(Format::Chat, "an image whose scheme is escaped")
            .sent_bytes(
                r#"{"model":"gpt-5","max_completion_tokens":64,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"\u0064ata:application/pdf;base64,AAAA"}}]}]}"#,
                input(GPT_5),
            ),
        Row::new(Format::Chat, "an image whose URL is of a scheme of its own").sent(pages("file-id://1"), input(GPT_5)),
        responses("an input image by its id", json!({ "type": "input_image", "file_id": "file-1" })),
        responses("an input image behind a URL", json!({ "type": "input_image", "image_url": "https://e.org/a.png" })),
        Row::new(Format::Responses, "the screenshot of a computer call by its id").sent(
            item(json!({ "type": "computer_call_output", "call_id": "c",
                "output": { "type": "computer_screenshot", "file_id": "file-1" } })),
            input(36_000),
        ),
    ]
}

fn items() -> Vec<Row> {
    let row = |name: &'static str, item_of: Value| {
        let body = item(item_of);
        // Another conversation puts more under the same id.
        Row::new(Format::Responses, name).sent(body.clone(), input(50)).sent(body, input(GPT_5))
    };
    let field = |name: &'static str, fields: Value| {
        Row::new(Format::Responses, name).sent(fields.clone(), input(50)).sent(fields, input(GPT_5))
    };
    let id_only = json!([{ "id": "msg_1" }]);
    let mut rows = vec![
        field("a previous response", json!({ "previous_response_id": "resp_1" })),
        field("a conversation by its id", json!({ "conversation": "conv_1" })),
        field("a conversation in an object", json!({ "conversation": { "id": "conv_1" } })),
        Row::new(Format::Responses, "a stored prompt").refused(json!({ "prompt": { "id": "pmpt_1" } })),
        Row::new(Format::Chat, "a previous response in another format, elsewhere")
            .elsewhere()
            .sent(json!({ "previous_response_id": "resp_1" }), input(GPT_5)),
        Row::new(Format::Messages, "a thread that the provider keeps")
            .refused(json!({ "thread": { "id": "t" } })),
        row("a reference to an item", json!({ "type": "item_reference", "id": "msg_1" })),
        row("a reference whose type is null", json!({ "type": null, "id": "msg_1" })),
        row("an item that is only an id", json!({ "id": "msg_1" })),
        row("an item with an id and a role", json!({ "id": "msg_1", "role": "assistant" })),
        row(
            "an item with an id and empty content",
            json!({ "id": "msg_1", "role": "assistant", "content": [] }),
        ),
        row(
            "a message with an id and an empty text",
            json!({ "type": "message", "id": "msg_1", "role": "user", "content": "" }),
        ),
        row(
            "a tool call with an id and no name",
            json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "arguments": "{}" }),
        ),
        row(
            "a tool call with an id and empty arguments",
            json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "" }),
        ),
        row(
            "a tool output with an id and nothing in it",
            json!({ "type": "function_call_output", "id": "fco_1", "call_id": "c", "output": [] }),
        ),
        row("a shell call without an action", json!({ "type": "shell_call", "id": "sh_1", "call_id": "c" })),
        row("tools that are only an id", json!({ "type": "additional_tools", "id": "at_1", "tools": [] })),
        row(
            "a search that is only an id",
            json!({ "type": "tool_search_output", "id": "ts_1", "call_id": "c" }),
        ),
        Row::new(Format::Responses, "an input that is one item and no list")
            .elsewhere()
            .sent(json!({ "input": { "type": "item_reference", "id": "msg_1" } }), input(GPT_5)),
        Row::new(Format::Responses, "instructions that are a list of items")
            .elsewhere()
            .sent(json!({ "instructions": id_only }), input(GPT_5)),
        Row::new(Format::Responses, "an item of a kind that nobody knows")
            .refused(item(json!({ "type": "mirror", "id": "x" }))),
        Row::new(Format::Responses, "an item of a kind that nobody knows, elsewhere")
            .elsewhere()
            .sent(item(json!({ "type": "mirror", "id": "x" })), input(GPT_5)),
    ];
    rows.extend(["web_search_call", "file_search_call", "mcp_call", "multi_agent_call", "program"].map(
        |kind| {
            let name = format!("what a tool of the provider left behind: {kind}");
            Row::new(Format::Responses, name).refused(item(json!({ "type": kind, "id": "x" })))
        },
    ));
    rows
}

/// A whole answer that thought, with a seal that only the provider can read.
fn sealed_thinking(billed: &Billed) -> Reply {
    let mut answer = whole(Format::Messages, &usage(Format::Messages, billed));
    answer["content"] = json!([{ "type": "thinking", "thinking": "", "signature": "seal" }]);
    Reply::json(&answer)
}

fn sealed_reasoning(billed: &Billed) -> Reply {
    let mut answer = whole(Format::Responses, &usage(Format::Responses, billed));
    answer["output"] =
        json!([{ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "seal" }]);
    Reply::json(&answer)
}

/// What came with an answer has at most the tokens of that answer, each time that it is sent back.
fn sent_back() -> Vec<Row> {
    let thoughts = |times: usize| {
        let thought = json!({ "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "seal" }] });
        json!({ "messages": vec![thought; times], "max_tokens": 20_000 })
    };
    let reasons = |times: usize| {
        let reason = json!({ "type": "reasoning", "summary": [], "encrypted_content": "seal" });
        json!({ "input": vec![reason; times], "max_output_tokens": 20_000 })
    };
    let messages = |name: &'static str| {
        Row::new(Format::Messages, name)
            .alone()
            .sent(json!({ "max_tokens": 20_000 }), input(20))
            .answers(sealed_thinking)
    };
    let responses = |name: &'static str| {
        Row::new(Format::Responses, name)
            .alone()
            .sent(json!({ "max_output_tokens": 20_000 }), input(20))
            .answers(sealed_reasoning)
    };
    vec![
        messages("thinking that is sent back").sent(thoughts(1), input(20_000)),
        messages("thinking that is sent back five times").sent(thoughts(5), input(100_000)),
        responses("reasoning that is sent back").sent(reasons(1), input(20_000)),
        responses("reasoning that is sent back five times").sent(reasons(5), input(100_000)),
        Row::new(Format::Messages, "thinking of which only a seal is left, of another run")
            .sent(thoughts(1), input(150_000)),
        Row::new(Format::Messages, "redacted thinking of another run")
            .sent(said(json!([{ "type": "redacted_thinking", "data": "g".repeat(1_000) }])), input(150_000)),
    ]
}

fn opaque() -> Vec<Row> {
    let row = |name: &'static str, item_of: Value| {
        Row::new(Format::Responses, name).sent(item(item_of), input(GPT_5))
    };
    let sealed = "g".repeat(1_000);
    vec![
        row(
            "reasoning that only the provider can read",
            json!({ "type": "reasoning", "summary": [], "encrypted_content": sealed }),
        ),
        row("reasoning that is only an id", json!({ "type": "reasoning", "id": "rs_1", "summary": [] })),
        row("a compacted conversation", json!({ "type": "compaction", "encrypted_content": sealed })),
        row(
            "arguments that only the provider can read",
            json!({ "type": "function_call", "call_id": "c", "name": "f",
            "encrypted_function_args": sealed }),
        ),
        row(
            "a message of another agent",
            json!({ "type": "agent_message",
            "content": [{ "type": "encrypted_content", "encrypted_content": sealed }] }),
        ),
        Row::new(Format::Messages, "a compacted conversation of messages").sent(
            said(json!([{ "type": "compaction", "content": null, "encrypted_content": sealed }])),
            input(SONNET - 64),
        ),
    ]
}
