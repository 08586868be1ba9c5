//! Maps by name with a hash that is the same on every machine. The standard hasher is seeded randomly, which the
//! kernel must not be; the tree's own limits bound collision floods.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use indexmap::IndexMap;

/// A map by name that keeps insertion order.
pub type ByName<K, V> = IndexMap<K, V, BuildHasherDefault<NameHasher>>;

/// Mixes a name eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameHasher(u64);

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        // The last word may overlap the one before it.
        match bytes.last_chunk::<8>() {
            Some(word) if !rest.is_empty() => self.write_u64(u64::from_le_bytes(*word)),
            Some(_) => {}
            None => self.write_u64(rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte))),
        }
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(MIX);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The multiplication leaves the low bits weak; the map uses both ends.
        (self.0 ^ (self.0 >> 32)).wrapping_mul(MIX)
    }
}

/// Grows by an eighth: doubling would waste as much memory as a large map uses.
pub(crate) fn make_room<K: Eq + Hash, V>(map: &mut ByName<K, V>) {
    if map.len() == map.capacity() {
        map.reserve_exact(map.len() / 8 + 4);
    }
}
