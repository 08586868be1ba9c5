//! Sends a message to a task and waits for the answer. Every request to a tree goes through here, so no caller
//! waits longer than the tree's task lives.

use tokio::sync::{mpsc, oneshot};

/// `None` if the task ends without an answer.
pub(super) async fn ask<M, A>(
    task: &mpsc::Sender<M>,
    message: impl FnOnce(oneshot::Sender<A>) -> M,
) -> Option<A> {
    let (answer, answered) = oneshot::channel();
    task.send(message(answer)).await.ok()?;
    answer_of(task, answered).await
}

/// Waits for an answer, or for the end of the task.
///
/// Waiting for the answer alone can hang: a message that reserves its slot in the channel before the receiver is
/// dropped, and is written after the receiver has drained it, stays there as long as any sender lives. Its answer is
/// then neither sent nor dropped.
async fn answer_of<M, A>(task: &mpsc::Sender<M>, mut answered: oneshot::Receiver<A>) -> Option<A> {
    tokio::select! {
        biased;
        answer = &mut answered => answer.ok(),
        // The task may have answered just before it ended.
        () = task.closed() => answered.try_recv().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    /// A message that is written into a channel after its receiver is gone, as happens when the two race.
    fn late_message() -> (mpsc::Sender<oneshot::Sender<u8>>, oneshot::Receiver<u8>) {
        let (task, messages) = mpsc::channel(1);
        let (answer, answered) = oneshot::channel();
        let place = task.clone().try_reserve_owned().unwrap();
        drop(messages);
        drop(place.send(answer));
        (task, answered)
    }

    #[test]
    fn a_message_that_comes_while_the_receiver_is_dropped_stays_in_the_channel() {
        let (task, mut answered) = late_message();
        assert_eq!(answered.try_recv(), Err(TryRecvError::Empty), "neither answered nor dropped");
        drop(task);
        assert_eq!(answered.try_recv(), Err(TryRecvError::Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_stops_waiting_when_the_task_has_ended() {
        let (task, answered) = late_message();
        let waited = tokio::time::timeout(Duration::from_secs(1), answer_of(&task, answered)).await;
        assert_eq!(waited, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_even_if_the_task_ended_right_after_it() {
        let (task, mut messages) = mpsc::channel::<oneshot::Sender<u8>>(1);
        let answering = async {
            let answer = messages.recv().await.unwrap();
            // Both at once: the next poll finds the answer and the end.
            messages.close();
            answer.send(7).unwrap();
        };
        let (answer, ()) = tokio::join!(ask(&task, |answer| answer), answering);
        assert_eq!(answer, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_ended_is_not_asked() {
        let (task, messages) = mpsc::channel::<oneshot::Sender<u8>>(1);
        drop(messages);
        assert_eq!(ask(&task, |answer| answer).await, None);
    }
}
