//! Carries the messages of one server over two pipes, a line each.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::conversation::Conversation;
use super::incoming::Incoming;
use super::lines::Lines;

/// One server's messages.
pub(super) struct PipeTransport<R, W> {
    lines: Lines<R>,
    to: Arc<Mutex<Option<W>>>,
    conversation: Arc<Conversation>,
    incoming: Incoming,
}

impl<R: AsyncRead + Unpin + Send, W> PipeTransport<R, W> {
    pub(super) fn new(from: R, to: W, conversation: Arc<Conversation>) -> Self {
        let incoming = Incoming::new(Arc::clone(&conversation));
        Self { lines: Lines::new(from), to: Arc::new(Mutex::new(Some(to))), conversation, incoming }
    }
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
        self.incoming.note_sent(&message);
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
            if let Some(ready) = self.incoming.take_ready() {
                return Some(ready);
            }
            self.incoming.pause().await;
            let line = self.lines.next().await?;
            if let Some(message) = self.incoming.hear(&line) {
                return Some(message);
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
