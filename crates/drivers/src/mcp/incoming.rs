//! What a server sends, whatever carries it: a server is hostile input, and what answers nothing never reaches the SDK, which
//! would start a task for each message.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcError,
    JsonRpcMessage, NumberOrString,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::conversation::Conversation;
use super::lines::{LINE_BYTES_MAX, Line};

/// How long each message waits of a server that sends too many.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest request of a server that is heard. A longer one gets no answer.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The most values in an answer. In memory, each takes many times what it takes in a message.
const VALUES_MAX: usize = 100_000;
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// Codes of ours, which no server can send: a request never reached it, or its answer did not arrive.
pub(super) const NOT_REACHED: ErrorCode = ErrorCode(i32::MIN);
pub(super) const LOST: ErrorCode = ErrorCode(i32::MIN + 1);

/// The messages of one server.
pub(super) struct Incoming {
    conversation: Arc<Conversation>,
    /// It sent too much.
    is_waiting: bool,
    /// Answers to requests whose answers cannot be read.
    ready: Vec<RxJsonRpcMessage<RoleClient>>,
}

impl Incoming {
    pub(super) fn new(conversation: Arc<Conversation>) -> Self {
        Self { conversation, is_waiting: false, ready: Vec::new() }
    }

    /// A message that is there without anything being read.
    pub(super) fn take_ready(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.ready.pop()
    }

    /// Waits a little if the server sent too much. Given up, it waits the next time.
    pub(super) async fn pause(&mut self) {
        if self.is_waiting {
            sleep(PAUSE).await;
            self.is_waiting = false;
        }
    }

    /// What it sent, if the SDK is to know it.
    pub(super) fn hear(&mut self, line: &Line) -> Option<RxJsonRpcMessage<RoleClient>> {
        match line {
            Line::Whole(line) => self.heard(line),
            Line::TooLong { head } => {
                self.fail_long(head);
                self.is_waiting = self.conversation.count_unasked();
                self.ready.pop()
            }
            Line::Rest => {
                self.is_waiting = self.conversation.count_unasked();
                None
            }
        }
    }

    /// A request that came to nothing, if somebody waits for its answer.
    pub(super) fn fail(&self, id: i64, code: ErrorCode, why: &str) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.conversation.take_answer(id).then(|| failed(id, code, why))
    }

    /// Notes what goes out.
    pub(super) fn note_sent(&self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.conversation.begin_again();
                }
                if let NumberOrString::Number(id) = request.id {
                    self.conversation.ask(id);
                }
            }
            JsonRpcMessage::Notification(_) => {
                if let Some(id) = cancelled(message) {
                    self.conversation.give_up(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn heard(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
        let kind = MessageKind::of(line);
        match kind {
            MessageKind::Answer(id) if self.conversation.take_answer(id) => {
                if !has_few_values(line) {
                    let why = format!("its answer has more than {VALUES_MAX} values");
                    return Some(failed(id, ErrorCode::INTERNAL_ERROR, &why));
                }
                let unreadable = |_| {
                    failed(id, ErrorCode::INTERNAL_ERROR, "its answer has another form than the protocol")
                };
                return Some(serde_json::from_slice(line).map(without_our_codes).unwrap_or_else(unreadable));
            }
            MessageKind::Request if line.len() <= REQUEST_BYTES_MAX && self.conversation.hear_request() => {
                self.is_waiting = self.conversation.count_unasked();
                return match serde_json::from_slice(line) {
                    Ok(message @ JsonRpcMessage::Request(_)) => Some(message),
                    Ok(_) | Err(_) => {
                        self.conversation.answered_request();
                        None
                    }
                };
            }
            MessageKind::ToolsChanged => self.conversation.note_changed_tools(),
            MessageKind::Answer(_) | MessageKind::Request | MessageKind::Other => {}
        }
        self.is_waiting = self.conversation.count_unasked();
        None
    }

    /// Fails what a line answers that is too long to be kept, or everything, if that is not known.
    fn fail_long(&mut self, head: &[u8]) {
        let ids = match answered_id(head) {
            Some(id) if self.conversation.take_answer(id) => [id].into(),
            Some(_) => return,
            None => self.conversation.take_all(),
        };
        let why = format!("its answer has more than {LINE_BYTES_MAX} bytes");
        self.ready.extend(ids.into_iter().map(|id| failed(id, ErrorCode::INTERNAL_ERROR, &why)));
    }
}

fn failed(id: i64, code: ErrorCode, why: &str) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(code, why.to_owned(), None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(NumberOrString::Number(id)), error))
}

/// A server cannot say that its request was not sent.
fn without_our_codes(mut message: RxJsonRpcMessage<RoleClient>) -> RxJsonRpcMessage<RoleClient> {
    if let JsonRpcMessage::Error(error) = &mut message
        && matches!(error.error.code, NOT_REACHED | LOST)
    {
        error.error.code = ErrorCode::INTERNAL_ERROR;
    }
    message
}

/// The request that a message of ours cancels.
pub(super) fn cancelled(message: &TxJsonRpcMessage<RoleClient>) -> Option<i64> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    let ClientNotification::CancelledNotification(cancelled) = &notification.notification else {
        return None;
    };
    match &cancelled.params {
        CancelledNotificationParam { request_id: Some(NumberOrString::Number(id)), .. } => Some(*id),
        _ => None,
    }
}

/// Whether a message has at most so many values, by the commas between them.
fn has_few_values(line: &[u8]) -> bool {
    let (mut commas, mut is_text, mut is_escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' if !is_text => commas += 1,
            _ => {}
        }
    }
    commas < VALUES_MAX
}

/// What a message is, before anything of it is believed.
pub(super) enum MessageKind {
    Answer(i64),
    Request,
    ToolsChanged,
    /// Another notification, or nothing that the protocol knows.
    Other,
}

impl MessageKind {
    pub(super) fn of(line: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(default)]
            method: Option<String>,
        }
        let Ok(Envelope { id, method }) = serde_json::from_slice(line) else { return Self::Other };
        match (id, method.as_deref()) {
            (Some(id), None) => id.get().parse().map_or(Self::Other, Self::Answer),
            (Some(_), Some(_)) => Self::Request,
            (None, Some(TOOLS_CHANGED)) => Self::ToolsChanged,
            (None, _) => Self::Other,
        }
    }
}

/// The request that a message answers, by the beginning of it.
fn answered_id(head: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"id\":";
    let at = head.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let number: Vec<u8> = head[at..]
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .take_while(|byte| byte.is_ascii_digit())
        .collect();
    std::str::from_utf8(&number).ok()?.parse().ok()
}
