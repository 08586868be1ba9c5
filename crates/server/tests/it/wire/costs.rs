//! Requests whose cost no hold bounds are refused, with what to do instead; all others pass.

use spinney_server::gateway::wire::{CallFormat, GatewayErrorKind};

use super::read;

fn body(member: &str) -> String {
    format!("{{\"model\":\"gpt-5\",{member}}}")
}

#[test]
fn what_no_hold_bounds_is_refused() {
    let (messages, chat, responses) = (CallFormat::Messages, CallFormat::Chat, CallFormat::Responses);
    let cases = [
        (messages, r#""tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8}]"#),
        (messages, r#""tools":[{"name":"a"},{"type":"code_execution_20250825","name":"b"}]"#),
        (messages, r#""tools":[{"type":"web_fetch_20250910","name":"b"}]"#),
        (messages, r#""tools":[{"type":"mcp_toolset"}]"#),
        (messages, r#""mcp_servers":[{"url":"https://x"}]"#),
        (messages, r#""speed":"fast""#),
        (messages, r#""inference_geo":"us""#),
        (messages, r#""container":"c""#),
        (messages, r#""context_management":{"edits":[{"type":"compact_20260112"}]}"#),
        (chat, r#""n":2"#),
        (chat, r#""n":1.0"#),
        (chat, r#""service_tier":"priority""#),
        (chat, r#""service_tier":7"#),
        (chat, r#""modalities":["text","audio"]"#),
        (chat, r#""audio":{"voice":"x"}"#),
        (chat, r#""prediction":{"type":"content"}"#),
        (chat, r#""web_search_options":{"x":1}"#),
        // To be there is enough.
        (chat, r#""web_search_options":{}"#),
        (chat, r#""web_search_options": { }"#),
        (chat, r#""search_parameters":{}"#),
        (chat, r#""tools":[{"type":"web_search"}]"#),
        (chat, r#""messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]"#),
        (chat, r#""messages":[{"role":"assistant","audio":{"id":"x"}}]"#),
        (responses, r#""background":true"#),
        (responses, r#""tools":[{"type":"web_search","external_web_access":false}]"#),
        (responses, r#""tools":[{"type":"file_search"}]"#),
        (responses, r#""tools":[{"type":"code_interpreter"}]"#),
        (responses, r#""tools":[{"type":"image_generation"}]"#),
        (responses, r#""tools":[{"type":"mcp"}]"#),
        (responses, r#""tools":[{"type":"tool_search"}]"#),
        (responses, r#""tools":[{"type":"shell","environment":{"type":"container_auto"}}]"#),
        (responses, r#""tools":[{"type":"namespace","name":"x","tools":[{"type":"web_search"}]}]"#),
        (responses, r#""context_management":[{"type":"compaction","compact_threshold":9}]"#),
        (responses, r#""input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]"#),
        (
            responses,
            r#""input":["x",{"type":"tool_search_output","tools":[{"type":"function"},{"type":"mcp"}]}]"#,
        ),
        (responses, r#""prompt":{"id":"p"}"#),
        (responses, r#""input":[{"role":"user","content":[{"type":"input_audio"}]}]"#),
    ];
    for (format, member) in cases {
        let error = read(format, &body(member)).map(|_| ()).unwrap_err();
        assert_eq!(error.kind, GatewayErrorKind::Refused, "{member}");
    }
}

#[test]
fn what_costs_only_its_tokens_passes() {
    let (messages, chat, responses) = (CallFormat::Messages, CallFormat::Chat, CallFormat::Responses);
    let cases = [
        (
            messages,
            r#""tools":[{"name":"Bash","input_schema":{}},{"type":"custom","name":"x"},{"type":null}]"#,
        ),
        (
            messages,
            r#""tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"}]"#,
        ),
        (messages, r#""mcp_servers":[],"speed":"standard","service_tier":"auto","container":null"#),
        (messages, r#""context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#),
        (messages, r#""metadata":{"user_id":"x"},"output_config":{"effort":"high"}"#),
        (chat, r#""n":1,"service_tier":"default","modalities":["text"],"prediction":null"#),
        (chat, r#""web_search_options":null,"search_parameters":null,"web_search":false"#),
        (chat, r#""tools":[{"type":"function","function":{"name":"web_search"}}]"#),
        (
            responses,
            r#""background":false,"service_tier":"flex","store":false,"include":["reasoning.encrypted_content"]"#,
        ),
        (
            responses,
            r#""tools":[{"type":"function","name":"shell"},{"type":"custom","name":"apply_patch"},{"type":"local_shell"}]"#,
        ),
        (responses, r#""tools":[{"type":"namespace","name":"x","tools":[{"type":"function","name":"y"}]}]"#),
        (responses, r#""tools":[{"type":"tool_search","execution":"client"}]"#),
        (
            responses,
            r#""input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}]"#,
        ),
    ];
    for (format, member) in cases {
        assert!(read(format, &body(member)).is_ok(), "{member}");
    }
}

#[test]
fn a_refusal_says_how_the_program_turns_the_tool_off() {
    let error = read(CallFormat::Responses, &body(r#""tools":[{"type":"web_search"}]"#)).unwrap_err();
    assert_eq!(
        error.message,
        "`tool:web_search`: the provider runs this tool, bills it separately and calls the model again: turn it off (Codex: -c web_search=disabled); the person who started this run can allow it, but the budget does not bound its cost"
    );
    let error = read(CallFormat::Chat, &body(r#""prediction":{"type":"content"}"#)).unwrap_err();
    assert_eq!(
        error.message,
        "`prediction`: unused predicted tokens are billed as output: leave it out; the person who started this run can allow it, but the budget does not bound its cost"
    );
}
