//! What helps where a box cannot be had, as sentences for people.

use crate::sandbox::{BoxRefusal, LandlockSupport, NamespaceSupport};

/// What a user can do about a refusal.
#[must_use]
pub fn refusal_remedy(refusal: &BoxRefusal) -> Option<&'static str> {
    Some(match refusal {
        BoxRefusal::Landlock { found, .. } => match found {
            LandlockSupport::Abi(_) => "use Linux 6.2 or newer",
            LandlockSupport::NotBuilt => {
                "use Linux 6.2 or newer, with Landlock built in; in a container, its filter of system calls must allow Landlock"
            }
            LandlockSupport::Disabled => "add `landlock` to the kernel's `lsm=` and restart the machine",
            LandlockSupport::Failed { .. } => {
                "allow Landlock in the filter of system calls of your container"
            }
        },
        BoxRefusal::Seccomp { .. } => "use a kernel with CONFIG_SECCOMP_FILTER",
        BoxRefusal::ProcessLists => "mount `/proc`, on a kernel with CONFIG_PROC_CHILDREN",
        BoxRefusal::Signals { namespaces, .. } => return namespace_remedy(namespaces).or(Some(OTHERWISE)),
        BoxRefusal::Namespaces { found, .. } => return namespace_remedy(found),
        _ => return None,
    })
}

const OTHERWISE: &str = "use Linux 6.12 or newer, or allow namespaces for ordinary users";

/// What a user can do where namespaces do not work.
#[must_use]
pub fn namespace_remedy(found: &NamespaceSupport) -> Option<&'static str> {
    match found {
        NamespaceSupport::Work => None,
        NamespaceSupport::Failed { .. } => Some(
            "allow user namespaces: on Ubuntu 23.10 and newer `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, on Debian 10 `sysctl kernel.unprivileged_userns_clone=1`, elsewhere a `user.max_user_namespaces` above 0; in a container they need its permission",
        ),
    }
}
