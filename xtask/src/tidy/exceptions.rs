//! The findings that we live with, each with its reason. A good reason: a table of one repeated shape.

use super::Finding;

/// One finding that is allowed to stay.
#[derive(Clone, Debug)]
pub struct Exception {
    /// The rule's name, as the finding shows it.
    pub rule: &'static str,
    /// The file.
    pub path: &'static str,
    /// The function or type; for a rule about whole files, the file's name.
    pub item: &'static str,
    /// Why this one may stay.
    pub reason: &'static str,
}

/// This list may only shrink. Its length is in its type, so no review misses it growing.
pub const EXCEPTIONS: [Exception; 0] = [];

/// Takes the excepted findings away, and adds one for every exception that no finding needs.
pub(super) fn except(findings: &[Finding], exceptions: &[Exception]) -> Vec<Finding> {
    let unneeded = exceptions
        .iter()
        .filter(|exception| !findings.iter().any(|finding| exception.covers(finding)))
        .map(Exception::unneeded);
    let kept =
        findings.iter().filter(|finding| !exceptions.iter().any(|exception| exception.covers(finding)));
    unneeded.chain(kept.cloned()).collect()
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.path == finding.path && self.item == finding.item
    }

    fn unneeded(&self) -> Finding {
        Finding {
            path: self.path.to_owned(),
            line: 1,
            rule: "exceptions",
            item: self.item.to_owned(),
            what: format!("`{}` is excepted from {} and does not need it", self.item, self.rule),
            remedy: "delete the line from EXCEPTIONS in xtask/src/tidy/exceptions.rs",
        }
    }
}
