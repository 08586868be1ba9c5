//! Keys are seen by their provider alone: whatever a provider answers, no file of the home and no output has them, as they
//! are or encoded, with the most verbose log.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::test_folder::TestFolder;
use crate::tls_upstream::{AUTHORITY, Certificate, Response, TlsUpstream};
use crate::upstream::{Reply, Upstream};

/// With letters that encodings change.
const KEY: &str = "sk-secret-5f1d0c+2b/7a==";
const HEADER: &str = "team-token-91c4e7+d0/aa==";
const PRICE: &str = "price: { input_per_mtok_usd: 1, output_per_mtok_usd: 10 }";

/// Every provider, what its address ends with, and how it answers well.
const PROVIDERS: [(&str, &str, &str); 6] = [
    ("openai", "/v1", include_str!("../../../drivers/corpus/open_ai_responses/plain_text.sse")),
    ("openai_chat", "/v1", include_str!("../../../drivers/corpus/open_ai_chat/plain_text.sse")),
    ("anthropic", "", include_str!("../../../drivers/corpus/anthropic_messages/plain_text.sse")),
    ("gemini", "/v1beta", include_str!("../../../drivers/corpus/gemini/plain_text.sse")),
    ("ollama", "/v1", include_str!("../../../drivers/corpus/open_ai_chat/plain_text.sse")),
    ("openai_compatible", "/v1", include_str!("../../../drivers/corpus/open_ai_chat/plain_text.sse")),
];

/// The texts that must be nowhere: the secrets, and what is left of them in every encoding that people search for.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [KEY, HEADER] {
        forms.push(secret.to_owned());
        forms.push(secret[..16].to_owned());
        forms.push(percent(secret));
        for before in ["", "u", "us", "Bearer "] {
            let whole = format!("{before}{secret}");
            // Its middle: the ends depend on what stands around it.
            forms.extend(
                [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)].map(|text| text[12..28].to_owned()),
            );
        }
    }
    forms
}

fn percent(secret: &str) -> String {
    secret.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// An error that repeats everything that it was sent.
fn echo() -> String {
    let encoded = STANDARD.encode(format!("Bearer {KEY}"));
    format!(
        "incorrect api key {KEY}, header {HEADER}, {encoded}, {}, {}, {}",
        URL_SAFE_NO_PAD.encode(HEADER),
        percent(KEY),
        percent(HEADER)
    )
}

/// A tree on a model of this provider, with a key and a secret header.
fn tree(stage: &TestFolder, provider: &str, address: &str) -> String {
    let model = format!(
        "provider: {provider}, model: m, base_url: '{address}', key_env: TEST_MODEL_KEY, {PRICE}, \
         params: {{ headers: {{ x-team: TEST_TEAM_TOKEN }} }}"
    );
    stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1, retries: 0 }}\nmodels:\n  fast: {{ {model} }}\n\
             agents:\n  lead: {{ model: fast, tools: [write_file, list_files] }}\n"
        ),
    )
}

/// Runs it with the most verbose log, looks at it in every way, and searches everything. Gives what it said.
fn searched(stage: &TestFolder, file: &str, more: &[(&str, &str)]) -> String {
    let mut environment =
        vec![("TEST_MODEL_KEY", KEY), ("TEST_TEAM_TOKEN", HEADER), ("SPINNEY_LOG", "trace")];
    environment.extend_from_slice(more);
    let mut said = String::new();
    for args in [
        vec!["run", file, "--json"],
        vec!["events", "last", "--json"],
        vec!["events", "last"],
        vec!["show", "last", "lead"],
        vec!["resume", "last"],
    ] {
        let ended = stage.play_in(&args, &environment).end();
        said += &format!("{}\n{}\n", ended.out, ended.err);
    }
    let forms = forms();
    for form in &forms {
        assert!(!said.contains(form.as_str()), "{form} is in the output:\n{said}");
    }
    search(stage.folder(), &forms);
    said
}

fn search(folder: &Path, forms: &[String]) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, forms);
        } else if let Ok(bytes) = fs::read(&path) {
            for form in forms {
                let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
                assert!(!found, "{form} is in {}", path.display());
            }
        }
    }
}

/// Success, errors that repeat the key, errors within the stream, redirects and broken streams of every provider.
#[test]
fn no_provider_s_key_is_written_or_printed_whatever_it_answers() {
    let echo = echo();
    let in_stream =
        serde_json::json!({ "type": "error", "error": { "type": "server_error", "message": echo } });
    for (provider, path, well) in PROVIDERS {
        let elsewhere = Upstream::new(vec![Reply::error("401 Unauthorized", "", &echo)]);
        let location = format!("location: {}?key={}\r\n", elsewhere.url, percent(KEY));
        let replies = [
            Reply::recorded(well),
            Reply::error("401 Unauthorized", "", &echo),
            Reply::error("500 Internal Server Error", "", &echo),
            Reply::error("307 Temporary Redirect", &location, &echo),
            Reply::recorded(&format!("event: error\ndata: {in_stream}\n\n")),
            Reply::recorded(&well[..well.len() / 2]),
            Reply::recorded(&format!("data: {{\"{echo}\n\n")),
            Reply::Sent(format!("{echo}\r\n\r\n")),
        ];
        for reply in replies {
            let upstream = Upstream::new(vec![reply]);
            let stage = TestFolder::new();
            let address = upstream.url.replace("/v1", path);
            searched(&stage, &tree(&stage, provider, &address), &[]);
            let head = upstream.asked()[0].head.clone();
            assert!(head.contains(KEY) && head.contains(&format!("x-team: {HEADER}")), "{head}");
        }
        assert_eq!(elsewhere.asked().len(), 0, "a key went to another server");
    }
}

/// The same over TLS and HTTP/2, whose libraries log every frame, and where TLS fails.
#[test]
fn no_key_is_logged_by_http_2_or_tls() {
    let well = PROVIDERS[1].2;
    let table = [
        (
            Certificate::Here,
            Response { status: 200, media: "text/event-stream", body: well.to_owned() },
            true,
        ),
        (
            Certificate::Here,
            Response { status: 403, media: "text/plain", body: "not with {key}".to_owned() },
            true,
        ),
        (
            Certificate::Elsewhere,
            Response { status: 200, media: "text/event-stream", body: well.to_owned() },
            false,
        ),
    ];
    for (certificate, response, is_asked) in table {
        let upstream = TlsUpstream::new(certificate, response);
        let stage = TestFolder::new();
        let file = tree(&stage, "openai_chat", &format!("https://127.0.0.1:{}/v1", upstream.port));
        let said = searched(&stage, &file, &[("SSL_CERT_FILE", AUTHORITY)]);
        assert_eq!(upstream.headers().iter().any(|headers| headers.contains(KEY)), is_asked);
        assert_eq!(said.contains(" h2::"), is_asked, "the log of HTTP/2 is on");
    }
}
