//! The three formats, as far as the bench needs them: a request, and the events of an answer.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Messages,
    Chat,
    Responses,
}

impl Format {
    pub(crate) const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    pub(crate) fn from_path(path: &str) -> Self {
        Self::ALL.into_iter().find(|format| path.ends_with(format.path())).unwrap()
    }

    /// What the first event with text has, and no earlier one.
    pub(crate) const fn first_text(self) -> &'static [u8] {
        match self {
            Self::Messages => b"text_delta",
            Self::Chat => b"\"content\"",
            Self::Responses => b"output_text.delta",
        }
    }

    /// A streamed request whose text has about so many bytes. No two are the same, so the journal keeps each.
    pub(crate) fn body(self, number: usize, bytes: usize) -> String {
        const PARAGRAPH: &str = "fn area(width: u64, height: u64) -> u64 {\\n    width * height\\n}\\n\\n";
        let text = format!("{number} {}", PARAGRAPH.repeat(bytes / PARAGRAPH.len()));
        match self {
            Self::Messages => format!(
                r#"{{"model":"m","max_tokens":32000,"stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
            ),
            Self::Chat => format!(
                r#"{{"model":"m","max_completion_tokens":32000,"stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
            ),
            Self::Responses => {
                format!(r#"{{"model":"m","max_output_tokens":32000,"stream":true,"input":"{text}"}}"#)
            }
        }
    }

    pub(crate) fn first_events(self) -> String {
        match self {
            Self::Messages => format!(
                "{}{}",
                named(
                    "message_start",
                    r#"{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#,
                ),
                named(
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                )
            ),
            Self::Chat => plain(
                r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null}"#,
            ),
            Self::Responses => named(
                "response.created",
                r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp","object":"response","status":"in_progress","model":"m","output":[]}}"#,
            ),
        }
    }

    pub(crate) fn text_event(self, number: usize) -> String {
        match self {
            Self::Messages => named(
                "content_block_delta",
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":" some words {number}"}}}}"#
                ),
            ),
            Self::Chat => plain(&format!(
                r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{{"content":" some words {number}"}}}}],"usage":null}}"#
            )),
            Self::Responses => named(
                "response.output_text.delta",
                &format!(
                    r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"i","output_index":0,"content_index":0,"delta":" some words {number}"}}"#
                ),
            ),
        }
    }

    pub(crate) fn last_events(self, output: usize) -> String {
        match self {
            Self::Messages => format!(
                "{}{}{}",
                named("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                named(
                    "message_delta",
                    &format!(
                        r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn","stop_sequence":null}},"usage":{{"output_tokens":{output}}}}}"#
                    ),
                ),
                named("message_stop", r#"{"type":"message_stop"}"#)
            ),
            Self::Chat => format!(
                "{}{}{}",
                plain(
                    r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#
                ),
                plain(&format!(
                    r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{{"prompt_tokens":9,"completion_tokens":{output},"total_tokens":{}}}}}"#,
                    output + 9
                )),
                plain("[DONE]")
            ),
            Self::Responses => named(
                "response.completed",
                &format!(
                    r#"{{"type":"response.completed","sequence_number":{output},"response":{{"id":"resp","object":"response","status":"completed","model":"m","output":[],"usage":{{"input_tokens":9,"output_tokens":{output},"total_tokens":{}}}}}}}"#,
                    output + 9
                ),
            ),
        }
    }
}

fn named(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn plain(data: &str) -> String {
    format!("data: {data}\n\n")
}
