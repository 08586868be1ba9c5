//! A call in line: the future that waits until other holds make room. Dropping it leaves the line.

use std::pin::Pin;
use std::task::{Context, Poll};

use spinney_kernel::budget::{Amounts, Fit, Waiter};

use super::{AccountNode, BudgetRefusal};

/// Completes when the amounts are held or refused. After `Ok`, the caller owns the hold.
pub(super) struct Waiting<'a> {
    place: &'a AccountNode,
    ask: Amounts,
    /// Its ticket, while the tree knows it.
    ticket: Option<u64>,
}

impl<'a> Waiting<'a> {
    pub(super) const fn new(place: &'a AccountNode, ask: Amounts) -> Self {
        Self { place, ask, ticket: None }
    }

    fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let waker = self.place.tree.change(|books| books.leave(ticket));
            drop(waker);
        }
    }
}

impl Future for Waiting<'_> {
    type Output = Result<(), BudgetRefusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let place = self.place;
        if let Err(late) = place.in_time() {
            self.leave();
            return Poll::Ready(Err(late));
        }
        let mut waker = Some(context.waker().clone());
        let mut books = place.tree.books.lock();
        let answer = match self.ticket {
            Some(ticket) => books.look(ticket, &mut waker),
            None => match books.take(place.ix, &self.ask) {
                Fit::Wait(blocked, _) => {
                    let waiter = Waiter { at: place.ix, blocked, ask: self.ask };
                    match books.join(waiter, &mut waker) {
                        Ok(ticket) => {
                            self.ticket = Some(ticket);
                            None
                        }
                        Err(full) => return Poll::Ready(Err(full)),
                    }
                }
                fit @ (Fit::Yes | Fit::Never(..) | Fit::Shut(_)) => Some(fit),
            },
        };
        drop(books);
        match answer {
            None => Poll::Pending,
            Some(fit) => {
                self.ticket = None;
                Poll::Ready(place.answer(fit))
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
