//! Events that may not fit their tree, from a changed journal or a file from elsewhere. Applying them may panic, and the panic
//! becomes an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is applying events that may not fit. A panic is caught then and becomes an error, so the panic hook of a
/// program need not print it.
#[must_use]
pub fn is_checking_events() -> bool {
    IS_CHECKING.get()
}

/// Sets the flag back, also when it is dropped by a panic.
struct Checking {
    before: bool,
}

impl Checking {
    fn begin() -> Self {
        Self { before: IS_CHECKING.replace(true) }
    }
}

impl Drop for Checking {
    fn drop(&mut self) {
        IS_CHECKING.set(self.before);
    }
}

/// Applies events that may not fit. `None` if they do not.
pub(super) fn checked<T>(apply: impl FnOnce() -> T) -> Option<T> {
    let _checking = Checking::begin();
    catch_unwind(AssertUnwindSafe(apply)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_known_to_be_caught_until_it_was() {
        assert!(!is_checking_events());
        assert_eq!(checked(is_checking_events), Some(true));
        assert_eq!(checked(|| checked(|| 1).map(|_| is_checking_events())), Some(Some(true)));
        std::panic::set_hook(Box::new(|_| assert!(is_checking_events())));
        assert_eq!(checked(|| panic!("it does not fit")), None::<()>);
        let _ = std::panic::take_hook();
        assert!(!is_checking_events());
    }
}
