//! Byte ranges cut at page borders.
//!
//! Units: bytes at the border; pages and sectors inside. The groups' ranges of addresses follow
//! each other.

use super::params::SsdParams;
use crate::Exposed;
use cachewright_types::Bytes;

/// One page of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePart {
    /// The channel group.
    pub group: u16,
    /// The page within the group.
    pub page: u32,
    /// The sectors touched, a bit each from the first.
    pub sectors: u64,
}

/// How addresses are laid out on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLayout {
    page_bytes: u64,
    sector_shift: u32,
    sectors_per_page: u64,
    /// The page after the last of each group, counted over all groups.
    ends: Vec<u64>,
    /// The channels of each group.
    channels: Vec<Vec<u32>>,
}

impl AddressLayout {
    /// The layout of a drive whose groups have so many pages each.
    pub fn new(params: &SsdParams, group_pages: impl IntoIterator<Item = u32>) -> AddressLayout {
        let mut end = 0;
        let ends = group_pages.into_iter().map(|pages| {
            end += u64::from(pages);
            end
        });
        let mut channels = params.channel_groups.lists(params.channels);
        if channels.is_empty() {
            channels.push((0..params.channels).collect());
        }
        AddressLayout {
            page_bytes: params.page.0,
            sector_shift: params.sector.0.trailing_zeros(),
            sectors_per_page: (params.page.0 / params.sector.0).max(1),
            ends: ends.collect(),
            channels,
        }
    }

    /// The range of addresses of each group with its channels.
    pub fn exposed(&self) -> Vec<Exposed> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, end)| start..*end);
        let exposed = ranges.zip(&self.channels).map(|(pages, channels)| {
            let bytes = pages.start * self.page_bytes..pages.end * self.page_bytes;
            Exposed { channels: channels.clone(), bytes, page: self.page_bytes() }
        });
        exposed.collect()
    }

    /// Pages that can be addressed.
    pub fn pages(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Bytes that can be addressed.
    pub fn capacity(&self) -> Bytes {
        Bytes(self.pages() * self.page_bytes)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> Bytes {
        Bytes(self.page_bytes)
    }

    /// The sectors of a whole page.
    pub fn whole_page(&self) -> u64 {
        mask(0, self.sectors_per_page)
    }

    /// Bytes of the sectors of a mask.
    #[inline]
    pub fn bytes_of(&self, sectors: u64) -> u64 {
        u64::from(sectors.count_ones()) << self.sector_shift
    }

    /// The pages that a range of bytes touches, in order; a sector touched in part is touched.
    /// Pages beyond the end are left out.
    #[inline]
    pub fn parts(&self, offset: Bytes, length: Bytes) -> PageParts<'_> {
        let sector_bytes = 1_u64 << self.sector_shift;
        let next = offset.0 >> self.sector_shift;
        let end = offset.0.saturating_add(length.0).div_ceil(sector_bytes);
        let end = end.min(self.pages() * self.sectors_per_page);
        PageParts { layout: self, next, end: if length.0 == 0 { next } else { end } }
    }

    /// The number of a page counted over all groups.
    #[inline]
    pub fn number(&self, group: u16, page: u32) -> u64 {
        let before = usize::from(group).checked_sub(1).and_then(|last| self.ends.get(last));
        before.copied().unwrap_or(0) + u64::from(page)
    }

    /// The group of a page of the drive, and its number there.
    #[inline]
    pub fn locate(&self, page: u64) -> (u16, u32) {
        if let [_] = self.ends.as_slice() {
            return (0, page as u32);
        }
        let group = self.ends.partition_point(|end| *end <= page);
        let first = if group == 0 { 0 } else { self.ends[group - 1] };
        (group as u16, (page - first) as u32)
    }
}

/// So many bits (1 to 64) from the given one.
#[inline]
fn mask(first: u64, count: u64) -> u64 {
    u64::MAX >> (64 - count) << first
}

/// Iterator of [`AddressLayout::parts`].
#[derive(Clone, Debug)]
pub struct PageParts<'a> {
    layout: &'a AddressLayout,
    next: u64,
    end: u64,
}

impl Iterator for PageParts<'_> {
    type Item = PagePart;

    #[inline]
    fn next(&mut self) -> Option<PagePart> {
        if self.next >= self.end {
            return None;
        }
        let per_page = self.layout.sectors_per_page;
        let (page, within) = if per_page.is_power_of_two() {
            (self.next >> per_page.trailing_zeros(), self.next & (per_page - 1))
        } else {
            (self.next / per_page, self.next % per_page)
        };
        let count = (per_page - within).min(self.end - self.next);
        self.next += count;
        let (group, page) = self.layout.locate(page);
        Some(PagePart { group, page, sectors: mask(within, count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Value;
    use cachewright_types::declare::Declared;

    fn layout(page: &str, groups: &[u32]) -> AddressLayout {
        let mut params = SsdParams::default();
        params.set("page", &Value::Text(page.to_owned())).unwrap();
        AddressLayout::new(&params, groups.iter().copied())
    }

    fn parts(layout: &AddressLayout, offset: u64, length: u64) -> Vec<(u16, u32, u64)> {
        let parts = layout.parts(Bytes(offset), Bytes(length));
        parts.map(|part| (part.group, part.page, part.sectors)).collect()
    }

    #[test]
    fn ranges_are_cut_at_pages_and_counted_in_sectors() {
        let drive = layout("8KiB", &[100]);
        assert_eq!(parts(&drive, 0, 4096), [(0, 0, 0xff)]);
        assert_eq!(parts(&drive, 4096, 8192), [(0, 0, 0xff00), (0, 1, 0xff)]);
        assert_eq!(parts(&drive, 511, 2), [(0, 0, 0b11)]);
        assert_eq!(parts(&drive, 8192, 0), []);
        assert_eq!(parts(&drive, 99 * 8192, 1 << 20), [(0, 99, 0xffff)]);
        assert_eq!(drive.bytes_of(0xff00), 4096);
    }

    #[test]
    fn large_and_odd_pages_are_cut_alike() {
        let drive = layout("32KiB", &[10]);
        assert_eq!(parts(&drive, 0, 32 << 10), [(0, 0, u64::MAX)]);
        assert_eq!(drive.whole_page(), u64::MAX);
        let drive = layout("12KiB", &[10]);
        assert_eq!(parts(&drive, 8192, 8192), [(0, 0, 0xff_0000), (0, 1, 0xff)]);
    }

    #[test]
    fn groups_follow_each_other() {
        let drive = layout("8KiB", &[2, 3]);
        assert_eq!(drive.capacity(), Bytes(5 * 8192));
        let all = parts(&drive, 0, 5 * 8192);
        let at: Vec<(u16, u32)> = all.iter().map(|(group, page, _)| (*group, *page)).collect();
        assert_eq!(at, [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn each_group_is_exposed_with_its_channels() {
        let exposed = |groups: &str, pages: &[u32]| {
            let mut params = SsdParams::default();
            params.set("channels", &Value::Int(3)).unwrap();
            params.set("channel_groups", &Value::Text(groups.to_owned())).unwrap();
            AddressLayout::new(&params, pages.iter().copied()).exposed()
        };
        let range = |channels: &[u32], start: u64, end: u64| Exposed {
            channels: channels.to_vec(),
            bytes: start * 8192..end * 8192,
            page: Bytes(8192),
        };
        assert_eq!(exposed("all", &[9]), [range(&[0, 1, 2], 0, 9)]);
        assert_eq!(exposed("0,2 1", &[6, 3]), [range(&[0, 2], 0, 6), range(&[1], 6, 9)]);
    }
}
