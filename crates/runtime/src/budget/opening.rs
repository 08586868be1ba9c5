//! Opens accounts: their terms in the ledger and their place in the tree.

use std::sync::{Arc, OnceLock};

use spinney_kernel::budget::{AccountIx, Amounts, Fit, Ledger, ResourceSet, Terms};

use super::options::{HooksFrom, millis};
use super::tree::{Books, Tree};
use super::{AccountId, AccountNode, BudgetRefusal, Limits, OpenError, Options};
use crate::breaker::Breaker;
use crate::clock::Clock;
use crate::sync::Mutex;

/// Opens the root of a new tree.
pub(super) fn open_root(
    clock: Arc<dyn Clock>,
    limits: &Limits,
    options: Options,
) -> Result<AccountNode, OpenError> {
    let ceilings = options.checked(limits)?;
    let name = options.account_name()?;
    let terms = Terms { reserve: options.reserve, ..Terms::plain(ceilings) };
    let mut books = Books::default();
    let (ix, number) = books.open(None, terms);
    let tree = Arc::new(Tree { books: Mutex::new(books), clock });
    Ok(place(tree, None, ix, AccountId::new(number, name), limits, options))
}

/// Opens an account below `parent`.
pub(super) fn open_child(
    parent: &Arc<AccountNode>,
    limits: &Limits,
    options: Options,
) -> Result<AccountNode, OpenError> {
    let ceilings = options.checked(limits)?;
    let name = options.account_name()?;
    parent.in_time()?;
    let lends = if options.lend { limits.given() } else { ResourceSet::EMPTY };
    let tree = Arc::clone(&parent.tree);
    let (ix, number) = tree.change(|books| {
        parent.answer(lend_fit(&books.ledger, parent.ix, &limits.amounts().only(lends)))?;
        let taken = books.ledger.terms_below(parent.ix, ceilings);
        Ok::<_, BudgetRefusal>(
            books.open(Some(parent.ix), Terms { lends, reserve: options.reserve, ..taken }),
        )
    })?;
    Ok(place(tree, Some(parent), ix, AccountId::new(number, name), limits, options))
}

/// Whether `lent` fits at every ancestor. Without lending only a shut account refuses: an exhausted one may be raised
/// later.
fn lend_fit(ledger: &Ledger, parent: AccountIx, lent: &Amounts) -> Fit {
    if !lent.is_zero() {
        return ledger.fit_below(parent, lent);
    }
    match ledger.fit(parent, lent) {
        Fit::Shut(ix) => Fit::Shut(ix),
        Fit::Yes | Fit::Wait(..) | Fit::Never(..) => Fit::Yes,
    }
}

fn place(
    tree: Arc<Tree>,
    parent: Option<&Arc<AccountNode>>,
    ix: AccountIx,
    id: AccountId,
    limits: &Limits,
    options: Options,
) -> AccountNode {
    let timeout = limits.timeout_given();
    let own_ms = timeout.map(|timeout| tree.clock.now_ms().saturating_add(millis(timeout)));
    let parent_ms = parent.and_then(|parent| parent.deadline_ms);
    AccountNode {
        tree,
        ix,
        id,
        parent: parent.map(Arc::clone),
        timeout,
        deadline_ms: own_ms.into_iter().chain(parent_ms).min(),
        hooks: match options.hooks {
            HooksFrom::Nowhere => None,
            HooksFrom::Parent => parent.and_then(|parent| parent.hooks.clone()),
            HooksFrom::Caller(hooks) => Some(hooks),
        },
        breaker: options.breaker.then(|| Mutex::new(Breaker::new())),
        tags: Arc::new(options.tags),
        ended: OnceLock::new(),
    }
}
