//! An error with its causes, on one line.

use std::error::Error;

/// `cannot open it: no such file`.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        text += &format!(": {why}");
        cause = why.source();
    }
    text
}
