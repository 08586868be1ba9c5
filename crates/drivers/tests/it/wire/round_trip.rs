//! What a provider wants back goes back: byte for byte, in its place, and to no other model.

use serde_json::Value;
use spinney_drivers::wire::bounds::CONTINUATION_BYTES_MAX;
use spinney_drivers::wire::{
    Continuation, Keep, WireAnswer, WireFormat, WireMessage, WirePart, WireRequest, read_whole, write,
};

use super::{all, read, read_as, stream};

/// A request that tells a model what was answered before. What goes back is read from the bytes that are kept of it.
fn next(model: &str, answer: WireAnswer) -> WireRequest {
    let kept = answer.continuation.map(|continuation| continuation.to_bytes().unwrap());
    let continuation = kept.map(|bytes| Continuation::from_bytes(&bytes).unwrap());
    let said = WireMessage::Assistant { text: answer.text, calls: answer.calls, continuation };
    let user = |text: &str| WireMessage::User(vec![WirePart::Text(text.to_owned())]);
    let messages = vec![user("begin"), said, user("go on")];
    WireRequest { model: model.to_owned(), messages, output_cap: 100, ..WireRequest::default() }
}

fn body(format: WireFormat, model: &str, answer: &WireAnswer) -> String {
    String::from_utf8(write(format, &next(model, answer.clone())).unwrap()).unwrap()
}

/// The text between two others, which the body has once.
fn between<'b>(body: &'b str, before: &str, after: &str) -> &'b str {
    let (_, rest) = body.split_once(before).unwrap_or_else(|| panic!("{before} is not in {body}"));
    rest.split_once(after).unwrap_or_else(|| panic!("{after} is not in {rest}")).0
}

fn kept(format: WireFormat) -> WireAnswer {
    read(&stream(format, "thinking_and_tools")).answer
}

#[test]
fn thinking_blocks_stand_where_they_stood() {
    let format = WireFormat::AnthropicMessages;
    let body = body(format, "asked", &kept(format));
    insta::assert_snapshot!(between(&body, r#""assistant","content":["#, r#"]},{"role":"user""#), @r#"{"type":"thinking","thinking":"First I look \"around\".","signature":"EqQBCg==/+"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_01","name":"list_files","input":{"folder": "src"}},{ "type":"redacted_thinking",  "data":"EmwK\/secret=="},{"type":"thinking","thinking":"Then.","signature":"Second=="},{"type":"tool_use","id":"toolu_02","name":"read_file","input":{"path":"ä.txt"}}"#);
}

#[test]
fn encrypted_reasoning_keeps_its_id_its_bytes_and_its_order() {
    let format = WireFormat::OpenAiResponses;
    let body = body(format, "asked", &kept(format));
    insta::assert_snapshot!(between(&body, r#""text":"begin"}]},"#, r#",{"type":"message","role":"user""#), @r#"{ "id":"rs_1", "type":"reasoning",  "encrypted_content":"gAAAA\/first\u003d","summary":[{"type":"summary_text","text":"**Looking** at it"},{"type":"summary_text","text":"Then the files"}] },{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a.txt\"}","call_id":"call_a1","name":"read_file"},{ "id":"rs_2", "type":"reasoning",  "encrypted_content":"gAAAAsecond==","summary":[] },{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_b2","name":"list_files"},{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Reading both."}],"role":"assistant"}"#);
}

#[test]
fn thought_signatures_stay_on_their_parts() {
    let format = WireFormat::Gemini;
    let body = body(format, "asked", &kept(format));
    insta::assert_snapshot!(between(&body, r#""model","parts":["#, r#"]},{"role":"user""#), @r#"{"text":"I look."},{ "functionCall":{"name":"list_files","args":{"folder":"src", "deep":true}}, "thoughtSignature":"CsQB\/a+=="},{"functionCall":{"name":"read_file","args":{"path":"a.txt"}}},{"text":"","thoughtSignature":"TrailingSig=="}"#);
}

#[test]
fn another_model_or_another_format_is_sent_none_of_it() {
    let secret = ["EqQB", "EmwK", "gAAAA", "CsQB", "TrailingSig", "S1=="];
    for stream in all() {
        let answer = read(&stream).answer;
        for format in WireFormat::ALL {
            let others = if format == stream.format { vec!["other"] } else { vec!["asked", "other"] };
            for model in others {
                let body = body(format, model, &answer);
                assert!(
                    !secret.iter().any(|secret| body.contains(secret)),
                    "{} to {model}: {body}",
                    stream.shape
                );
                assert!(serde_json::from_str::<Value>(&body).is_ok());
            }
        }
    }
}

#[test]
fn every_answer_goes_back_to_its_own_model_with_all_texts_and_calls() {
    for stream in all() {
        let answer = read(&stream).answer;
        let body = body(stream.format, "asked", &answer);
        for call in &answer.calls {
            let id = if stream.format == WireFormat::Gemini { &call.name } else { &call.id };
            assert!(body.contains(id.as_str()), "{}: {body}", stream.shape);
        }
        if !answer.text.contains(['"', '\n']) {
            assert!(body.contains(&answer.text), "{}: {body}", stream.shape);
        }
    }
}

#[test]
fn a_call_that_was_dropped_stays_dropped_and_takes_its_reasoning_along() {
    let mut answer = kept(WireFormat::OpenAiResponses);
    answer.calls.remove(0);
    let sent = body(WireFormat::OpenAiResponses, "asked", &answer);
    assert!(!sent.contains("rs_1") && !sent.contains("fc_1") && !sent.contains("call_a1"), "{sent}");
    assert!(sent.contains("rs_2") && sent.contains("fc_2"), "{sent}");

    let mut answer = kept(WireFormat::AnthropicMessages);
    answer.calls.clear();
    let sent = body(WireFormat::AnthropicMessages, "asked", &answer);
    assert!(!sent.contains("toolu_") && sent.contains("EqQBCg==/+") && sent.contains("EmwK"), "{sent}");
}

#[test]
fn a_text_that_was_cut_meanwhile_is_sent_once_and_as_it_is_now() {
    for format in [WireFormat::AnthropicMessages, WireFormat::Gemini, WireFormat::OpenAiResponses] {
        let mut answer = kept(format);
        answer.text = "Short.".to_owned();
        let sent = body(format, "asked", &answer);
        assert_eq!(sent.matches("Short.").count(), 1, "{sent}");
        assert!(!sent.contains("Reading both.") && !sent.contains("I look."), "{sent}");
    }
}

#[test]
fn reasoning_that_nothing_followed_is_not_sent_to_openai() {
    let answer = read(&stream(WireFormat::OpenAiResponses, "content_filter")).answer;
    assert!(answer.continuation.is_some());
    assert!(!body(WireFormat::OpenAiResponses, "asked", &answer).contains("rs_1"));
}

#[test]
fn newer_gemini_models_get_a_placeholder_for_calls_of_other_models() {
    let answer = read(&stream(WireFormat::OpenAiChat, "parallel_tools")).answer;
    let newer = body(WireFormat::Gemini, "gemini-3-pro", &answer);
    assert_eq!(newer.matches("skip_thought_signature_validator").count(), 1);
    assert!(!body(WireFormat::Gemini, "gemini-2.5-pro", &answer).contains("thoughtSignature"));
}

#[test]
fn kept_bytes_that_are_damaged_or_too_large_are_refused() {
    let bytes = kept(WireFormat::AnthropicMessages).continuation.unwrap().to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(Continuation::from_bytes(&bytes[..end]).is_err());
    }
    assert!(Continuation::from_bytes(&vec![b' '; CONTINUATION_BYTES_MAX + 1]).is_err());
}

#[test]
fn a_whole_body_reads_like_its_stream() {
    let chat = r#"{"id":"c1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"t1","type":"function","function":{"name":"now","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;
    let responses = r#"{"id":"c1","model":"m","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"t1","name":"now","arguments":"{}"}],"usage":{"input_tokens":3,"output_tokens":2}}"#;
    let anthropic = r#"{"id":"c1","type":"message","model":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"now","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#;
    let gemini = r#"{"responseId":"c1","modelVersion":"m","candidates":[{"content":{"parts":[{"text":"hi"},{"functionCall":{"id":"t1","name":"now","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#;
    let table = [
        (WireFormat::OpenAiChat, chat),
        (WireFormat::OpenAiResponses, responses),
        (WireFormat::AnthropicMessages, anthropic),
        (WireFormat::Gemini, gemini),
    ];
    let answers = table
        .map(|(format, body)| read_whole(&read_as(format, Keep::Everything), body, &mut |_| {}).unwrap());
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    assert_eq!((answers[0].usage.input, answers[0].usage.output), (Some(3), Some(2)));
}
