//! Gemini's `generateContent`: fields in two spellings, numbers in texts, single items in place of lists, tools that a key
//! turns on, and paths that hold no cap.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Reply, Row, input, usage, whole};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = refused();
    rows.extend(elsewhere());
    rows.extend(caps());
    rows.extend(spellings());
    rows.extend(paths());
    rows.extend(inputs());
    rows.extend(streams());
    rows.extend(answers());
    rows.extend(counts());
    rows.extend(lengths());
    rows
}

fn row(name: impl Into<String>) -> Row {
    Row::new(Format::Gemini, name)
}

fn user(parts: Value) -> Value {
    json!({ "contents": [{ "role": "user", "parts": parts }] })
}

fn config(config: Value) -> Value {
    json!({ "generationConfig": config })
}

/// At the provider's own address.
fn refused() -> Vec<Row> {
    let fields = [
        json!({ "cachedContent": "cachedContents/x" }),
        json!({ "cached_content": "cachedContents/x" }),
        json!({ "serviceTier": "priority" }),
        json!({ "serviceTier": "SERVICE_TIER_PRIORITY" }),
        json!({ "service_tier": 3 }),
        json!({ "model": "models/gemini-3.1-pro-preview" }),
        json!({ "continuationToken": "x" }),
        json!({ "store": true }),
        json!({ "something_new": {} }),
        json!({ "somethingNew": 1 }),
        json!({ "maxOutputTokens": 100_000 }),
        json!({ "stream": true }),
        json!({ "toolConfig": { "includeServerSideToolInvocations": true } }),
        json!({ "tool_config": { "retrieval_config": { "latLng": {} } } }),
        json!({ "contents": [] }),
        json!({ "contents": null }),
        config(json!({ "responseModalities": ["TEXT", "IMAGE"] })),
        config(json!({ "responseModalities": "AUDIO" })),
        config(json!({ "response_modalities": [2] })),
        config(json!({ "responseModalities": 3 })),
        config(json!({ "speechConfig": {} })),
        config(json!({ "speech_config": { "voiceConfig": {} } })),
        config(json!({ "imageConfig": { "imageSize": "4K" } })),
        config(json!({ "routingConfig": { "autoMode": {} } })),
        config(json!({ "responseFormat": [{ "type": "image" }] })),
        config(json!({ "thinkingConfig": { "thinkingTokensMin": 100_000 } })),
        config(json!({ "candidateCount": "two" })),
        config(json!({ "candidateCount": 1.5 })),
        config(json!({ "candidateCount": -1 })),
        config(json!({ "somethingNew": {} })),
        config(json!([{ "maxOutputTokens": 64 }])),
        config(json!("none")),
    ];
    let tools = [
        json!({ "googleSearch": {} }),
        json!({ "google_search": {} }),
        json!({ "googleSearchRetrieval": {} }),
        json!({ "googleMaps": {} }),
        json!({ "google_maps": { "enableWidget": true } }),
        json!({ "urlContext": {} }),
        json!({ "url_context": {} }),
        json!({ "codeExecution": {} }),
        json!({ "code_execution": {} }),
        json!({ "fileSearch": { "fileSearchStoreNames": ["x"] } }),
        json!({ "computerUse": { "environment": 1 } }),
        json!({ "mcpServers": [{ "name": "x" }] }),
        json!({ "functionDeclarations": [{ "name": "f" }], "googleSearch": {} }),
        json!({ "GoogleSearch": {} }),
        json!({ "type": "web_search" }),
        json!("googleSearch"),
    ];
    let parts = [
        json!([{ "fileData": { "fileUri": "https://example.org/film.mp4" } }]),
        json!([{ "file_data": { "file_uri": "files/x" } }]),
        json!({ "fileData": { "fileUri": "files/x" } }),
        json!([{ "inlineData": { "mimeType": "audio/wav", "data": "AAAA" } }]),
        json!([{ "inline_data": { "mime_type": "Video/mp4", "data": "AAAA" } }]),
        json!([{ "text": "a", "videoMetadata": { "fps": 24 } }]),
        json!([{ "executableCode": { "language": 1, "code": "1" } }]),
        json!([{ "codeExecutionResult": { "outcome": 1, "output": "1" } }]),
        json!([{ "toolCall": { "id": "1", "toolType": 1 } }]),
        json!([{ "mirror": {} }]),
        json!([{ "inlineData": { "mimeType": "image/png", "data": "AAAA" }, "mediaResolution": { "numTokens": 100_000 } }]),
        json!([{ "functionResponse": { "name": "f", "response": {}, "parts": [{ "fileData": { "fileUri": "files/x" } }] } }]),
        json!([{ "text": "a", "Text": "b" }]),
        json!([{ "inlineData": { "mimeType": "image/png", "data": "AA" }, "inline_data": { "data": "BB" } }]),
    ];
    let mut rows: Vec<Row> = fields
        .into_iter()
        .map(|fields| row(format!("a field of Gemini: {fields}")).refused(fields))
        .collect();
    rows.extend(
        tools
            .into_iter()
            .map(|tool| row(format!("a tool of Gemini: {tool}")).refused(json!({ "tools": [tool] }))),
    );
    // The API takes one that is not in a list.
    rows.push(row("a tool that is not in a list").refused(json!({ "tools": { "googleSearch": {} } })));
    rows.extend(
        parts.into_iter().map(|parts| row(format!("a part of Gemini: {parts}")).refused(user(parts))),
    );
    rows.push(
        row("a file in the system instruction").refused(
            json!({ "system_instruction": { "parts": { "file_data": { "file_uri": "files/x" } } } }),
        ),
    );
    rows
}

/// At a base URL of the user's own, where only one spelling may be read.
fn elsewhere() -> Vec<Row> {
    let fields = [
        json!({ "generationConfig": null, "generation_config": { "maxOutputTokens": 64 } }),
        config(json!({ "max_output_tokens": 64 })),
        config(json!({ "MaxOutputTokens": 64 })),
        config(json!({ "maxTokens": 100_000 })),
        config(json!({ "max_tokens": 100_000 })),
        json!({ "max_tokens": 100_000 }),
        json!({ "maxOutputTokens": 100_000 }),
        json!({ "num_predict": -1 }),
        json!({ "options": { "num_predict": -1 } }),
        json!({ "extra_body": { "max_tokens": 100_000 } }),
        json!({ "extraBody": { "max_tokens": 100_000 } }),
        json!({ "extra_headers": { "x": "y" } }),
        json!({ "enable_search": true }),
        json!({ "chat_template": "x" }),
        json!({ "prompt_id": "x" }),
        json!({ "web_search_options": {} }),
        json!({ "search_parameters": {} }),
        json!({ "mcp_servers": ["x"] }),
        json!({ "file_search": {} }),
        json!({ "code_execution": {} }),
        json!({ "custom_llm_provider": "x" }),
        json!({ "context_window_fallback_dict": {} }),
        json!({ "best_of": 4 }),
        config(json!({ "best_of": 4 })),
        config(json!({ "extra_body": { "max_tokens": 100_000 } })),
        json!({ "cachedContent": "cachedContents/x" }),
        json!({ "serviceTier": "priority" }),
        json!({ "tools": [{ "googleSearch": {} }] }),
        json!({ "tools": [{ "anotherSearch": {} }] }),
        config(json!({ "speechConfig": {} })),
        config(json!({ "maxOutputTokens": 0 })),
        user(json!([{ "fileData": { "fileUri": "files/x" } }])),
    ];
    let mut rows: Vec<Row> = fields
        .into_iter()
        .map(|fields| row(format!("a field of Gemini elsewhere: {fields}")).elsewhere().refused(fields))
        .collect();
    rows.push(
        row("a field that nobody knows, elsewhere, of Gemini")
            .elsewhere()
            .sent(json!({ "documents": ["d".repeat(5_000)] }), input(5_000)),
    );
    rows
}

fn caps() -> Vec<Row> {
    let body = |config: &str| {
        format!(r#"{{"contents":[{{"parts":[{{"text":"hi"}}]}}],"generationConfig":{{{config}}}}}"#)
    };
    let odd = |name: &str, config: &str| row(name).refused_bytes(body(config));
    let read = |name: &str, config: &str| row(name).sent_bytes(body(config), input(20));
    // Each answer up to its cap, and the input once.
    let answers = |each: u64, times: u64| Billed { output: each * times, ..input(20) };
    vec![
        odd("a cap of Gemini with a fraction", r#""maxOutputTokens":64.5"#),
        odd("a cap of Gemini with an exponent", r#""maxOutputTokens":1e6"#),
        odd("a cap of Gemini with an exponent in a text", r#""maxOutputTokens":"1e6""#),
        odd("a cap of Gemini below zero", r#""maxOutputTokens":-1"#),
        odd("a cap of Gemini below zero in a text", r#""maxOutputTokens":"-1""#),
        odd("a cap of Gemini with a space", r#""maxOutputTokens":" 64""#),
        odd("a cap of Gemini in a list", r#""maxOutputTokens":[64]"#),
        odd("a cap of Gemini that is empty", r#""maxOutputTokens":"""#),
        odd("a cap of Gemini that is zero", r#""maxOutputTokens":0"#),
        odd("a cap of Gemini that is zero in a text", r#""maxOutputTokens":"0""#),
        odd("a cap of Gemini that is true", r#""maxOutputTokens":true"#),
        odd("two caps of Gemini", r#""maxOutputTokens":64,"maxOutputTokens":100000"#),
        odd("two caps of Gemini in two spellings", r#""maxOutputTokens":64,"max_output_tokens":100000"#),
        odd("two caps of Gemini, one of them null", r#""maxOutputTokens":null,"max_output_tokens":100000"#),
        odd(
            "two caps of Gemini, one of them escaped",
            r#""maxOutputTokens":64,"max\u005foutput_tokens":100000"#,
        ),
        odd("a cap of Gemini in other letters", r#""maxOutputTokens":64,"MaxOutputTokens":100000"#),
        odd("a cap of Gemini with more underscores", r#""max__output_tokens":64"#),
        odd("a cap of Gemini beyond all numbers", r#""maxOutputTokens":99999999999999999999999"#),
        odd("a cap of Gemini in a text beyond all numbers", r#""maxOutputTokens":"99999999999999999999999""#),
        read("a cap of Gemini in a text", r#""maxOutputTokens":"64""#),
        read("a cap of Gemini with underscores", r#""max_output_tokens":64"#),
        read("a cap of Gemini with underscores in a text", r#""max_output_tokens":"64""#),
        read("a cap of Gemini that is only escaped", r#""max\u004futputTokens":64"#),
        read("a cap of Gemini that is null", r#""maxOutputTokens":null"#),
        read("no cap of Gemini", ""),
        read("no cap of Gemini among others", r#""temperature":1"#),
        read(
            "thinking beyond the cap of Gemini",
            r#""maxOutputTokens":64,"thinkingConfig":{"thinkingBudget":100000}"#,
        ),
        row("no configuration").sent(json!({ "generationConfig": null }), input(20)),
        row("a configuration that is null")
            .sent_bytes(r#"{"contents":{"parts":{"text":"hi"}},"generationConfig":null}"#, input(20)),
        row("a configuration with underscores").sent(
            json!({ "generationConfig": null, "generation_config": { "max_output_tokens": "64" } }),
            input(20),
        ),
        row("two configurations").refused(json!({ "generation_config": { "maxOutputTokens": 100_000 } })),
        row("two configurations, one of them empty").refused(json!({ "generation_config": {} })),
        row("four answers of Gemini")
            .sent(config(json!({ "maxOutputTokens": 64, "candidateCount": 4 })), answers(64, 4)),
        row("four answers of Gemini in a text")
            .sent(config(json!({ "max_output_tokens": 64, "candidate_count": "4" })), answers(64, 4)),
        row("four answers of Gemini without a cap")
            .sent(config(json!({ "candidateCount": 4 })), answers(32_000, 4)),
        row("no answer of Gemini")
            .sent(config(json!({ "maxOutputTokens": 64, "candidateCount": 0 })), input(20)),
        row("very many answers of Gemini").refused(config(json!({ "candidateCount": u64::MAX }))),
        row("several answers of Gemini in a stream")
            .at_path("/v1beta/models/MODEL:streamGenerateContent")
            .query("alt=sse")
            .refused(config(json!({ "candidateCount": 2 }))),
        row("a cap of Gemini that is lowered")
            .ceiling(50_000_000)
            .sent(config(json!({ "maxOutputTokens": 60_000 })), input(20)),
        row("a cap of Gemini in a text that is lowered")
            .ceiling(50_000_000)
            .sent(config(json!({ "max_output_tokens": "60000" })), input(20)),
    ]
}

fn spellings() -> Vec<Row> {
    let text = |count: usize| "a".repeat(count);
    vec![
        row("contents in two spellings of their parts")
            .refused_bytes(r#"{"contents":[{"parts":[{"text":"a"}],"parts":[{"text":"b"}]}]}"#),
        row("two contents").refused_bytes(r#"{"contents":[],"contents":[{"parts":[{"text":"b"}]}]}"#),
        row("two system instructions").refused(
            json!({ "systemInstruction": { "parts": [] }, "system_instruction": { "parts": [{ "text": "b" }] } }),
        ),
        row("one content and one part that are not in lists").sent_bytes(
            format!(r#"{{"contents":{{"parts":{{"text":"{}"}}}}}}"#, text(5_000)),
            input(5_000),
        ),
        row("a system instruction with underscores")
            .sent(json!({ "system_instruction": { "parts": { "text": text(5_000) } } }), input(5_000)),
        row("functions with underscores").sent(
            json!({ "tools": { "function_declarations": { "name": "f", "description": text(5_000) } } }),
            input(5_000),
        ),
        row("a text in a place where none is read").sent(
            json!({ "contents": [{ "parts": [{ "text": "a" }], "note": text(5_000) }] }),
            input(5_000),
        ),
        row("a body of Gemini in UTF-16").refused_bytes(
            r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
        ),
        row("a body of Gemini that says it is compressed").header("content-encoding", "gzip").refused(json!({})),
        row("a body of Gemini with another charset")
            .header("content-type", "application/json; charset=utf-7")
            .refused(json!({})),
        row("a list of bodies of Gemini").refused_bytes(r#"[{"contents":[{"parts":[{"text":"hi"}]}]}]"#),
    ]
}

/// Nothing of another path is sent.
fn paths() -> Vec<Row> {
    let paths = [
        "/v1beta/models/MODEL:batchGenerateContent",
        "/v1beta/models/MODEL:asyncBatchEmbedContent",
        "/v1beta/models/MODEL:embedContent",
        "/v1beta/models/MODEL:batchEmbedContents",
        "/v1beta/models/MODEL:predict",
        "/v1beta/models/MODEL:predictLongRunning",
        "/v1beta/models/MODEL:generateAnswer",
        "/v1beta/models/MODEL:generateContent/",
        "/v1beta/models/MODEL:generatecontent",
        "/v1beta/models/MODEL%3AgenerateContent",
        "/v1beta/models/../models/MODEL:generateContent",
        "/v1beta/models/a/MODEL:generateContent",
        "/v1beta/models/:generateContent",
        "/v1beta/tunedModels/MODEL:generateContent",
        "/v1beta/dynamic/MODEL:generateContent",
        "/v1beta/cachedContents",
        "/v1beta/files",
        "/upload/v1beta/files",
        "/v1beta/interactions",
        "/v1beta/batches",
        "/v1beta/fileSearchStores",
        "/v1beta/corpora",
        "/v1beta/openai/chat/completions",
        "/v1beta/chat/completions",
        "/v1alpha/models/MODEL:generateContent",
        "/v1beta1/projects/p/locations/l/publishers/google/models/MODEL:generateContent",
        "/v1/publishers/google/models/MODEL:generateContent",
    ];
    let mut rows: Vec<Row> = paths
        .into_iter()
        .map(|path| row(format!("a path of Gemini: {path}")).at_path(path).refused(json!({})))
        .collect();
    let stream = "/v1beta/models/MODEL:streamGenerateContent";
    let queries = [
        (stream, ""),
        (stream, "alt=json"),
        (stream, "$alt=sse"),
        (stream, "alt=sse&alt=json"),
        (stream, "alt=SSE"),
        (stream, "alt=proto"),
        ("/v1beta/models/MODEL:generateContent", "alt=sse"),
        ("/v1beta/models/MODEL:generateContent", "alt=media"),
        ("/v1beta/models/MODEL:generateContent", "fields=candidates"),
        ("/v1beta/models/MODEL:generateContent", "callback=f"),
        ("/v1beta/models/MODEL:generateContent", "access_token=x"),
        ("/v1beta/models/MODEL:generateContent", "$.xgafv=1"),
    ];
    rows.extend(queries.into_iter().map(|(path, query)| {
        row(format!("a query of Gemini: {path}?{query}")).at_path(path).query(query).refused(json!({}))
    }));
    rows.extend([
        row("the older version of the path")
            .at_path("/v1/models/MODEL:generateContent")
            .sent(json!({}), input(20)),
        row("another key in the query").query("key=AIza-of-somebody").sent(json!({}), input(20)),
    ]);
    rows
}

fn inputs() -> Vec<Row> {
    let image = || json!({ "inlineData": { "mimeType": "image/png", "data": "AAAA" } });
    let in_result = json!([{ "functionResponse": { "name": "f", "response": {}, "parts": [image()] } }]);
    let pdf = json!([{ "inlineData": { "mimeType": "application/pdf", "data": "AAAA" } }]);
    let text = json!([{ "inlineData": { "mimeType": "text/plain", "data": "AAAA".repeat(2_000) } }]);
    let unknown = json!([{ "inlineData": { "data": "AAAA" } }]);
    let call = |signature: &str| json!([{ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": signature }]);
    let without_context = |name: &'static str| row(name).model("gemini-3.1-pro-preview");
    vec![
        row("an image of Gemini").sent(user(json!([image(), image()])), input(2 * 4_386)),
        row("an image of Gemini in the result of a tool").sent(user(in_result), input(2_240)),
        row("a document of Gemini").sent(user(pdf.clone()), input(1_000_000)),
        without_context("a document, and a context that nobody knows").refused(user(pdf)),
        row("a text in base64").sent(user(text), input(6_000)),
        row("bytes of no kind").sent(user(unknown), input(1_000_000)),
        row("a signature of another run").sent(user(call("QUJD")), input(1_000_000)),
        without_context("a signature of another run, and a context that nobody knows")
            .refused(user(call("QUJD"))),
        without_context("a signature that is none")
            .sent(user(call("skip_thought_signature_validator")), input(60)),
        row("a schema of Gemini that is shown twice").sent(
            config(json!({ "maxOutputTokens": 64, "responseMimeType": "application/json",
                "responseSchema": { "type": "STRING", "description": "d".repeat(2_000) } })),
            input(2 * 2_000),
        ),
        row("very many contents with nothing in them")
            .sent(json!({ "contents": vec![json!({ "parts": [] }); 3_000] }), input(3_000 * 4)),
        // What it thought comes back in the other alphabet of base64.
        without_context("a signature of this run")
            .sent(config(json!({ "maxOutputTokens": 640 })), input(20))
            .answers(|billed| {
                let mut answer = whole(Format::Gemini, &usage(Format::Gemini, billed));
                answer["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = json!("+/+/QQ==");
                Reply::json(&answer)
            })
            .sent(user(call("-_-_QQ")), input(640)),
    ]
}

fn chunk(text: Option<&str>, end: Option<&str>, usage: Value) -> Value {
    let parts = text.map_or(json!([]), |text| json!([{ "text": text }]));
    json!({ "candidates": [{ "index": 0, "content": { "parts": parts }, "finishReason": end }],
        "usageMetadata": usage })
}

fn count(output: u64) -> Value {
    json!({ "promptTokenCount": 18, "candidatesTokenCount": output, "totalTokenCount": 18 + output })
}

/// Plain input, and output up to the cap.
const BILL: Billed = input(18);

fn streams() -> Vec<Row> {
    let stream = |name: &'static str, events: fn(&Billed) -> Vec<Value>| {
        row(name)
            .at_path("/v1beta/models/MODEL:streamGenerateContent")
            .query("alt=sse")
            .sent(json!({}), BILL)
            .answers(move |billed| Reply::stream(&events(billed)))
    };
    let cut = |name: &'static str, events: fn(&Billed) -> Vec<Value>| {
        row(name)
            .at_path("/v1beta/models/MODEL:streamGenerateContent")
            .query("alt=sse")
            .sent(json!({}), BILL)
            .answers(move |billed| Reply::stream(&events(billed)).cut())
    };
    vec![
        stream("counts of Gemini that grow", |b| {
            vec![chunk(Some("a"), None, count(1)), chunk(Some("b"), Some("STOP"), count(b.output))]
        }),
        stream("counts of Gemini that shrink", |b| {
            vec![chunk(Some("a"), None, count(b.output)), chunk(Some("b"), Some("STOP"), count(1))]
        }),
        stream("no count at the end of Gemini's stream", |_| {
            vec![chunk(Some("a"), None, count(1)), chunk(Some("b"), Some("STOP"), Value::Null)]
        }),
        stream("no count in Gemini's last part, which has no text", |_| {
            vec![chunk(Some("a"), None, count(1)), chunk(None, Some("STOP"), Value::Null)]
        }),
        stream("an end of Gemini's with every part", |b| {
            vec![chunk(Some("a"), Some("STOP"), count(1)), chunk(Some("b"), Some("STOP"), count(b.output))]
        }),
        cut("an end of Gemini's with every part, and a connection that breaks", |_| {
            vec![chunk(Some("a"), Some("STOP"), count(1))]
        }),
        cut("a stream of Gemini that breaks off", |_| vec![chunk(Some("a"), None, count(1))]),
        stream("a stream of Gemini without an end", |_| vec![chunk(Some("a"), None, count(1))]),
        stream("another answer of Gemini after the counts", |_| {
            let mut other = chunk(Some("b"), Some("STOP"), Value::Null);
            other["candidates"][0]["index"] = json!(1);
            vec![chunk(Some("a"), Some("STOP"), count(1)), other]
        }),
        stream("a part of Gemini's that nobody knows, after the counts", |_| {
            let mut other = chunk(None, Some("STOP"), Value::Null);
            other["candidates"][0]["content"]["parts"] = json!([{ "inlineData": { "data": "AAAA" } }]);
            vec![chunk(Some("a"), None, count(1)), other]
        }),
        stream("an error in a stream of Gemini", |b| {
            vec![
                chunk(Some("a"), None, count(b.output / 2)),
                json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "x" } }),
            ]
        }),
        stream("Gemini's counts in a chunk of their own", |b| {
            vec![chunk(Some("a"), Some("STOP"), Value::Null), json!({ "usageMetadata": count(b.output) })]
        }),
    ]
}

fn answers() -> Vec<Row> {
    let reported =
        |name: &'static str, usage: fn(&Billed) -> Value| row(name).sent(json!({}), BILL).reports(usage);
    vec![
        reported("no counts of Gemini", |_| Value::Null),
        reported("empty counts of Gemini", |_| json!({})),
        reported(
            "counts of Gemini in texts",
            |b| json!({ "promptTokenCount": "18", "candidatesTokenCount": b.output.to_string() }),
        ),
        reported(
            "counts of Gemini below zero",
            |_| json!({ "promptTokenCount": 18, "candidatesTokenCount": -1 }),
        ),
        reported(
            "counts of Gemini without the output",
            |b| json!({ "promptTokenCount": 18, "totalTokenCount": 18 + b.output }),
        ),
        reported("counts of Gemini without the input", |b| json!({ "candidatesTokenCount": b.output })),
        reported(
            "thoughts beside the output",
            |b| json!({ "promptTokenCount": 18, "candidatesTokenCount": 1, "thoughtsTokenCount": b.output - 1 }),
        ),
        reported(
            "thoughts that only the total has",
            |b| json!({ "promptTokenCount": 18, "candidatesTokenCount": 1, "totalTokenCount": 18 + b.output }),
        ),
        reported("input of tools beside the input", |b| {
            json!({ "promptTokenCount": 8, "toolUsePromptTokenCount": 10, "candidatesTokenCount": b.output,
                "totalTokenCount": 18 + b.output })
        }),
        reported("more cached input than input of Gemini", |b| {
            json!({ "promptTokenCount": 18, "cachedContentTokenCount": 0, "candidatesTokenCount": b.output,
                "totalTokenCount": 18 + b.output })
        }),
        reported("another tier of Gemini", |b| {
            json!({ "promptTokenCount": b.plain, "candidatesTokenCount": b.output / 2,
                "trafficType": "ON_DEMAND_PRIORITY" })
        }),
        reported("audio that Gemini counted", |b| {
            json!({ "promptTokenCount": b.plain, "candidatesTokenCount": b.output / 2,
                "promptTokensDetails": [{ "modality": "AUDIO", "tokenCount": b.plain }] })
        }),
        reported("images that Gemini made", |b| {
            json!({ "promptTokenCount": b.plain, "candidatesTokenCount": b.output / 2,
                "candidatesTokensDetails": [{ "modality": "IMAGE", "tokenCount": 1 }] })
        }),
        row("cached input of Gemini").sent(json!({}), Billed { plain: 8, cached: 10, ..input(0) }),
        row("a prompt that Gemini blocks").sent(json!({}), Billed { output: 0, ..BILL }).answers(|b| {
            Reply::json(&json!({ "promptFeedback": { "blockReason": "SAFETY" },
                "usageMetadata": { "promptTokenCount": b.plain, "totalTokenCount": b.plain } }))
        }),
        row("an answer of Gemini in a list")
            .sent(json!({}), BILL)
            .answers(|b| Reply::json(&json!([whole(Format::Gemini, &count(b.output))]))),
    ]
}

/// The provider's own counter, where the bytes of an input are too many for the ceiling and its tokens are not.
fn counts() -> Vec<Row> {
    let letters = || user(json!([{ "text": "abcd".repeat(25_000) }]));
    let counted = |tokens: u64| Reply::json(&json!({ "totalTokens": tokens }));
    let small = |name: &'static str| row(name).ceiling(50_000_000);
    let pdf = user(json!([{ "inlineData": { "mimeType": "application/pdf", "data": "AAAA" } }]));
    vec![
        small("a count of Gemini that is right").counter(counted(25_000)).sent(letters(), input(25_000)),
        small("a count of Gemini that is a little too small")
            .counter(counted(24_600))
            .sent(letters(), input(25_000)),
        small("a count of Gemini that is zero").counter(counted(0)).refused(letters()),
        small("a count of Gemini in a text")
            .counter(Reply::json(&json!({ "totalTokens": "25000" })))
            .refused(letters()),
        small("a counter of Gemini that is not there").counter(Reply::status(404, "{}")).refused(letters()),
        small("a count of Gemini that is far too small")
            .lying_counter(counted(10))
            .sent(letters(), input(25_000))
            .refused(user(json!([{ "text": "efgh".repeat(25_000) }]))),
        small("a count of Gemini, elsewhere").elsewhere().counter(counted(10)).refused(letters()),
        row("a count of a document of Gemini")
            .model("gemini-3.1-pro-preview")
            .counter(counted(20_000))
            .sent(pdf, input(20_000)),
    ]
}

/// Above 200,000 tokens of input every token costs more.
fn lengths() -> Vec<Row> {
    let letters = |count: usize| user(json!([{ "text": "a".repeat(count) }]));
    let pro = |name: &'static str| row(name).model("gemini-3.1-pro-preview");
    vec![
        pro("just below a dearer length of Gemini").sent(letters(200_000), input(200_000)),
        pro("just above a dearer length of Gemini").sent(letters(200_001), input(200_001)),
        pro("a dearer length of Gemini, mostly cached")
            .sent(letters(250_000), Billed { plain: 1_000, cached: 249_000, ..input(0) }),
        pro("a length of Gemini that is dearer than its bytes say")
            .sent(letters(199_500), input(199_500))
            .sent(letters(199_500), input(200_001)),
        row("a model of Gemini that makes images").model("gemini-2.5-flash-image").refused(json!({})),
        row("a model of Gemini that nobody knows").model("gemini-mirror-9").refused(json!({})),
        row("a price of Gemini that changes").model("gemini-4-argon-preview").sent(json!({}), input(20)),
    ]
}
