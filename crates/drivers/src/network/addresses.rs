//! Which addresses are those of the public internet. Everything else belongs to this machine, to its networks or to
//! their operators, and is connected to only if a rule names that very address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressKind {
    Public,
    /// Stands for no address, or for every address of this machine.
    Unspecified,
    Loopback,
    /// Of networks that are not routed: homes, offices, clusters.
    Private,
    /// Between a provider and its customers.
    SharedByProvider,
    LinkLocal,
    /// Services that clouds offer their machines, with keys.
    Metadata,
    Multicast,
    Broadcast,
    Documentation,
    Benchmarking,
    /// Carries an address of version 4 in a way that hides where it leads, or is not in use.
    Translated,
    Reserved,
}

impl AddressKind {
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::from_v4(address),
            IpAddr::V6(address) => Self::from_v6(address),
        }
    }

    #[must_use]
    pub const fn is_public(self) -> bool {
        matches!(self, Self::Public)
    }

    fn from_v4(address: Ipv4Addr) -> Self {
        if METADATA_V4.contains(&address) {
            return Self::Metadata;
        }
        match address.octets() {
            [0, ..] => Self::Unspecified,
            [127, ..] => Self::Loopback,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Self::Private,
            [100, 64..=127, ..] => Self::SharedByProvider,
            [169, 254, ..] => Self::LinkLocal,
            [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Self::Documentation,
            [198, 18..=19, ..] => Self::Benchmarking,
            [192, 88, 99, _] => Self::Translated,
            [192, 0, 0, _] => Self::Reserved,
            [224..=239, ..] => Self::Multicast,
            [255, 255, 255, 255] => Self::Broadcast,
            [240..=255, ..] => Self::Reserved,
            _ => Self::Public,
        }
    }

    fn from_v6(address: Ipv6Addr) -> Self {
        if METADATA_V6.contains(&address) {
            return Self::Metadata;
        }
        let segments = address.segments();
        match segments {
            [0, 0, 0, 0, 0, 0, 0, 0] => Self::Unspecified,
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            // Networks without version 4 reach all of it through this prefix, and so do their resolvers' answers.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
                Self::from_v4(Ipv4Addr::new(a, b, c, d))
            }
            // Compatible, translated, locally translated, Teredo and what else protocols have for themselves, 6to4.
            [0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] | [0x2002, ..] => Self::Translated,
            [0x2001, 2, 0, ..] => Self::Benchmarking,
            [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Self::Documentation,
            [0x2001, 0..=0x01ff, ..] => Self::Reserved,
            [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Self::Private,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            [0xff00..=0xffff, ..] => Self::Multicast,
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Reserved,
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::SharedByProvider => "an address of a provider's own network",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarks",
            Self::Translated => "an address that stands for another one",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Also one that looks public: Azure's.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

#[cfg(test)]
mod tests {
    use super::AddressKind::*;
    use super::*;

    const TABLE: [(&str, AddressKind); 96] = [
        ("1.1.1.1", Public),
        ("8.8.8.8", Public),
        ("9.255.255.255", Public),
        ("11.0.0.0", Public),
        ("93.184.216.34", Public),
        ("100.63.255.255", Public),
        ("100.128.0.0", Public),
        ("126.255.255.255", Public),
        ("128.0.0.1", Public),
        ("169.253.255.255", Public),
        ("169.255.0.0", Public),
        ("172.15.255.255", Public),
        ("172.32.0.0", Public),
        ("192.0.1.0", Public),
        ("192.167.255.255", Public),
        ("192.169.0.0", Public),
        ("198.17.255.255", Public),
        ("198.20.0.0", Public),
        ("223.255.255.255", Public),
        ("0.0.0.0", Unspecified),
        ("0.0.0.1", Unspecified),
        ("0.255.255.255", Unspecified),
        ("10.0.0.0", Private),
        ("10.0.0.5", Private),
        ("10.255.255.255", Private),
        ("100.64.0.0", SharedByProvider),
        ("100.127.255.255", SharedByProvider),
        ("100.100.100.200", Metadata),
        ("127.0.0.0", Loopback),
        ("127.0.0.1", Loopback),
        ("127.0.0.2", Loopback),
        ("127.255.255.255", Loopback),
        ("168.63.129.16", Metadata),
        ("169.254.0.0", LinkLocal),
        ("169.254.169.253", LinkLocal),
        ("169.254.169.254", Metadata),
        ("169.254.170.2", Metadata),
        ("169.254.255.255", LinkLocal),
        ("172.16.0.0", Private),
        ("172.17.0.1", Private),
        ("172.31.255.255", Private),
        ("192.0.0.0", Reserved),
        ("192.0.0.8", Reserved),
        ("192.0.0.192", Metadata),
        ("192.0.2.1", Documentation),
        ("192.88.99.1", Translated),
        ("192.168.0.0", Private),
        ("192.168.255.255", Private),
        ("198.18.0.0", Benchmarking),
        ("198.19.255.255", Benchmarking),
        ("198.51.100.7", Documentation),
        ("203.0.113.9", Documentation),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.254", Reserved),
        ("255.255.255.255", Broadcast),
        ("2606:4700:4700::1111", Public),
        ("2001:4860:4860::8888", Public),
        ("2001:200::1", Public),
        ("3ffe::1", Public),
        ("::", Unspecified),
        ("::1", Loopback),
        ("::2", Translated),
        ("::127.0.0.1", Translated),
        ("::8.8.8.8", Translated),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:10.1.2.3", Private),
        ("::ffff:169.254.169.254", Metadata),
        ("::ffff:8.8.8.8", Public),
        ("::ffff:0:127.0.0.1", Translated),
        ("64:ff9b::8.8.8.8", Public),
        ("64:ff9b::127.0.0.1", Loopback),
        ("64:ff9b::192.168.1.1", Private),
        ("64:ff9b::169.254.169.254", Metadata),
        ("64:ff9b:1::8.8.8.8", Translated),
        ("64:ff9b:0:1::1", Reserved),
        ("100::1", Reserved),
        ("2001::1", Translated),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Translated),
        ("2001:2::1", Benchmarking),
        ("2001:10::1", Reserved),
        ("2001:20::1", Reserved),
        ("2001:db8::1", Documentation),
        ("2002:7f00:1::", Translated),
        ("2002:808:808::1", Translated),
        ("3fff::1", Documentation),
        ("4000::1", Reserved),
        ("5f00::1", Reserved),
        ("fc00::1", Private),
        ("fd00:ec2::254", Metadata),
        ("fd20:ce::254", Metadata),
        ("fdff::1", Private),
        ("fe80::1", LinkLocal),
        ("fec0::1", Private),
        ("ff02::1", Multicast),
    ];

    /// G26 (addresses): only public addresses are reached through a name, in whatever form an address is written.
    #[test]
    fn g26_only_addresses_of_the_public_internet_are_public() {
        for (text, kind) in TABLE {
            assert_eq!(AddressKind::new(text.parse().unwrap()), kind, "{text}");
        }
    }
}
