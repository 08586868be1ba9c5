//! The filters, by name. None makes a value larger than what it reads but for `join` and `json`, whose output is
//! bounded, and upper and lower case of a few letters.

/// What may follow `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Default,
    First,
    Int,
    Join,
    Json,
    Last,
    Length,
    Lower,
    Trim,
    Upper,
}

impl Filter {
    pub(super) const ALL: [Self; 10] = [
        Self::Default,
        Self::First,
        Self::Int,
        Self::Join,
        Self::Json,
        Self::Last,
        Self::Length,
        Self::Lower,
        Self::Trim,
        Self::Upper,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::First => "first",
            Self::Int => "int",
            Self::Join => "join",
            Self::Json => "json",
            Self::Last => "last",
            Self::Length => "length",
            Self::Lower => "lower",
            Self::Trim => "trim",
            Self::Upper => "upper",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.name() == name)
    }

    /// Fewest and most arguments.
    pub(super) const fn arguments(self) -> (usize, usize) {
        match self {
            Self::Default => (0, 2),
            Self::Int | Self::Join => (0, 1),
            Self::First | Self::Json | Self::Last | Self::Length | Self::Lower | Self::Trim | Self::Upper => {
                (0, 0)
            }
        }
    }

    /// All names, for people.
    pub(super) fn names() -> String {
        Self::ALL.map(|filter| format!("`{}`", filter.name())).join(", ")
    }
}
