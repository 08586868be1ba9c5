//! Gemini's requests: what is changed in them is the cap, in the spelling of the program, and nothing else.

use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};
use spinney_drivers::wire::Permitted;
use spinney_server::gateway::wire::{
    CallFormat, CallHead, CallRequest, CallUpstream, CapTooSmall, GatewayError, OpaqueTexts,
    TOLD_LINE_TOKENS_MAX,
};

use super::json_text::{name, space, value};
use super::read;

const LINE: &str = "Budget: more than 50 % of $5 is left.";

fn gemini(body: &str) -> CallRequest {
    read(CallFormat::Gemini, body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn lowered(body: &str, granted: u64) -> String {
    String::from_utf8(gemini(body).body(granted).unwrap().to_vec()).unwrap()
}

fn asked(path: &str, query: Option<&str>, permitted: &[&str]) -> Result<CallRequest, GatewayError> {
    let permitted: Permitted = permitted.iter().map(|name| name.parse().unwrap()).collect();
    let headers = HeaderMap::new();
    let (format, upstream) = (CallFormat::Gemini, CallUpstream::Provider);
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"googleSearch":{}}]}"#;
    let head = CallHead { format, upstream, headers: &headers, path, query, permitted: &permitted };
    CallRequest::read(head, body.into())
}

#[test]
fn the_cap_is_lowered_or_added_where_the_program_has_its_configuration() {
    let contents = r#""contents":[{"role":"user","parts":[{"text":"hi"}]}]"#;
    for (sent, held, up) in [
        (r#"{CONTENTS}"#, 1, r#"{"generationConfig":{"maxOutputTokens":60},CONTENTS}"#),
        (
            r#"{CONTENTS,"generationConfig":null}"#,
            1,
            r#"{CONTENTS,"generationConfig":{"maxOutputTokens":60}}"#,
        ),
        (
            r#"{CONTENTS,"generation_config":{}}"#,
            1,
            r#"{CONTENTS,"generation_config":{"maxOutputTokens":60}}"#,
        ),
        (
            r#"{CONTENTS,"generationConfig":{ "topP":1}}"#,
            1,
            r#"{CONTENTS,"generationConfig":{"maxOutputTokens":60, "topP":1}}"#,
        ),
        (
            r#"{"generationConfig":{"maxOutputTokens" : 90},CONTENTS}"#,
            90,
            r#"{"generationConfig":{"maxOutputTokens" : 60},CONTENTS}"#,
        ),
        (
            r#"{"generationConfig":{"max_output_tokens":"90"},CONTENTS}"#,
            90,
            r#"{"generationConfig":{"max_output_tokens":60},CONTENTS}"#,
        ),
        (
            r#"{"generationConfig":{"maxOutputTokens":null},CONTENTS}"#,
            1,
            r#"{"generationConfig":{"maxOutputTokens":60},CONTENTS}"#,
        ),
        (
            r#"{"generationConfig":{"maxOutputTokens":"50"},CONTENTS}"#,
            50,
            r#"{"generationConfig":{"maxOutputTokens":"50"},CONTENTS}"#,
        ),
    ] {
        let (sent, up) = (sent.replace("CONTENTS", contents), up.replace("CONTENTS", contents));
        assert_eq!(gemini(&sent).output_cap(1), held, "{sent}");
        assert_eq!(lowered(&sent, 60), up);
    }
}

#[test]
fn each_of_several_answers_has_its_share_of_what_is_granted() {
    let body = |cap: u64| {
        let config = json!({ "candidateCount": 4, "maxOutputTokens": cap });
        json!({ "contents": [{ "parts": [{ "text": "hi" }] }], "generationConfig": config }).to_string()
    };
    let call = gemini(&body(100));
    assert_eq!((call.output_cap(1), call.output_cap_min()), (400, 4));
    assert_eq!(lowered(&body(100), 400), body(100));
    assert_eq!(lowered(&body(100), 103), body(25));
    assert_eq!(call.body(3).unwrap_err(), CapTooSmall { granted: 3, min: 4 });
}

#[test]
fn the_model_and_the_form_of_the_answer_are_in_the_path() {
    let permitted = ["tool:googleSearch"];
    for (path, query, is_streamed) in [
        ("/v1beta/models/gemini-3.6-flash:generateContent", None, false),
        ("/v1/models/gemini-3.6-flash:generateContent", Some("key=k"), false),
        ("/models/gemini-3.6-flash:generateContent", Some("alt=json"), false),
        ("/v1beta/models/gemini-3.6-flash:streamGenerateContent", Some("alt=sse&key=k"), true),
    ] {
        let call = asked(path, query, &permitted).unwrap();
        assert_eq!((call.model(), call.is_streamed()), ("gemini-3.6-flash", is_streamed), "{path}");
        // A name that is allowed is listed.
        assert_eq!(call.outside_bound().len(), 1);
    }
    let refused = asked("/v1beta/models/m:generateContent", None, &[]).unwrap_err();
    assert_eq!(refused.refused.unwrap().name.to_string(), "tool:googleSearch");
    let list = asked("/v1beta/models/m:streamGenerateContent", None, &permitted).unwrap_err();
    assert!(list.message.contains("alt=sse"), "{list}");
}

#[test]
fn a_line_ends_the_system_instruction() {
    let contents = json!([{ "role": "user", "parts": [{ "text": "hi" }] }]);
    let told = |key: &str, instruction: Option<Value>| {
        let mut body = json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 1_000 } });
        if let Some(instruction) = instruction {
            body[key] = instruction;
        }
        let text = body.to_string();
        let up = gemini(&text).body_telling(1_000, LINE).unwrap();
        assert!((up.len() - text.len()) as u64 <= TOLD_LINE_TOKENS_MAX + 40);
        let up: Value = serde_json::from_slice(&up).unwrap();
        up[key].clone()
    };
    let (kind, line) = (json!({ "text": "Be kind" }), json!({ "text": LINE }));
    for key in ["systemInstruction", "system_instruction"] {
        assert_eq!(told(key, Some(json!({ "parts": [kind] })))["parts"], json!([kind, line]));
        assert_eq!(
            told(key, Some(json!({ "role": "system", "parts": [kind] })))["parts"],
            json!([kind, line])
        );
        assert_eq!(told(key, Some(json!({ "parts": kind })))["parts"], json!([kind, line]));
        assert_eq!(told(key, Some(json!({ "parts": [] })))["parts"], json!([line]));
        assert_eq!(told(key, Some(json!({ "parts": null })))["parts"], json!([line]));
        assert_eq!(told(key, Some(json!({})))["parts"], json!([line]));
        assert_eq!(told(key, Some(json!({ "role": "system" })))["parts"], json!([line]));
        assert_eq!(told(key, Some(Value::Null))["parts"], json!([line]));
    }
    assert_eq!(told("systemInstruction", None)["parts"], json!([line]));
}

#[test]
fn an_input_is_bounded_by_its_bytes_and_images_apart() {
    let max = |parts: Value| {
        let body = json!({ "contents": [{ "role": "user", "parts": parts }] }).to_string();
        gemini(&body).input_tokens_max(None, &[], &OpaqueTexts::default()).unwrap()
    };
    let base = max(json!([{ "text": "" }]));
    assert_eq!(max(json!([{ "text": "a".repeat(1_000) }])), base + 1_000);
    let image =
        |bytes: usize| json!([{ "inlineData": { "mimeType": "image/png", "data": "A".repeat(bytes) } }]);
    assert_eq!(max(image(4)), max(image(40_000)), "the bytes of an image are not text");
    assert!(max(image(4)) > base + 4_386);
}

/// A field that passes at the provider's own address and is not read.
fn unread() -> impl Strategy<Value = (String, [String; 3], String)> {
    let names = ["labels", "safetySettings", "safety_settings", "toolConfig"];
    let name = prop::sample::select(names.to_vec()).prop_flat_map(name);
    (name, [space(), space(), space()], prop_oneof![Just("null".to_owned()), value()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// G12: nothing but the cap is changed, whatever is around it.
    #[test]
    fn g12_a_request_of_gemini_changes_in_nothing_but_the_cap(
        (asked, granted) in (1_u64..5_000, 1_u64..5_000),
        unread in prop::collection::vec(unread(), 0..2),
        (text, before, after) in (value(), space(), space()),
        (config, cap, is_text) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let config = if config { "generationConfig" } else { "generation_config" };
        let cap = if cap { "maxOutputTokens" } else { "max_output_tokens" };
        let others: String =
            unread.iter().map(|(name, [a, b, c], value)| format!("{a}{name}{b}:{c}{value},")).collect();
        let body = |cap_value: &str| format!(
            "{before}{{{others}\"contents\":[{{\"parts\":[{{\"functionCall\":{{\"name\":\"f\",\"args\":{text}}}}}]}}],\
             \"{config}\":{{\"{cap}\" :{before}{cap_value}}}{after}}}{after}"
        );
        let sent = body(&if is_text { format!("\"{asked}\"") } else { asked.to_string() });
        // Two names of one field are refused, and so is an unknown setting of tools.
        let Ok(call) = read(CallFormat::Gemini, &sent) else { return Ok(()) };
        let up = call.body(granted).unwrap();
        let expected = if asked > granted { body(&granted.to_string()) } else { sent };
        prop_assert_eq!(std::str::from_utf8(&up).unwrap(), expected);
    }

    /// Nothing that a program sends makes the gateway panic, and what is read goes up as JSON again.
    #[test]
    fn whatever_is_read_of_gemini_goes_up_as_json(
        members in prop::collection::vec((prop::sample::select(vec![
            "contents", "generationConfig", "generation_config", "systemInstruction", "tools", "toolConfig",
            "safetySettings", "labels",
        ]), value()), 0..6),
        granted in 1_u64..5_000,
    ) {
        let members: Vec<String> = members.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let body = format!("{{{}}}", members.join(","));
        for told in [false, true] {
            if let Ok(call) = read(CallFormat::Gemini, &body) {
                let granted = granted.max(call.output_cap_min());
                let up = if told { call.body_telling(granted, LINE) } else { call.body(granted) }.unwrap();
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&up).is_ok(), "{:?}", up);
                prop_assert!(call.input_tokens_max(Some(1_000), &[], &OpaqueTexts::default()).unwrap() > 0);
            }
        }
    }
}
