//! Which paths are served, who speaks, and what we answer ourselves.

use http::{HeaderMap, HeaderValue, Method, Uri};
use proptest::prelude::*;
use serde_json::{Value, json};
use spinney_server::gateway::wire::{
    AgentProgram, CallFormat, Caller, GatewayError, GatewayErrorKind, GatewayRoute, ProviderApi, WireId,
    ping, stream_error,
};

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn route(method: &Method, path: &'static str, pairs: &[(&'static str, &'static str)]) -> GatewayRoute {
    GatewayRoute::new(method, &Uri::from_static(path), &headers(pairs))
}

#[test]
fn paths_of_all_formats_are_served_and_no_others() {
    let (post, get) = (Method::POST, Method::GET);
    let anthropic = [("anthropic-version", "2023-06-01")];
    assert_eq!(route(&post, "/v1/messages?beta=true", &[]), GatewayRoute::Call(CallFormat::Messages));
    assert_eq!(
        route(&post, "/v1/messages/count_tokens", &[]),
        GatewayRoute::CountTokens(ProviderApi::Anthropic)
    );
    assert_eq!(route(&post, "/v1/chat/completions", &[]), GatewayRoute::Call(CallFormat::Chat));
    assert_eq!(route(&post, "/chat/completions", &[]), GatewayRoute::Call(CallFormat::Chat));
    assert_eq!(route(&post, "/v1/responses", &[]), GatewayRoute::Call(CallFormat::Responses));
    assert_eq!(route(&get, "/v1/models", &[]), GatewayRoute::Models(ProviderApi::OpenAi));
    assert_eq!(
        route(&get, "/v1/models?client_version=1", &anthropic),
        GatewayRoute::Models(ProviderApi::Anthropic)
    );
    assert_eq!(route(&get, "/v1/models/gpt-5.1:x", &[]), GatewayRoute::Models(ProviderApi::OpenAi));
    let gemini = GatewayRoute::Call(CallFormat::Gemini);
    for version in ["/v1beta", "/v1", ""] {
        for (method, asked) in [
            ("generateContent", gemini),
            ("streamGenerateContent?alt=sse", gemini),
            ("countTokens", GatewayRoute::CountTokens(ProviderApi::Gemini)),
            ("embedContent", GatewayRoute::Unknown(ProviderApi::Gemini)),
            ("batchGenerateContent", GatewayRoute::Unknown(ProviderApi::Gemini)),
        ] {
            let path = format!("{version}/models/gemini-3.6-flash:{method}");
            let uri: Uri = path.parse().unwrap();
            assert_eq!(GatewayRoute::new(&post, &uri, &HeaderMap::new()), asked, "{path}");
        }
    }
    let google = [("x-goog-api-key", "k")];
    assert_eq!(route(&get, "/v1beta/models", &[]), GatewayRoute::Models(ProviderApi::Gemini));
    assert_eq!(route(&get, "/v1/models?key=k", &[]), GatewayRoute::Models(ProviderApi::Gemini));
    assert_eq!(
        route(&get, "/v1/models/gemini-3.6-flash", &google),
        GatewayRoute::Models(ProviderApi::Gemini)
    );
    assert_eq!(
        route(&get, "/v1/models/m:generateContent", &google),
        GatewayRoute::Unknown(ProviderApi::Gemini)
    );
    assert_eq!(route(&post, "/v1/models/llama3:8b", &[]), GatewayRoute::Unknown(ProviderApi::OpenAi));
    assert_eq!(route(&post, "/v1beta/chat/completions", &[]), GatewayRoute::Unknown(ProviderApi::Gemini));
    let upgrade = [("upgrade", "websocket")];
    assert_eq!(route(&get, "/v1/responses", &upgrade), GatewayRoute::WebSocket);
    for path in [
        "/",
        "/v1",
        "/v1/embeddings",
        "/v1/responses/compact",
        "/v1/files",
        "/v1/models/../files",
        "/v1/models/%2e%2e",
        "/v1/models/",
        "/v1/v1/messages",
        "//v1/messages",
    ] {
        for method in [&post, &get] {
            assert_eq!(
                route(method, path, &anthropic),
                GatewayRoute::Unknown(ProviderApi::Anthropic),
                "{path}"
            );
        }
    }
    assert_eq!(route(&get, "/v1/messages", &[]), GatewayRoute::Unknown(ProviderApi::OpenAi));
}

#[test]
fn a_request_goes_to_the_same_path_below_the_address_of_the_provider() {
    let url = |method: &Method, path, base| {
        let uri = Uri::from_static(path);
        GatewayRoute::new(method, &uri, &HeaderMap::new()).upstream_url(&uri, base)
    };
    let at = |text: &str| Some(text.to_owned());
    let (post, get) = (Method::POST, Method::GET);
    let anthropic = ProviderApi::Anthropic.base_url();
    assert_eq!(
        url(&post, "/v1/messages?beta=true", anthropic),
        at("https://api.anthropic.com/v1/messages?beta=true")
    );
    assert_eq!(url(&post, "/v1/messages", "http://h/v1/"), at("http://h/v1/messages"));
    let gemini = ProviderApi::Gemini.base_url();
    let stream = "/v1beta/models/m:streamGenerateContent?key=k&alt=sse&key=l";
    assert_eq!(
        url(&post, stream, gemini),
        at("https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse")
    );
    assert_eq!(
        url(&post, stream, "http://h/g/v1beta/"),
        at("http://h/g/v1beta/models/m:streamGenerateContent?alt=sse")
    );
    assert_eq!(
        url(&post, "/v1/models/m:countTokens?key=k", "http://h"),
        at("http://h/v1/models/m:countTokens")
    );
    assert_eq!(
        url(&post, "/models/m:generateContent", "http://h/v1"),
        at("http://h/v1beta/models/m:generateContent")
    );
    assert_eq!(
        url(&get, "/v1beta/models", gemini),
        at("https://generativelanguage.googleapis.com/v1beta/models")
    );
    assert_eq!(
        url(&post, "/responses", ProviderApi::OpenAi.base_url()),
        at("https://api.openai.com/v1/responses")
    );
    assert_eq!(url(&get, "/v1/models/x", "http://h:1/api"), at("http://h:1/api/models/x"));
    assert_eq!(url(&get, "/v1/files", "http://h"), None);
}

fn id(text: &str) -> Option<WireId> {
    WireId::new(text)
}

#[test]
fn each_program_says_who_speaks_in_its_own_headers() {
    let main = Caller::from_headers(&headers(&[
        ("user-agent", "claude-cli/2.1.0"),
        ("x-claude-code-session-id", "s"),
    ]));
    let nobody = Caller {
        program: AgentProgram::Other,
        session: None,
        agent: None,
        parent: None,
        role: None,
        name: None,
    };
    assert_eq!(main, Caller { program: AgentProgram::ClaudeCode, session: id("s"), ..nobody.clone() });
    let below = Caller::from_headers(&headers(&[
        ("x-claude-code-session-id", "s"),
        ("x-claude-code-agent-id", "a1"),
        ("x-claude-code-parent-agent-id", "a0"),
    ]));
    assert_eq!(below, Caller { agent: id("a1"), parent: id("a0"), ..main });
    let codex = Caller::from_headers(&headers(&[
        ("originator", "codex_exec"),
        ("session-id", "s"),
        ("thread-id", "t"),
    ]));
    assert_eq!(codex, Caller { program: AgentProgram::Codex, session: id("s"), ..nobody.clone() });
    // opencode and Kilo: each sub-agent is a session below another one.
    let session = |own: &'static str, parent: Option<&'static str>| {
        let own = [("user-agent", "opencode/1.1.49"), ("x-session-id", own)];
        let parent = parent.map(|parent| ("x-parent-session-id", parent));
        Caller::from_headers(&headers(&own.into_iter().chain(parent).collect::<Vec<_>>()))
    };
    assert_eq!(session("ses_a", None), Caller { session: id("ses_a"), ..nobody.clone() });
    let below = Caller { agent: id("ses_b"), parent: id("ses_a"), ..nobody.clone() };
    assert_eq!(session("ses_b", Some("ses_a")), below);
    assert_eq!(session("not plain", Some("ses_a")), nobody);
    let thread = Caller::from_headers(&headers(&[
        ("originator", "codex_exec"),
        ("session-id", "s"),
        ("thread-id", "u"),
        ("x-codex-parent-thread-id", "t"),
        ("x-openai-subagent", "collab_spawn"),
        ("x-codex-turn-metadata", r#"{"session_id":"s","agent_name":"/main/oaks","window_number":0}"#),
    ]));
    // The session is the main thread, so what is below it has no other parent.
    let below_main = Caller::from_headers(&headers(&[
        ("user-agent", "codex_exec/0.166.0"),
        ("session-id", "s"),
        ("thread-id", "u"),
        ("x-codex-parent-thread-id", "s"),
    ]));
    assert_eq!(below_main, Caller { agent: id("u"), ..codex.clone() });
    assert_eq!(
        thread,
        Caller { agent: id("u"), parent: id("t"), role: id("collab_spawn"), name: id("oaks"), ..codex }
    );
    assert_eq!(Caller::from_headers(&headers(&[("user-agent", "goose/1")])), nobody);
}

proptest! {
    /// Whatever a header says, an id is plain and short, or missing.
    #[test]
    fn ids_are_plain_or_missing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut map = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            for name in ["x-claude-code-session-id", "x-claude-code-agent-id", "x-claude-code-parent-agent-id"] {
                map.insert(name, value.clone());
            }
        }
        let caller = Caller::from_headers(&map);
        // An agent is not its own parent.
        prop_assert_eq!(caller.parent, None);
        for id in [caller.session, caller.agent].into_iter().flatten() {
            prop_assert!(id.as_str().len() <= 128 && !id.as_str().contains(|c: char| !c.is_ascii_graphic()));
        }
    }
}

#[test]
fn a_header_that_is_there_twice_counts_as_missing() {
    let mut map = headers(&[("x-claude-code-session-id", "s")]);
    map.append("x-claude-code-agent-id", HeaderValue::from_static("a"));
    map.append("x-claude-code-agent-id", HeaderValue::from_static("b"));
    assert_eq!(Caller::from_headers(&map).agent, None);
}

#[test]
fn an_error_has_the_status_at_which_its_program_shows_the_text() {
    let ceiling = GatewayError::new(GatewayErrorKind::Ceiling, "the budget of $5 is reached");
    let reply = |program, api| {
        let reply = ceiling.reply(api, program);
        let json: Value = serde_json::from_slice(&reply.body)
            .unwrap_or_else(|_| json!(String::from_utf8(reply.body.to_vec()).unwrap()));
        (reply.status.as_u16(), reply.headers["x-should-retry"].to_str().unwrap().to_owned(), json)
    };
    let anthropic = json!({ "type": "error", "error": { "type": "billing_error", "message": "the budget of $5 is reached" } });
    let open_ai = json!({ "error": { "message": "the budget of $5 is reached", "type": "invalid_request_error", "param": null, "code": "budget_reached" } });
    let no = "false".to_owned();
    assert_eq!(reply(AgentProgram::ClaudeCode, ProviderApi::Anthropic), (402, no.clone(), anthropic));
    assert_eq!(
        reply(AgentProgram::Codex, ProviderApi::OpenAi),
        (400, no.clone(), json!("the budget of $5 is reached"))
    );
    assert_eq!(reply(AgentProgram::Other, ProviderApi::OpenAi), (402, no.clone(), open_ai));
    let google = json!({ "error": { "code": 402, "message": "the budget of $5 is reached", "status": "FAILED_PRECONDITION" } });
    assert_eq!(reply(AgentProgram::Other, ProviderApi::Gemini), (402, no, google));
}

/// The data of the only event in these bytes.
fn event(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with("\n\n") && text.matches("\n\n").count() == 1, "{text}");
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn every_error_is_one_event_of_a_stream_that_has_begun() {
    for kind in GatewayErrorKind::ALL {
        let error = GatewayError::new(kind, "first line\nsecond \"line\"");
        let message = "first line\nsecond \"line\"";
        assert_eq!(event(&error.event(CallFormat::Messages))["error"]["message"], message);
        assert_eq!(event(&error.event(CallFormat::Chat))["error"]["message"], message);
        let failed = event(&error.event(CallFormat::Responses));
        assert_eq!(failed["response"]["error"]["message"], message);
        assert_eq!(failed["type"], "response.failed");
        // Google's SDKs look for one that is no event.
        let google: Value = serde_json::from_slice(&error.event(CallFormat::Gemini)).unwrap();
        assert_eq!(google["error"]["message"], message);
        assert!(google["error"]["code"].as_u64().is_some_and(|code| code >= 400));
    }
    let long = GatewayError::new(GatewayErrorKind::Internal, "é".repeat(4_000));
    assert_eq!(long.message.len(), 2_048);
}

#[test]
fn an_error_of_the_provider_becomes_an_event_with_its_own_words() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    assert_eq!(event(&stream_error(CallFormat::Messages, 529, body))["error"]["type"], "overloaded_error");
    let body = br#"{ "error": {"message":"slow down", "code":"rate_limit_exceeded"} }"#;
    assert_eq!(event(&stream_error(CallFormat::Chat, 429, body))["error"]["code"], "rate_limit_exceeded");
    let failed = event(&stream_error(CallFormat::Responses, 429, body));
    assert_eq!(failed["response"]["error"], json!({ "code": "rate_limit_exceeded", "message": "slow down" }));
    let body = br#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#;
    let google: Value = serde_json::from_slice(&stream_error(CallFormat::Gemini, 503, body)).unwrap();
    assert_eq!(google, json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }));
    let html = event(&stream_error(CallFormat::Messages, 502, b"<html>"));
    assert_eq!(html["error"]["message"], "the provider answered with status 502");
}

#[test]
fn pings_are_whole_events_or_comments() {
    for format in CallFormat::ALL {
        let ping = std::str::from_utf8(ping(format)).unwrap();
        assert!(ping.ends_with("\n\n"));
        let is_empty = format == CallFormat::Gemini && ping == "\n\n";
        assert!(is_empty || ping.starts_with(':') || ping.starts_with("event: "));
    }
}
