//! The line that tells an agent what is left of the budget: it stands at the end of the system prompt, whatever form that
//! has, and everything before it is what the program sent.

use serde_json::{Value, json};
use spinney_server::gateway::wire::{CallFormat, TOLD_LINE_BYTES_MAX, TOLD_LINE_TOKENS_MAX};

use super::read;

const LINE: &str = "Budget: more than 50 % of $5 is left.";

/// What goes up of a request, with the line.
fn told(format: CallFormat, request: &Value) -> Value {
    let text = request.to_string();
    let call = read(format, &text).unwrap();
    let body = call.body_telling(1_000, LINE).unwrap();
    assert_eq!(call.body(1_000).unwrap(), text.as_bytes(), "without a line nothing changes");
    let added = body.len() - text.len();
    assert!(added as u64 <= TOLD_LINE_TOKENS_MAX + 40, "{added} bytes were added");
    serde_json::from_slice(&body).unwrap()
}

fn user() -> Value {
    json!([{ "role": "user", "content": "hi" }])
}

#[test]
fn a_line_ends_the_system_prompt_of_messages() {
    let request =
        |system: Value| json!({ "model": "m", "max_tokens": 1_000, "system": system, "messages": user() });
    let system = |given| told(CallFormat::Messages, &request(given))["system"].clone();
    assert_eq!(system(json!("Be \"kind\"")), json!(format!("Be \"kind\"\n\n{LINE}")));
    assert_eq!(system(Value::Null), json!(LINE));
    let cached = json!({ "type": "text", "text": "Be kind", "cache_control": { "type": "ephemeral" } });
    let line = json!({ "type": "text", "text": LINE });
    assert_eq!(system(json!([cached])), json!([cached, line]));
    assert_eq!(system(json!([])), json!([line]));
    let without = json!({ "model": "m", "max_tokens": 1_000, "messages": user() });
    assert_eq!(told(CallFormat::Messages, &without)["system"], json!(LINE));
}

#[test]
fn a_line_ends_the_system_message_of_a_chat() {
    let messages = |given: Value| {
        let request = json!({ "model": "m", "max_completion_tokens": 1_000, "messages": given });
        told(CallFormat::Chat, &request)["messages"].clone()
    };
    let system = |text: &str| json!({ "role": "system", "content": text });
    let (hi, with) = (user()[0].clone(), format!("Be kind\n\n{LINE}"));
    assert_eq!(messages(json!([system("Be kind"), hi])), json!([system(&with), hi]));
    // A system message later in the conversation is not the prompt.
    assert_eq!(
        messages(json!([system("a"), system("Be kind"), hi, system("later")])),
        json!([system("a"), system(&with), hi, system("later")])
    );
    assert_eq!(messages(json!([hi])), json!([system(LINE), hi]));
    let parts = json!({ "role": "developer", "content": [{ "type": "text", "text": "a" }] });
    let both = json!({ "role": "developer", "content": [
        { "type": "text", "text": "a" }, { "type": "text", "text": LINE },
    ] });
    assert_eq!(messages(json!([parts, hi])), json!([both, hi]));
}

#[test]
fn a_line_ends_the_instructions_of_a_response() {
    let request = |instructions: Value| json!({ "model": "m", "max_output_tokens": 1_000, "input": "hi", "instructions": instructions });
    let instructions = |given| told(CallFormat::Responses, &request(given))["instructions"].clone();
    assert_eq!(instructions(json!("Be kind")), json!(format!("Be kind\n\n{LINE}")));
    assert_eq!(instructions(Value::Null), json!(LINE));
    let without = json!({ "model": "m", "max_output_tokens": 1_000, "input": "hi" });
    assert_eq!(told(CallFormat::Responses, &without)["instructions"], json!(LINE));
}

/// No token is shorter than a byte, so the bound of a line is that of its bytes.
#[test]
fn a_line_that_is_too_long_is_cut() {
    let text = json!({ "model": "m", "max_tokens": 1_000, "messages": user() }).to_string();
    let body = read(CallFormat::Messages, &text).unwrap().body_telling(1_000, &"ü".repeat(10_000)).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["system"].as_str().unwrap().len(), TOLD_LINE_BYTES_MAX);
}
