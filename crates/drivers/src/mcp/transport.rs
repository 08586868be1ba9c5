//! Carries the messages of one server over two pipes. A server is hostile input: what it sends is bounded here, and what
//! answers nothing never reaches the SDK, which would start a task for each message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientNotification, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage,
    NumberOrString,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::conversation::Conversation;
use super::lines::{LINE_BYTES_MAX, Line, Lines};

/// How long each message waits of a server that sends too many.
const PAUSE: Duration = Duration::from_millis(10);
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// One server's messages.
pub(super) struct PipeTransport<R, W> {
    lines: Lines<R>,
    to: Arc<Mutex<Option<W>>>,
    conversation: Arc<Conversation>,
    /// It sent too much.
    is_waiting: bool,
    /// Answers to requests whose answers cannot be read.
    ready: Vec<RxJsonRpcMessage<RoleClient>>,
}

impl<R: AsyncRead + Unpin + Send, W> PipeTransport<R, W> {
    pub(super) fn new(from: R, to: W, conversation: Arc<Conversation>) -> Self {
        let to = Arc::new(Mutex::new(Some(to)));
        Self { lines: Lines::new(from), to, conversation, is_waiting: false, ready: Vec::new() }
    }

    /// What a line says, if the SDK is to know it.
    fn heard(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
        let kind = MessageKind::of(line);
        match kind {
            MessageKind::Answer(id) if self.conversation.take_answer(id) => {
                let message = serde_json::from_slice(line);
                return Some(
                    message
                        .unwrap_or_else(|_| unreadable(id, "its answer has another form than the protocol")),
                );
            }
            MessageKind::Request if self.conversation.hear_request() => {
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
        self.ready.extend(ids.into_iter().map(|id| unreadable(id, &why)));
    }
}

fn unreadable(id: i64, why: &str) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::internal_error(why.to_owned(), None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(NumberOrString::Number(id)), error))
}

/// What a message is, before anything of it is believed.
enum MessageKind {
    Answer(i64),
    Request,
    ToolsChanged,
    /// Another notification, or nothing that the protocol knows.
    Other,
}

impl MessageKind {
    fn of(line: &[u8]) -> Self {
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

impl<R, W> Transport<RoleClient> for PipeTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answers = matches!(&message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        match &message {
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.conversation.begin_again();
                }
                if let NumberOrString::Number(id) = request.id {
                    self.conversation.ask(id);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let CancelledNotificationParam { request_id: Some(NumberOrString::Number(id)), .. } =
                        &cancelled.params
                {
                    self.conversation.give_up(*id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let (to, conversation) = (Arc::clone(&self.to), Arc::clone(&self.conversation));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let written = match &mut *to.lock().await {
                Some(to) => to.write_all(&line).await,
                None => Err(io::ErrorKind::NotConnected.into()),
            };
            if answers {
                conversation.answered_request();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(ready) = self.ready.pop() {
                return Some(ready);
            }
            if self.is_waiting {
                sleep(PAUSE).await;
                self.is_waiting = false;
            }
            match self.lines.next().await? {
                Line::Whole(line) => {
                    if let Some(message) = self.heard(&line) {
                        return Some(message);
                    }
                }
                Line::TooLong { head } => {
                    self.fail_long(&head);
                    self.is_waiting = self.conversation.count_unasked();
                }
                Line::Rest => self.is_waiting = self.conversation.count_unasked(),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A writer that is stuck has it until the server ends.
        if let Ok(mut to) = self.to.try_lock() {
            drop(to.take());
        }
        Ok(())
    }
}
