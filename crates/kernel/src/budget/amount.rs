//! Amounts: integers per resource. Money is nano-USD; floats never touch it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::primitives::Counted;

/// The largest single amount that a request or a report may contain: a million dollars, or 10^15 tokens. A larger
/// number is a mistake, and the bound keeps every sum far from overflow.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;

/// The number for "no ceiling": larger than any sum of amounts, and four times it still fits a `u64`.
const NONE: u64 = 1 << 61;

const COUNT: usize = 5;

/// What every account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    Cost,
    /// Tokens read and written by models.
    Tokens,
    Steps,
    ToolCalls,
    /// Attempts after the first.
    Retries,
}

impl Resource {
    /// Every resource, in the order they are stored and shown.
    pub const ALL: [Self; COUNT] = [Self::Cost, Self::Tokens, Self::Steps, Self::ToolCalls, Self::Retries];

    /// Whether reaching this ceiling stops all new work, including work that needs none of it. Counts do not: an
    /// agent that made its last tool call must still be able to answer.
    #[must_use]
    pub const fn stops_all(self) -> bool {
        ResourceSet::MEASURED.has(self)
    }

    #[must_use]
    pub const fn amount(self, amount: u64) -> Amount {
        Amount { resource: self, amount }
    }

    /// Dollars for cost, a plain number otherwise. Refusals in journals contain this form.
    #[must_use]
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Cost => usd(amount),
            Self::Tokens | Self::Steps | Self::ToolCalls | Self::Retries => amount.to_string(),
        }
    }

    /// With the resource's name, as refusals in journals contain it. Other texts use [`amount`](Self::amount).
    #[must_use]
    pub fn counted(self, amount: u64) -> String {
        match self {
            Self::Cost => usd(amount),
            Self::Tokens | Self::Steps | Self::ToolCalls | Self::Retries => format!("{amount} {self}"),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Steps => "steps",
            Self::ToolCalls => "tool_calls",
            Self::Retries => "retries",
        })
    }
}

/// An amount of one resource: `$0.25`, `1234 tokens`, `1 retry`; `{:#}` groups digits for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    resource: Resource,
    amount: u64,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = match self.resource {
            Resource::Cost => return f.write_str(&usd(self.amount)),
            Resource::Tokens => "token",
            Resource::Steps => "step",
            Resource::ToolCalls => "tool call",
            Resource::Retries => "retry",
        };
        fmt::Display::fmt(&Counted::new(self.amount, one), f)
    }
}

/// Amounts separated by commas, each formatted as an [`Amount`].
fn write_list(f: &mut fmt::Formatter<'_>, amounts: impl Iterator<Item = Amount>) -> fmt::Result {
    for (at, amount) in amounts.enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(&amount, f)?;
    }
    Ok(())
}

impl fmt::Display for Amounts {
    /// Every amount that is not zero, or `nothing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("nothing");
        }
        let present = Resource::ALL.into_iter().filter(|resource| self.get(*resource) > 0);
        write_list(f, present.map(|resource| resource.amount(self.get(resource))))
    }
}

impl fmt::Display for Ceilings {
    /// Every resource that has a ceiling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounded = Resource::ALL.into_iter().filter_map(|resource| Some((resource, self.get(resource)?)));
        write_list(f, bounded.map(|(resource, amount)| resource.amount(amount)))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Resource>", from = "Vec<Resource>")]
pub struct ResourceSet(u8);

impl ResourceSet {
    pub const EMPTY: Self = Self(0);
    /// Resources that stop all new work when they run out, see [`Resource::stops_all`]. The rest are counts.
    pub const MEASURED: Self = Self::EMPTY.with(Resource::Cost).with(Resource::Tokens);

    #[must_use]
    pub const fn with(self, resource: Resource) -> Self {
        Self(self.0 | 1 << resource as u8)
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn has(self, resource: Resource) -> bool {
        self.0 & 1 << resource as u8 != 0
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Resource> {
        Resource::ALL.into_iter().filter(move |resource| self.has(*resource))
    }
}

impl FromIterator<Resource> for ResourceSet {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        resources.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl From<Vec<Resource>> for ResourceSet {
    fn from(resources: Vec<Resource>) -> Self {
        resources.into_iter().collect()
    }
}

impl From<ResourceSet> for Vec<Resource> {
    fn from(set: ResourceSet) -> Self {
        set.iter().collect()
    }
}

/// An amount of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
pub struct Amounts([u64; COUNT]);

impl Amounts {
    pub const ZERO: Self = Self([0; COUNT]);

    #[must_use]
    pub const fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.0[resource as usize] = amount;
        self
    }

    #[must_use]
    pub const fn cost(nanos: u64) -> Self {
        Self::ZERO.with(Resource::Cost, nanos)
    }

    #[must_use]
    pub const fn get(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }

    #[must_use]
    #[inline]
    pub fn is_zero(&self) -> bool {
        // Not `== [0; COUNT]`, which compiles to a memcmp call on every account of a walk.
        self.0.iter().fold(0, |any, amount| any | amount) == 0
    }

    /// Refuses amounts above [`AMOUNT_MAX`]. All amounts from outside pass through here.
    ///
    /// # Errors
    /// Names the resource, the number and the largest one allowed.
    #[inline]
    pub fn checked(self) -> Result<Self, AmountError> {
        for resource in Resource::ALL {
            let amount = self.get(resource);
            if amount > AMOUNT_MAX {
                return Err(AmountError::TooLarge { what: resource.to_string(), amount });
            }
        }
        Ok(self)
    }

    /// Saturates at "none" instead of wrapping.
    #[must_use]
    #[inline]
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a.saturating_add(b).min(NONE))
    }

    /// Never below zero.
    #[must_use]
    #[inline]
    pub fn minus(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// [`plus`](Self::plus) in place, for the walks up the chain.
    #[inline]
    pub(super) fn add(&mut self, other: &Self) {
        *self = self.plus(other);
    }

    /// [`minus`](Self::minus) in place, for the walks up the chain.
    #[inline]
    pub(super) fn take_away(&mut self, other: &Self) {
        *self = self.minus(other);
    }

    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        self.zip(other, u64::min)
    }

    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.zip(other, u64::max)
    }

    /// Scales by `to / from`, rounded down.
    #[must_use]
    pub(crate) fn grown(&self, from: &Self, to: &Self) -> Self {
        let mut grown = *self;
        for resource in Resource::ALL.into_iter().filter(|resource| from.get(*resource) > 0) {
            let share = u128::from(self.get(resource)) * u128::from(to.get(resource));
            let amount = share / u128::from(from.get(resource));
            grown = grown.with(resource, u64::try_from(amount).unwrap_or(NONE).min(NONE));
        }
        grown
    }

    #[must_use]
    pub fn without(&self, set: ResourceSet) -> Self {
        self.masked(set, |inside, amount| if inside { 0 } else { amount })
    }

    #[must_use]
    pub fn only(&self, set: ResourceSet) -> Self {
        self.masked(set, |inside, amount| if inside { amount } else { 0 })
    }

    #[inline]
    fn masked(&self, set: ResourceSet, pick: impl Fn(bool, u64) -> u64) -> Self {
        let mut out = *self;
        for resource in Resource::ALL {
            out.0[resource as usize] = pick(set.has(resource), self.get(resource));
        }
        out
    }

    #[inline]
    fn zip(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = *self;
        for at in 0..COUNT {
            out.0[at] = combine(self.0[at], other.0[at]);
        }
        out
    }
}

/// An optional ceiling per resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
pub struct Ceilings(Amounts);

impl Ceilings {
    pub const NONE: Self = Self(Amounts([NONE; COUNT]));

    #[must_use]
    pub const fn with(self, resource: Resource, amount: u64) -> Self {
        Self(self.0.with(resource, amount))
    }

    #[must_use]
    pub fn get(&self, resource: Resource) -> Option<u64> {
        Some(self.0.get(resource)).filter(|amount| *amount < NONE)
    }

    #[must_use]
    pub fn bounded(&self) -> ResourceSet {
        Resource::ALL.into_iter().filter(|r| self.get(*r).is_some()).collect()
    }

    /// Refuses ceilings above [`AMOUNT_MAX`], so no given ceiling equals "none".
    ///
    /// # Errors
    /// Names the resource, the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        let none: ResourceSet = Resource::ALL.into_iter().filter(|r| self.0.get(*r) == NONE).collect();
        self.0.without(none).checked().map(|_| self)
    }

    /// Raises the ceilings. A resource without one stays without.
    ///
    /// # Errors
    /// If a ceiling would exceed [`AMOUNT_MAX`].
    pub fn raised(&self, add: &Amounts) -> Result<Self, AmountError> {
        Self(self.0.plus(&add.only(self.bounded()))).checked()
    }

    /// The ceilings as amounts, where "none" is a number no sum reaches.
    pub(crate) const fn amounts(&self) -> &Amounts {
        &self.0
    }

    pub(crate) const fn from_amounts(amounts: Amounts) -> Self {
        Self(amounts)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum AmountError {
    /// Above [`AMOUNT_MAX`].
    #[error(
        "{what} of {amount} is above the largest amount {AMOUNT_MAX}: check the unit (cost is in nano-USD)"
    )]
    TooLarge { what: String, amount: u64 },
    #[error(
        "`{text}` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals"
    )]
    NotUsd {
        /// The given text, cut to a readable length.
        text: String,
    },
}

/// Parses dollars as people write them (`0.25`, `10`, `$1.5`) into nano-USD, exactly.
///
/// # Errors
/// For anything except a plain positive number with at most nine decimals: NaN, infinity, signs, exponents, text.
pub fn nanos_from_usd(text: &str) -> Result<u64, AmountError> {
    let not_usd = || AmountError::NotUsd { text: text.chars().take(40).collect() };
    let plain = text.strip_prefix('$').unwrap_or(text);
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) || fraction.len() > 9
    {
        return Err(not_usd());
    }
    let dollars: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| not_usd())? };
    let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| not_usd())?;
    let sum = dollars.saturating_mul(1_000_000_000).saturating_add(nanos);
    Amounts::cost(sum).checked().map(|_| sum)
}

/// Nano-USD as dollars: at least two decimals, and as many as an exact value needs.
#[must_use]
pub fn usd(nanos: u64) -> String {
    let fraction = format!("{:09}", nanos % 1_000_000_000);
    let kept = fraction.trim_end_matches('0').len().max(2);
    format!("${}.{}", nanos / 1_000_000_000, &fraction[..kept])
}

/// The serialized form of amounts and ceilings: by name, absent ones omitted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_nanos: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retries: Option<u64>,
}

impl Fields {
    fn array(&self) -> [Option<u64>; COUNT] {
        [self.cost_nanos, self.tokens, self.steps, self.tool_calls, self.retries]
    }

    /// Checks that each number is below `bound`. A journal holds sums, which may exceed any single amount; a
    /// request's own amounts are checked when the request is decided.
    fn below(&self, bound: u64) -> Result<[Option<u64>; COUNT], AmountError> {
        let amounts = self.array();
        for (resource, amount) in Resource::ALL.into_iter().zip(amounts) {
            if let Some(amount) = amount.filter(|amount| *amount >= bound) {
                return Err(AmountError::TooLarge { what: resource.to_string(), amount });
            }
        }
        Ok(amounts)
    }

    fn from_array([cost_nanos, tokens, steps, tool_calls, retries]: [Option<u64>; COUNT]) -> Self {
        Self { cost_nanos, tokens, steps, tool_calls, retries }
    }
}

impl From<Amounts> for Fields {
    fn from(amounts: Amounts) -> Self {
        Self::from_array(amounts.0.map(|amount| Some(amount).filter(|a| *a > 0)))
    }
}

impl TryFrom<Fields> for Amounts {
    type Error = AmountError;
    fn try_from(fields: Fields) -> Result<Self, AmountError> {
        Ok(Self(fields.below(NONE + 1)?.map(Option::unwrap_or_default)))
    }
}

impl From<Ceilings> for Fields {
    fn from(limits: Ceilings) -> Self {
        Self::from_array(limits.0.0.map(|amount| Some(amount).filter(|a| *a < NONE)))
    }
}

impl TryFrom<Fields> for Ceilings {
    type Error = AmountError;
    fn try_from(fields: Fields) -> Result<Self, AmountError> {
        Ok(Self(Amounts(fields.below(NONE)?.map(|amount| amount.unwrap_or(NONE)))))
    }
}
