//! The calls of a server that are under way, for what it asks meanwhile. Most versions of the protocol do not say which call
//! a request of the server belongs to, so it is known only while all of them are of one agent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::port::{ModelHandle, PersonHandle};
use spinney_kernel::primitives::AgentId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How often one call may ask a person.
const QUESTIONS_MAX: u32 = 8;
/// How often one call may ask for a model call.
const MODEL_CALLS_MAX: u32 = 8;

/// The calls of one server.
pub(super) struct OpenCalls {
    calls: Mutex<Calls>,
    /// How many questions to a person or the model all of them wait for.
    questions: watch::Sender<usize>,
}

#[derive(Default)]
struct Calls {
    next: u64,
    open: BTreeMap<u64, OpenCall>,
}

/// A call that is under way.
#[derive(Clone)]
pub(super) struct OpenCall {
    agent: Box<[AgentId]>,
    pub(super) person: PersonHandle,
    pub(super) model: ModelHandle,
    /// How many questions to a person or the model it waits for. Its time stands still meanwhile.
    questions: watch::Sender<usize>,
    of_server: watch::Sender<usize>,
    /// How often it has asked a person.
    asked: Arc<AtomicU32>,
    /// How often it has asked for a model call.
    model_calls: Arc<AtomicU32>,
}

/// A call that is open until this is dropped.
pub(super) struct CallEntry {
    calls: Arc<OpenCalls>,
    number: u64,
    pub(super) call: OpenCall,
}

/// A call that waits for a person or the model until this is dropped.
pub(super) struct Waiting([watch::Sender<usize>; 2]);

impl Default for OpenCalls {
    fn default() -> Self {
        Self { calls: Mutex::default(), questions: watch::Sender::new(0) }
    }
}

impl OpenCalls {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, attempt: &ToolAttempt) -> CallEntry {
        let call = OpenCall {
            agent: attempt.origin.path.clone(),
            person: attempt.person.clone(),
            model: attempt.model.clone(),
            questions: watch::Sender::new(0),
            of_server: self.questions.clone(),
            asked: Arc::default(),
            model_calls: Arc::default(),
        };
        let mut calls = self.calls();
        let number = calls.next;
        calls.next += 1;
        calls.open.insert(number, call.clone());
        drop(calls);
        CallEntry { calls: Arc::clone(self), number, call }
    }

    /// The call that a request of the server belongs to: the last one, if all are of one agent.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) fn only(&self) -> Result<OpenCall, &'static str> {
        let calls = self.calls();
        let mut open = calls.open.values().rev();
        let last = open.next().ok_or("no call is under way, so it is not known for whom this is asked")?;
        if open.any(|call| call.agent != last.agent) {
            return Err(
                "calls of several agents are under way, so it is not known for whom this is asked: use `per: agent`",
            );
        }
        Ok(last.clone())
    }

    /// The result of work for any of the calls, unless it takes longer than this without the time in which one of them
    /// asked something: what carries the messages does not know which call they belong to.
    pub(super) async fn within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        without_questions(&self.questions, time, work).await
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        self.calls.calls().open.remove(&self.number);
    }
}

impl OpenCall {
    /// Counts a question.
    ///
    /// # Errors
    /// If it asked too often.
    pub(super) fn count_question(&self) -> Result<(), String> {
        if self.asked.fetch_add(1, Ordering::Relaxed) < QUESTIONS_MAX {
            return Ok(());
        }
        Err(format!("one call asks a person at most {QUESTIONS_MAX} times"))
    }

    /// Counts a model call.
    ///
    /// # Errors
    /// If it asked too often.
    pub(super) fn count_model_call(&self) -> Result<(), String> {
        if self.model_calls.fetch_add(1, Ordering::Relaxed) < MODEL_CALLS_MAX {
            return Ok(());
        }
        Err(format!("one call asks for at most {MODEL_CALLS_MAX} model calls"))
    }

    /// Its time stands still from now on.
    pub(super) fn wait(&self) -> Waiting {
        let waiting = [self.questions.clone(), self.of_server.clone()];
        waiting.iter().for_each(|questions| questions.send_modify(|questions| *questions += 1));
        Waiting(waiting)
    }

    /// The result of the work, unless it takes longer than this without the time in which it asked something.
    pub(super) async fn within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        without_questions(&self.questions, time, work).await
    }
}

/// The result of the work, unless it takes longer than this without the time in which there were questions.
async fn without_questions<T>(
    questions: &watch::Sender<usize>,
    time: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let mut questions = questions.subscribe();
    let mut left = time;
    loop {
        let began = Instant::now();
        let asks = *questions.borrow_and_update() > 0;
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = sleep(left), if !asks => return None,
            // The caller has a sender, so it is there.
            _ = questions.changed() => {}
        }
        if !asks {
            left = left.saturating_sub(began.elapsed());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let less = |questions: &mut usize| *questions = questions.saturating_sub(1);
        self.0.iter().for_each(|questions| questions.send_modify(less));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use spinney_kernel::context::Origin;
    use spinney_kernel::primitives::{CallId, TreeId};

    use super::*;

    pub(in super::super) fn attempt(agent: &str) -> ToolAttempt {
        let parsed = |text: &str| text.parse::<AgentId>().unwrap_or_else(|error| panic!("{error}"));
        let origin = Origin {
            tree: TreeId::new([1; 16]),
            path: [parsed("lead"), parsed(agent)].into(),
            role: "lead".parse().unwrap_or_else(|error| panic!("{error}")),
            goal: "Work.".into(),
        };
        let tool = "a__b".parse().unwrap_or_else(|error| panic!("{error}"));
        ToolAttempt::new(Arc::new(origin), CallId(1), String::new(), tool, "{}".to_owned())
    }

    #[test]
    fn what_a_server_asks_belongs_to_the_one_agent_that_calls_it() {
        let calls = Arc::new(OpenCalls::default());
        assert!(calls.only().is_err());
        let first = calls.enter(&attempt("a"));
        let second = calls.enter(&attempt("a"));
        assert!(calls.only().is_ok());
        let other = calls.enter(&attempt("b"));
        assert!(calls.only().is_err());
        drop((first, second));
        assert!(calls.only().is_ok());
        drop(other);
        assert!(calls.only().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_call_stands_still_while_a_person_is_asked() {
        let calls = Arc::new(OpenCalls::default());
        let entry = calls.enter(&attempt("a"));
        let call = entry.call.clone();
        let asked = async {
            sleep(Duration::from_secs(5)).await;
            let waiting = call.wait();
            sleep(Duration::from_secs(100)).await;
            drop(waiting);
            sleep(Duration::from_secs(4)).await;
        };
        assert_eq!(entry.call.within(Duration::from_secs(10), asked).await, Some(()));
        let late = sleep(Duration::from_secs(11));
        assert_eq!(entry.call.within(Duration::from_secs(10), late).await, None);
    }
}
