//! Carries the messages of one server over HTTP: each request of ours is a request whose answer, and what belongs to it,
//! comes in its response.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, NumberOrString};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::conversation::Conversation;
use super::http_session::{Heard, HttpSession};
use super::incoming::{Incoming, cancelled};

/// One server's messages.
pub(super) struct HttpTransport {
    session: Arc<HttpSession>,
    heard: mpsc::Receiver<Heard>,
    conversation: Arc<Conversation>,
    incoming: Incoming,
}

impl HttpTransport {
    pub(super) fn new(
        session: Arc<HttpSession>,
        heard: mpsc::Receiver<Heard>,
        conversation: Arc<Conversation>,
    ) -> Self {
        let incoming = Incoming::new(Arc::clone(&conversation));
        Self { session, heard, conversation, incoming }
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.session.end();
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answers = matches!(&message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        self.incoming.note_sent(&message);
        let given_up = cancelled(&message);
        if let Some(id) = given_up {
            self.session.abandon(id);
        }
        let (session, conversation) = (Arc::clone(&self.session), Arc::clone(&self.conversation));
        async move {
            let value = serde_json::to_value(&message)?;
            let sent = match message {
                JsonRpcMessage::Request(request) => match request.id {
                    NumberOrString::Number(id) => {
                        session.ask(id, &value)?;
                        Ok(())
                    }
                    NumberOrString::String(_) => Err(io::ErrorKind::InvalidInput.into()),
                },
                // In the newest version, the end of the response says it.
                JsonRpcMessage::Notification(_) if given_up.is_some() && !session.is_older() => Ok(()),
                JsonRpcMessage::Notification(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                    session.tell(&value).await
                }
            };
            if answers {
                conversation.answered_request();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(ready) = self.incoming.take_ready() {
                return Some(ready);
            }
            self.incoming.pause().await;
            let message = match self.heard.recv().await? {
                Heard::Line(line) => self.incoming.hear(&line),
                Heard::Failed { id, failure } => self.incoming.fail(id, failure.code(), &failure.why),
            };
            if let Some(message) = message {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.session.end();
        self.session.leave().await;
        Ok(())
    }
}
