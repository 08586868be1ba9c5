//! Actors: who asks. An agent asks within its rights; for everyone outside the tree, the face that took the request
//! has checked what they may do, and the kernel records who they are.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::primitives::{ActorName, AgentId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An agent of the tree.
    Agent(AgentId),
    Outside(Outsider),
}

/// Who asks from outside the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outsider {
    pub kind: OutsiderKind,
    /// Such as the name of a key or of a user.
    pub name: Option<ActorName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutsiderKind {
    Person,
    /// A program that runs trees.
    Program,
    /// The gateway, for a program whose model calls it takes.
    Gateway,
    /// A hook of the program that runs the tree.
    Hook,
    /// An agent of another system.
    Remote,
    /// Spinney itself.
    Runtime,
}

impl OutsiderKind {
    pub const ALL: [Self; 6] =
        [Self::Person, Self::Program, Self::Gateway, Self::Hook, Self::Remote, Self::Runtime];

    /// As the journal spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Program => "program",
            Self::Gateway => "gateway",
            Self::Hook => "hook",
            Self::Remote => "remote",
            Self::Runtime => "runtime",
        }
    }

    /// Someone of this kind in a sentence. It has a space, which no agent's id has.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Program => "a program",
            Self::Gateway => "the gateway",
            Self::Hook => "a hook",
            Self::Remote => "a remote agent",
            Self::Runtime => "the runtime",
        }
    }
}

impl Actor {
    pub const PERSON: Self = Self::unnamed(OutsiderKind::Person);
    pub const PROGRAM: Self = Self::unnamed(OutsiderKind::Program);
    pub const GATEWAY: Self = Self::unnamed(OutsiderKind::Gateway);
    pub const HOOK: Self = Self::unnamed(OutsiderKind::Hook);
    pub const REMOTE: Self = Self::unnamed(OutsiderKind::Remote);
    pub const RUNTIME: Self = Self::unnamed(OutsiderKind::Runtime);

    #[must_use]
    pub const fn named(kind: OutsiderKind, name: ActorName) -> Self {
        Self::Outside(Outsider { kind, name: Some(name) })
    }

    const fn unnamed(kind: OutsiderKind) -> Self {
        Self::Outside(Outsider { kind, name: None })
    }

    /// `None` if the actor is outside the tree.
    #[must_use]
    pub const fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Outside(_) => None,
        }
    }
}

impl fmt::Display for Actor {
    /// The agent's id, the kind as a [phrase](OutsiderKind::phrase), or the kind and the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "{agent}"),
            Self::Outside(Outsider { kind, name: None }) => f.write_str(kind.phrase()),
            Self::Outside(Outsider { kind, name: Some(name) }) => write!(f, "{} {name}", kind.as_str()),
        }
    }
}

/// The word of [`Actor::Agent`] in the journal.
const AGENT: &str = "agent";
const WORDS: [&str; 7] = ["agent", "person", "program", "gateway", "hook", "remote", "runtime"];

impl Serialize for Actor {
    /// `"person"`, `{"person":"ana"}` or `{"agent":"lead"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Agent(agent) => serializer.serialize_newtype_variant("Actor", 0, AGENT, agent),
            Self::Outside(Outsider { kind, name }) => {
                let index = *kind as u32 + 1;
                match name {
                    None => serializer.serialize_unit_variant("Actor", index, kind.as_str()),
                    Some(name) => serializer.serialize_newtype_variant("Actor", index, kind.as_str(), name),
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Whether a kind is a word or an object depends on the value, so an enum of serde cannot read it.
        deserializer.deserialize_any(ActorVisitor)
    }
}

struct ActorVisitor;

impl<'de> Visitor<'de> for ActorVisitor {
    type Value = Actor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an actor: the word of a kind, or an object of a kind and a name")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Actor, E> {
        Ok(Actor::unnamed(kind(word)?))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Actor, A::Error> {
        let Some(word) = map.next_key::<String>()? else { return Err(de::Error::invalid_length(0, &self)) };
        let actor = if word == AGENT {
            Actor::Agent(map.next_value()?)
        } else {
            Actor::named(kind(&word)?, map.next_value()?)
        };
        match map.next_key::<de::IgnoredAny>()? {
            None => Ok(actor),
            Some(_) => Err(de::Error::invalid_length(2, &self)),
        }
    }
}

fn kind<E: de::Error>(word: &str) -> Result<OutsiderKind, E> {
    let kind = OutsiderKind::ALL.into_iter().find(|kind| kind.as_str() == word);
    kind.ok_or_else(|| E::unknown_variant(word, &WORDS))
}
